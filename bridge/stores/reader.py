"""Reading a log from a position on, over gaps and over the end of the log itself."""

from typing import Final

from bridge.stores.base import LogEntry, Store

__all__ = ["LogReader"]

_PAGE: Final = 200


class LogReader:
    """A position in a log.

    Args:
        store: where the log is.
        log: its name.
        position: the sequence number after which to read; 0 for all that is there.
    """

    __slots__ = ("log", "missed", "position", "store")

    def __init__(self, store: Store, log: str, position: int = 0) -> None:
        self.store = store
        self.log = log
        self.position = position
        self.missed = False
        """Whether entries were trimmed or cannot be read, or the log began anew, before they were read."""

    async def to_end(self) -> None:
        """Go past everything that is there now."""
        self.position = (await self.store.read(self.log, after=self.position, limit=1)).last_seq

    async def take(self) -> list[LogEntry]:
        """Read on, without waiting. A log that was over while nobody looked is read from its new beginning."""
        page = await self.store.read(self.log, after=self.position, limit=_PAGE)
        self.missed = page.first_seq > self.position + 1
        if page.last_seq < self.position:
            self.missed = True
            self.position = 0
            page = await self.store.read(self.log, limit=_PAGE)
        if page.entries:
            # A number that is left out belongs to what could not be read.
            self.missed = self.missed or page.entries[-1].seq - page.entries[0].seq >= len(page.entries)
            self.position = page.entries[-1].seq
        elif page.last_seq > self.position:
            self.missed = True
            self.position = page.last_seq
        return page.entries

    async def next(self, timeout_seconds: float) -> list[LogEntry]:
        """Read on, waiting for something to be there; empty when the time is over."""
        entries = await self.take()
        if not entries and await self.store.wait({self.log: self.position}, timeout_seconds):
            entries = await self.take()
        return entries
