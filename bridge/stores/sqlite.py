"""A store in one SQLite file, for any number of processes on one machine.

Every operation is one statement or one transaction, run at once on the event loop: it takes microseconds, a
hop to a thread would take longer. When another process holds the file, the operation has done nothing and is
tried again after a short sleep, so the loop is never blocked by others. It knows keys, bytes and time, and
must not know what is stored.
"""

import math
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio

from bridge.errors import StoreError, StoreFull, StoreUnavailable
from bridge.stores import sqlite_file as file
from bridge.stores.base import LogPage, Record
from bridge.stores.wakes import Bell, Wakes

__all__ = ["SqliteStore"]

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
AWAY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.0005, 0.02
POLL_SECONDS = 0.01  # how late, at most, another process's append is noticed
SWEEP_EVERY, SWEEP_ROWS = 16, 64  # after so many writes, so many rows (0.3 ms), so that it outruns the writing
IDLE_SWEEP_EVERY, IDLE_SWEEP_ROWS = 100, 256  # polls, rows (1 ms): who only waits sweeps too
VERSIONS_RESERVED = 1000  # by one handle at a time; counting in the file costs as much as half a `put`

_Result = TypeVar("_Result")


class SqliteStore:
    """A store in one SQLite file.

    Args:
        path: the file; it and its directory are made, readable by this user only.
        wait_seconds: how long an operation waits for a file that another process holds.
        clock: the time in seconds that expiry is measured on; the processes must agree on it.

    Raises:
        ConfigurationError: the file was written by a newer version of this library.
        StoreError, StoreUnavailable: the file cannot be opened.
    """

    shared = True
    durable = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        wait_seconds: float = 10,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path).absolute()
        """The file."""
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._left_in_parent: list[sqlite3.Connection] = []
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        self._versions: Iterator[int] = iter(())
        self._writes = self._polls = 0
        self._more_to_sweep = True
        self._wakes = Wakes()
        self._poller: Bell | None = None
        self._seen_change = self._seen_entry = 0
        try:
            self._db = file.open_file(self.path, self._wait_seconds)
        except (sqlite3.Error, OSError) as error:
            raise _translated(error, self.path) from error

    def _open_after_fork(self) -> None:
        """A connection and the versions that were reserved belong to the process that opened and reserved them."""
        self._left_in_parent.append(self._db)  # kept: closing it here could undo locks of the parent
        self._open()

    async def get(self, key: str) -> Record | None:
        return await self._run(lambda db, now: file.get(db, now, key))

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        ttl = math.inf if ttl_seconds is None else ttl_seconds
        if self._process != os.getpid():
            self._open_after_fork()
        version = next(self._versions, 0) or await self._more_versions()
        written = await self._run(lambda db, now: file.put(db, now, key, value, version, ttl, if_version))
        self._sweep_in_turn()
        return version if written else None

    async def take(self, key: str) -> bytes | None:
        return await self._run(lambda db, now: file.take(db, now, key))

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        seq = await self._run(lambda db, now: file.append(db, now, log, value, ttl_seconds, max_entries))
        self._wakes.ring(log)
        self._sweep_in_turn()
        return seq

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self._run(lambda db, now: file.read(db, now, log, after, limit))

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        ready, _ = await self._run(lambda db, now: file.look(db, now, logs))
        if ready:
            return ready
        try:
            with self._wakes.listening(logs) as bell, anyio.move_on_after(timeout_seconds):
                while not (ready := await self._look(logs)):
                    await self._heard(bell)
        finally:
            if self._poller is None:
                self._wakes.ring_one()
        return ready

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        return await self._run(lambda db, now: file.scan(db, now, family, after, limit))

    async def count(self, family: str) -> int:
        return await self._run(lambda db, now: file.count(db, now, family))

    async def aclose(self) -> None:
        self._db.close()
        self._wakes.ring_all()  # who still waits learns it from the closed file

    async def _run(self, work: Callable[[sqlite3.Connection, float], _Result]) -> _Result:
        """Do `work` at the time it is tried: the one place where SQLite's errors become ours."""
        if self._process != os.getpid():
            self._open_after_fork()
        pause, gives_up_at = FIRST_RETRY_SECONDS, math.inf
        while True:
            try:
                return work(self._db, self._clock())
            except sqlite3.Error as error:
                if _code(error) not in BUSY or time.monotonic() >= gives_up_at:
                    raise _translated(error, self.path) from error
            gives_up_at = min(gives_up_at, time.monotonic() + self._wait_seconds)
            await anyio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LAST_RETRY_SECONDS)

    async def _more_versions(self) -> int:
        used = await self._run(lambda db, _: file.reserve_versions(db, VERSIONS_RESERVED))
        self._versions = iter(range(used + 1, used + 1 + VERSIONS_RESERVED))
        return next(self._versions)

    def _sweep_in_turn(self) -> None:
        self._writes += 1
        if self._more_to_sweep or self._writes % SWEEP_EVERY == 0:
            self._sweep(SWEEP_ROWS)

    def _sweep(self, rows: int) -> None:
        with suppress(sqlite3.Error):  # what was to be done is done; what is wrong, the next operation says
            self._more_to_sweep = file.sweep(self._db, self._clock(), rows)

    async def _look(self, logs: Mapping[str, int]) -> set[str]:
        """Return which of `logs` have news; to be called by who is listening already."""
        ready, newest_entry = await self._run(lambda db, now: file.look(db, now, logs))
        if len(self._wakes) == 1:
            # Nobody else waits for what came before this look; with others there, it may be news to them.
            self._seen_entry = newest_entry
        return ready

    async def _heard(self, bell: Bell) -> None:
        """Sleep until `bell` rings. One of the waiters meanwhile looks for news for all of them.

        So there is no task to own. A poller that leaves rings another waiter, which finds the place free.
        """
        if self._poller is not None:
            await bell.heard()
            return
        self._poller = bell
        try:
            while True:
                with anyio.move_on_after(POLL_SECONDS):
                    await bell.heard()
                    return
                await self._ring_for_news()
                self._polls += 1
                if self._more_to_sweep or self._polls % IDLE_SWEEP_EVERY == 0:
                    self._sweep(IDLE_SWEEP_ROWS)
        finally:
            self._poller = None

    async def _ring_for_news(self) -> None:
        change = await self._run(lambda db, _: file.change(db))
        if change == self._seen_change:
            return
        for log, newest in await self._run(lambda db, _: file.news(db, self._seen_entry)):
            self._seen_entry = max(self._seen_entry, newest)
            self._wakes.ring(log)
        self._seen_change = change


def _code(error: BaseException) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte, without the extended part


HINTS = {
    sqlite3.SQLITE_BUSY: "another process holds it: is one suspended, or a backup running?",
    sqlite3.SQLITE_READONLY: "this user may not write the file or its folder, or the disk is mounted read-only",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "the disk failed, or has no room",
    sqlite3.SQLITE_CANTOPEN: "is it a file that this user may open?",
    sqlite3.SQLITE_NOTADB: "give the store another file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: move it away, and sessions begin anew",
}
"""What to do about what SQLite says, by its code."""


def _translated(error: Exception, path: Path) -> StoreError:
    code = _code(error)
    if isinstance(error, OSError):
        return StoreUnavailable(f"{path}: {error.strerror or error}: is it a file that this user may read and write?")
    text = f"{path}: {error}" + (f" ({HINTS[code]})" if code in HINTS else "")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(text)
    if code in BUSY or code in AWAY:
        return StoreUnavailable(text)
    return StoreError(text)
