"""Who in this process waits for which log.

A store rings here what was appended; only those who wait for that log wake up, and look for themselves. It
must not know how a store keeps its logs, nor run a task of its own.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import anyio

__all__ = ["Bell", "Wakes"]


class Bell:
    """What one waiter sleeps on. Rung twice before it is heard counts once; rung early is not lost."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = anyio.Event()

    @property
    def ringing(self) -> bool:
        """Whether it was rung and not yet heard."""
        return self._event.is_set()

    def ring(self) -> None:
        """Wake who sleeps on it, or who will."""
        self._event.set()

    async def heard(self) -> None:
        """Sleep until it rings, and make it ready for the next time."""
        await self._event.wait()
        self._event = anyio.Event()


class Wakes:
    """The bells of all waiters, by the logs that they wait for."""

    __slots__ = ("_bells", "_by_log")

    def __init__(self) -> None:
        self._bells: dict[Bell, None] = {}  # a dict, for its order: `ring_one` takes who waits longest
        self._by_log: dict[str, set[Bell]] = {}

    def __len__(self) -> int:
        return len(self._bells)

    @contextmanager
    def listening(self, logs: Iterable[str]) -> Iterator[Bell]:
        """Hand out a bell that rings for each of `logs`, and leave nothing behind."""
        bell, names = Bell(), tuple(logs)
        self._bells[bell] = None
        for log in names:
            self._by_log.setdefault(log, set()).add(bell)
        try:
            yield bell
        finally:
            del self._bells[bell]
            for log in names:
                self._leave(log, bell)

    def _leave(self, log: str, bell: Bell) -> None:
        bells = self._by_log[log]
        bells.discard(bell)
        if not bells:
            del self._by_log[log]

    def ring(self, log: str) -> None:
        """Wake those who wait for `log`."""
        for bell in self._by_log.get(log, ()):
            bell.ring()

    def ring_all(self) -> None:
        """Wake everyone: what was appended meanwhile is not known."""
        for bell in self._bells:
            bell.ring()

    def ring_one(self) -> None:
        """Wake who waits longest, if anyone does, to take over a common duty."""
        for bell in self._bells:
            bell.ring()
            return
