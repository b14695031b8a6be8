"""stdio: one client, one line a message, until stdin ends or a signal comes.

Source: basic/transports/stdio of 2026-07-28.
"""

import signal
import sys
from contextlib import suppress

import anyio

from bridge.protocol.messages import MAX_BODY_BYTES
from bridge.transports.connection import Connection
from bridge.transports.parts import Parts
from bridge.transports.pipes import LineReader, LineWriter

__all__ = ["StdioTransport"]

_LAST_SECONDS = 1.0


class StdioTransport:
    """Serves the client at the other end of two file descriptors.

    Args:
        parts: what answers.
        incoming: where the client's messages come from.
        outgoing: where messages to the client go.
    """

    def __init__(self, parts: Parts, incoming: int, outgoing: int) -> None:
        self._reader = LineReader(incoming, MAX_BODY_BYTES)
        self._writer = LineWriter(outgoing)
        self._connection = Connection(parts, self._writer.write)
        self._signals = anyio.CancelScope()

    async def serve(self, *, until_signal: bool = False) -> None:
        """Serve until the client's messages end.

        Args:
            until_signal: whether SIGTERM and SIGINT end it too. One that comes when it is ending ends the process.
        """
        async with anyio.create_task_group() as tasks:
            if until_signal and sys.platform != "win32":
                tasks.start_soon(self._heed_signals)
            try:
                await self._connection.serve(self._read)
            finally:
                self._reader.close()
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(_LAST_SECONDS), suppress(OSError):
            await self._writer.drain()

    async def _read(self) -> list[bytes] | None:
        lines = await self._reader.read()
        if lines is None:
            self._signals.cancel()
        return lines

    async def _heed_signals(self) -> None:
        with self._signals, anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                self._connection.stop()
                return
