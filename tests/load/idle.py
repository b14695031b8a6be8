"""Ten thousand idle sessions and a thousand open questions: what they cost the node that serves others meanwhile."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from statistics import median
from typing import Any

from bridge.stores import Store, open_store
from tests.load.nodes import Node, call, node, opened
from tests.load.runs import STORES, Options, empty_store

__all__ = ["idle", "run"]

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
    found = [idle(store, SESSIONS, QUESTIONS) for store in STORES if options.only in (None, store)]
    for one in found:
        for what in ("call", "question"):
            assert one[what]["processor_ratio"] <= AT_MOST, one
    return found


def idle(store: str, sessions: int, questions: int) -> dict[str, Any]:
    """Compare a node that has so many idle sessions and open questions with one that has none.

    Returns:
        What its memory is, what a call and a question through the chat take on both, and how long writes take that
        sweep as many records.
    """
    with ExitStack() as stack:
        urls = [stack.enter_context(empty_store(store))[1] for _ in range(2)]
        empty, full = (stack.enter_context(node(url)) for url in urls)
        stack.enter_context(_cores_apart(empty, full))
        _warm(empty)
        _warm(full)
        resident = [full.resident_bytes]
        opened(full.connection, sessions, {})
        resident.append(full.resident_bytes)
        _leave_questions(full, questions)
        resident.append(full.resident_bytes)
        called = _compared(empty, full, _plain)
        question = _compared(empty, full, _asked_and_answered)
    with empty_store(store) as (_, url):
        sweep = asyncio.run(_swept(url, sessions + questions))
    counts = {"store": store, "sessions": sessions, "questions": questions}
    return {**counts, "resident_bytes": resident, "call": called, "question": question, "sweep": sweep}


@contextmanager
def _cores_apart(*nodes: Node) -> Iterator[None]:
    """Keep the nodes to one core, their caller to another: a node that shares one with its caller has it easier."""
    ours = os.sched_getaffinity(0)
    for each in nodes:
        os.sched_setaffinity(each.pid, {min(ours)})
    os.sched_setaffinity(0, {max(ours)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, ours)


def _warm(running: Node) -> None:
    (session,) = opened(running.connection, 1, {})
    for _ in range(WARMING):
        _asked_and_answered(running, session)


def _leave_questions(running: Node, questions: int) -> None:
    """Leave calls open that wait for an answer from the chat, some in each of some sessions."""
    for session in opened(running.connection, questions // QUESTIONS_EACH, {}):
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
        running.connect_again()
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


async def _swept(url: str, records: int) -> dict[str, float]:
    """Let as many records expire at once, and time the writes that sweep them, and the writes when all is clean."""
    store = open_store(url)
    try:
        clean = await _writes(store, 1000)
        began = time.monotonic()
        for number in range(records):
            left = began + SWEPT_SECONDS - time.monotonic()
            await store.put(f"session/anonymous/{number}", b"x" * SWEPT_BYTES, ttl_seconds=max(left, 0.1))
        await asyncio.sleep(max(0.0, began + SWEPT_SECONDS - time.monotonic()))
        sweeping = await _writes(store, 4000)
        return {
            "records": records,
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
