"""Whole messages to one client, one after the other, and the notice of one that never reads again.

Nothing is queued here: who sends waits while the client does not read, and the server's own buffer is all that is kept
for it. So what may wait is bounded by what may run.
"""

from collections.abc import Callable
from typing import Final

import anyio

from bridge.transports.running import Say

__all__ = ["Sending"]

STALLED_SECONDS: Final = 60.0
"""How long nothing may be read of what waits to be sent."""

LOOK_SECONDS: Final = 5.0


class Sending:
    """The way to one client.

    Args:
        send: sends a message, waiting while the client does not read; it raises OSError when it is not there any more.
    """

    def __init__(self, send: Say) -> None:
        self._send = send
        self._turn = anyio.Lock(fast_acquire=True)
        self._since: float | None = None

    async def write(self, message: bytes) -> None:
        """Send a message in its turn."""
        async with self._turn:
            self._since = anyio.current_time()
            try:
                await self._send(message)
            finally:
                self._since = None

    async def until_stalled(self, is_excused: Callable[[], bool]) -> None:
        """Return when nothing was read for too long.

        Args:
            is_excused: whether the client has a reason not to read at the moment.
        """
        last_well = anyio.current_time()
        while anyio.current_time() - last_well < STALLED_SECONDS:
            await anyio.sleep(LOOK_SECONDS)
            is_well = self._since is None or is_excused()
            last_well = anyio.current_time() if is_well else max(last_well, self._since or 0.0)
