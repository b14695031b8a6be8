"""The random id of a store, made with it: it tells whether a store still holds what it held."""

import secrets

from bridge.stores.base import STORE_ID, Store

__all__ = ["StoreIdentity"]


class StoreIdentity:
    """A store's id, looked at now and then: one that has lost what it held gets another.

    What is sealed over one store does not hold over another, whose claims know nothing of it.

    Args:
        store: the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.value = ""
        """The id when it was last looked at; empty before that."""

    async def look(self) -> bool:
        """Read the id, or make it; return whether it is another one than before."""
        record = await self._store.get(STORE_ID)
        if record is None:
            await self._store.put(STORE_ID, secrets.token_urlsafe(16).encode(), ttl_seconds=None, if_version=0)
            record = await self._store.get(STORE_ID)
            assert record is not None
        before, self.value = self.value, record.value.decode()
        return before not in ("", self.value)
