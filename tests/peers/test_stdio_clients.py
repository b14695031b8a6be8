"""The official SDK's clients, of both generations, start the help desk as their child and walk through it."""

import pytest

from tests.peers.driving import CLIENTS, FALLBACK_TOOL, STDIO, accept, call, drive, driver
from tests.peers.walk import CLOSE_T1, PAY_T2, STEPS, Step, Walked, walk

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

NAMES = ["mcp1-push", "mcp1-chat", "mcp2-push", "mcp2-chat", "mcp2-modern"]


@pytest.fixture(scope="module", params=NAMES)
def client(request: pytest.FixtureRequest) -> str:
    """Each kind of client in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def walked(client: str) -> Walked:
    """What that client saw, walking through a help desk of its own."""
    return walk(CLIENTS[client], STDIO)


@behaviour("TRN-1", "PSH-1", "CHT-6")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_tool_asks_what_it_has_to_and_acts_once(walked: Walked, step: Step) -> None:
    walked.went_well(step)


@behaviour("TRN-2", "CHT-1")
def test_the_era_and_the_way_of_asking_are_as_on_http(walked: Walked, client: str) -> None:
    assert walked.report.revision == ("2026-07-28" if client.endswith("modern") else "2025-11-25")
    assert (FALLBACK_TOOL in walked.report.tool_names) == client.endswith("chat")
    assert walked.report.tools_afterwards == walked.report.tools
    ways = {way for _, outcome, _ in walked.steps.values() for way in outcome.asked_by}
    assert ways == {"chat" if client.endswith("chat") else "form"}


@behaviour("TRN-2")
def test_a_client_of_both_eras_discovers_the_newer_one() -> None:
    report = drive(CLIENTS["mcp2-push"]._replace(mode="auto"), STDIO, call("history"))
    assert report.revision == "2026-07-28"


@behaviour("PSH-3")
@pytest.mark.parametrize("name", ["mcp1-push", "mcp2-push", "mcp2-modern"])
def test_several_calls_ask_at_once_and_each_gets_its_own_answer(name: str) -> None:
    close = call("close_ticket", accept({"confirm": True}, about=CLOSE_T1, wait="later"), id="T-1")
    refund = call("refund", accept({"confirm": False}, about=PAY_T2), id="T-2", amount=20)
    with driver(CLIENTS[name], STDIO, (close, refund), call("history")) as running:
        running.asked()
        running.release("later")
        closed, refunded, history = running.report().calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert refunded.value["refunded"] is False
    assert sorted(entry.split()[0] for entry in history.value) == ["closed", "released", "reserved"]
