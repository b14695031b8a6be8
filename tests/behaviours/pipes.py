"""A client at the other end of two pipes: every line that it gets is held against the revision it comes under."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bridge import Bridge
from bridge.transports.stdio import StdioTransport
from tests.behaviours.talking import META, SECONDS, Json, Talker, hello, is_reply, request
from tests.wiretap import Tap

__all__ = ["META", "SECONDS", "PipeClient", "hello", "is_reply", "request", "served"]

_CHUNK_BYTES = 65536


class PipeClient(Talker):
    """Sends lines, and reads lines when it is told to.

    Args:
        outgoing: where its lines go.
        incoming: where the server's come from.
        tap: judges what the server sends.
    """

    def __init__(self, outgoing: int, incoming: int, tap: Tap) -> None:
        super().__init__(tap)
        self._outgoing: int | None = outgoing
        self._incoming = incoming
        self._rest = b""
        self._lines: list[bytes] = []
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
