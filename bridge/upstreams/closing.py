"""Ends what waits on a connection, or on a server in this process, when that is closed."""

import asyncio
from types import TracebackType
from typing import Final

import anyio

from bridge.errors import UpstreamLost

__all__ = ["Interruptible"]

_AGAIN_SECONDS: Final = 0.1
"""How long what was interrupted may take to end before it is interrupted once more."""


class Interruptible:
    """The requests under way on one connection, each in the task of its caller.

    It cancels tasks as `asyncio.timeout` does, for a cancel scope is dear where each request has one.
    """

    def __init__(self) -> None:
        self._running: set[_UnderWay] = set()
        self._idle: anyio.Event | None = None
        self.why = ""

    def under_way(self) -> "_UnderWay":
        """A block that is interrupted when the connection is closed: it then raises `UpstreamLost`."""
        return _UnderWay(self._running, self)

    def interrupt(self, why: str) -> None:
        """Interrupt what is under way now, in other tasks than this one."""
        self.why, here = why, asyncio.current_task()
        for running in self._running:
            if running.task is not here:
                running.interrupt()

    async def end(self, why: str) -> None:
        """Interrupt what is under way until all of it is over: code that is not ours may swallow a cancellation."""
        while self._running:
            self.interrupt(why)
            self._idle = anyio.Event()
            with anyio.move_on_after(_AGAIN_SECONDS):
                await self._idle.wait()

    def over(self, running: "_UnderWay") -> None:
        """A block has ended."""
        self._running.discard(running)
        if self._idle is not None and not self._running:
            self._idle.set()


class _UnderWay:
    __slots__ = ("_cancels_before", "_interrupts", "_owner", "_running", "task")

    def __init__(self, running: "set[_UnderWay]", owner: Interruptible) -> None:
        self._running = running
        self._owner = owner
        self._interrupts = 0

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self._cancels_before = task.cancelling()
        self._running.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._owner.over(self)
        if not self._interrupts:
            return
        for _ in range(self._interrupts):
            self.task.uncancel()
        # Somebody else may have cancelled the task as well, and is to be heard.
        if self.task.cancelling() <= self._cancels_before and isinstance(error, asyncio.CancelledError):
            raise UpstreamLost(self._owner.why) from None

    def interrupt(self) -> None:
        """Cancel the task."""
        self._interrupts += 1
        self.task.cancel()
