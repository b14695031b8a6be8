"""Hearing that the process is to end, beside whoever handles the signal.

An ASGI server tells its app of a shutdown once every connection has ended, which an open stream never does by itself.
So the app hears the signal too. The handler that was there goes on to do what it did.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

__all__ = ["EndSignals"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class EndSignals:
    """Hears SIGTERM and SIGINT where somebody handles them; nothing changes where nobody does.

    Args:
        heard: called in the event loop.
    """

    def __init__(self, heard: Callable[[], object]) -> None:
        self._heard = heard
        self._loop: asyncio.AbstractEventLoop | None = None
        self._previous: dict[int, Any] = {}

    def listen(self) -> None:
        """Begin. Signals reach the main thread only: elsewhere the app has to be told otherwise."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            if callable(previous) and previous is not signal.default_int_handler:
                self._previous[number] = previous
                signal.signal(number, self._handle)

    def stop(self) -> None:
        """Put back what was there. What was put over ours since then stays, and still passes through it."""
        self._loop = None
        if threading.current_thread() is not threading.main_thread():
            return
        for number in [number for number in self._previous if signal.getsignal(number) == self._handle]:
            signal.signal(number, self._previous.pop(number))

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._heard)
        self._previous[number](number, frame)
