"""Clients that others wrote walk through the help desk over HTTP+SSE and WebSocket: mcp 1.30, the SDK in TypeScript."""

import pytest

from tests.peers.demo_server import demo_server
from tests.peers.driving import CLIENTS, DECLINE, FALLBACK_TOOL, HISTORY, Peer, accept, call, drive, driver
from tests.peers.walk import CLOSE_T1, PAY_T2, STEPS, Step, Walked, walk

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

URLS = {"sse": "http://127.0.0.1:{}/sse", "ws": "ws://127.0.0.1:{}/ws"}
PEERS = {
    "mcp1-push over SSE": CLIENTS["mcp1-push"]._replace(transport="sse"),
    "mcp1-chat over SSE": CLIENTS["mcp1-chat"]._replace(transport="sse"),
    "mcp1-push over WebSocket": CLIENTS["mcp1-push"]._replace(transport="ws"),
    "mcp1-chat over WebSocket": CLIENTS["mcp1-chat"]._replace(transport="ws"),
    "ts1-push over SSE": CLIENTS["ts1-push"]._replace(transport="sse"),
    "ts1-chat over SSE": CLIENTS["ts1-chat"]._replace(transport="sse"),
}
WITH_FORMS = [name for name in PEERS if "push" in name]


def place(peer: Peer, port: int) -> str:
    """Where a client finds the help desk."""
    return URLS[str(peer.transport)].format(port)


@pytest.fixture(scope="module", params=PEERS)
def name(request: pytest.FixtureRequest) -> str:
    """Each kind of client in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def walked(name: str) -> Walked:
    """What that client saw, walking through a help desk of its own."""
    with demo_server() as port:
        return walk(PEERS[name], place(PEERS[name], port))


@behaviour("TRN-1", "PSH-1", "CHT-6")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_tool_asks_what_it_has_to_and_acts_once(walked: Walked, step: Step) -> None:
    walked.went_well(step)


@behaviour("TRN-1", "CHT-1")
def test_the_way_of_asking_is_as_on_streamable_http(walked: Walked, name: str) -> None:
    assert walked.report.revision == "2025-11-25"
    assert (FALLBACK_TOOL in walked.report.tool_names) == ("chat" in name)
    ways = {way for _, outcome, _ in walked.steps.values() for way in outcome.asked_by}
    assert ways == {"chat" if "chat" in name else "form"}


@behaviour("PSH-3")
@pytest.mark.parametrize("name", WITH_FORMS)
def test_several_calls_ask_at_once_and_each_gets_its_own_answer(name: str, server_port: int) -> None:
    close = call("close_ticket", accept({"confirm": True}, about=CLOSE_T1, wait="later"), id="T-1")
    refund = call("refund", accept({"confirm": False}, about=PAY_T2), id="T-2", amount=20)
    with driver(PEERS[name], place(PEERS[name], server_port), (close, refund), HISTORY) as running:
        running.asked()
        running.release("later")
        closed, refunded, history = running.report().calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert refunded.value["refunded"] is False
    assert sorted(entry.split()[0] for entry in history.value) == ["closed", "released", "reserved"]


@behaviour("PSH-1")
@pytest.mark.parametrize("name", PEERS)
def test_two_clients_at_once_never_cross(name: str, server_port: int) -> None:
    peer = PEERS[name]
    url = place(peer, server_port)
    with driver(peer, url, call("close_ticket", accept({"confirm": True}, wait="go"), id="T-1")) as waiting:
        waiting.asked()
        (kept, history) = drive(peer, url, call("close_ticket", DECLINE, id="T-2"), HISTORY).calls
        assert kept.value["closed"] is False
        assert history.value == []
        waiting.release("go")
        (closed,) = waiting.report().calls
    assert closed.value == {"id": "T-1", "closed": True}


@behaviour("LEG-11")
@pytest.mark.parametrize("name", WITH_FORMS)
def test_a_client_that_is_killed_leaves_nothing_done(name: str, server_port: int) -> None:
    peer = PEERS[name]
    with driver(
        peer, place(peer, server_port), call("close_ticket", accept({"confirm": True}, wait="go"), id="T-1")
    ) as it:
        it.asked()
        it.abandon()
    (history,) = drive(peer, place(peer, server_port), HISTORY).calls
    assert history.value == []
