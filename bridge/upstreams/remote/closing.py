"""Ends what waits on a connection when the connection is closed."""

import asyncio
from types import TracebackType

from bridge.errors import UpstreamLost

__all__ = ["Interruptible"]


class Interruptible:
    """The requests under way on one connection, each in the task of its caller.

    It cancels tasks as `asyncio.timeout` does, for a cancel scope is dear where each request has one.
    """

    def __init__(self) -> None:
        self._running: set[_UnderWay] = set()
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


class _UnderWay:
    __slots__ = ("_cancels_before", "_is_interrupted", "_owner", "_running", "task")

    def __init__(self, running: "set[_UnderWay]", owner: Interruptible) -> None:
        self._running = running
        self._owner = owner
        self._is_interrupted = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self._cancels_before = task.cancelling()
        self._running.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.discard(self)
        if (
            self._is_interrupted
            # Somebody else may have cancelled the task as well, and is to be heard.
            and self.task.uncancel() <= self._cancels_before
            and isinstance(error, asyncio.CancelledError)
        ):
            raise UpstreamLost(self._owner.why) from None

    def interrupt(self) -> None:
        """Cancel the task, once."""
        if not self._is_interrupted:
            self._is_interrupted = True
            self.task.cancel()
