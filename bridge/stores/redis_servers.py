"""How the servers behind a URL are reached, and over which hash tags keys are spread there.

One server, and one that Sentinels watch, have one tag. A Cluster has several, with evenly spread slots: a script
touches keys of one of them. It must not know what is stored.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from bridge.stores.redis_urls import RedisUrl

__all__ = ["Servers", "reach"]

_CONNECTIONS, _TLS_CONNECTIONS = 64, 16  # redis-py reads all certificates anew for each of the latter: 20 ms
_SPARE: Final = 2  # connections beside those of operations: for what is listened to
_ANSWER_SECONDS: Final = 5  # a server that is silent for so long counts as gone
_SHARDS: Final = 16  # of a Cluster. Counting a family asks each of them; a primary without any of them stays empty


class Servers(msgspec.Struct, frozen=True):
    """What is reached.

    Args:
        client: runs commands, wherever their keys live.
        tags: the hash tags over which keys are spread.
        listener: makes a client of one server, to subscribe with. It is closed by whoever asked for it.
        close: lets go of all connections.
        max_connections: how many operations may be under way at once.
        lossy: whether what is published at one server may not reach who listens at another.
    """

    client: Any
    tags: tuple[str, ...]
    listener: Callable[[], Any]
    close: Callable[[], Awaitable[None]]
    max_connections: int
    lossy: bool = False


def reach(url: RedisUrl, prefix: str, wait_seconds: float) -> Servers:
    """Make clients of the servers behind a URL. Nothing is connected yet."""
    answer_seconds = min(_ANSWER_SECONDS, wait_seconds)
    common: dict[str, Any] = {
        "socket_timeout": answer_seconds,
        "socket_connect_timeout": answer_seconds,
        "socket_keepalive": True,
        "protocol": 2,
        # The store itself sends again: it knows what may be sent twice.
        "retry": Retry(NoBackoff(), 0),
    }
    connection = {**common, **url.connection}
    most = _TLS_CONNECTIONS if "ssl" in connection else _CONNECTIONS
    if url.kind == "cluster":
        return _cluster(url, connection, prefix, most)
    if url.kind == "sentinel":
        return _watched(url, connection, {**common, **url.sentinel}, prefix, most)
    return _single(url, connection, prefix, most)


def _single(url: RedisUrl, connection: dict[str, Any], prefix: str, most: int) -> Servers:
    if url.socket:
        del connection["socket_keepalive"]
        client = Redis(unix_socket_path=url.socket, db=url.db, max_connections=most + _SPARE, **connection)
    else:
        ((host, port),) = url.hosts
        client = Redis(host=host, port=port, db=url.db, max_connections=most + _SPARE, **connection)
    return Servers(client, (f"{{{prefix}}}",), lambda: _Borrowed(client), client.aclose, most)


def _watched(url: RedisUrl, connection: dict[str, Any], watching: dict[str, Any], prefix: str, most: int) -> Servers:
    make: Any = Sentinel  # redis-py does not say what it takes
    sentinels = make(list(url.hosts), sentinel_kwargs=watching, **connection)
    client = sentinels.master_for(url.service, db=url.db, max_connections=most + _SPARE)

    async def close() -> None:
        await client.aclose()
        for sentinel in sentinels.sentinels:
            await sentinel.aclose()

    return Servers(client, (f"{{{prefix}}}",), lambda: _Borrowed(client), close, most)


def _cluster(url: RedisUrl, connection: dict[str, Any], prefix: str, most: int) -> Servers:
    nodes = [ClusterNode(host, port) for host, port in url.hosts]
    client = RedisCluster(startup_nodes=nodes, max_connections=most + _SPARE, **connection)

    def listener() -> Any:
        # Every node hears what is published at any of them.
        known = client.get_nodes()
        host, port = random.choice([(node.host, int(node.port)) for node in known] or list(url.hosts))
        return Redis(host=host, port=port, **connection)

    return Servers(client, _tags(prefix), listener, client.aclose, most, lossy=True)


class _Borrowed:
    """A client that somebody else closes."""

    def __init__(self, client: Any) -> None:
        self.pubsub = client.pubsub

    async def aclose(self) -> None:
        """Nothing is its own."""


def _tags(prefix: str) -> tuple[str, ...]:
    """Tags whose slots lie in equal parts of a Cluster's: for each the first number that leads there."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < _SHARDS:
        tag = f"{prefix}:{number}"
        part = key_slot(tag.encode()) * _SHARDS // REDIS_CLUSTER_HASH_SLOTS
        found.setdefault(part, f"{{{tag}}}")
        number += 1
    return tuple(found[part] for part in range(_SHARDS))
