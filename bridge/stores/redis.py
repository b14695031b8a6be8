"""A store in Redis or Valkey (6.2 or newer), for any number of nodes.

Each operation is one command or one script, so it is atomic; the scripts and the layout are in
`redis_scripts.py`. An operation that meets a lost connection is sent again until `wait_seconds` have passed. It
knows keys, bytes and time, and must not know what is stored.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from bridge.errors import ConfigurationError, MissingExtraError, StoreError, StoreFull, StoreUnavailable
from bridge.stores import redis_scripts
from bridge.stores.base import LogEntry, LogPage, Record, families_of
from bridge.stores.wakes import Wakes

try:
    from redis import exceptions as fails
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.client import PubSub
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
except ImportError as error:
    raise MissingExtraError("RedisStore", "redis") from error

__all__ = ["RedisStore"]

# What may pass by itself: a server that is gone, starting, or no longer (or not yet) the writable one.
AWAY = (
    fails.ConnectionError,
    fails.TimeoutError,
    fails.ReadOnlyError,
    fails.ClusterDownError,
    fails.TryAgainError,
    OSError,
)
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.01, 0.5
ANSWER_SECONDS = 5  # a server that is silent for so long counts as gone
PING_SECONDS = 5  # silence on the channel after which it is asked whether the server is still there
RESULT_SECONDS = 60  # how long the result of a write is kept for its own repetition
MAX_CONNECTIONS = 64
CANCELS = 20  # how often the listener is told to end; the library may swallow it
CANCEL_SECONDS = 0.25  # how long it may take each time


class RedisStore:
    """A store in Redis or Valkey.

    Args:
        url: `redis://`, `rediss://` or `unix://`, as redis-py takes it.
        prefix: what the names of all keys begin with; stores with different ones do not see each other.
        wait_seconds: how long an operation waits for a server that is away.

    Raises:
        ConfigurationError: a URL or prefix that cannot work. Nothing is connected before the first call.
    """

    shared = True
    durable = True

    def __init__(self, url: str, *, prefix: str = "bridge", wait_seconds: float = 10) -> None:
        if not prefix or not prefix.isprintable() or "{" in prefix or "}" in prefix:
            raise ConfigurationError(f"the prefix {prefix!r} must be printable text without braces")
        self._tag = f"{{{prefix}}}"
        self._wait_seconds = wait_seconds
        self._result_ms = int(max(RESULT_SECONDS, 2 * wait_seconds) * 1000)
        self._client = Redis.from_pool(_pool(url, wait_seconds))
        self._put = self._client.register_script(redis_scripts.PUT)
        self._take = self._client.register_script(redis_scripts.TAKE)
        self._append = self._client.register_script(redis_scripts.APPEND)
        self._read = self._client.register_script(redis_scripts.READ)
        self._look = self._client.register_script(redis_scripts.LOOK)
        self._scan = self._client.register_script(redis_scripts.SCAN)
        self._count = self._client.register_script(redis_scripts.COUNT)
        self._closed = False
        self._wakes = Wakes()
        self._listener: asyncio.Task[None] | None = None
        self._subscribed = asyncio.Event()

    async def get(self, key: str) -> Record | None:
        return _record(await self._run(lambda: self._client.get(self._name("record", key))))

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        keys = [self._name("record", key), self._result_name(), f"{self._tag}:versions", *self._families(key)]
        ttl = "" if ttl_seconds is None else _milliseconds(ttl_seconds)
        args: list[Any] = [value, ttl, "" if if_version is None else if_version, key, self._result_ms]
        version = await self._run(lambda: self._put(keys, args))
        return None if version is None else int(version)

    async def take(self, key: str) -> bytes | None:
        keys = [self._name("record", key), self._result_name(), *self._families(key)]
        record = _record(await self._run(lambda: self._take(keys, [key, self._result_ms])))
        return None if record is None else record.value

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        keys = [self._name("log", log), self._result_name()]
        args: list[Any] = [value, _milliseconds(ttl_seconds), max_entries, self._channel, log, self._result_ms]
        return int(await self._run(lambda: self._append(keys, args)))

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        keys = [self._name("log", log)]
        first, last, start, *values = await self._run(lambda: self._read(keys, [after, limit]))
        return LogPage([LogEntry(seq, value) for seq, value in enumerate(values, start)], first, last)

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        if ready := await self._ready(logs):
            return ready
        self._check_open()
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name=f"wakes of the Redis store {self._tag}")
        with self._wakes.listening(logs) as bell, anyio.move_on_after(timeout_seconds):
            await self._until_subscribed()
            while not (ready := await self._ready(logs)):
                await bell.heard()
                await self._until_subscribed()
        return ready

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        keys = self._family(family)
        return [key.decode() for key in await self._run(lambda: self._scan(keys, [after, limit]))]

    async def count(self, family: str) -> int:
        keys = self._family(family)
        return int(await self._run(lambda: self._count(keys)))

    async def aclose(self) -> None:
        self._closed = True
        for _ in range(CANCELS):
            if self._listener is None or self._listener.done():
                break
            # The library may swallow one, as when it comes in the middle of a reconnection.
            self._listener.cancel()
            await asyncio.wait([self._listener], timeout=CANCEL_SECONDS)
        self._subscribed.set()
        self._wakes.ring_all()  # who still waits learns that the store is closed
        await self._client.aclose()

    def _name(self, kind: str, name: str) -> str:
        return f"{self._tag}:{kind}:{name}"

    def _result_name(self) -> str:
        """Name where one write keeps its result, so that sending it again does not do it again."""
        return self._name("result", secrets.token_urlsafe(12))

    def _family(self, family: str) -> list[str]:
        return [self._name("by-expiry", family), self._name("by-name", family)]

    def _families(self, key: str) -> list[str]:
        return [name for family in families_of(key) for name in self._family(family)]

    @property
    def _channel(self) -> str:
        return f"{self._tag}:wakes"

    async def _ready(self, logs: Mapping[str, int]) -> set[str]:
        keys = [self._name("log", log) for log in logs]
        newest = await self._run(lambda: self._look(keys)) if keys else []
        return {log for (log, after), last in zip(logs.items(), newest, strict=True) if last not in (0, after)}

    async def _run(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Have `send` answered: the one place where Redis' errors become ours.

        It may be called several times, and must send the same each time.
        """
        self._check_open()
        started = time.monotonic()
        try:
            return await send()
        except (fails.RedisError, OSError) as error:
            if not _may_pass(error):
                raise _translated(error) from error
            return await self._run_again(send, error, started + self._wait_seconds)
        finally:
            if self._closed:
                await self._client.aclose()  # `aclose` came meanwhile, and may have missed this connection

    async def _run_again(self, send: Callable[[], Awaitable[Any]], error: Exception, gives_up_at: float) -> Any:
        pause = FIRST_RETRY_SECONDS
        with anyio.move_on_after(gives_up_at - time.monotonic()):
            while True:
                await anyio.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, LAST_RETRY_SECONDS)
                self._check_open()
                try:
                    return await send()
                except (fails.RedisError, OSError) as again:
                    if not _may_pass(again):
                        raise _translated(again) from again
                    error = again
        raise StoreUnavailable(f"no answer from Redis for {self._wait_seconds} s: {error}") from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")

    async def _until_subscribed(self) -> None:
        with anyio.move_on_after(self._wait_seconds):
            await self._subscribed.wait()
            return
        raise StoreUnavailable(f"no wakes from Redis for {self._wait_seconds} s")

    async def _listen(self) -> None:
        """Ring what other nodes append. Started by the first `wait`, ended by `aclose`."""
        while True:
            try:
                async with self._client.pubsub() as pubsub:
                    await pubsub.subscribe(self._channel)
                    await self._hear(pubsub)
            except (fails.RedisError, OSError):
                self._subscribed.clear()
                self._wakes.ring_all()  # they may miss something now: they look, and wait for the next line
            await anyio.sleep(LAST_RETRY_SECONDS * random.uniform(0.1, 1))

    async def _hear(self, pubsub: PubSub) -> None:
        pinged = False
        while True:
            message = await pubsub.get_message(timeout=PING_SECONDS)
            if message is None:
                if pinged:
                    raise fails.ConnectionError("no answer to a ping")
                await pubsub.ping()
                pinged = True
                continue
            pinged = False
            if message["type"] == "message":
                self._wakes.ring(message["data"].decode())
            elif message["type"] == "subscribe":  # comes also after redis-py connected again by itself
                self._subscribed.set()
                self._wakes.ring_all()


def _pool(url: str, wait_seconds: float) -> BlockingConnectionPool:
    try:
        return BlockingConnectionPool.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            timeout=wait_seconds,
            retry=Retry(NoBackoff(), 0),  # the store itself sends again: it knows what may be sent twice
            socket_timeout=min(ANSWER_SECONDS, wait_seconds),
            socket_connect_timeout=min(ANSWER_SECONDS, wait_seconds),
            socket_keepalive=True,
            protocol=2,
        )
    except ValueError as error:
        # The URL itself is left out: it may hold a password.
        raise ConfigurationError(f"not the URL of a Redis server: {error}") from error


def _may_pass(error: Exception) -> bool:
    if isinstance(error, fails.AuthenticationError):
        return False
    # Redis 6 wraps what a script runs into in a text of its own.
    return isinstance(error, AWAY) or "-READONLY " in str(error)


def _translated(error: Exception) -> StoreError:
    if isinstance(error, fails.OutOfMemoryError) or "-OOM " in str(error):
        return StoreFull(f"Redis: {error}")
    return StoreError(f"Redis: {error}")


def _milliseconds(ttl_seconds: float) -> int:
    return int(ttl_seconds * 1000) if ttl_seconds > 0 else -1


def _record(stored: bytes | None) -> Record | None:
    if stored is None:
        return None
    version, _, value = stored.partition(b" ")
    return Record(value, int(version))
