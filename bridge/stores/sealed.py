"""A store around a store, which keeps its values encrypted: whoever reads the disk or the server learns none of them.

Every value is an envelope of `asking/seal.py`, bound to the kind and name of what it stands under: one that was moved
to another record or log does not open. Names, times to live, the leases of nodes and the store's id stay readable.
What cannot be opened is as if it were not there, and is said once; it is never deleted, for others may hold its key.
It must not know which store it is around, nor what is stored.
"""

import logging
import os
from collections.abc import Mapping
from typing import Final

from bridge.asking.seal import BoundSeal, Broken, KeyRing
from bridge.errors import ConfigurationError
from bridge.stores.base import LogEntry, LogPage, Record, Store

__all__ = ["SealedStore"]

_CHECK: Final = "store/sealed"
_PLAIN: Final = ("node/", "store/")
_RECORD, _LOG = b"record:", b"log:"
_MOST_REASONS: Final = 100  # of different ones that are logged
_SKIPPED: Final = 500  # entries that are passed at a time on the way to one that can be read

_log = logging.getLogger("bridge.store")


class SealedStore:
    """A store whose values are encrypted in another one. `bridge.stores.base` has what each method does.

    Args:
        store: where the envelopes live.
        ring: the secrets: the first seals, every one opens.
    """

    def __init__(self, store: Store, ring: KeyRing) -> None:
        self.inner = store
        """Where the envelopes live."""
        self.shared = store.shared
        self.durable = store.durable
        self.ring = ring
        """What seals."""
        self._seal = BoundSeal(ring, os.urandom(16), "store")
        self._told: set[str] = set()

    async def check_ring(self) -> None:
        """Make sure that the ring opens what the nodes of this store seal, and let its first secret seal from now on.

        Raises:
            ConfigurationError: the store was made with a secret that is not in the ring.
        """
        bound_to, version = _RECORD + _CHECK.encode(), 0
        while True:
            sealed = self._seal.seal(b"", bound_to, os.urandom(12))
            if await self.inner.put(_CHECK, sealed, ttl_seconds=None, if_version=version) is not None:
                return
            found = await self.inner.get(_CHECK)
            if found is None:
                version = 0
                continue
            opened = self._seal.open(found.value, bound_to)
            if isinstance(opened, Broken):
                ids = ", ".join(kid.hex() for kid in self.ring.keys)
                raise ConfigurationError(
                    f"this node's keys ({ids}) do not open the store: its check record is {opened.reason}; give the "
                    "node the keys of the others, or, where they are lost, another store"
                )
            if self._seal.is_of_first(found.value):
                return
            version = found.version

    async def get(self, key: str) -> Record | None:
        found = await self.inner.get(key)
        if found is None or key.startswith(_PLAIN):
            return found
        value = self._open(found.value, _RECORD, key)
        return None if value is None else Record(value, found.version)

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        if key.startswith(_PLAIN):
            return await self.inner.put(key, value, ttl_seconds=ttl_seconds, if_version=if_version)
        sealed = self._seal.seal(value, _RECORD + key.encode(), os.urandom(12))
        version = await self.inner.put(key, sealed, ttl_seconds=ttl_seconds, if_version=if_version)
        if version is not None or if_version != 0:
            return version
        # Where nobody with these keys can see a record, there is none.
        found = await self.inner.get(key)
        if found is None or self._open(found.value, _RECORD, key) is not None:
            return None
        return await self.inner.put(key, sealed, ttl_seconds=ttl_seconds, if_version=found.version)

    async def take(self, key: str) -> bytes | None:
        # A look first: what is taken cannot be put back as it was.
        if await self.get(key) is None:
            return None
        taken = await self.inner.take(key)
        if taken is None or key.startswith(_PLAIN):
            return taken
        return self._open(taken, _RECORD, key)

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        sealed = self._seal.seal(value, _LOG + log.encode(), os.urandom(12))
        return await self.inner.append(log, sealed, ttl_seconds=ttl_seconds, max_entries=max_entries)

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """What cannot be opened is left out: its number is missing, and where it is the oldest, `first_seq` says so."""
        page = await self.inner.read(log, after=after, limit=limit)
        readable = self._readable(log, page)
        if len(readable) == len(page.entries):
            return page._replace(entries=readable)
        while page.entries and not readable:
            page = await self.inner.read(log, after=page.entries[-1].seq, limit=_SKIPPED)
            readable = self._readable(log, page)
        return self._with_gap(page, after, readable[:limit])

    def _readable(self, log: str, page: LogPage) -> list[LogEntry]:
        opened = [(entry.seq, self._open(entry.value, _LOG, log)) for entry in page.entries]
        return [LogEntry(seq, value) for seq, value in opened if value is not None]

    def _with_gap(self, page: LogPage, after: int, readable: list[LogEntry]) -> LogPage:
        oldest = readable[0].seq if readable else page.last_seq + 1
        first_seq = oldest if oldest > after + 1 else page.first_seq
        return LogPage(readable, first_seq, page.last_seq)

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        return await self.inner.wait(logs, timeout_seconds)

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        return await self.inner.scan(family, after=after, limit=limit)

    async def count(self, family: str) -> int:
        return await self.inner.count(family)

    async def aclose(self) -> None:
        await self.inner.aclose()

    def _open(self, sealed: bytes, kind: bytes, name: str) -> bytes | None:
        opened = self._seal.open(sealed, kind + name.encode())
        if not isinstance(opened, Broken):
            return opened
        if opened.reason not in self._told and len(self._told) < _MOST_REASONS:
            self._told.add(opened.reason)
            _log.error(
                "%r cannot be read and counts as absent, it is %s; other records and logs may be so too (said once)",
                name.partition("/")[0],
                opened.reason,
            )
        return None
