"""A client at the other end of a WebSocket: in process, as an ASGI server would drive the app."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.behaviours.talking import SECONDS, Json, Talker
from tests.wiretap import Tap

__all__ = ["Refused", "SocketClient", "connected"]

_BUFFER_EVENTS = 4
"""What a server keeps for a client that does not read."""


class Refused(Exception):
    """The handshake was refused.

    Args:
        status: the HTTP status; 403 where the server says no more than that.
        body: what it says.
        headers: of the response.
    """

    def __init__(self, status: int, body: bytes, headers: dict[bytes, bytes]) -> None:
        super().__init__(f"{status} {body!r}")
        self.status = status
        self.body = body
        self.headers = headers


class SocketClient(Talker):
    """Sends text frames, and reads frames when it is told to.

    Args:
        tap: judges what the server sends.
    """

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._say, self.incoming = anyio.create_memory_object_stream[Json](1000)
        self.outgoing, self._hear = anyio.create_memory_object_stream[Json](_BUFFER_EVENTS)
        self.subprotocol: str | None = None
        self.closed: tuple[int, str] | None = None
        """The code and the reason with which the server closed."""
        self.ended = anyio.Event()
        """Set when the app has returned."""

    async def send(self, *messages: Any) -> None:
        for message in messages:
            if not isinstance(message, bytes):
                self._conversation.heard(message)
            text = message.decode() if isinstance(message, bytes) else json.dumps(message)
            await self._say.send({"type": "websocket.receive", "text": text})

    async def send_binary(self, data: bytes) -> None:
        await self._say.send({"type": "websocket.receive", "bytes": data})

    async def next(self) -> Json | None:
        with anyio.fail_after(SECONDS):
            try:
                event = await self._hear.receive()
            except anyio.EndOfStream:
                return None
        if event["type"] == "websocket.close":
            self.closed = event["code"], event["reason"]
            return None
        message: Json = json.loads(event["text"])
        self._conversation.said(message)
        return message

    async def end(self) -> None:
        """Read to the end, which the server makes."""
        while (message := await self.next()) is not None:
            self.heard.append(message)

    def leave(self) -> None:
        """Go away."""
        self._say.send_nowait({"type": "websocket.disconnect", "code": 1001})
        self._hear.close()

    async def accepted(self) -> None:
        """Wait for the end of the handshake.

        Raises:
            Refused: it failed.
        """
        with anyio.fail_after(SECONDS):
            event = await self._hear.receive()
            if event["type"] == "websocket.accept":
                self.subprotocol = event["subprotocol"]
                return
            if event["type"] == "websocket.close":
                raise Refused(403, event["reason"].encode(), {})
            body = (await self._hear.receive())["body"]
        raise Refused(event["status"], body, dict(event["headers"]))


@asynccontextmanager
async def connected(
    app: Any,
    tap: Tap,
    *,
    path: str = "/ws",
    headers: dict[bytes, bytes] | None = None,
    subprotocols: tuple[str, ...] = ("mcp",),
    can_refuse: bool = True,
) -> AsyncIterator[SocketClient]:
    """Connect to an app; at the end the client goes away, and the app has to return."""
    client = SocketClient(tap)
    scope = {
        "type": "websocket",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": list({b"host": b"localhost", **(headers or {})}.items()),
        "subprotocols": list(subprotocols),
        "extensions": {"websocket.http.response": {}} if can_refuse else {},
    }

    async def receive() -> Json:
        return await client.incoming.receive()

    async def send(event: Any) -> None:
        try:
            await client.outgoing.send(event)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise OSError("the client has gone") from None

    async def serve() -> None:
        try:
            await app(scope, receive, send)
        finally:
            client.outgoing.close()
            client.ended.set()

    client._say.send_nowait({"type": "websocket.connect"})
    refused: Refused | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await client.accepted()
            yield client
        except Refused as reason:
            refused = reason
        finally:
            client.leave()
            with anyio.fail_after(SECONDS, shield=True):
                await client.ended.wait()
            client.incoming.close()
            client._say.close()
    if refused is not None:
        raise refused
