"""A part of a store under a name: who uses it sees nothing of the other parts, nor they of it.

So several servers can keep their sessions in one file. It must not know which store it is in, nor what is stored.
"""

from collections.abc import Mapping

from bridge.stores.base import LogPage, Record, Store

__all__ = ["Space"]


class Space:
    """What stands under a name in another store. `bridge.stores.base` has what each method does.

    Args:
        store: the store, which is closed with this part of it.
        name: the name, without `/`. It is part of every key, and so shortens them.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.inner = store
        """The whole."""
        self.shared = store.shared
        self.durable = store.durable
        self._prefix = f"{name}/"

    async def get(self, key: str) -> Record | None:
        return await self.inner.get(self._prefix + key)

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        return await self.inner.put(self._prefix + key, value, ttl_seconds=ttl_seconds, if_version=if_version)

    async def take(self, key: str) -> bytes | None:
        return await self.inner.take(self._prefix + key)

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        return await self.inner.append(self._prefix + log, value, ttl_seconds=ttl_seconds, max_entries=max_entries)

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return await self.inner.read(self._prefix + log, after=after, limit=limit)

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        ready = await self.inner.wait({self._prefix + log: after for log, after in logs.items()}, timeout_seconds)
        return {log.removeprefix(self._prefix) for log in ready}

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        start = after and self._prefix + after
        keys = await self.inner.scan(self._prefix + family, after=start, limit=limit)
        return [key.removeprefix(self._prefix) for key in keys]

    async def count(self, family: str) -> int:
        return await self.inner.count(self._prefix + family)

    async def aclose(self) -> None:
        await self.inner.aclose()
