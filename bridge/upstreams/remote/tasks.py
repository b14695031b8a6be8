"""The background tasks of one connection.

A connection is opened by one call and closed by another, so no task group of a caller can hold what runs between.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

__all__ = ["Tasks"]

_END_SECONDS: Final = 5.0
_log = logging.getLogger("bridge.upstream")


class Tasks:
    """Owns tasks from when they start until they have ended."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run something in a task of its own. What it raises is logged."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def aclose(self) -> None:
        """Cancel every task but the one that calls this, and wait for their end, in bounded time."""
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s ended unexpectedly", task.get_name(), exc_info=error)
