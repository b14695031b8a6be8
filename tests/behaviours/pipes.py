"""A client at the other end of two pipes: every line that it gets is held against the revision it comes under."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio

from bridge import Bridge
from bridge.transports.stdio import StdioTransport
from tests.wiretap import Conversation, Tap

__all__ = ["META", "SECONDS", "PipeClient", "hello", "is_reply", "request", "served"]

SECONDS = 10
_CHUNK_BYTES = 65536

Json = dict[str, Any]

META: Json = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
"""What a modern client says of itself in each request."""


def hello(revision: str = "2025-11-25", **capabilities: Any) -> Json:
    """The params of `initialize`."""
    return {
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"},
    }


def request(identity: Any, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}}


def is_reply(identity: Any) -> Callable[[Json], bool]:
    """Whether a message answers the request with this id, its type counted."""

    def check(message: Json) -> bool:
        found = message.get("id")
        return "method" not in message and type(found) is type(identity) and found == identity

    return check


class PipeClient:
    """Sends lines, and reads lines when it is told to.

    Args:
        outgoing: where its lines go.
        incoming: where the server's come from.
        tap: judges what the server sends.
    """

    def __init__(self, outgoing: int, incoming: int, tap: Tap) -> None:
        self._outgoing: int | None = outgoing
        self._incoming = incoming
        self._conversation = Conversation(tap)
        self._rest = b""
        self._lines: list[bytes] = []
        self._ids = count(1)
        self.heard: list[Json] = []
        """Messages that were read on the way to another one, oldest first."""
        self.ended = anyio.Event()
        """Set when the server has returned."""

    async def send(self, *messages: Any) -> None:
        """Send messages in one write; bytes go as they are."""
        for message in messages:
            if not isinstance(message, bytes):
                self._conversation.heard(message)
        lines = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
        await self.send_raw(b"".join(line + b"\n" for line in lines))

    async def send_raw(self, data: bytes) -> None:
        """Send bytes, waiting where the server does not read."""
        assert self._outgoing is not None
        view = memoryview(data)
        with anyio.fail_after(SECONDS):
            while view:
                await anyio.wait_writable(self._outgoing)
                view = view[os.write(self._outgoing, view[:4096]) :]

    async def notify(self, method: str, params: Json | None = None) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def next(self) -> Json | None:
        """The next message; None at the end."""
        with anyio.fail_after(SECONDS):
            while not self._lines:
                await anyio.wait_readable(self._incoming)
                data = os.read(self._incoming, _CHUNK_BYTES)
                if not data:
                    assert self._rest == b"", "the last line was cut off"
                    return None
                *self._lines, self._rest = (self._rest + data).split(b"\n")
        message: Json = json.loads(self._lines.pop(0))
        self._conversation.said(message)
        return message

    async def until(self, wanted: Callable[[Json], bool]) -> Json:
        """The first message that is wanted; those before it go to `heard`."""
        for message in self.heard:
            if wanted(message):
                self.heard.remove(message)
                return message
        while (message := await self.next()) is not None:
            if wanted(message):
                return message
            self.heard.append(message)
        raise AssertionError(f"it did not come; there were {self.heard}")

    async def reply(self, identity: Any) -> Json:
        """The reply to a request."""
        return await self.until(is_reply(identity))

    async def notification(self, method: str) -> Json:
        """The params of the next notification of a kind."""
        params: Json = (await self.until(lambda m: m.get("method") == method)).get("params", {})
        return params

    async def ask(self, method: str, params: Json | None = None) -> Json:
        """Make a request; return its whole reply."""
        identity = f"c{next(self._ids)}"
        await self.send(request(identity, method, params))
        return await self.reply(identity)

    async def initialize(self, revision: str = "2025-11-25", **capabilities: Any) -> Json:
        """Open the session; return the result of `initialize`."""
        reply = await self.ask("initialize", hello(revision, **capabilities))
        await self.notify("notifications/initialized")
        result: Json = reply["result"]
        return result

    async def start(self, identity: Any, tool: str, meta: Json | None = None, /, **arguments: Any) -> None:
        """Call a tool, and do not wait for it."""
        await self.send(request(identity, "tools/call", _call(tool, arguments, meta)))

    async def call(self, tool: str, meta: Json | None = None, /, **arguments: Any) -> Json:
        """Call a tool; return its result."""
        reply = await self.ask("tools/call", _call(tool, arguments, meta))
        assert "result" in reply, reply
        result: Json = reply["result"]
        return result

    async def question(self) -> Json:
        """The next `elicitation/create`."""
        return await self.until(lambda message: message.get("method") == "elicitation/create")

    async def answer(self, question: Json, content: Json) -> None:
        """Accept a question."""
        await self.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}})

    def close(self) -> None:
        """Say no more."""
        if self._outgoing is not None:
            os.close(self._outgoing)
            self._outgoing = None

    def leave(self) -> None:
        """Read no more."""
        if self._incoming >= 0:
            os.close(self._incoming)
            self._incoming = -1


def _call(tool: str, arguments: Json, meta: Json | None) -> Json:
    params: Json = {"name": tool, "arguments": arguments}
    return params if meta is None else {**params, "_meta": meta}


@asynccontextmanager
async def served(bridge: Bridge, tap: Tap) -> AsyncIterator[PipeClient]:
    """Serve a bridge over two pipes; at the end the client says no more, and the server has to return."""
    server_in, client_out = os.pipe()
    client_in, server_out = os.pipe()
    mcp = PipeClient(client_out, client_in, tap)

    async def serve() -> None:
        app = bridge.asgi()
        async with app.lifespan():
            await StdioTransport(app.parts, server_in, server_out).serve()
        mcp.ended.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            yield mcp
            mcp.close()
            with anyio.fail_after(SECONDS):
                await mcp.ended.wait()
    finally:
        mcp.close()
        mcp.leave()
        os.close(server_in)
        os.close(server_out)
