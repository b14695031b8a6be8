"""An HTTP server that does what its test says, byte by byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

__all__ = ["Answer", "Exchange", "FaultyServer", "faulty_server"]

Json = dict[str, Any]


class Exchange:
    """One request, and the way to answer it."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter):
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self._writer = writer

    @property
    def message(self) -> Json:
        message: Json = json.loads(self.body)
        return message

    async def answer(self, status: int, body: bytes | Json = b"", **headers: str) -> None:
        """A whole reply."""
        if not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), {"content_type": "application/json", **headers}
        await self.write(_head(status, content_length=str(len(body)), **headers) + body)

    async def result(self, result: Json, **headers: str) -> None:
        """The reply to a JSON-RPC request."""
        await self.answer(200, {"jsonrpc": "2.0", "id": self.message["id"], "result": result}, **headers)

    async def stream(self, **headers: str) -> None:
        """The head of a stream of events."""
        await self.write(_head(200, content_type="text/event-stream", transfer_encoding="chunked", **headers))

    async def event(self, message: Json | None = None, *, id: str = "", retry: str = "", kind: str = "") -> None:  # noqa: A002
        fields = {"event": kind, "id": id, "retry": retry, "data": "" if message is None else json.dumps(message)}
        lines = [f"{name}: {value}\n" for name, value in fields.items() if value]
        await self.chunk("".join(lines).encode() + b"\n")

    async def chunk(self, data: bytes) -> None:
        await self.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end(self) -> None:
        """The end of a stream, in good order."""
        await self.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """End the connection in the middle."""
        self._writer.transport.abort()

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Answer = Callable[[Exchange], Awaitable[None]]


class FaultyServer:
    """What it was asked, and how it answers."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.exchanges: list[Exchange] = []
        self.port = 0
        self.gone = asyncio.Event()
        """Set when a client has closed a connection."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def asked(self, method: str) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if exchange.method == method]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. What a client sends next is read while the last is answered, to see it go away."""
        answering: asyncio.Task[None] | None = None
        try:
            while True:
                exchange = await _read(reader, writer)
                if answering is not None:
                    await answering
                self.exchanges.append(exchange)
                answering = asyncio.ensure_future(self._guarded(exchange))
                self._tasks.add(answering)
                answering.add_done_callback(self._tasks.discard)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.gone.set()
            writer.close()

    async def _guarded(self, exchange: Exchange) -> None:
        with suppress(ConnectionError):
            await self._answer(exchange)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Exchange(method, path, headers, body, writer)


def _head(status: int, **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Status", *lines, "", ""]).encode()


@asynccontextmanager
async def faulty_server(answer: Answer) -> AsyncIterator[FaultyServer]:
    """Serve until the end of the block; what is still being answered then is cut off."""
    server = FaultyServer(answer)
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**20)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in (*connections, *server._tasks):
            task.cancel()
        await asyncio.gather(*connections, *server._tasks, return_exceptions=True)
