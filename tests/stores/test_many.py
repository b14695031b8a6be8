"""10,000 idle sessions and 1,000 open questions: a store is as fast as it was in what a call needs of it."""

import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from bridge.stores import Store

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

SESSIONS, QUESTIONS = 10_000, 1_000
SLACK_SECONDS = 0.002  # of a machine that does something else too
FAMILY_SECONDS = 0.1  # `count` and `scan` of all sessions take 0.3 ms at most where nothing else runs


async def median(call: Callable[[], Awaitable[Any]]) -> float:
    took = []
    for _ in range(50):
        started = time.perf_counter()
        await call()
        took.append(time.perf_counter() - started)
    return statistics.median(took)


async def calls(store: Store) -> list[float]:
    """How long the operations take of which a call is made."""
    version = await store.put("session/anonymous/mine", b"x" * 600, ttl_seconds=600)
    await store.append("in/mine", b"", ttl_seconds=600, max_entries=1000)
    return [
        await median(lambda: store.get("session/anonymous/mine")),
        await median(lambda: store.put("session/anonymous/mine", b"x" * 600, ttl_seconds=600, if_version=version)),
        await median(lambda: store.put("ask/mine/q", b"", ttl_seconds=600)),
        await median(lambda: store.append("in/mine", b"x", ttl_seconds=600, max_entries=1000)),
        await median(lambda: store.wait({"in/mine": 0}, 0)),
    ]


async def fill(store: Store) -> None:
    async def some(first: int) -> None:
        for number in range(first, SESSIONS, 50):
            await store.put(f"session/anonymous/{number:032x}", b"x" * 600, ttl_seconds=600)
            if number % (SESSIONS // QUESTIONS) == 0:
                await store.put(f"ask/{number:032x}/q", b"", ttl_seconds=600)
                await store.append(f"out/{number:032x}", b"x" * 300, ttl_seconds=600, max_entries=1000)

    async with anyio.create_task_group() as group:
        for first in range(50):
            group.start_soon(some, first)


async def test_a_call_takes_no_longer_with_many_idle_sessions_and_open_questions(store: Store) -> None:
    before = await calls(store)
    await fill(store)
    after = await calls(store)
    for was, takes in zip(before, after, strict=True):
        assert takes < 2 * was + SLACK_SECONDS
    assert await store.count("session") == SESSIONS + 1
    assert await store.count("ask") == QUESTIONS + 1
    assert await median(lambda: store.count("session")) < FAMILY_SECONDS
    assert await median(lambda: store.scan("session", limit=100)) < FAMILY_SECONDS
    assert len(await store.scan("ask", limit=QUESTIONS * 2)) == QUESTIONS + 1
