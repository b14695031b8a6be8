"""Push clients whose connections are cut in the middle of a question. Both SDKs come back with `Last-Event-ID`."""

import pytest

from tests.peers.cutting_proxy import CuttingProxy
from tests.peers.driving import HISTORY, TICKED, Outcome, Peer, accept, call, driver

pytestmark = [
    pytest.mark.peers,
    pytest.mark.timeout(120),
    pytest.mark.parametrize("peer", [Peer("mcp1"), Peer("mcp2")], ids=lambda peer: peer.name),
]
behaviour = pytest.mark.behaviour

WAITING = accept({"confirm": True}, wait="go")
ASKED = b'"method":"elicitation/create"'
CAME_BACK = b"last-event-id: [0-9a-f]{16}:"
"""To the stream of a call; the standalone one is called get."""


def is_closed_once(closed: Outcome, after: Outcome) -> bool:
    return (
        closed.value == {"id": "T-1", "closed": True} and len(closed.questions) == 1 and after.value == ["closed T-1"]
    )


@behaviour("LEG-7", "LEG-11")
@pytest.mark.parametrize("cuts", [1, 2])
def test_a_client_that_comes_back_is_not_shown_its_form_again(proxy: CuttingProxy, peer: Peer, cuts: int) -> None:
    with driver(peer, proxy.url, call("close_ticket", WAITING, id="T-1"), HISTORY, call_seconds=10) as client:
        client.asked()
        for cut in range(1, cuts + 1):
            proxy.cut()
            proxy.wait_until_said("client", CAME_BACK, times=cut)
        client.release("go")
        closed, after = client.report().calls
    assert is_closed_once(closed, after)
    assert proxy.count("server", ASKED) == 1


@behaviour("LEG-7", "LEG-11", "PSH-1")
def test_an_answer_counts_that_is_given_before_the_client_is_back(proxy: CuttingProxy, peer: Peer) -> None:
    with driver(peer, proxy.url, call("close_ticket", WAITING, id="T-1"), HISTORY) as client:
        client.asked()
        proxy.cut()
        client.release("go")
        closed, after = client.report().calls
    assert is_closed_once(closed, after)
    assert proxy.count("server", ASKED) == 1
    assert proxy.count("client", CAME_BACK) >= 1


@behaviour("LEG-7", "PSH-1")
def test_a_question_that_was_lost_on_the_way_is_sent_again(proxy: CuttingProxy, peer: Peer) -> None:
    first = call("assign_ticket", accept({"agent": "general"}, wait="ready"), id="T-2")
    with driver(peer, proxy.url, first, call("close_ticket", TICKED, id="T-1"), HISTORY) as client:
        client.asked()
        proxy.wait_until_said("server", b"id: get:")
        proxy.cut_after(b":0\ndata:\n\n")  # the head of the next stream, before its question
        client.release("ready")
        proxy.wait_until_cut()
        _, closed, after = client.report().calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert len(closed.questions) == 1
    assert after.value == ["assigned T-2 to general", "closed T-1"]


@behaviour("LEG-7")
def test_a_result_that_was_lost_on_the_way_is_sent_again(proxy: CuttingProxy, peer: Peer) -> None:
    with driver(peer, proxy.url, call("close_ticket", WAITING, id="T-1"), HISTORY) as client:
        client.asked()
        proxy.cut_after(b'"closed":true')
        client.release("go")
        proxy.wait_until_cut()
        closed, after = client.report().calls
    assert is_closed_once(closed, after)
