"""The client of mcp 1.30, with a callback for forms (push) and without one (chat)."""

from typing import Any

import pytest

from tests.peers.cutting_proxy import CuttingProxy
from tests.peers.driving import (
    FALLBACK_TOOL,
    HISTORY,
    TICKED,
    UNFIT,
    UNTICKED,
    Outcome,
    Peer,
    accept,
    call,
    drive,
    driver,
    fails,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

PUSH = Peer("mcp1")
CHAT = Peer("mcp1", can_be_asked=False)
BOTH = pytest.mark.parametrize("peer", [PUSH, CHAT], ids=["push", "chat"])
TOOLS_CHANGED = "notifications/tools/list_changed"
GENERAL = accept({"agent": "general"})


def history(url: str) -> list[str]:
    """What was done, as another client sees it."""
    lines: list[str] = drive(CHAT, url, HISTORY).calls[0].value
    return lines


def is_invalid(outcome: Outcome) -> bool:
    return (
        outcome.is_error and outcome.code == "INVALID_INPUT" and "does not match the requested schema" in outcome.text
    )


@BOTH
def test_nothing_is_done_while_a_question_is_open(url: str, peer: Peer) -> None:
    with driver(peer, url, call("close_ticket", accept({"confirm": True}, wait="go"), id="T-1")) as client:
        client.asked()
        assert history(url) == []
        client.release("go")
        (closed,) = client.report().calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert history(url) == ["closed T-1"]


@behaviour("LEG-7")
def test_a_form_may_stay_open_past_the_comments_that_keep_its_stream_alive(proxy: CuttingProxy) -> None:
    answer = accept({"confirm": True}, wait="go")
    with driver(PUSH, proxy.url, call("close_ticket", answer, id="T-1"), HISTORY) as client:
        client.asked()
        proxy.wait_until_said("server", b": still here")
        client.release("go")
        closed, after = client.report().calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert after.value == ["closed T-1"]


@behaviour("PSH-4", "CHT-1", "CHT-3")
@pytest.mark.parametrize("code", [-32601, -32600])
def test_a_client_that_turns_out_unable_is_asked_by_chat_from_then_on(url: str, code: int) -> None:
    steps = call("close_ticket", fails(code), TICKED, id="T-1"), call("assign_ticket", GENERAL, id="T-2"), HISTORY
    report = drive(PUSH, url, *steps, expects=(TOOLS_CHANGED,))
    closed, assigned, after = report.calls
    assert closed.asked_by == ["form", "chat"]
    assert closed.messages[0] == closed.messages[1]
    assert assigned.asked_by == ["chat"]
    assert after.value == ["closed T-1", "assigned T-2 to general"]
    assert FALLBACK_TOOL not in report.tool_names
    assert FALLBACK_TOOL in report.tool_names_afterwards


@behaviour("PSH-4")
def test_a_form_that_the_client_cannot_show_is_asked_by_chat_and_the_next_is_shown(url: str) -> None:
    steps = call("close_ticket", fails(-32602), TICKED, id="T-1"), call("assign_ticket", GENERAL, id="T-2"), HISTORY
    report = drive(PUSH, url, *steps, expects=(TOOLS_CHANGED,))
    closed, assigned, after = report.calls
    assert closed.asked_by == ["form", "chat"]
    assert assigned.asked_by == ["form"]
    assert after.value == ["closed T-1", "assigned T-2 to general"]


@behaviour("PSH-4")
def test_any_other_error_of_the_client_is_taken_for_cancel(url: str) -> None:
    failing = [call("close_ticket", fails(code), id="T-1") for code in (-32603, -32000, 7)]
    report = drive(PUSH, url, *failing, call("close_ticket", TICKED, id="T-1"))
    *cancelled, closed = report.calls
    assert all("without an answer" in outcome.value["reason"] for outcome in cancelled)
    assert closed.asked_by == ["form"]
    assert report.notifications == []
    assert history(url) == ["closed T-1"]


@behaviour("ANS-1", "ANS-2", "ANS-5")
def test_content_that_does_not_fit_ends_a_pushed_call(url: str) -> None:
    *refused, after = drive(PUSH, url, *(call("close_ticket", answer, id="T-1") for answer in UNFIT), HISTORY).calls
    assert all(is_invalid(outcome) for outcome in refused)
    assert all("confirm: " in outcome.text for outcome in refused[:-1])
    assert after.value == []


@behaviour("ANS-1", "ANS-2")
def test_the_tool_gets_no_further_than_the_question_whose_answer_does_not_fit(url: str) -> None:
    title, urgent = accept({"title": "Fire"}), accept({"priority": "urgent"})
    refused, after = drive(PUSH, url, call("open_ticket", title, urgent), HISTORY).calls
    assert is_invalid(refused)
    assert "priority" in refused.text
    assert after.value == []


@behaviour("ANS-4", "CHT-3")
def test_a_model_may_correct_an_answer_that_does_not_fit(url: str) -> None:
    perhaps, nothing = accept({"confirm": "perhaps"}), accept({})
    closed, after = drive(CHAT, url, call("close_ticket", perhaps, nothing, TICKED, id="T-1"), HISTORY).calls
    assert len(closed.refusals) == 2
    assert all("does not match the requested schema" in text and "confirm" in text for text in closed.refusals)
    assert closed.value == {"id": "T-1", "closed": True}
    assert after.value == ["closed T-1"]


@behaviour("ANS-6")
def test_a_model_may_write_content_as_models_do(url: str) -> None:
    as_text, as_label = accept('{"confirm": "true"}'), accept({"agent": "Billing"})
    steps = call("close_ticket", as_text, id="T-1"), call("assign_ticket", as_label, id="T-2"), HISTORY
    assert drive(CHAT, url, *steps).calls[-1].value == ["closed T-1", "assigned T-2 to billing"]


@behaviour("CHT-7")
def test_a_question_is_answered_from_its_own_session_only(url: str) -> None:
    with driver(CHAT, url, call("close_ticket", accept({"confirm": False}, wait="go"), id="T-1")) as client:
        elicit_id = client.asked()["elicitId"]
        for tried in (elicit_id, "no-such-id"):
            answer = {"elicitId": tried, "action": "accept", "content": {"confirm": True}}
            (refused,) = drive(CHAT, url, call(FALLBACK_TOOL, **answer)).calls
            assert refused.is_error
            assert f"No pending elicitation found for ID: {tried}" in refused.text
        client.release("go")
        (left,) = client.report().calls
    assert left.value == {"id": "T-1", "closed": False, "reason": "The user did not tick the box."}
    assert history(url) == []


@behaviour("CHT-8")
def test_an_answer_passed_on_twice_at_once_acts_once(url: str) -> None:
    closed, after = drive(CHAT, url, call("close_ticket", accept({"confirm": True}, times=2), id="T-1"), HISTORY).calls
    assert closed.again == [closed.result]
    assert closed.value == {"id": "T-1", "closed": True}
    assert after.value == ["closed T-1"]


@behaviour("CHT-1")
def test_the_fallback_tool_is_unknown_to_a_client_with_forms(url: str) -> None:
    steps = call(FALLBACK_TOOL, elicitId="x", action="accept"), call("no_such_tool")
    fallback, unknown = drive(PUSH, url, *steps).calls
    assert str(fallback.error or fallback.result).replace(FALLBACK_TOOL, "no_such_tool") == str(
        unknown.error or unknown.result
    )


@behaviour("PSH-3")
@BOTH
def test_calls_at_once_in_one_session_get_each_its_own_answer(url: str, peer: Peer) -> None:
    at_once = (
        call("close_ticket", accept({"confirm": True}, about="T-1"), id="T-1"),
        call("close_ticket", accept({"confirm": False}, about="T-2"), id="T-2"),
        call("assign_ticket", accept({"agent": "billing"}, about="T-3"), id="T-3"),
        call("delete_ticket", accept({"id": "T-4"}, about="T-4"), id="T-4"),
        call("open_ticket", accept({"title": "Fire"}, about="new ticket"), *_about_fire()),
    )
    closed, left, assigned, deleted, opened, after = drive(peer, url, at_once, HISTORY).calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert left.value == {"id": "T-2", "closed": False, "reason": "The user did not tick the box."}
    assert assigned.value == {"id": "T-3", "assigned": True, "agent": "billing"}
    assert deleted.value == {"id": "T-4", "deleted": True}
    assert (opened.value["id"], opened.value["agent"]) == ("T-5", "access")
    assert sorted(after.value) == ["assigned T-3 to billing", "closed T-1", "deleted T-4", "opened T-5"]


@behaviour("PSH-3")
def test_the_call_whose_form_waits_behind_another_goes_on_when_its_turn_comes(url: str) -> None:
    at_once = (
        call("close_ticket", accept({"confirm": True}, about="T-1", wait="go"), id="T-1"),
        call("close_ticket", accept({"confirm": True}, about="T-2", wait="go"), id="T-2"),
    )
    with driver(PUSH, url, at_once) as client:
        first = client.asked()["message"]
        assert history(url) == []
        client.release("go")
        assert client.asked()["message"] != first
        assert [outcome.value["closed"] for outcome in client.report().calls] == [True, True]
    assert sorted(history(url)) == ["closed T-1", "closed T-2"]


@behaviour("ASK-6")
@BOTH
def test_what_is_put_aside_before_a_question_is_put_aside_once(url: str, peer: Peer) -> None:
    steps = call("refund", TICKED, id="T-2", amount=20), call("refund", UNTICKED, id="T-2", amount=5), HISTORY
    *_, after = drive(peer, url, *steps).calls
    assert after.value == [
        "reserved 20 for T-2 (R-1)",
        "refunded 20 for T-2 (R-1)",
        "reserved 5 for T-2 (R-3)",
        "released 5 for T-2 (R-3)",
    ]


def _about_fire() -> tuple[Any, Any]:
    return accept({"priority": "low"}, about="Fire"), accept({"agent": "access"}, about="Fire")
