"""Nodes of a fleet are killed and started again at random while real clients work."""

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread

from bridge.demo.desk import Desk
from tests.fleet.conversations import Verdict, conversation, judge
from tests.fleet.crowd import Crowd, Told
from tests.fleet.nodes import Fleet, Node, fleet
from tests.load.runs import Options, empty_store
from tests.peers.driving import Outcome

__all__ = ["Chaos", "chaos", "run"]

KILL_EVERY_SECONDS: Final = 2.0
SIZES: Final = {"redis": 3, "sqlite": 4}
"""How many nodes share a store of each kind."""

_SECONDS: Final = 180.0
_SEED: Final = 6
_AT_ONCE: Final = 100
_CALL_SECONDS: Final = 20
_MOST_SECONDS: Final = 60
"""A conversation of a client that has lost its connection for good ends by then."""


class Chaos(NamedTuple):
    """What came of it.

    Args:
        kills: how many processes were killed.
        conversations: how many there were.
        broken_off: how many of their clients gave up before the end.
        verdict: of all their calls.
        reasons: why calls were not confirmed, and how often.
    """

    kills: int
    conversations: int
    broken_off: int
    verdict: Verdict
    reasons: Counter[str]


def run(options: Options) -> list[dict[str, Any]]:
    """On each store that nodes share, for three minutes."""
    figures = []
    for kind in SIZES if options.only is None else (options.only,):
        seconds = options.seconds or _SECONDS
        with empty_store(kind) as (folder, url):
            found = anyio.run(chaos, folder, url, SIZES[kind], seconds, _SEED)
        assert found.verdict.faults == [], found.verdict.faults
        figures.append(
            {
                "store": kind,
                "nodes": SIZES[kind],
                "seconds": seconds,
                "kills": found.kills,
                "conversations": found.conversations,
                "broken_off": found.broken_off,
                "confirmed": found.verdict.confirmed,
                "not_confirmed": len(found.verdict.failed),
                "reasons": dict(found.reasons.most_common()),
            }
        )
    return figures


async def chaos(folder: Path, store: str, size: int, seconds: float, seed: int) -> Chaos:
    """Let clients talk for so long, and kill a node every two seconds.

    Args:
        folder: for the nodes' files.
        store: the store's URL.
        size: how many nodes.
        seconds: for how long conversations begin.
        seed: which nodes are killed.
    """
    with fleet(folder, store, size) as nodes:
        opened = nodes.open_store()
        desk = Desk(opened)
        told: list[Told] = []
        killer = _Killer(nodes, random.Random(seed))
        over_at = time.monotonic() + seconds
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(killer.run)
            while not told or time.monotonic() < over_at:
                told += await _wave(nodes, desk, len(told), seconds)
            tasks.cancel_scope.cancel()
        verdict = await judge(opened, [(each.conversation, each.calls) for each in told])
        await opened.aclose()
        nodes.assert_nothing_crashed()
    reasons = Counter(_short(outcome) for each in told for outcome in each.calls if _is_failure(outcome))
    return Chaos(killer.kills, len(told), sum(each.failed is not None for each in told), verdict, reasons)


async def _wave(nodes: Fleet, desk: Desk, begun: int, seconds: float) -> list[Told]:
    planned = [await conversation(desk, f"Case {number}") for number in range(begun, begun + _AT_ONCE)]
    pause = min(seconds, 30) / len(planned[0].deeds)
    crowd = Crowd(
        nodes.url, planned, call_seconds=_CALL_SECONDS, seconds=min(seconds, 30) + _MOST_SECONDS, pause_seconds=pause
    )
    try:
        return await anyio.to_thread.run_sync(crowd.told)
    finally:
        crowd.end()


class _Killer:
    def __init__(self, nodes: Fleet, choice: random.Random) -> None:
        self._nodes = nodes
        self._choice = choice
        self.kills = 0

    async def run(self) -> None:
        while True:
            await anyio.sleep(KILL_EVERY_SECONDS)
            up = [node for node in self._nodes.nodes if await _is_up(node)]
            if len(up) > 1:
                node = self._choice.choice(up)
                node.kill()
                node.start()
                self.kills += 1


async def _is_up(node: Node) -> bool:
    try:
        await (await anyio.connect_tcp("127.0.0.1", node.port)).aclose()
    except OSError:
        return False
    return True


def _is_failure(outcome: Outcome) -> bool:
    return outcome.result is None or outcome.is_error


def _short(outcome: Outcome) -> str:
    if outcome.result is None:
        said = str((outcome.error or {}).get("message", "ended with its client"))
    else:
        said = outcome.code or outcome.text
    return said[:80]
