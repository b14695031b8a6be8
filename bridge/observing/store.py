"""A store with somebody who is told how long it takes."""

from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import TypeAlias, TypeVar

from bridge.errors import StoreError
from bridge.stores.base import LogPage, Record, Store

__all__ = ["ObservedStore", "Took"]

Result = TypeVar("Result")
Took: TypeAlias = Callable[[str, float, bool], object]
"""Told of an operation, how many seconds it took, and whether the store did it."""


class ObservedStore:
    """See `Store`. `wait` is no operation whose time says anything.

    Args:
        store: the store.
        took: told of each operation.
    """

    def __init__(self, store: Store, took: Took) -> None:
        self._store = store
        self._took = took
        self.shared = store.shared
        self.durable = store.durable

    async def _timed(self, operation: str, doing: Awaitable[Result]) -> Result:
        began, did = perf_counter(), True
        try:
            return await doing
        except StoreError:
            did = False
            raise
        finally:
            self._took(operation, perf_counter() - began, did)

    async def get(self, key: str) -> Record | None:
        """See `Store`."""
        return await self._timed("get", self._store.get(key))

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        """See `Store`."""
        return await self._timed("put", self._store.put(key, value, ttl_seconds=ttl_seconds, if_version=if_version))

    async def take(self, key: str) -> bytes | None:
        """See `Store`."""
        return await self._timed("take", self._store.take(key))

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        """See `Store`."""
        doing = self._store.append(log, value, ttl_seconds=ttl_seconds, max_entries=max_entries)
        return await self._timed("append", doing)

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """See `Store`."""
        return await self._timed("read", self._store.read(log, after=after, limit=limit))

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        """See `Store`."""
        return await self._store.wait(logs, timeout_seconds)

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        """See `Store`."""
        return await self._timed("scan", self._store.scan(family, after=after, limit=limit))

    async def count(self, family: str) -> int:
        """See `Store`."""
        return await self._timed("count", self._store.count(family))

    async def aclose(self) -> None:
        """See `Store`."""
        await self._store.aclose()
