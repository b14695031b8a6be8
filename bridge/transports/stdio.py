"""stdio: one client, one line a message, until stdin ends or a signal comes.

Source: basic/transports/stdio of 2026-07-28.
"""

import signal
import sys
from collections.abc import Callable

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

    async def serve(self, *, until_signal: bool = False) -> None:
        """Serve until the client's messages end.

        Args:
            until_signal: whether SIGTERM and SIGINT end it too. A second one ends the process.
        """
        async with anyio.create_task_group() as tasks:
            if until_signal and sys.platform != "win32":
                tasks.start_soon(_on_signal, self._connection.stop)
            try:
                await self._connection.serve(self._reader.read)
            finally:
                self._reader.close()
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(_LAST_SECONDS):
            await self._drain()

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            return


async def _on_signal(stop: Callable[[], None]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stop()
            return
