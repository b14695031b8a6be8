"""A store inside this process: fast, bounded, and gone with it.

It is on the path of every message, so a `get` or `put` is a dict access and some bookkeeping. It knows keys,
bytes and time, and must not know what is stored, nor other processes.
"""

import heapq
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import anyio

from bridge.errors import StoreFull
from bridge.stores.base import LogEntry, LogPage, Record, families_of
from bridge.stores.shelf import Item, Shelf
from bridge.stores.wakes import Wakes

__all__ = ["MemoryStore"]

LOOK_SWEEP = 1000  # how many `count` and `scan` look at: 2 ms
SWEEP = 4  # how many due expiries one write looks at: more than one, so that sweeping outruns writing


class _Row(Item):
    """A record."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        super().__init__(len(record.value))
        self.record = record


class _Log(Item):
    """The entries that are left of a log, and its newest number."""

    __slots__ = ("entries", "last")

    def __init__(self, last: int) -> None:
        super().__init__()
        self.entries: deque[LogEntry] = deque()
        self.last = last

    def append(self, value: bytes, max_entries: int) -> None:
        self.last += 1
        self.entries.append(LogEntry(self.last, value))
        self.size += len(value)
        while len(self.entries) > max_entries:
            self.size -= len(self.entries.popleft().value)


class MemoryStore:
    """A store inside this process.

    Args:
        max_records: how many records and logs it holds at most.
        max_bytes: how many bytes of values it holds at most.
        clock: the time in seconds that expiry is measured on.

    Raises:
        StoreFull: from `put` and `append`, when something would not fit; nothing is evicted.
    """

    shared = False
    durable = False

    def __init__(
        self,
        *,
        max_records: int = 1_000_000,
        max_bytes: int = 1 << 30,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._clock = clock
        self._version = 0
        self._appended = 0
        self._families: dict[str, set[str]] = {}
        self._records: Shelf[_Row] = Shelf(self._leave_families)
        self._logs: Shelf[_Log] = Shelf()
        self._wakes = Wakes()

    async def get(self, key: str) -> Record | None:
        row = self._records.find(key, self._clock())
        return None if row is None else row.record

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        records, now = self._records, self._clock()
        row = records.find(key, now)
        if if_version is not None and if_version != (0 if row is None else row.record.version):
            return None
        more_bytes = len(value) - (0 if row is None else row.size)
        self._make_room(now, row is None, more_bytes)
        self._version += 1
        record = Record(value, self._version)
        if row is None:
            row = records.items[key] = _Row(record)
            self._join_families(key)
        else:
            row.record = record
            row.size = len(value)
        records.bytes += more_bytes
        records.renew(key, row, math.inf if ttl_seconds is None else now + ttl_seconds)
        records.sweep(now, SWEEP)
        return record.version

    async def take(self, key: str) -> bytes | None:
        row = self._records.find(key, self._clock())
        if row is None:
            return None
        self._records.drop(key)
        return row.record.value

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        logs, now = self._logs, self._clock()
        found = logs.find(log, now)
        self._make_room(now, found is None, len(value))
        if found is None:
            # Past every number of every log that ever was: nobody's position is mistaken for one in this log.
            found = logs.items[log] = _Log(self._appended)
        self._appended += 1
        before = found.size
        found.append(value, max_entries)
        logs.bytes += found.size - before
        logs.renew(log, found, now + ttl_seconds)
        logs.sweep(now, SWEEP)
        self._wakes.ring(log)
        return found.last

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        found = self._logs.find(log, self._clock())
        if found is None:
            return LogPage([], 1, 0)
        first = found.last - len(found.entries) + 1
        start = max(0, after + 1 - first)
        return LogPage(list(islice(found.entries, start, start + limit)), first, found.last)

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        if ready := self._ready(logs):
            return ready
        with self._wakes.listening(logs) as bell, anyio.move_on_after(timeout_seconds):
            while not (ready := self._ready(logs)):
                await bell.heard()
        return ready

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        return heapq.nsmallest(limit, (key for key in self._members(family) if key > after))

    async def count(self, family: str) -> int:
        members = self._members(family)
        return len(members) if isinstance(members, set) else sum(1 for _ in members)

    async def aclose(self) -> None:
        """Nothing is held but memory."""

    def _ready(self, logs: Mapping[str, int]) -> set[str]:
        now, find = self._clock(), self._logs.find
        return {log for log, after in logs.items() if (found := find(log, now)) and found.last != after}

    def _make_room(self, now: float, is_new: bool, more_bytes: int) -> None:
        """Raise StoreFull where one more item or `more_bytes` do not fit even after sweeping."""
        if self._fits(is_new, more_bytes):
            return
        self._records.sweep(now)
        self._logs.sweep(now)
        if not self._fits(is_new, more_bytes):
            raise StoreFull(f"the store holds at most {self._max_records} items, {self._max_bytes} bytes")

    def _fits(self, is_new: bool, more_bytes: int) -> bool:
        if is_new and len(self._records.items) + len(self._logs.items) >= self._max_records:
            return False
        return more_bytes <= 0 or self._records.bytes + self._logs.bytes + more_bytes <= self._max_bytes

    def _members(self, family: str) -> Iterable[str]:
        """The keys of a family, without those whose time is over: looked at one by one where many are to be swept."""
        records, now, members = self._records, self._clock(), self._families.get(family, set())
        if records.sweep(now, LOOK_SWEEP):
            return members
        return (key for key in members if records.items[key].expires > now)

    def _join_families(self, key: str) -> None:
        for family in families_of(key):
            self._families.setdefault(family, set()).add(key)

    def _leave_families(self, key: str) -> None:
        for family in families_of(key):
            members = self._families[family]
            members.discard(key)
            if not members:
                del self._families[family]
