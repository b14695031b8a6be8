"""What is stored is encrypted: what a thief of the file sees, and what nodes with other keys do."""

import logging
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from bridge import Bridge
from bridge.asking.seal import KeyRing
from bridge.errors import ConfigurationError
from bridge.stores import MemoryStore, Record, SealedStore, Store
from bridge.stores.check import check_store
from bridge.stores.reader import LogReader
from bridge.stores.redis import RedisStore
from bridge.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

OLD, NEW, FOREIGN = (secrets.token_bytes(32) for _ in range(3))
OURS = KeyRing([OLD])
ROTATED = KeyRing([NEW, OLD])
THEIRS = KeyRing([FOREIGN])


class SharedMemory(MemoryStore):
    """Stands for any store that others may read."""

    shared = True


@pytest.fixture
def inner() -> MemoryStore:
    return SharedMemory()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "state.db")
    yield store
    await store.aclose()


async def test_a_sealed_sqlite_store_keeps_the_contract(tmp_path: Path) -> None:
    async def make() -> Store:
        return SealedStore(SqliteStore(tmp_path / "store.db"), OURS)

    await check_store(make)


async def test_a_sealed_redis_store_keeps_the_contract(redis_url: str) -> None:
    async def make() -> Store:
        return SealedStore(RedisStore(redis_url, prefix="sealed"), OURS)

    await check_store(make)


async def test_nothing_of_a_value_is_in_the_file(tmp_path: Path) -> None:
    store = SealedStore(SqliteStore(tmp_path / "state.db"), OURS)
    await store.put("session/anonymous/1", b"what was told in confidence", ttl_seconds=60)
    await store.append("out/1", b"what was told in confidence", ttl_seconds=60, max_entries=5)
    files = [(tmp_path / name).read_bytes() for name in os.listdir(tmp_path)]
    assert any(b"session/anonymous/1" in file for file in files)
    assert not any(b"confidence" in file for file in files)
    await store.aclose()


async def test_leases_and_the_id_of_the_store_can_be_read_with_any_keys(inner: MemoryStore) -> None:
    for key in ("node/abc", "store/id"):
        await SealedStore(inner, OURS).put(key, b"plain", ttl_seconds=60)
        assert (await SealedStore(inner, THEIRS).get(key) or Record(b"", 0)).value == b"plain"
        assert await SealedStore(inner, THEIRS).take(key) == b"plain"


async def test_a_record_that_was_moved_to_another_session_does_not_open(
    inner: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = SealedStore(inner, OURS)
    await store.put("session/a/1", b"a's", ttl_seconds=60)
    await store.append("out/1", b"1's", ttl_seconds=60, max_entries=5)
    (envelope,) = (await inner.read("out/1")).entries
    await inner.put("session/b/2", (await inner.get("session/a/1") or Record(b"", 0)).value, ttl_seconds=60)
    await inner.put("out/1", envelope.value, ttl_seconds=60)
    await inner.append("out/2", envelope.value, ttl_seconds=60, max_entries=5)
    assert await store.get("session/b/2") is None
    assert await store.get("out/1") is None  # a log's entry is no record, also of the same name
    assert (await store.read("out/2")).entries == []
    assert (await store.get("session/a/1") or Record(b"", 0)).value == b"a's"
    assert "taken from elsewhere" in caplog.text


async def test_after_a_rotation_old_records_are_read_and_new_ones_need_the_new_key(inner: MemoryStore) -> None:
    await SealedStore(inner, OURS).put("a", b"old", ttl_seconds=60)
    rotated = SealedStore(inner, ROTATED)
    assert (await rotated.get("a") or Record(b"", 0)).value == b"old"
    await rotated.put("a", b"new", ttl_seconds=60)
    assert await SealedStore(inner, OURS).get("a") is None
    assert (await SealedStore(inner, KeyRing([NEW])).get("a") or Record(b"", 0)).value == b"new"


async def test_what_cannot_be_read_counts_as_absent_is_said_once_and_stays(
    inner: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = SealedStore(inner, OURS), SealedStore(inner, THEIRS)
    for key in ("ask/1", "ask/2"):
        await theirs.put(key, b"theirs", ttl_seconds=60)
        assert await ours.get(key) is None
        assert await ours.take(key) is None
        assert await theirs.take(key) == b"theirs"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "is not in the ring" in caplog.text


async def test_what_cannot_be_read_is_replaced_by_who_wants_to_be_the_first(inner: MemoryStore) -> None:
    ours, theirs = SealedStore(inner, OURS), SealedStore(inner, THEIRS)
    old = await theirs.put("claim/1", b"theirs", ttl_seconds=60)
    new = await ours.put("claim/1", b"ours", ttl_seconds=60, if_version=0)
    assert new not in (None, old)
    assert await ours.get("claim/1") == Record(b"ours", new or 0)
    assert await ours.put("claim/1", b"again", ttl_seconds=60, if_version=0) is None


async def test_of_two_who_replace_what_they_cannot_read_one_wins(sqlite: SqliteStore) -> None:
    await SealedStore(sqlite, THEIRS).put("claim/1", b"theirs", ttl_seconds=60)
    won: list[int] = []

    async def claim(store: SealedStore) -> None:
        if version := await store.put("claim/1", b"ours", ttl_seconds=60, if_version=0):
            won.append(version)

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(claim, SealedStore(sqlite, OURS))
    assert len(won) == 1


async def test_entries_that_cannot_be_read_are_skipped_and_show_as_a_gap(inner: MemoryStore) -> None:
    ours, theirs = SealedStore(inner, OURS), SealedStore(inner, THEIRS)
    writers = [theirs, theirs, ours, theirs, ours]
    numbers = [await writer.append("log", b"x", ttl_seconds=60, max_entries=9) for writer in writers]
    page = await ours.read("log")
    assert [entry.seq for entry in page.entries] == [numbers[2], numbers[4]]
    assert page.first_seq == numbers[2]
    assert page.last_seq == numbers[4]
    assert [entry.seq for entry in (await ours.read("log", limit=1)).entries] == [numbers[2]]


async def test_a_reader_learns_that_it_missed_what_cannot_be_read_and_goes_on(inner: MemoryStore) -> None:
    ours, theirs = SealedStore(inner, OURS), SealedStore(inner, THEIRS)
    reader = LogReader(ours, "log")
    for number in range(700):
        await theirs.append("log", b"%d" % number, ttl_seconds=60, max_entries=1000)
    assert await reader.next(0) == []
    assert reader.missed
    assert await ours.wait({"log": reader.position}, 0) == set()  # so it does not look again and again
    await ours.append("log", b"ours", ttl_seconds=60, max_entries=1000)
    assert [entry.value for entry in await reader.next(0)] == [b"ours"]
    assert not reader.missed
    for writer in (ours, theirs, ours):
        await writer.append("log", b"x", ttl_seconds=60, max_entries=1000)
    assert len(await reader.next(0)) == 2
    assert reader.missed


async def test_a_node_with_other_keys_refuses_to_start(tmp_path: Path) -> None:
    first = Bridge("desk", store=f"sqlite:///{tmp_path}/state.db", keys=OURS)
    async with first.asgi().lifespan():
        pass
    other = Bridge("desk", store=f"sqlite:///{tmp_path}/state.db", keys=THEIRS)
    with pytest.raises(ConfigurationError, match=r"keys \([0-9a-f]{8}\) do not open the store"):
        await other.asgi().start()
    await first.store.aclose()
    await other.store.aclose()


async def test_a_rotation_seals_the_check_record_anew(inner: MemoryStore) -> None:
    for ring in (OURS, OURS, ROTATED, KeyRing([NEW])):
        await SealedStore(inner, ring).check_ring()
    with pytest.raises(ConfigurationError, match="do not open the store"):
        await SealedStore(inner, OURS).check_ring()


async def test_nodes_that_start_at_once_agree_on_the_check_record(sqlite: SqliteStore) -> None:
    async with anyio.create_task_group() as group:
        for ring in (KeyRing([OLD, NEW]), ROTATED) * 5:
            group.start_soon(SealedStore(sqlite, ring).check_ring)
    await SealedStore(sqlite, ROTATED).check_ring()


async def test_in_memory_nothing_is_encrypted_and_other_stores_always_are(tmp_path: Path, redis_url: str) -> None:
    assert isinstance(Bridge("desk").store, MemoryStore)
    for url in (f"sqlite:///{tmp_path}/state.db", redis_url):
        store = Bridge("desk", store=url, keys=OURS).store
        assert isinstance(store, SealedStore)
        await store.aclose()


async def test_sqlite_without_keys_uses_those_beside_its_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    one, two = Bridge("desk", store=url), Bridge("desk", store=url)
    await one.store.put("a", b"1", ttl_seconds=60)
    assert (await two.store.get("a") or Record(b"", 0)).value == b"1"
    assert (tmp_path / "state.db.key").stat().st_mode & 0o777 == 0o600
    await one.store.aclose()
    await two.store.aclose()


@pytest.mark.parametrize("store", ["redis://localhost", SharedMemory()], ids=["redis", "a user's"])
def test_a_store_that_nodes_share_needs_their_keys(store: Store | str) -> None:
    with pytest.raises(ConfigurationError, match="pass keys=load_keys"):
        Bridge("desk", store=store)


def test_a_store_that_is_sealed_brings_its_keys() -> None:
    store = SealedStore(SharedMemory(), OURS)
    bridge = Bridge("desk", store=store)
    assert bridge.store is store
    assert bridge.keys is OURS
