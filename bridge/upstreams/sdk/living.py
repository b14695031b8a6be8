"""What lives longer than the call that began it: a task of its own, ended in bounded time. It knows no MCP.

A lifespan has to be left in the task that entered it, as the cancel scopes in it demand, and whoever starts a server
is seldom who ends it.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, TypeVar

import anyio

__all__ = ["Living", "end"]

State = TypeVar("State")

_CLEANUP_SECONDS: Final = 10.0
_log = logging.getLogger("bridge.upstream")


async def end(task: "asyncio.Task[None]", *, grace_seconds: float) -> None:
    """Wait until a task is over, and cancel it if it takes too long; whoever is cancelled meanwhile, waits on.

    Args:
        task: what to end; it was told so already.
        grace_seconds: how long it may take by itself.
    """
    with anyio.CancelScope(shield=True):
        await asyncio.wait({task}, timeout=grace_seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_CLEANUP_SECONDS)
    if not task.done():
        _log.error("%s does not end, although it was cancelled", task.get_name())
    elif not task.cancelled() and (error := task.exception()) is not None:
        _log.error("%s ended with an error", task.get_name(), exc_info=error)


class Living(Generic[State]):
    """A context manager that is entered and left in a task of its own.

    Args:
        manager: makes the context manager.
        name: how to call the task in a log.
    """

    def __init__(self, manager: Callable[[], AbstractAsyncContextManager[State]], name: str) -> None:
        self._manager = manager
        self._name = name
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> State:
        """Enter it, and return what it yields.

        Raises:
            Exception: what entering it raised.
        """
        entered: asyncio.Future[State] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(entered), name=self._name)
        try:
            return await entered
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Leave it, in bounded time. What that raises is logged."""
        self._over.set()
        if self._task is None:
            return
        task, self._task = self._task, None
        await end(task, grace_seconds=_CLEANUP_SECONDS)

    async def _live(self, entered: "asyncio.Future[State]") -> None:
        try:
            async with self._manager() as state:
                if not entered.done():
                    entered.set_result(state)
                await self._over.wait()
        except Exception as error:
            if entered.done():
                raise
            entered.set_exception(error)
