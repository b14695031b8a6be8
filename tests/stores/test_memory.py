"""What only the memory store promises: bounds, and little memory."""

import os
import tracemalloc

import anyio
import pytest

from bridge.errors import StoreFull
from bridge.stores import MemoryStore
from tests.stores.conftest import Clock

pytestmark = pytest.mark.anyio


async def test_a_full_store_refuses_what_is_new_and_keeps_what_it_has(clock: Clock) -> None:
    store = MemoryStore(max_records=2, clock=clock)
    await store.put("a", b"1", ttl_seconds=10)
    await store.append("log", b"1", ttl_seconds=10, max_entries=5)
    with pytest.raises(StoreFull):
        await store.put("b", b"1", ttl_seconds=10)
    with pytest.raises(StoreFull):
        await store.append("log 2", b"1", ttl_seconds=10, max_entries=5)
    assert await store.put("a", b"2", ttl_seconds=5)
    await clock.advance(6)
    assert await store.put("b", b"1", ttl_seconds=10)  # what is over makes room


async def test_the_bytes_of_values_are_bounded_over_records_and_logs(clock: Clock) -> None:
    store = MemoryStore(max_bytes=100, clock=clock)
    await store.put("a", b"x" * 60, ttl_seconds=10)
    for _ in range(10):
        await store.append("log", b"x" * 20, ttl_seconds=5, max_entries=1)
    with pytest.raises(StoreFull):
        await store.put("b", b"x" * 21, ttl_seconds=10)
    with pytest.raises(StoreFull):
        await store.put("a", b"x" * 81, ttl_seconds=10)
    assert await store.put("a", b"x" * 30, ttl_seconds=10)
    assert await store.put("b", b"x" * 21, ttl_seconds=10)
    await store.take("a")
    await clock.advance(6)
    assert await store.put("c", b"x" * 79, ttl_seconds=10)


async def test_records_that_are_over_go_without_being_asked_for(clock: Clock) -> None:
    store = MemoryStore(clock=clock)
    for number in range(1000):
        await store.put(f"old/{number}", b"x", ttl_seconds=1)
        await store.append(f"old/{number}", b"x", ttl_seconds=1, max_entries=1)
    await clock.advance(2)
    for number in range(300):
        await store.put(f"new/{number}", b"x", ttl_seconds=60)
        await store.append(f"new/{number}", b"x", ttl_seconds=60, max_entries=1)
    assert len(store._records.items) == len(store._logs.items) == 300
    assert list(store._families) == ["new"]


async def test_many_that_are_over_at_once_are_not_counted_and_swept_in_steps(clock: Clock) -> None:
    store = MemoryStore(clock=clock)
    for number in range(5000):
        await store.put(f"a/{number}", b"x", ttl_seconds=1 + number % 2)
    await clock.advance(1.5)
    assert await store.count("a") == 2500
    assert len(store._records.items) == 4000  # a step is bounded, and what is left is looked over
    assert await store.scan("a", limit=3) == ["a/1", "a/1001", "a/1003"]
    assert await store.count("a") == 2500
    assert len(store._records.items) == 2500


async def test_records_that_are_taken_early_leave_nothing_behind(clock: Clock) -> None:
    store = MemoryStore(clock=clock)
    for number in range(10_000):
        await store.put(f"call/{number}", b"x", ttl_seconds=3600)
        await store.take(f"call/{number}")
    assert len(store._records._heap) < 100
    assert store._records.bytes == 0
    assert not store._families


async def test_ten_thousand_sessions_take_little_memory() -> None:
    store = MemoryStore()
    tracemalloc.start()
    try:
        for number in range(10_000):
            await store.put(f"session/anon/{number:032x}", os.urandom(600), ttl_seconds=1800)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / 10_000 < 1500


async def test_waiters_leave_nothing_behind() -> None:
    store = MemoryStore()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(store.wait, {"a": 0, "b": 0}, 60)
        await anyio.wait_all_tasks_blocked()
        assert len(store._wakes) == 5
        await store.append("c", b"", ttl_seconds=1, max_entries=1)
        group.cancel_scope.cancel()
    assert not store._wakes
    assert not store._wakes._by_log
