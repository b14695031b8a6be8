"""A round that two nodes want at once: one runs it, the other has its ending as soon as there is one."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from bridge import claims as claims_module
from bridge.claims import AlreadyAnswered, Claims
from bridge.node import Node
from bridge.stores.sqlite import SqliteStore
from bridge.upstreams.base import Finished

pytestmark = pytest.mark.anyio
behaviour = pytest.mark.behaviour

CLAIM, OVER = "claim:round", "over/round"


class Round:
    """A round that runs until it is told to end, wanted by any node."""

    def __init__(self) -> None:
        self.runs = 0
        self.runs_now = anyio.Event()
        self.may_end = anyio.Event()

    async def run(self) -> Finished:
        self.runs += 1
        self.runs_now.set()
        await self.may_end.wait()
        return Finished({"run": self.runs})

    async def wanted_at(self, node: Node, answers: str = "yes") -> object:
        return await Claims(node).once(
            "round",
            answers,
            self.run,
            ttl_seconds=60,
            repeatable=False,
            cancel=lambda: None,
            joined=lambda leave: None,
        )


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[Node]]:
    made = [Node(SqliteStore(tmp_path / "state.db")) for _ in range(2)]
    for node in made:
        await node.start()
    yield made
    for node in made:
        await node.stop()
        await node.store.aclose()


@behaviour("MOD-5")
async def test_who_waits_at_another_node_is_woken_by_the_end(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims_module, "LOOK_SECONDS", 1000.0)
    wanted, endings = Round(), []

    async def want(node: Node) -> None:
        endings.append(await wanted.wanted_at(node))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(want, nodes[0])
            await wanted.runs_now.wait()
            claimed = await nodes[0].store.get(CLAIM)
            tasks.start_soon(want, nodes[1])
            while await nodes[0].store.get(CLAIM) == claimed:  # until the other has said there that it waits
                await anyio.lowlevel.checkpoint()
            wanted.may_end.set()
    assert endings == [Finished({"run": 1})] * 2
    assert (await nodes[0].store.read(OVER)).entries


@behaviour("MOD-5")
async def test_a_round_that_nobody_waits_for_costs_no_log(nodes: list[Node]) -> None:
    wanted = Round()
    wanted.may_end.set()
    assert await wanted.wanted_at(nodes[0]) == Finished({"run": 1})
    assert not (await nodes[0].store.read(OVER)).entries
    assert await wanted.wanted_at(nodes[1]) == Finished({"run": 1})
    assert await wanted.wanted_at(nodes[1], "no") == AlreadyAnswered()


@behaviour("MOD-8")
async def test_a_node_that_was_taken_for_lost_leaves_the_claim_of_the_next_alone(nodes: list[Node]) -> None:
    wanted, slow = Round(), nodes[0]
    next_claim = claims_module.encode(claims_module._Claim("yes", nodes[1].id, "running"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wanted.wanted_at, slow)
        with anyio.fail_after(10):
            await wanted.runs_now.wait()
        await slow.store.put(CLAIM, next_claim, ttl_seconds=60)
        wanted.may_end.set()
    record = await slow.store.get(CLAIM)
    assert record is not None
    assert record.value == next_claim
