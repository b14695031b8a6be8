"""A TCP proxy that cuts connections: on command, or in the middle of what the server says."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

_CHUNK_BYTES = 65_536
_WAIT_SECONDS = 30

Side = Literal["client", "server"]


class CuttingProxy:
    """Stands between clients and a server, and remembers what each side said.

    Args:
        port: the server's.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._changed = threading.Condition()
        self._said: dict[Side, bytes] = {"client": b"", "server": b""}
        self._marker: bytes | None = None
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        """The MCP endpoint behind the proxy."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def cut(self) -> None:
        """Close every connection. New ones are accepted."""
        with self._changed:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads it, and that closes it

    def cut_after(self, marker: bytes) -> None:
        """Close a connection, once, as soon as the server has said this on it; what it said behind that is lost.

        A marker is looked for in what comes from the socket at once, as the server writes each event.
        """
        with self._changed:
            self._marker = marker

    def wait_until_cut(self) -> None:
        """Wait for what `cut_after` has announced."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._marker is None, _WAIT_SECONDS), self._said["server"]

    def wait_until_said(self, side: Side, pattern: bytes, times: int = 1) -> None:
        """Wait until a side has said what matches a pattern, so often."""
        with self._changed:
            said = self._changed.wait_for(lambda: self.count(side, pattern) >= times, _WAIT_SECONDS)
            assert said, self._said[side]

    def count(self, side: Side, pattern: bytes) -> int:
        """How often a side has said what matches a pattern."""
        with self._changed:
            return len(re.findall(pattern, self._said[side]))

    def close(self) -> None:
        """End everything."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(_WAIT_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            with self._changed:
                self._open |= {client, server}
            self._threads.append(threading.Thread(target=self._serve, args=(client, server)))
            self._threads[-1].start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            back = threading.Thread(target=self._pump, args=("server", server, client))
            back.start()
            self._pump("client", client, server)
            back.join()
            with self._changed:
                self._open -= {client, server}

    def _pump(self, side: Side, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(_CHUNK_BYTES):
                passed, is_last = self._hear(side, chunk)
                target.sendall(passed)
                if is_last:
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _hear(self, side: Side, chunk: bytes) -> tuple[bytes, bool]:
        """What of a chunk is passed on, and whether the connection is cut behind it."""
        with self._changed:
            self._said[side] += chunk
            self._changed.notify_all()
            if side == "client" or self._marker is None or self._marker not in chunk:
                return chunk, False
            end = chunk.index(self._marker) + len(self._marker)
            self._marker = None
            return chunk[:end], True


@contextmanager
def cutting_proxy(port: int) -> Iterator[CuttingProxy]:
    """Run a proxy in front of a server."""
    proxy = CuttingProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
