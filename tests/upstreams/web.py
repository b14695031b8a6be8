"""A server of a test's own over a real socket: JSON in, JSON out."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bridge.protocol.messages import encode

Handle = Callable[[dict[str, Any]], tuple[int, Any]]
left = anyio.Event()
"""Set when a client has left a request that is never answered."""
heads: list[bytes] = []
"""The heads of the requests that `http_server` has got."""


@asynccontextmanager
async def http_server(handle: Handle) -> AsyncIterator[str]:
    """A server of one's own over a real socket: from a message to an HTTP status and a body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                heads.append(head)
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
                body = await reader.readexactly(int(fields.get(b"content-length", 0)))
                status, answer = handle(json.loads(body)) if body else (405, None)
                if not status:
                    # It never answers: the client closes the connection when it gives up.
                    assert not await reader.read()
                    left.set()
                    return
                data = b"" if answer is None else encode(answer)
                kind = b"content-type: application/json\r\nmcp-session-id: s1\r\n"
                writer.write(b"HTTP/1.1 %d X\r\n%scontent-length: %d\r\n\r\n" % (status, kind, len(data)) + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
