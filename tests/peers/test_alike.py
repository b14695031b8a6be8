"""What the clients in TypeScript and FastMCP 4 do alike."""

import pytest

from tests.peers.driving import (
    CLIENTS,
    FALLBACK_TOOL,
    HISTORY,
    TICKED,
    Peer,
    accept,
    call,
    drive,
    driver,
    effects,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

EACH = [
    "ts1-push",
    "ts1-chat",
    "ts2-push",
    "ts2-chat",
    "ts2-modern",
    "fastmcp4-push",
    "fastmcp4-chat",
    "fastmcp4-modern",
]
ASKING = (
    call("close_ticket", id="T-1"),
    call("delete_ticket", id="T-3"),
    call("assign_ticket", id="T-2"),
    call("open_ticket"),
    call("rename_ticket", id="T-1"),
    call("merge_tickets", first="T-1", second="T-2"),
    call("deploy", environment="staging"),
)


@pytest.mark.parametrize(
    "peer",
    [
        Peer("ts2", "2026-07-28", can_be_asked=False),
        Peer("ts2", "auto", can_be_asked=False),
        Peer("fastmcp4", "2026-07-28", can_be_asked=False),
    ],
    ids=["ts2-pin", "ts2-auto", "fastmcp4"],
)
def test_a_modern_client_without_a_handler_is_refused_what_asks_and_served_the_rest(
    shared_url: str, peer: Peer
) -> None:
    served = call("list_tickets"), call("assign_ticket", id="T-2", agent="billing")
    report = drive(peer, shared_url, HISTORY, *ASKING, *served, HISTORY)
    before, *refused, tickets, assigned, after = report.calls
    for outcome in refused:
        assert outcome.error is not None
        assert outcome.error["code"] == -32021
        assert outcome.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert len(tickets.value) == 4
    assert assigned.value == {"id": "T-2", "assigned": True, "agent": "billing"}
    assert effects(before, after) == ["assigned T-2 to billing"]
    assert FALLBACK_TOOL not in report.tool_names


@behaviour("MOD-1")
@pytest.mark.parametrize("client", ["ts2", "fastmcp4"])
def test_a_client_that_speaks_both_eras_chooses_the_modern_one(shared_url: str, client: str) -> None:
    report = drive(Peer(client, "auto"), shared_url, HISTORY, call("close_ticket", TICKED, id="T-1"), HISTORY)
    before, _, after = report.calls
    assert report.revision == "2026-07-28"
    assert effects(before, after) == ["closed T-1"]


@behaviour("PSH-3")
@pytest.mark.parametrize("peer", [CLIENTS[name] for name in EACH], ids=EACH)
def test_calls_at_once_do_nothing_until_each_has_its_own_answer(shared_url: str, peer: Peer) -> None:
    at_once = (
        call("close_ticket", accept({"confirm": True}, about="T-1", wait="T-1"), id="T-1"),
        call("close_ticket", accept({"confirm": False}, about="T-2", wait="T-2"), id="T-2"),
        call("assign_ticket", accept({"agent": "access"}, about="T-4", wait="T-4"), id="T-4"),
    )
    with driver(peer, shared_url, HISTORY, at_once, HISTORY) as client:
        client.ended()
        asked = [client.asked()["message"] for _ in at_once]
        (meanwhile,) = drive(CLIENTS["ts2-modern"], shared_url, HISTORY).calls
        for ticket in ("T-4", "T-2", "T-1"):
            client.release(ticket)
            assert client.ended()["arguments"]["id"] == ticket
        before, closed, left, assigned, after = client.report().calls
    assert meanwhile.value == before.value
    assert all(any(ticket in message for message in asked) for ticket in ("T-1", "T-2", "T-4"))
    assert closed.value == {"id": "T-1", "closed": True}
    assert left.value == {"id": "T-2", "closed": False, "reason": "The user did not tick the box."}
    assert assigned.value == {"id": "T-4", "assigned": True, "agent": "access"}
    assert effects(before, after) == ["assigned T-4 to access", "closed T-1"]
