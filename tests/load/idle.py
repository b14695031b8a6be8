"""Ten thousand idle sessions and a thousand open questions: what they cost the node that serves others meanwhile."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from statistics import median
from typing import Any

from bridge.stores import Store, open_store
from tests.load.nodes import STORES, Node, call, node, opened, store_url
from tests.load.runs import Options

__all__ = ["run"]

SESSIONS = 10_000
QUESTIONS = 1_000
QUESTIONS_EACH = 10
WARMING = 500
ROUNDS = 40
CALLS = 50
AT_MOST = 1.2
"""How many times as long a call may take as with nothing there."""

SWEPT_BYTES = 500
SWEPT_SECONDS = 3.0
_identities = count(1)


def run(options: Options) -> list[dict[str, Any]]:
    """Make the run for each store; raise AssertionError where a call takes too long."""
    return [_run(store) for store in STORES if options.only in (None, store)]


def _run(store: str) -> dict[str, Any]:
    with ExitStack() as stack:
        empty, full = (stack.enter_context(node(stack.enter_context(store_url(store)))) for _ in range(2))
        _warm(empty)
        _warm(full)
        before = full.resident_bytes
        opened(full.connection, SESSIONS, {})
        with_sessions = full.resident_bytes
        _leave_questions(full)
        after = full.resident_bytes
        calls = _compared(empty, full, _plain)
        asked = _compared(empty, full, _asked_and_answered)
    for what in (calls, asked):
        assert what["processor_ratio"] <= AT_MOST, f"{store}: {what}"
    with store_url(store) as url:
        sweep = asyncio.run(_swept(url))
    return {
        "store": store,
        "sessions": SESSIONS,
        "questions": QUESTIONS,
        "resident_mb": [round(each / 1e6, 1) for each in (before, with_sessions, after)],
        "call": calls,
        "question": asked,
        "sweep": sweep,
    }


def _warm(running: Node) -> None:
    (session,) = opened(running.connection, 1, {})
    for _ in range(WARMING):
        _asked_and_answered(running, session)


def _leave_questions(running: Node) -> None:
    """Leave calls open that wait for an answer from the chat, some in each of some sessions."""
    for session in opened(running.connection, QUESTIONS // QUESTIONS_EACH, {}):
        for number in range(QUESTIONS_EACH):
            assert _ask(running, session, f"T-{number}")


def _plain(running: Node, session: dict[str, str]) -> None:
    result = call(running.connection, session, next(_identities), "add", {"a": 2, "b": 3})
    assert result["content"][0]["text"] == "5"


def _asked_and_answered(running: Node, session: dict[str, str]) -> None:
    elicit_id = _ask(running, session, "T-1")
    answer = {"elicitId": elicit_id, "action": "accept", "content": {"confirm": True}}
    result = call(running.connection, session, next(_identities), "sendElicitationResult", answer)
    assert result["structuredContent"] == {"closed": True}


def _ask(running: Node, session: dict[str, str], ticket: str) -> str:
    result = call(running.connection, session, next(_identities), "close_ticket", {"id": ticket})
    return str(result["_meta"]["elicitationPending"]["elicitId"])


def _compared(empty: Node, full: Node, once: Any) -> dict[str, float]:
    """What something takes on two nodes in turn, so that the noise of the machine meets both alike."""
    for running in (empty, full):
        running.connection = running.connect()  # a connection that was idle meanwhile has been closed
    both = [(running, opened(running.connection, 1, {})[0]) for running in (empty, full)]
    samples: list[list[tuple[float, float]]] = [[], []]
    for round_number in range(ROUNDS):
        for position in (0, 1) if round_number % 2 else (1, 0):
            running, session = both[position]
            before = running.processor_us
            took = median(_timed(lambda: once(running, session)))  # noqa: B023 - called here and now
            samples[position].append((took, (running.processor_us - before) / CALLS))
    (ms, us), (full_ms, full_us) = ([median(column) for column in zip(*each, strict=True)] for each in samples)
    return {
        "ms": round(ms, 3),
        "full_ms": round(full_ms, 3),
        "ratio": round(full_ms / ms, 3),
        "processor_us": round(us, 1),
        "full_processor_us": round(full_us, 1),
        "processor_ratio": round(full_us / us, 3),
    }


def _timed(work: Any) -> Iterator[float]:
    for _ in range(CALLS):
        began = time.perf_counter()
        work()
        yield (time.perf_counter() - began) * 1000


async def _swept(url: str) -> dict[str, float]:
    """Let as many records expire at once, and time the writes that sweep them, and the writes when all is clean."""
    store = open_store(url)
    try:
        clean = await _writes(store, 1000)
        began = time.monotonic()
        for number in range(SESSIONS + QUESTIONS):
            left = began + SWEPT_SECONDS - time.monotonic()
            await store.put(f"session/anonymous/{number}", b"x" * SWEPT_BYTES, ttl_seconds=max(left, 0.1))
        await asyncio.sleep(max(0.0, began + SWEPT_SECONDS - time.monotonic()))
        sweeping = await _writes(store, 4000)
        return {
            "records": SESSIONS + QUESTIONS,
            "write_ms": round(median(clean), 3),
            "sweeping_write_ms": round(median(sweeping), 3),
            "longest_ms": round(max(sweeping), 2),
            "longest_clean_ms": round(max(clean), 2),
        }
    finally:
        await store.aclose()


async def _writes(store: Store, number: int) -> list[float]:
    taken = []
    for _ in range(number):
        began = time.perf_counter()
        await store.put("session/anonymous/one", b"x", ttl_seconds=600)
        taken.append((time.perf_counter() - began) * 1000)
    return taken
