"""Lines over two file descriptors, read and written without ever blocking the event loop. Knows no protocol.

No descriptor is made non-blocking: the flag would be shared with whoever else holds the same terminal or pipe. A read
follows readiness, and no more is written at once than a ready pipe takes.
"""

import asyncio
import os
import select
import sys
from typing import Final

import anyio

from bridge.protocol.lines import LineSplitter

__all__ = ["LineReader", "LineWriter", "take_streams"]

_CHUNK_BYTES: Final = 64 * 1024
_WRITE_BYTES: Final = getattr(select, "PIPE_BUF", 4096)
"""What a pipe that is ready takes without blocking."""

_NOTHING: Final = memoryview(b"")


def take_streams() -> tuple[int, int]:
    """Keep this process's stdin and stdout for the wire; whatever else uses them gets nothing, and stderr.

    This is not undone: what a C library holds in its buffer is written when the process exits.

    Returns:
        Descriptors of what was stdin and of what was stdout, which child processes do not inherit.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    # What was printed and not written yet goes to stderr as well.
    sys.stdout.flush()
    sys.stdout = sys.stderr
    return incoming, outgoing


class LineReader:
    """Reads lines: as its descriptor becomes ready, or in a thread where that cannot be told (files, Windows).

    Args:
        descriptor: what is read.
        limit: see `LineSplitter`.
    """

    def __init__(self, descriptor: int, limit: int) -> None:
        self._descriptor = descriptor
        self._splitter = LineSplitter(limit)
        self._waiter: asyncio.Future[bytes] | None = None
        self._is_watched = False
        self._is_over = False
        self._in_thread = sys.platform == "win32"

    async def read(self) -> list[bytes] | None:
        """Return the lines that have come, perhaps none yet; None at the end."""
        if self._is_over:
            return None
        data = await self._next()
        if data:
            return self._splitter.feed(data)
        self._is_over = True
        return self._splitter.end()

    def close(self) -> None:
        """Stop watching the descriptor, which stays open."""
        self._is_over = True
        if self._is_watched:
            self._is_watched = False
            asyncio.get_running_loop().remove_reader(self._descriptor)

    async def _next(self) -> bytes:
        if not self._is_watched and not self._in_thread:
            try:
                asyncio.get_running_loop().add_reader(self._descriptor, self._readable)
                self._is_watched = True
            except (NotImplementedError, PermissionError):
                self._in_thread = True
        if self._in_thread:
            return await anyio.to_thread.run_sync(self._take, abandon_on_cancel=True) or b""
        # Watching goes on from one read to the next: to begin anew each time takes longer than a short call.
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def _readable(self) -> None:
        if self._waiter is None or self._waiter.done():
            asyncio.get_running_loop().remove_reader(self._descriptor)
            self._is_watched = False
        elif (data := self._take()) is not None:
            self._waiter.set_result(data)

    def _take(self) -> bytes | None:
        """What is there; empty at the end; None for a false alarm."""
        try:
            return os.read(self._descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            # A terminal that was closed.
            return b""


class LineWriter:
    """Writes whole lines, one after the other. Nothing is queued: who writes waits while nobody reads.

    Args:
        descriptor: where they go.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = anyio.Lock()
        self._rest = _NOTHING
        self._poll: select.poll | None = None
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLOUT)

    async def write(self, line: bytes) -> None:
        """Write a line. Cancelled in the middle of one, the rest of it goes before the next.

        Raises:
            OSError: nobody can read any more.
        """
        data = memoryview(line + b"\n")
        if not self._rest and not self._turn.locked():
            self._rest = data
            self._push()
            if not self._rest:
                return
            data = _NOTHING
        async with self._turn:
            await self._drain()
            self._rest = data
            await self._drain()

    async def drain(self) -> None:
        """Write what is left of a line whose writer was cancelled."""
        async with self._turn:
            await self._drain()

    async def _drain(self) -> None:
        while self._rest:
            if self._poll is None:
                rest, self._rest = self._rest, _NOTHING
                await anyio.to_thread.run_sync(_write_all, self._descriptor, rest)
                return
            self._push()
            if self._rest:
                await anyio.wait_writable(self._descriptor)

    def _push(self) -> None:
        """Write as much as is taken at once."""
        try:
            while self._rest and self._poll is not None and self._poll.poll(0):
                self._rest = self._rest[os.write(self._descriptor, self._rest[:_WRITE_BYTES]) :]
        except BlockingIOError:
            return


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
