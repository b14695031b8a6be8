"""Where what outlasts one message is kept: the port, the stores, and `open_store`."""

from bridge.errors import ConfigurationError
from bridge.stores.base import LogEntry, LogPage, Record, Store
from bridge.stores.memory import MemoryStore
from bridge.stores.redis_urls import SCHEMES
from bridge.stores.sealed import SealedStore

__all__ = ["LogEntry", "LogPage", "MemoryStore", "Record", "SealedStore", "Store", "open_store"]


def open_store(url: str) -> Store:
    """Open the store that `url` names.

    Args:
        url: `memory`, `sqlite:///relative.db`, `sqlite:////absolute/path.db`, or the URL of a Redis or Valkey server
            (`redis://`, `rediss://`, `unix://`), of Sentinels (`redis+sentinel://`) or a Cluster (`redis+cluster://`);
            see `bridge.stores.redis_urls`.

    Raises:
        ConfigurationError: the URL is none of these, or what it names cannot work.
        MissingExtraError: it needs a package that is not installed.
        StoreError: the file cannot be opened.
    """
    scheme, _, rest = url.partition("://")
    if url == "memory":
        return MemoryStore()
    if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
        from bridge.stores.sqlite import SqliteStore

        return SqliteStore(rest[1:])
    if scheme in SCHEMES and rest:
        from bridge.stores.redis import RedisStore

        return RedisStore(url)
    given = f"{scheme}://…" if rest else url  # what follows may hold a password
    raise ConfigurationError(
        f"{given!r} names no store; expected 'memory', 'sqlite:///file.db', 'sqlite:////path/file.db'"
        " or 'redis://host:6379/0' (also rediss://, unix://, redis+sentinel:// and redis+cluster://)"
    )
