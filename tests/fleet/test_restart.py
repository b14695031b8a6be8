"""A restart between a question and its answer: the call goes on as if nothing had been."""

from pathlib import Path

import pytest

from bridge.demo.desk import Desk
from tests.fleet.crowd import KINDS
from tests.fleet.nodes import Fleet, fleet
from tests.peers.driving import CLIENTS, Answer, accept, call, driver

pytestmark = [pytest.mark.fleet, pytest.mark.anyio, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour


def restart(nodes: Fleet, how: str) -> None:
    """Start every node again: all at once after they were told to end, or one after the other, killed."""
    if how == "stopped":
        for node in nodes.nodes:
            node.stop()
        for node in nodes.nodes:
            node.start()
        for node in nodes.nodes:
            node.await_accepting()
        return
    # A client whose stream just breaks comes back within seconds or not at all, so one node is there all the time.
    for node in nodes.nodes:
        node.kill()
        node.start()
        node.await_accepting()


@behaviour("LEG-2", "MOD-5", "CHT-14")
@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_question_is_answered_after_every_node_was_started_again(tmp_path: Path, how: str) -> None:
    with fleet(tmp_path, f"sqlite:///{tmp_path}/state.db", 2) as nodes:
        store = nodes.open_store()
        desk = Desk(store)
        for kind in KINDS:
            ticket = (await desk.open(f"Restarted with {kind}", "low", "general")).id
            answer: Answer = accept({"confirm": True}, wait="go")
            with driver(CLIENTS[kind], nodes.url, call("close_ticket", answer, id=ticket), call_seconds=40) as client:
                client.asked()
                restart(nodes, how)
                client.release("go")
                (closed,) = client.report().calls
            assert closed.error is None, (kind, closed.error)
            assert closed.value == {"id": ticket, "closed": True}, kind
            assert (await desk.history()).count(f"closed {ticket}") == 1, kind
        await store.aclose()
        nodes.assert_nothing_crashed()
