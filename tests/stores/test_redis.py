"""What only the Redis store promises: a connection may be lost at any time, and nothing happens twice."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLost

from bridge.errors import ConfigurationError, StoreError, StoreFull, StoreUnavailable
from bridge.stores.redis import RedisStore
from tests.redis_server import RedisServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis_url, prefix=f"test-{time.monotonic_ns()}")
    yield store
    await store.aclose()


@pytest.fixture
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.stop()


def losing_its_answer(script: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Run `script` on the server, but lose the connection before its first answer is read."""
    calls = 0

    async def run(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        result = await script(*args)
        if calls == 1:
            raise ConnectionLost("lost by the test")
        return result

    return run


async def test_a_conditional_put_that_is_sent_twice_does_not_lose_to_itself(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_put", losing_its_answer(store._put))
    version = await store.put("a", b"1", ttl_seconds=60, if_version=0)
    assert await store.get("a") == (b"1", version)


async def test_an_append_that_is_sent_twice_happens_once(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_append", losing_its_answer(store._append))
    number = await store.append("log", b"1", ttl_seconds=60, max_entries=5)
    assert (await store.read("log")).entries == [(number, b"1")]


async def test_a_connection_that_is_closed_while_it_is_made_is_a_lost_one(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the client of a cluster does to a command beside one that meets a lost connection."""
    put, closed = store._put, [None, None]

    async def run(*args: Any) -> Any:
        if closed:
            closed.pop().writelines(b"")  # type: ignore[attr-defined]
        return await put(*args)

    monkeypatch.setattr(store, "_put", run)
    version = await store.put("a", b"1", ttl_seconds=60, if_version=0)
    assert await store.get("a") == (b"1", version)
    assert not closed


async def test_a_mistake_in_the_code_is_no_lost_connection(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*args: Any) -> Any:
        return object().missing  # type: ignore[attr-defined]

    monkeypatch.setattr(store, "_put", run)
    with pytest.raises(AttributeError, match="missing"):
        await store.put("a", b"1", ttl_seconds=60)


async def test_a_take_that_is_sent_twice_keeps_what_it_took(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.put("a/b", b"1", ttl_seconds=60)
    monkeypatch.setattr(store, "_take", losing_its_answer(store._take))
    assert await store.take("a/b") == b"1"
    assert await store.take("a/b") is None
    assert await store.count("a") == 0


async def test_each_write_happens_once_while_connections_break(store: RedisStore, redis_url: str) -> None:
    written: list[int] = []

    async def write(writer: int, killer: Redis) -> None:
        for number in range(30):
            value = b"%d %d" % (writer, number)
            written.append(await store.append("log", value, ttl_seconds=60, max_entries=1000))
            if number % 3 == writer == 0:  # while the others write
                await killer.client_kill_filter(_type="normal", skipme=True)

    async with Redis.from_url(redis_url) as killer, anyio.create_task_group() as writing:
        for writer in range(5):
            writing.start_soon(write, writer, killer)
    assert sorted(written) == list(range(min(written), min(written) + 150))
    assert len({entry.value for entry in (await store.read("log", limit=1000)).entries}) == 150


async def test_a_server_that_comes_back_is_waited_for(server: RedisServer) -> None:
    store = RedisStore(server.url)
    before = await store.put("a", b"1", ttl_seconds=60)
    server.stop()
    found: list[object] = []

    async def get() -> None:
        found.append(await store.get("a"))

    async with anyio.create_task_group() as group:
        group.start_soon(get)
        await anyio.wait_all_tasks_blocked()
        await anyio.to_thread.run_sync(server.start)
    assert found == [None]  # this server keeps nothing
    after = await store.put("a", b"2", ttl_seconds=60)
    assert before
    assert after
    assert after > before  # versions are new even to a server that has lost everything
    await store.aclose()


async def test_a_waiter_hears_of_an_append_after_the_server_was_gone(server: RedisServer) -> None:
    store, other = RedisStore(server.url), RedisStore(server.url)
    found: list[object] = []

    async def wait() -> None:
        found.append(await store.wait({"log": 0}, 30))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        server.stop()
        await anyio.to_thread.run_sync(server.start)
        await other.append("log", b"", ttl_seconds=60, max_entries=1)
    assert found == [{"log"}]
    await store.aclose()
    await other.aclose()


async def test_a_server_that_stays_away_is_unavailable_after_the_time_given(server: RedisServer) -> None:
    store = RedisStore(server.url, wait_seconds=0.3)
    assert await store.get("a") is None
    server.stop()
    for call in (
        lambda: store.get("a"),
        lambda: store.put("a", b"1", ttl_seconds=60),
        lambda: store.count("a"),
        lambda: store.wait({"log": 0}, 20),
    ):
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match="no answer from Redis"):
            await call()
        assert 0.3 <= time.monotonic() - started < 3
    await store.aclose()


async def test_a_waiter_learns_that_the_server_stays_away(server: RedisServer) -> None:
    store = RedisStore(server.url, wait_seconds=0.3)

    async def wait() -> None:
        with pytest.raises(StoreUnavailable):
            await store.wait({"log": 0}, 20)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        server.stop()
    await store.aclose()


async def test_a_server_that_is_silent_is_unavailable(server: RedisServer) -> None:
    store = RedisStore(server.url, wait_seconds=0.3)
    async with Redis.from_url(server.url) as client:
        await client.client_pause(5000, all=True)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await store.get("a")
    assert time.monotonic() - started < 3
    await store.aclose()


async def test_a_server_that_is_full_says_so_and_has_written_nothing(server: RedisServer) -> None:
    store = RedisStore(server.url)
    async with Redis.from_url(server.url) as client:
        await client.config_set("maxmemory", "1")
        with pytest.raises(StoreFull):
            await store.put("a", b"1", ttl_seconds=60)
        await client.config_set("maxmemory", "0")
    assert await store.get("a") is None
    await store.aclose()


async def test_a_wrong_password_is_no_matter_of_waiting(server: RedisServer) -> None:
    store = RedisStore(server.url.replace("//", "//:wrong@"))
    with pytest.raises(StoreError):
        await store.get("a")
    await store.aclose()


async def test_stores_with_different_prefixes_do_not_see_each_other(redis_url: str) -> None:
    one, two = RedisStore(redis_url, prefix="one"), RedisStore(redis_url, prefix="two")
    await one.put("a/b", b"1", ttl_seconds=60)
    assert await two.get("a/b") is None
    assert await two.count("a") == 0
    await one.aclose()
    await two.aclose()


@pytest.mark.parametrize("prefix", ["", "{a}", "a}b", "a\nb"])
def test_a_prefix_that_would_spoil_the_hash_tag_is_refused(redis_url: str, prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="prefix"):
        RedisStore(redis_url, prefix=prefix)


async def test_all_keys_of_a_store_share_one_slot(store: RedisStore, redis_url: str) -> None:
    await store.put("a/b}{c}", b"1", ttl_seconds=60)
    await store.append("log", b"1", ttl_seconds=60, max_entries=1)
    async with Redis.from_url(redis_url, decode_responses=True) as client:
        (tag,) = store._tags
        keys: list[Any] = await client.keys(f"*{tag}*")
        assert len(keys) == 7
        assert all(key.startswith(f"{tag}:") for key in keys)


async def test_a_closed_store_says_so_and_leaves_no_task(redis_url: str) -> None:
    store = RedisStore(redis_url)
    assert await store.wait({"log": 0}, 0.01) == set()

    async def wait() -> None:
        with pytest.raises(StoreError, match="closed"):
            await store.wait({"log": 0}, 20)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await store.aclose()
    assert store._wakes._listener is not None
    assert store._wakes._listener.done()
    with pytest.raises(StoreError, match="closed"):
        await store.get("a")
