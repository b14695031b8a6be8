"""A tiny protocol client over a wire, and what a test needs to look at what came in."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio

from bridge.protocol.messages import (
    Json,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    notification,
    request_message,
)
from bridge.upstreams.wires import Wire

__all__ = ["SECONDS", "Session", "session", "until"]

SECONDS = 20
"""The longest that anything here may take."""


async def until(condition: Callable[[], object]) -> None:
    """Wait for what nothing tells: a line in a log, the end of somebody else's process."""
    with anyio.fail_after(SECONDS):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


class Session:
    """What came in over a wire, and requests over it."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.heard: list[tuple[Message, RequestId | None]] = []
        """Messages with the request that they came with."""
        self.why_closed: list[str] = []
        self._ids = count(1)
        self._stirred = asyncio.Event()

    async def open(self) -> None:
        await self.wire.open(self._receive, self._closed)

    async def initialize(self, revision: str = "2025-11-25", **capabilities: Any) -> Json:
        """The result of `initialize`; the session is then as far as any."""
        hello = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}
        result = await self.request("initialize", hello)
        await self.wire.initialized(result["protocolVersion"])
        await self.wire.send(notification("notifications/initialized"))
        await self.wire.listen()
        return result

    async def request(self, method: str, params: Json | None = None) -> Json:
        """The result of a request."""
        reply = await self.ask(method, params)
        assert isinstance(reply.result, dict), reply
        return reply.result

    async def ask(self, method: str, params: Json | None = None) -> Response:
        """The reply to a request."""
        identity = next(self._ids)
        await self.wire.send(request_message(identity, method, params or {}))
        return await self.reply(identity)

    async def call(self, tool: str, **arguments: Any) -> Json:
        return await self.request("tools/call", {"name": tool, "arguments": arguments})

    async def reply(self, identity: RequestId) -> Response:
        def is_it(message: Message) -> bool:
            return isinstance(message, Response) and message.id == identity

        message, _ = await self.until(is_it)
        assert isinstance(message, Response)
        return message

    async def told(self, method: str) -> tuple[Json, RequestId | None]:
        """The params of a notification or request of the server, and the request that it came with."""
        message, with_request = await self.until(lambda m: isinstance(m, Notification | Request) and m.method == method)
        assert isinstance(message, Notification | Request)
        return message.params, with_request

    async def until(self, wanted: Any) -> tuple[Message, RequestId | None]:
        with anyio.fail_after(SECONDS):
            while True:
                for entry in self.heard:
                    if wanted(entry[0]):
                        return entry
                self._stirred.clear()
                await self._stirred.wait()

    async def closed(self) -> str:
        """Why the wire closed."""
        with anyio.fail_after(SECONDS):
            while not self.why_closed:
                self._stirred.clear()
                await self._stirred.wait()
        return self.why_closed[0]

    async def _receive(self, message: Message, identity: RequestId | None) -> None:
        self.heard.append((message, identity))
        self._stirred.set()

    def _closed(self, why: str) -> None:
        self.why_closed.append(why)
        self._stirred.set()


@asynccontextmanager
async def session(wire: Wire) -> AsyncIterator[Session]:
    """An open wire, closed at the end."""
    made = Session(wire)
    try:
        await made.open()
        yield made
    finally:
        with anyio.fail_after(SECONDS):
            await wire.aclose()
    assert len(made.why_closed) <= 1, "closed is told once"
