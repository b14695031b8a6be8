"""How long to wait between two connections that are to stand."""

from typing import Final

import anyio

__all__ = ["Backoff"]

_FIRST_WAIT_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 30.0
_STEADY_SECONDS: Final = 5.0
"""A connection that lasted so long was one: what went wrong before it does not count any more."""


class Backoff:
    """How long to wait before the next connection: longer each time, until one lasts."""

    def __init__(self) -> None:
        self.failures = 0
        self._began = anyio.current_time()

    def began(self) -> None:
        """A connection begins."""
        self._began = anyio.current_time()

    def succeeded(self) -> None:
        """Something came."""
        self.failures = 0

    async def wait(self, asked_seconds: float | None = None) -> None:
        """Wait, at least as long as the server has asked for."""
        if anyio.current_time() - self._began >= _STEADY_SECONDS:
            self.failures = 0
        own = 0.0 if asked_seconds is not None and not self.failures else _FIRST_WAIT_SECONDS * 2**self.failures
        self.failures += 1
        await anyio.sleep(max(min(own, _LONGEST_WAIT_SECONDS), asked_seconds or 0.0))
