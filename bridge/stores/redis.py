"""A store in Redis or Valkey (6.2 or newer), for any number of nodes.

Each operation is one command or one script, so it is atomic; the scripts and the layout are in `redis_scripts.py`, how
servers are reached in `redis_servers.py`. An operation that meets a lost connection is sent again until `wait_seconds`
have passed. It knows keys, bytes and time, and must not know what is stored.
"""

import asyncio
import hashlib
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias
from zlib import crc32

import anyio

from bridge.errors import ConfigurationError, MissingExtraError, StoreError, StoreFull, StoreUnavailable
from bridge.stores import redis_scripts, redis_urls
from bridge.stores.base import LogEntry, LogPage, Record, families_of

try:
    from redis import exceptions as fails

    from bridge.stores.redis_servers import reach
    from bridge.stores.redis_wakes import RedisWakes
except ImportError as error:
    raise MissingExtraError("RedisStore", "redis") from error

__all__ = ["RedisStore"]

# What may pass by itself: a server that is gone, starting, or no longer (or not yet) the writable one.
AWAY: tuple[type[Exception], ...] = (
    fails.ConnectionError,
    fails.TimeoutError,
    fails.ReadOnlyError,
    fails.ClusterDownError,
    fails.TryAgainError,
    fails.RedisClusterException,
    OSError,
)
# What a server says to a script of a user who lacks a right.
NOT_ALLOWED = ("NOPERM", "can't run this command", "can't access at least one of the keys")
REFUSED = (fails.AuthenticationError, fails.NoPermissionError)
FAILS = (fails.RedisError, fails.RedisClusterException, OSError)
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.01, 0.5
RESULT_SECONDS = 5  # how long, at least, the result of a write is kept for its own repetition

Script: TypeAlias = Callable[[Sequence[str], Sequence[Any]], Awaitable[Any]]


class RedisStore:
    """A store in Redis or Valkey: one server, one that Sentinels watch, or a Cluster.

    On a Cluster the store is spread over it: `count` and `scan` ask every part in turn, so that what changes meanwhile
    may be missed. A failover of Sentinels or of a Cluster loses what the new server had not yet been sent.

    Args:
        url: see `bridge.stores.redis_urls`: user, password and TLS are in it, and it may say `?prefix=…`.
        prefix: what the names of all keys begin with, `bridge` by default; stores with different ones do not see each
            other.
        wait_seconds: how long an operation waits for a server that is away.

    Raises:
        ConfigurationError: a URL or prefix that cannot work. Nothing is connected before the first call.
    """

    shared = True
    durable = True

    def __init__(self, url: str, *, prefix: str | None = None, wait_seconds: float = 10) -> None:
        parsed = redis_urls.parse(url)
        prefix = prefix if prefix is not None else "bridge" if parsed.prefix is None else parsed.prefix
        if not prefix or not prefix.isprintable() or "{" in prefix or "}" in prefix:
            raise ConfigurationError(f"the prefix {prefix!r} must be printable text without braces")
        self._wait_seconds = wait_seconds
        self._result_ms = int(max(RESULT_SECONDS, 2 * wait_seconds) * 1000)
        self._servers = reach(parsed, prefix, wait_seconds)
        self._client = self._servers.client
        self._tags = self._servers.tags
        self._channel = f"{{{prefix}}}:wakes"
        self._put = self._script(redis_scripts.PUT)
        self._take = self._script(redis_scripts.TAKE)
        self._append = self._script(redis_scripts.APPEND)
        self._read = self._script(redis_scripts.READ)
        self._look = self._script(redis_scripts.LOOK)
        self._scan = self._script(redis_scripts.SCAN)
        self._count = self._script(redis_scripts.COUNT)
        self._closed = False
        self._under_way = asyncio.Semaphore(self._servers.max_connections)
        self._wakes = RedisWakes(self._servers, self._channel, wait_seconds)

    async def get(self, key: str) -> Record | None:
        return _record(await self._run(lambda: self._client.get(f"{self._tag(key)}:record:{key}")))

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        tag = self._tag(key)
        keys = [f"{tag}:record:{key}", _result_name(tag), f"{tag}:versions", *_families(tag, key)]
        ttl = "" if ttl_seconds is None else _milliseconds(ttl_seconds)
        args: list[Any] = [value, ttl, "" if if_version is None else if_version, key, self._result_ms]
        version = await self._run(lambda: self._put(keys, args))
        return None if version is None else int(version)

    async def take(self, key: str) -> bytes | None:
        tag = self._tag(key)
        keys = [f"{tag}:record:{key}", _result_name(tag), *_families(tag, key)]
        record = _record(await self._run(lambda: self._take(keys, [key, self._result_ms])))
        return None if record is None else record.value

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        tag = self._tag(log)
        keys = [f"{tag}:log:{log}", _result_name(tag)]
        args: list[Any] = [value, _milliseconds(ttl_seconds), max_entries, self._channel, log, self._result_ms]
        return int(await self._run(lambda: self._append(keys, args)))

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        keys = [f"{self._tag(log)}:log:{log}"]
        first, last, *entries = await self._run(lambda: self._read(keys, [after, limit]))
        pairs = zip(entries[::2], entries[1::2], strict=True)
        return LogPage([LogEntry(seq, value) for seq, value in pairs], first, last)

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        if ready := await self._ready(logs):
            return ready
        self._check_open()
        with self._wakes.listening(logs) as bell, anyio.move_on_after(timeout_seconds):
            await self._wakes.until_subscribed()
            while not (ready := await self._ready(logs)):
                await bell.heard()
                await self._wakes.until_subscribed()
        return ready

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        pages = await self._everywhere(self._scan, family, [after, limit])
        return sorted(key.decode() for page in pages for key in page)[:limit]

    async def count(self, family: str) -> int:
        return sum(map(int, await self._everywhere(self._count, family, [])))

    async def aclose(self) -> None:
        self._closed = True
        await self._wakes.aclose()  # who still waits learns that the store is closed
        await self._servers.close()

    def _script(self, source: str) -> Script:
        """What runs a script by its hash, so that it is sent in full only where a server does not know it."""
        client, sha = self._client, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()

        async def run(keys: Sequence[str], args: Sequence[Any]) -> Any:
            try:
                return await client.evalsha(sha, len(keys), *keys, *args)
            except fails.NoScriptError:
                return await client.eval(source, len(keys), *keys, *args)

        return run

    def _tag(self, name: str) -> str:
        """The hash tag of all keys that are touched with the record or log `name`."""
        tags = self._tags
        return tags[0 if len(tags) == 1 else crc32(name.encode()) % len(tags)]

    async def _everywhere(self, script: Script, family: str, args: list[Any]) -> list[Any]:
        """Run a script on a family, on each part of the store."""

        async def run(tag: str) -> Any:
            keys = _family(tag, family)
            return await self._run(lambda: script(keys, args))

        return await _for_each(self._tags, run)

    async def _ready(self, logs: Mapping[str, int]) -> set[str]:
        by_tag: dict[str, list[str]] = {}
        for log in logs:
            by_tag.setdefault(self._tag(log), []).append(log)

        async def look(tag: str) -> set[str]:
            keys = [f"{tag}:log:{log}" for log in by_tag[tag]]
            newest = await self._run(lambda: self._look(keys, []))
            return {log for log, last in zip(by_tag[tag], newest, strict=True) if last not in (0, logs[log])}

        return set().union(*await _for_each(tuple(by_tag), look))

    async def _run(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Have `send` answered: the one place where Redis' errors become ours.

        It may be called several times, and must send the same each time.
        """
        self._check_open()
        gives_up_at = time.monotonic() + self._wait_seconds
        await self._turn()
        try:
            return await _sent(send)
        except FAILS as error:
            if not _may_pass(error):
                raise _translated(error) from error
            return await self._run_again(send, error, gives_up_at)
        finally:
            self._under_way.release()
            if self._closed:
                await self._servers.close()  # `aclose` came meanwhile, and may have missed this connection

    async def _turn(self) -> None:
        """Wait for one of the connections."""
        if not self._under_way.locked():
            await self._under_way.acquire()
            return
        with anyio.move_on_after(self._wait_seconds):
            await self._under_way.acquire()
            return
        raise StoreUnavailable(f"all connections to Redis are busy for {self._wait_seconds} s")

    async def _run_again(self, send: Callable[[], Awaitable[Any]], error: Exception, gives_up_at: float) -> Any:
        pause = FIRST_RETRY_SECONDS
        with anyio.move_on_after(gives_up_at - time.monotonic()):
            while True:
                await anyio.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, LAST_RETRY_SECONDS)
                self._check_open()
                try:
                    return await _sent(send)
                except FAILS as again:
                    if not _may_pass(again):
                        raise _translated(again) from again
                    error = again
        raise StoreUnavailable(f"no answer from Redis for {self._wait_seconds} s: {error}") from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")


def _family(tag: str, family: str) -> list[str]:
    return [f"{tag}:by-expiry:{family}", f"{tag}:by-name:{family}"]


def _families(tag: str, key: str) -> list[str]:
    return [name for family in families_of(key) for name in _family(tag, family)]


def _result_name(tag: str) -> str:
    """Name where one write keeps its result, so that sending it again does not do it again."""
    return f"{tag}:result:{secrets.token_urlsafe(12)}"


async def _for_each(tags: Sequence[str], run: Callable[[str], Awaitable[Any]]) -> list[Any]:
    """Run on all parts at once; raise what the first of those raises that fail, once all are over."""
    if len(tags) == 1:
        return [await run(tags[0])]
    results = await asyncio.gather(*map(run, tags), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


async def _sent(send: Callable[[], Awaitable[Any]]) -> Any:
    """What `send` gives. A client of a cluster closes every connection when it meets a lost one, also those that are
    still being made, and who made them finds None in place of a stream: that is a lost connection like any other.
    """
    try:
        return await send()
    except AttributeError as error:
        if error.obj is not None:
            raise
        raise fails.ConnectionError("the connection was closed while it was made") from error


def _may_pass(error: Exception) -> bool:
    if isinstance(error, REFUSED) or isinstance(error.__cause__, REFUSED) or "mode is not enabled" in str(error):
        return False
    # Redis 6 wraps what a script runs into in a text of its own.
    return isinstance(error, AWAY) or "-READONLY " in str(error)


def _translated(error: Exception) -> StoreError:
    if isinstance(error, fails.OutOfMemoryError) or "-OOM " in str(error):
        return StoreFull(f"Redis: {error}")
    if isinstance(error, fails.NoPermissionError) or any(words in str(error) for words in NOT_ALLOWED):
        return StoreError(f"Redis: {error}: docs/stores.md has the rights that the user needs")
    return StoreError(f"Redis: {error}")


def _milliseconds(ttl_seconds: float) -> int:
    return int(ttl_seconds * 1000) if ttl_seconds > 0 else -1


def _record(stored: bytes | None) -> Record | None:
    if stored is None:
        return None
    version, _, value = stored.partition(b" ")
    return Record(value, int(version))
