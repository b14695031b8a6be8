"""What only the SQLite store promises: one file, several processes."""

import json
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from bridge.errors import ConfigurationError, StoreError, StoreFull, StoreUnavailable
from bridge.stores import file_systems, sqlite, sqlite_file
from bridge.stores.reader import LogReader
from bridge.stores.sqlite import SqliteStore
from tests.stores.conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new directory" / "store.db"


def start_racer(*args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.stores.racer", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def finish(racer: subprocess.Popen[str]) -> str:
    output, _ = racer.communicate(timeout=50)
    assert racer.returncode == 0
    return output


async def test_of_two_processes_that_race_one_wins_each_version(path: Path) -> None:
    racers = [start_racer("race", path, 200, name) for name in ("a", "b")]
    won = [win for racer in racers for win in json.loads(finish(racer))]
    assert sorted(written for written, _ in won) == list(range(1, 201))
    assert len({version for _, version in won}) == 200


async def test_an_append_in_another_process_wakes_a_reader_soon(path: Path) -> None:
    store = SqliteStore(path)
    racer = start_racer("append", path, 20)
    delays = []
    times = LogReader(store, "times")
    for _ in range(20):
        await store.append("answers", b"", ttl_seconds=60, max_entries=10)
        assert await store.wait({"times": times.position}, 20) == {"times"}
        heard_at = time.monotonic()
        (entry,) = await times.take()
        delays.append(heard_at - float(entry.value))
    finish(racer)
    await store.aclose()
    assert statistics.median(delays) < 0.025
    assert max(delays) < 0.25, delays  # 0.05 where nothing else runs


async def test_a_hundred_thousand_expired_records_are_swept_in_small_steps(path: Path, clock: Clock) -> None:
    store = SqliteStore(path, clock=clock)
    rows = ((f"old/{number:032x}", number + 1, clock.now, clock.now, b"x" * 600) for number in range(100_000))
    store._db.executemany("INSERT INTO records (key, version, due, expires, value) VALUES (?, ?, ?, ?, ?)", rows)
    await clock.advance(1)
    took, more = [], True
    while more:
        started = time.perf_counter()
        more = sqlite_file.sweep(store._db, clock.now, sqlite.IDLE_SWEEP_ROWS)
        took.append(time.perf_counter() - started)
    assert len(took) > 100_000 / sqlite.IDLE_SWEEP_ROWS
    assert statistics.median(took) < 0.005
    assert max(took) < 0.25, max(took)
    assert store._db.execute("SELECT count(*) FROM records").fetchone() == (0,)
    await store.aclose()


async def test_who_only_waits_sweeps_too(path: Path, clock: Clock) -> None:
    store, other = SqliteStore(path, clock=clock), SqliteStore(path, clock=clock)
    for number in range(2000):
        await store.put(f"old/{number}", b"x", ttl_seconds=1)
    await clock.advance(2)
    async with anyio.create_task_group() as group:
        group.start_soon(store.wait, {"log": 0}, 60)
        with anyio.fail_after(20):
            # Nothing is told of a sweep: it changes nothing that can be seen through the store.
            while other._db.execute("SELECT count(*) FROM records").fetchone() != (0,):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    await store.aclose()
    await other.aclose()


def test_a_forked_process_has_a_connection_and_versions_of_its_own(path: Path) -> None:
    racer = start_racer("fork", path, 5)
    parent, child = (json.loads(line) for line in finish(racer).splitlines())
    assert len({*parent, *child}) == 10
    assert None not in (*parent, *child)


async def test_what_is_stored_outlives_the_store(path: Path) -> None:
    store = SqliteStore(path)
    version = await store.put("a", b"1", ttl_seconds=60)
    await store.append("log", b"1", ttl_seconds=60, max_entries=5)
    await store.aclose()
    store = SqliteStore(path)
    assert await store.get("a") == (b"1", version)
    assert await store.append("log", b"2", ttl_seconds=60, max_entries=5) == 2
    assert await store.put("b", b"1", ttl_seconds=60) != version
    await store.aclose()


async def test_files_are_readable_by_their_owner_only(path: Path) -> None:
    store = SqliteStore(path)
    await store.put("a", b"1", ttl_seconds=60)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    await store.aclose()


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(ConfigurationError, match="schema 99 of a newer"):
        SqliteStore(tmp_path / "store.db")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        SqliteStore(tmp_path / "store.db")


async def test_a_disk_that_is_full_is_said_and_nothing_is_written(path: Path) -> None:
    store = SqliteStore(path)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")  # SQLite then does what it does where a disk has no room
    with pytest.raises(StoreFull, match=r"full \(make room on the disk\)"):
        await store.put("a", b"x" * 100_000, ttl_seconds=60)
    assert await store.get("a") is None
    await store.aclose()


async def test_a_file_that_may_not_be_written_is_said(path: Path) -> None:
    store = SqliteStore(path)
    store._db.execute("PRAGMA query_only = ON")  # as root may write every file
    with pytest.raises(StoreError, match="may not write the file or its folder"):
        await store.append("log", b"x", ttl_seconds=60, max_entries=1)
    await store.aclose()


@pytest.mark.parametrize(
    ("mounts", "kind"),
    [
        ("22 1 0:1 / / rw - ext4 /dev/a rw", "ext4"),
        ("22 1 0:1 / / rw - ext4 /dev/a rw\n23 22 0:2 / /home rw,noatime shared:1 - nfs4 server:/home rw", "nfs4"),
        ("23 22 0:2 / /home rw - nfs4 server:/home rw\n24 22 0:3 / /home/a\\040b rw - xfs /dev/b rw", "xfs"),
        ("23 22 0:2 / /home rw - nfs4 s:/home rw\n24 22 0:3 / /home rw - btrfs /dev/b rw\nnonsense", "btrfs"),
        ("23 22 0:2 / /ho rw - nfs4 server:/home rw", ""),
    ],
)
def test_the_file_system_of_a_file_is_that_of_the_innermost_mount(mounts: str, kind: str) -> None:
    assert file_systems._kind(Path("/home/a b/state.db"), mounts) == kind


def test_a_file_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"23 22 0:2 / {tmp_path} rw - nfs4 server:/home rw")
    monkeypatch.setattr(file_systems, "_MOUNTS", mounts)
    with pytest.raises(ConfigurationError, match=r"network file system \(nfs4\), where SQLite cannot lock"):
        SqliteStore(tmp_path / "state.db")
    assert not (tmp_path / "state.db").exists()


def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path)


async def test_a_locked_file_is_waited_for_without_blocking_the_loop(path: Path) -> None:
    store = SqliteStore(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    versions: list[int | None] = []

    async def put() -> None:
        versions.append(await store.put("a", b"1", ttl_seconds=60))

    async with anyio.create_task_group() as group:
        group.start_soon(put)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert not versions
        assert await store.get("a") is None  # who reads does not wait
        holder.execute("COMMIT")
    assert versions[0]
    holder.close()
    await store.aclose()


async def test_a_file_that_stays_locked_is_unavailable(path: Path) -> None:
    store = SqliteStore(path, wait_seconds=0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.append("log", b"1", ttl_seconds=60, max_entries=5)
    holder.close()
    assert await store.append("log", b"1", ttl_seconds=60, max_entries=5) == 1
    await store.aclose()


async def test_another_waiter_looks_for_news_when_the_one_that_did_is_gone(path: Path) -> None:
    store, other = SqliteStore(path), SqliteStore(path)
    found = []

    async def wait(log: str, scope: anyio.CancelScope) -> None:
        with scope:
            found.append(await store.wait({log: 0}, 20))

    scopes = [anyio.CancelScope() for _ in range(4)]
    async with anyio.create_task_group() as group:
        for log, scope in zip("abcd", scopes, strict=True):
            group.start_soon(wait, log, scope)
        await anyio.wait_all_tasks_blocked()
        scopes[0].cancel()
        scopes[1].cancel()  # who would have been the next
        await other.append("d", b"", ttl_seconds=60, max_entries=1)
        await other.append("c", b"", ttl_seconds=60, max_entries=1)
    assert sorted(map(list, found)) == [["c"], ["d"]]
    assert store._poller is None
    assert not store._wakes
    await store.aclose()
    await other.aclose()


async def test_what_is_over_is_swept_from_the_file(path: Path, clock: Clock) -> None:
    store = SqliteStore(path, clock=clock)
    for number in range(200):
        await store.put(f"old/{number}", b"x", ttl_seconds=1)
        await store.put(f"renewed/{number}", b"x", ttl_seconds=1)
        await store.put(f"renewed/{number}", b"x", ttl_seconds=60)
        await store.append(f"old/{number}", b"x", ttl_seconds=1, max_entries=1)
    await clock.advance(2)
    for _ in range(400):
        await store.put("new", b"x", ttl_seconds=60)
    left = [store._db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("records", "logs", "entries")]
    assert left == [201, 0, 0]
    assert await store.count("renewed") == 200
    await store.aclose()


async def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    async with anyio.create_task_group() as group:
        group.start_soon(expect_closed, store)
        await anyio.wait_all_tasks_blocked()
        await store.aclose()
    with pytest.raises(StoreError, match="closed"):
        await store.get("a")


async def expect_closed(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="closed"):
        await store.wait({"a": 0}, 20)
