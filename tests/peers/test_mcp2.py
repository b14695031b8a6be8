"""The client of mcp 2.3: modern with a callback and without one, and legacy."""

import pytest

from tests.peers.driving import (
    FALLBACK_TOOL,
    HISTORY,
    TICKED,
    UNFIT,
    Call,
    Peer,
    accept,
    call,
    drive,
    driver,
    fails,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

MODERN = Peer("mcp2", "2026-07-28")
UNABLE = Peer("mcp2", "2026-07-28", can_be_asked=False)
PUSH = Peer("mcp2")
CHAT = Peer("mcp2", can_be_asked=False)
EACH = pytest.mark.parametrize("peer", [MODERN, PUSH, CHAT], ids=["modern", "push", "chat"])
WITH_FORMS = pytest.mark.parametrize("peer", [MODERN, PUSH], ids=["modern", "push"])


def history(url: str) -> list[str]:
    """What was done, as another client sees it."""
    lines: list[str] = drive(UNABLE, url, HISTORY).calls[0].value
    return lines


@pytest.mark.parametrize(
    "asking",
    [
        call("close_ticket", id="T-1"),
        call("delete_ticket", id="T-3"),
        call("assign_ticket", id="T-2"),
        call("open_ticket"),
    ],
    ids=lambda asking: asking.name,
)
def test_a_modern_client_without_a_callback_is_refused_and_told_what_it_needs(url: str, asking: Call) -> None:
    refused, after = drive(UNABLE, url, asking, HISTORY).calls
    assert refused.error is not None
    assert refused.error["code"] == -32021
    assert refused.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert after.value == []


def test_a_modern_client_without_a_callback_is_served_what_asks_nothing(url: str) -> None:
    report = drive(UNABLE, url, call("list_tickets"), call("assign_ticket", id="T-2", agent="billing"), HISTORY)
    tickets, assigned, after = report.calls
    assert len(tickets.value) == 4
    assert assigned.value == {"id": "T-2", "assigned": True, "agent": "billing"}
    assert after.value == ["assigned T-2 to billing"]
    assert FALLBACK_TOOL not in report.tool_names


@behaviour("MOD-1")
def test_a_client_that_speaks_both_eras_chooses_the_modern_one(url: str) -> None:
    report = drive(Peer("mcp2", "auto"), url, call("close_ticket", TICKED, id="T-1"), HISTORY)
    assert report.revision == "2026-07-28"
    assert report.calls[-1].value == ["closed T-1"]


@EACH
def test_nothing_is_done_while_a_question_is_open(url: str, peer: Peer) -> None:
    with driver(peer, url, call("close_ticket", accept({"confirm": True}, wait="go"), id="T-1")) as client:
        client.asked()
        assert history(url) == []
        client.release("go")
        (closed,) = client.report().calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert history(url) == ["closed T-1"]


@behaviour("PSH-3")
@EACH
def test_calls_at_once_get_each_its_own_answer_in_whatever_order(url: str, peer: Peer) -> None:
    at_once = (
        call("close_ticket", accept({"confirm": True}, about="T-1", wait="T-1"), id="T-1"),
        call("close_ticket", accept({"confirm": False}, about="T-2", wait="T-2"), id="T-2"),
        call("refund", accept({"confirm": True}, about="T-4", wait="T-4"), id="T-4", amount=3),
    )
    with driver(peer, url, at_once, HISTORY) as client:
        asked = [client.asked()["message"] for _ in at_once]
        for ticket in ("T-4", "T-2", "T-1"):
            client.release(ticket)
            assert client.ended()["arguments"]["id"] == ticket
        closed, left, refunded, after = client.report().calls
    assert all(any(ticket in message for message in asked) for ticket in ("T-1", "T-2", "T-4"))
    assert closed.value == {"id": "T-1", "closed": True}
    assert left.value == {"id": "T-2", "closed": False, "reason": "The user did not tick the box."}
    assert refunded.value == {"id": "T-4", "refunded": True, "amount": 3}
    assert after.value == ["reserved 3 for T-4 (R-1)", "refunded 3 for T-4 (R-1)", "closed T-1"]


@behaviour("ANS-1", "ANS-2", "ANS-5")
@WITH_FORMS
def test_content_that_does_not_fit_ends_the_call(url: str, peer: Peer) -> None:
    *refused, after = drive(peer, url, *(call("close_ticket", answer, id="T-1") for answer in UNFIT), HISTORY).calls
    assert [outcome.code for outcome in refused] == ["INVALID_INPUT"] * len(UNFIT)
    assert all(outcome.is_error and "does not match the requested schema" in outcome.text for outcome in refused)
    assert after.value == []


@behaviour("ANS-4")
def test_a_model_may_correct_an_answer_that_does_not_fit(url: str) -> None:
    closed, after = drive(CHAT, url, call("close_ticket", accept({}), TICKED, id="T-1"), HISTORY).calls
    assert len(closed.refusals) == 1
    assert after.value == ["closed T-1"]


def test_a_modern_client_whose_callback_fails_does_not_come_back(url: str) -> None:
    failed, after = drive(MODERN, url, call("close_ticket", fails(-32000), id="T-1"), HISTORY).calls
    assert failed.error is not None
    assert failed.error["code"] == -32000
    assert after.value == []


@behaviour("PSH-4", "CHT-1")
@pytest.mark.parametrize(
    ("code", "asked_by", "next_asked_by"),
    [(-32601, ["form", "chat"], ["chat"]), (-32600, ["form", "chat"], ["chat"]), (-32602, ["form", "chat"], ["form"])],
)
def test_a_legacy_client_that_answers_with_an_error_is_asked_by_chat(
    url: str, code: int, asked_by: list[str], next_asked_by: list[str]
) -> None:
    assign = call("assign_ticket", accept({"agent": "general"}), id="T-2")
    steps = call("close_ticket", fails(code), TICKED, id="T-1"), assign, HISTORY
    report = drive(PUSH, url, *steps, expects=("notifications/tools/list_changed",))
    closed, assigned, after = report.calls
    assert closed.asked_by == asked_by
    assert assigned.asked_by == next_asked_by
    assert after.value == ["closed T-1", "assigned T-2 to general"]
    assert FALLBACK_TOOL in report.tool_names_afterwards
