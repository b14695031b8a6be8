"""The calls under way at a wrapped server: none for longer than it may take."""

import asyncio
from typing import Final

import anyio

from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.direct import Direct
from bridge.upstreams.live import Live

__all__ = ["UnderWay"]

_LOOK_SECONDS: Final = 0.5
_END_SECONDS: Final = 10.0


class UnderWay:
    """Owns the calls, and the tasks of those that have one."""

    def __init__(self) -> None:
        self._calls: dict[asyncio.Task[None], Live] = {}
        self._direct: set[Direct] = set()
        self._stirred = anyio.Event()

    def __len__(self) -> int:
        return len(self._calls) + len(self._direct)

    def start(self, live: Live) -> None:
        """Run a call in a task of its own."""
        # A task group, and a timer for each call, would take a tenth of the time of a short one.
        task = asyncio.get_running_loop().create_task(live.serve())
        self._calls[task] = live
        task.add_done_callback(self._ended)
        if len(self._calls) == 1:
            self._stirred.set()

    async def run(self, direct: Direct) -> Finished | Failed:
        """Run a call in the task of who wants it."""
        self._direct.add(direct)
        if len(self._direct) == 1:
            self._stirred.set()
        try:
            return await direct.run()
        finally:
            self._direct.discard(direct)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._calls[task]

    def _all(self) -> list[Live | Direct]:
        return [*self._calls.values(), *self._direct]

    async def watch(self) -> None:
        """End calls that take too long, for as long as the process serves."""
        while True:
            if not len(self):
                self._stirred = anyio.Event()
                await self._stirred.wait()
            await anyio.sleep(_LOOK_SECONDS)
            now = anyio.current_time()
            for call in self._all():
                call.end_if_late(now)

    async def aclose(self) -> None:
        """End every call; its server is told."""
        for call in self._all():
            call.give_up()
        if self._calls:
            await asyncio.wait(list(self._calls), timeout=_END_SECONDS)
        for task in list(self._calls):
            task.cancel()
