"""10,000 idle sessions and 1,000 open questions: what they weigh, and what they cost a call."""

import time
from typing import Any, Final, NamedTuple

import aiohttp
import anyio
import msgspec

from tests.load.clients import call, chat_session, facts, processor_seconds, server
from tests.load.runs import STORES, Options, empty_store
from tests.load.server import Facts

__all__ = ["Idle", "idle", "run"]

_CALLS: Final = 500
_SESSIONS: Final = 10_000
_QUESTIONS: Final = 1_000
_MOST_SLOWER: Final = 1.2
_ROUNDS: Final = 5
_A_SESSION: Final = 10
"""Questions that are open in one session."""


class Idle(NamedTuple):
    """What was seen.

    Args:
        before: the node with next to nothing.
        after: the node with everything.
        call_ms: how long the node works for a call without anything, the best of some rounds.
        loaded_call_ms: the same with everything.
        count_ms: how long the store takes to count its sessions, which drops those that are over.
    """

    before: Facts
    after: Facts
    call_ms: float
    loaded_call_ms: float
    count_ms: float

    @property
    def bytes_per_session(self) -> float:
        """What a session weighs in the node."""
        return (self.after.resident_bytes - self.before.resident_bytes) / max(1, self.after.sessions)


def run(options: Options) -> list[dict[str, Any]]:
    """On each store."""
    figures = []
    for kind in STORES if options.only is None else (options.only,):
        with empty_store(kind) as (_, url):
            found = anyio.run(idle, url, _SESSIONS, _QUESTIONS)
        assert found.loaded_call_ms <= _MOST_SLOWER * found.call_ms, found
        figures.append({"store": kind, **msgspec.to_builtins(found._asdict())})
    return figures


async def idle(store: str, sessions: int, questions: int) -> Idle:
    """Open sessions and questions, and call before and afterwards.

    Args:
        store: the URL of an empty store.
        sessions: how many are opened.
        questions: how many of their calls ask and are left alone.
    """
    with server(store) as url:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=50)) as http:
            mine = await chat_session(http, url)
            call_ms = await _call_ms(http, url, mine)
            before = await facts(http, url)
            limiter = anyio.CapacityLimiter(40)
            async with anyio.create_task_group() as tasks:
                for number in range(sessions):
                    await limiter.acquire_on_behalf_of(number)
                    asks = _A_SESSION if number < questions / _A_SESSION else 0
                    tasks.start_soon(_open, http, url, asks, limiter, number)
            after = await facts(http, url)
            began = time.monotonic()
            await facts(http, url)
            count_ms = (time.monotonic() - began) * 1000
            return Idle(before, after, call_ms, await _call_ms(http, url, mine), count_ms)


async def _open(
    http: aiohttp.ClientSession, url: str, questions: int, limiter: anyio.CapacityLimiter, number: int
) -> None:
    try:
        session = await chat_session(http, url)
        for asked in range(questions):
            result = await call(http, url, session, asked + 1, "ask", about=f"Question {asked}")
            assert "elicitationPending" in result["_meta"]
    finally:
        limiter.release_on_behalf_of(number)


async def _call_ms(http: aiohttp.ClientSession, url: str, session: dict[str, str]) -> float:
    """What the node works for a call; of several rounds the best, as others use the machine too."""
    found = []
    for _ in range(_ROUNDS):
        before = await processor_seconds(http, url)
        for identity in range(1, _CALLS + 1):
            await call(http, url, session, identity, "add", a=2, b=3)
        found.append((await processor_seconds(http, url) - before) / _CALLS * 1000)
    return min(found)
