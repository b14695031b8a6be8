"""What all stores have in common, `open_store`, and that the check finds what is broken."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge import stores
from bridge.errors import ConfigurationError, MissingExtraError
from bridge.stores import LogPage, MemoryStore, Record, Store, open_store
from bridge.stores.check import check_store
from bridge.stores.redis import RedisStore
from bridge.stores.space import Space
from bridge.stores.sqlite import SqliteStore
from tests.stores.conftest import Clock

pytestmark = pytest.mark.anyio


async def test_the_memory_store_keeps_the_contract(clock: Clock) -> None:
    async def make() -> Store:
        return MemoryStore(clock=clock)

    await check_store(make, advance=clock.advance)


async def test_the_memory_store_keeps_the_contract_on_the_real_clock() -> None:
    async def make() -> Store:
        return MemoryStore()

    await check_store(make)


async def test_the_sqlite_store_keeps_the_contract(tmp_path: Path, clock: Clock) -> None:
    async def make() -> Store:
        return SqliteStore(tmp_path / "store.db", clock=clock)

    await check_store(make, advance=clock.advance)


async def test_the_sqlite_store_keeps_the_contract_on_the_real_clock(tmp_path: Path) -> None:
    async def make() -> Store:
        return SqliteStore(tmp_path / "store.db")

    await check_store(make)


async def test_a_part_of_a_store_keeps_the_contract(tmp_path: Path) -> None:
    async def make() -> Store:
        return Space(SqliteStore(tmp_path / "store.db"), "desk")

    await check_store(make)


async def test_parts_of_a_store_see_nothing_of_each_other() -> None:
    whole = MemoryStore()
    desk, shop = Space(whole, "desk"), Space(whole, "shop")
    await desk.put("session/1", b"", ttl_seconds=60)
    await desk.append("log", b"", ttl_seconds=60, max_entries=1)
    assert await shop.get("session/1") is None
    assert (await shop.count("session"), await shop.scan("session")) == (0, [])
    assert await shop.wait({"log": 0}, 0) == set()
    assert (await desk.count("session"), await desk.scan("session")) == (1, ["session/1"])


async def test_the_redis_store_keeps_the_contract(redis_url: str) -> None:
    async def make() -> Store:
        return RedisStore(redis_url, prefix="check")

    await check_store(make)


class Broken(MemoryStore):
    """A store that breaks one rule in each of its subclasses."""


class ReusesVersions(Broken):
    async def take(self, key: str) -> bytes | None:
        self._version = 0
        return await super().take(key)


class IgnoresConditions(Broken):
    async def put(self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None) -> Any:
        return await super().put(key, value, ttl_seconds=ttl_seconds)


class NeverExpires(Broken):
    async def put(self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None) -> Any:
        return await super().put(key, value, ttl_seconds=None, if_version=if_version)


class NeverTrims(Broken):
    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        return await super().append(log, value, ttl_seconds=ttl_seconds, max_entries=1000)


class HidesTheGap(Broken):
    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return (await super().read(log, after=after, limit=limit))._replace(first_seq=1)


class WaitsForTheNextEntry(Broken):
    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        with self._wakes.listening(logs) as bell, anyio.move_on_after(timeout_seconds):
            await bell.heard()
        return self._ready(logs)


class LosesBytes(Broken):
    async def get(self, key: str) -> Record | None:
        record = await super().get(key)
        return record and record._replace(value=record.value.strip())


class ScansByPrefixOfText(Broken):
    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        return sorted(k for k in self._records.items if k.startswith(family) and k > after)[:limit]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("broken", Broken.__subclasses__())
async def test_the_check_finds_a_broken_rule(broken: type[MemoryStore], clock: Clock) -> None:
    async def make() -> Store:
        return broken(clock=clock)

    with pytest.raises(AssertionError, match="the store breaks its contract: "):
        await check_store(make, advance=clock.advance)


def test_open_store_makes_what_the_url_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_store("memory"), MemoryStore)
    assert isinstance(open_store("sqlite:///in/relative.db"), SqliteStore)
    assert isinstance(open_store(f"sqlite:///{tmp_path}/absolute.db"), SqliteStore)
    assert sorted(p.name for p in tmp_path.rglob("*.db")) == ["absolute.db", "relative.db"]
    assert isinstance(open_store("redis://localhost:1/0"), RedisStore)


@pytest.mark.parametrize("url", ["", "Memory", "sqlite", "sqlite://", "sqlite:///", "sqlite://x.db", "mysql://u:pw@h"])
def test_open_store_says_what_it_was_given_and_what_it_expects(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"'sqlite:///file.db'") as raised:
        open_store(url)
    assert url.partition("://")[0] in str(raised.value)
    assert "pw" not in str(raised.value)


@pytest.mark.parametrize("url", ["redis://u:pw@host:port", "redis://u:pw@host:99999999/x?db=y"])
def test_a_redis_url_that_cannot_work_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_store(url)
    assert "pw" not in str(raised.value)


def test_redis_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "bridge.stores.redis")
    monkeypatch.delattr(stores, "redis")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"\[redis\]"):
        open_store("redis://localhost")


def test_the_public_names_are_sorted_and_there() -> None:
    assert stores.__all__ == sorted(stores.__all__)
    assert all(hasattr(stores, name) for name in stores.__all__)
