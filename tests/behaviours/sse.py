"""A client of HTTP+SSE: in process, as an ASGI server would drive the app."""

import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bridge.testing import AsgiHttp, HttpReply
from tests.behaviours.talking import SECONDS, Json, Talker
from tests.wiretap import Tap
from tests.wiretap.asgi import SseReader

__all__ = ["SseClient", "opened"]

JSON = {"content-type": "application/json"}


class SseClient(Talker):
    """Posts messages, and reads its stream when it is told to.

    Args:
        tap: judges what the server sends.
        app: where it posts.
        tasks: owns its requests.
        stream: the open stream.
    """

    def __init__(self, tap: Tap, app: Any, tasks: TaskGroup, stream: HttpReply) -> None:
        super().__init__(tap)
        self.app = app
        self.stream = stream
        self.endpoint = ""
        self._tasks = tasks
        self._reader = SseReader()
        self._events: deque[tuple[str, str]] = deque()

    async def send(self, *messages: Any) -> None:
        for message in messages:
            reply = await self.post(message)
            assert reply.status == 202, (reply.status, reply.raw)

    async def post(self, message: Any, headers: dict[str, str] | None = None, *, to: Any = None) -> HttpReply:
        """Post a message, or bytes, where the stream said so; return the reply."""
        if not isinstance(message, bytes):
            self._conversation.heard(message)
        path, _, query = self.endpoint.partition("?")

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await (to or self.app)({**scope, "query_string": query.encode()}, receive, send)

        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        reply = await AsgiHttp(app, self._tasks, path).request("POST", {**JSON, **(headers or {})}, body)
        with anyio.fail_after(SECONDS):
            await reply.closed()
        return reply

    async def event(self) -> tuple[str, str] | None:
        """The next event's name and data; None at the end."""
        with anyio.fail_after(SECONDS):
            while not self._events:
                chunk = await self.stream._next()
                if chunk is None:
                    return None
                self.stream.raw += chunk
                self._events += [(event.name, event.data) for event in self._reader.feed(chunk)]
        return self._events.popleft()

    async def next(self) -> Json | None:
        event = await self.event()
        if event is None:
            return None
        assert event[0] == "message"
        message: Json = json.loads(event[1])
        self._conversation.said(message)
        return message

    def leave(self) -> None:
        """Go away."""
        self.stream.disconnect()


@asynccontextmanager
async def opened(
    app: Any, tap: Tap, *, path: str = "/sse", headers: dict[str, str] | None = None
) -> AsyncIterator[SseClient]:
    """Open a stream; at the end the client goes away, and the app has to return."""
    async with anyio.create_task_group() as tasks:
        stream = await AsgiHttp(app, tasks, path).request("GET", {"accept": "text/event-stream", **(headers or {})})
        client = SseClient(tap, app, tasks, stream)
        if stream.status == 200:
            event = await client.event()
            assert event is not None
            assert event[0] == "endpoint"
            client.endpoint = event[1]
        try:
            yield client
        finally:
            client.leave()
