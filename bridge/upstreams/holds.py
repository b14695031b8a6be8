"""The calls that are suspended in this process: bounded in number, and each in time."""

import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

import anyio

__all__ = ["Holds", "Suspended"]

_LOOK_SECONDS: Final = 1.0


class Suspended(Protocol):
    """A call that waits for an answer."""

    async def cancel(self) -> None:
        """End it without one."""
        ...


Call = TypeVar("Call", bound=Suspended)


class Holds(Generic[Call]):
    """Finds suspended calls by their id, and ends those whose time is over.

    Args:
        node_id: names the process.
        limit: how many there may be.
        clock: seconds since the epoch.
    """

    def __init__(self, node_id: str, limit: int, clock: Callable[[], float] = time.time) -> None:
        self.node_id = node_id
        self._limit = limit
        self._clock = clock
        self._calls: dict[str, Call] = {}
        self._until: dict[str, float] = {}
        self._stirred = anyio.Event()

    def __len__(self) -> int:
        return len(self._calls)

    def admit(self, call_id: str, call: Call) -> bool:
        """Let a call be suspended; False where too many are."""
        if call_id not in self._calls and len(self._calls) >= self._limit:
            return False
        self._calls[call_id] = call
        return True

    def keep(self, call_id: str, until: float) -> None:
        """End a suspended call at a moment, unless somebody has gone on with it by then."""
        if call_id in self._calls:
            self._until[call_id] = until
            self._stirred.set()

    def find(self, call_id: str) -> Call | None:
        """Look at a suspended call; None where it is not, or no longer, suspended here."""
        return self._calls.get(call_id)

    def take(self, call_id: str) -> Call | None:
        """Find a call to go on with; None where it is not, or no longer, suspended here."""
        self._until.pop(call_id, None)
        return self._calls.pop(call_id, None)

    def forget(self, call_id: str, call: Call) -> None:
        """A call is over."""
        if self._calls.get(call_id) is call:
            self.take(call_id)

    async def watch(self) -> None:
        """End what nobody has answered in time, for as long as the process serves."""
        while True:
            if not self._until:
                self._stirred = anyio.Event()
                await self._stirred.wait()
            await anyio.sleep(_LOOK_SECONDS)
            now = self._clock()
            late = [call_id for call_id, until in self._until.items() if until <= now]
            for call_id in late:
                call = self.take(call_id)
                if call is not None:
                    await call.cancel()

    async def end_all(self) -> None:
        """End every suspended call: the process shuts down."""
        async with anyio.create_task_group() as tasks:
            for call_id in list(self._calls):
                call = self.take(call_id)
                if call is not None:
                    tasks.start_soon(call.cancel)
