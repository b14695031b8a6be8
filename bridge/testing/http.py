"""Driving an ASGI app in process, as an HTTP server would."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from bridge.protocol.messages import Json

__all__ = ["AsgiHttp", "HttpReply"]


class HttpReply:
    """The answer to one HTTP request, as it comes."""

    def __init__(self, close: Callable[[], None]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.events: list[tuple[str | None, Json]] = []
        self.retry: str | None = None
        self.last_event_id: str | None = None
        self.raw = b""
        self.disconnect = close
        self._chunks: deque[bytes | None] = deque()
        self._more = anyio.Event()
        self._started = anyio.Event()
        self._rest = b""

    async def messages(self) -> AsyncIterator[Json]:
        """The messages of the reply, one by one: of a JSON body or of a stream."""
        is_stream = self.headers.get("content-type") == "text/event-stream"
        while (chunk := await self._next()) is not None:
            self.raw += chunk
            if is_stream:
                for message in self._parse(chunk):
                    yield message
        if not is_stream and self.raw:
            yield msgspec.json.decode(self.raw)

    def put(self, chunk: bytes | None) -> None:
        """Take a part of the body; None for its end."""
        self._started.set()
        self._chunks.append(chunk)
        self._more.set()

    async def _next(self) -> bytes | None:
        while not self._chunks:
            self._more = anyio.Event()
            await self._more.wait()
        return self._chunks.popleft() if self._chunks[0] is not None else None

    def _parse(self, chunk: bytes) -> list[Json]:
        *whole, self._rest = (self._rest + chunk).split(b"\n\n")
        found = []
        for block in whole:
            data = b""
            for line in block.split(b"\n"):
                name, _, value = line.partition(b":")
                value = value.removeprefix(b" ")
                if name == b"id":
                    self.last_event_id = value.decode()
                elif name == b"retry":
                    self.retry = value.decode()
                elif name == b"data":
                    data += value
            if data:
                message = msgspec.json.decode(data)
                self.events.append((self.last_event_id, message))
                found.append(message)
        return found

    async def json(self) -> Json:
        """The whole body as JSON."""
        async for _ in self.messages():
            pass
        body: Json = msgspec.json.decode(self.raw)
        return body

    async def closed(self) -> None:
        """Wait for the end of the body."""
        async for _ in self.messages():
            pass


class AsgiHttp:
    """Drives an ASGI app as an HTTP server would.

    Args:
        app: the ASGI app.
        tasks: owns the app's requests.
        path: the endpoint.
    """

    def __init__(self, app: Any, tasks: TaskGroup, path: str = "/mcp") -> None:
        self._app = app
        self._tasks = tasks
        self._path = path

    async def request(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> HttpReply:
        """Send a request; return once the reply has begun."""
        gone = anyio.Event()
        reply = HttpReply(gone.set)
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        if b"host" not in dict(raw):
            raw.append((b"host", b"localhost"))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": self._path,
            "root_path": "",
            "query_string": b"",
            "headers": raw,
        }
        self._tasks.start_soon(self._serve, scope, body, reply, gone)
        await reply._started.wait()
        return reply

    async def _serve(self, scope: Json, body: bytes, reply: HttpReply, gone: anyio.Event) -> None:
        received = False

        async def receive() -> Json:
            nonlocal received
            if not received:
                received = True
                return {"type": "http.request", "body": body, "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if gone.is_set():
                return
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                reply.headers = {name.decode(): value.decode() for name, value in message["headers"]}
                reply._started.set()
            elif message.get("body"):
                reply.put(message["body"])
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                reply.put(None)

        try:
            await self._app(scope, receive, send)
        finally:
            reply.put(None)
