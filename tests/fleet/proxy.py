"""A load balancer that never sends two requests in a row to the same node: `python -m tests.fleet.proxy PORT NODE…`.

It speaks HTTP/1.1 as far as it has to: it reads a request up to its body's length, and hands on the bytes of the
response as they come. Each request has connections of its own, so that none sticks to a node. A request goes to the
next node where none can be reached at the first; once it was sent it is never sent again: nobody can know what came
of it. It needs nothing of the bridge.
"""

import asyncio
import re
import sys
from contextlib import suppress
from itertools import count
from typing import Final

_CHUNK_BYTES: Final = 65_536
_HEAD_BYTES: Final = 65_536
_CONNECTION: Final = re.compile(rb"\r\n(?:connection|keep-alive):[^\r]*", re.IGNORECASE)
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_NO_NODE: Final = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Balancer:
    """Hands each request to the next node.

    Args:
        nodes: their ports.
    """

    def __init__(self, nodes: list[int]) -> None:
        self._nodes = nodes
        self._turns = count()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the one request of a connection."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._relay(reader, writer)
        writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else b""
        found = await self._node()
        if found is None:
            writer.write(_NO_NODE)
            return
        from_node, to_node = found
        to_node.write(_CONNECTION.sub(b"", head)[:-2] + b"Connection: close\r\n\r\n" + body)
        going = asyncio.create_task(_gone(reader, to_node))
        try:
            await _pump(from_node, writer)
        finally:
            going.cancel()
            to_node.transport.abort()

    async def _node(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first = next(self._turns)
        for turn in range(first, first + len(self._nodes)):
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", self._nodes[turn % len(self._nodes)])
        return None


async def _pump(from_node: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await from_node.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()


async def _gone(reader: asyncio.StreamReader, to_node: asyncio.StreamWriter) -> None:
    """The client left: so does its request."""
    with suppress(OSError):
        while await reader.read(_CHUNK_BYTES):
            pass
    to_node.transport.abort()


async def main(port: int, nodes: list[int]) -> None:
    """Serve until terminated."""
    server = await asyncio.start_server(Balancer(nodes).serve, "127.0.0.1", port, limit=_HEAD_BYTES, backlog=1024)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
