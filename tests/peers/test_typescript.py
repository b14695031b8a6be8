"""The official clients in TypeScript: the first generation, which is legacy, and the second, in either era.

Every tool, prompt and resource is in `test_every_tool.py`, `test_prompts_and_resources.py` and `test_pages.py`.
"""

import pytest

from tests.peers.cutting_proxy import CuttingProxy
from tests.peers.driving import (
    CLIENTS,
    FALLBACK_TOOL,
    HISTORY,
    TICKED,
    UNFIT,
    Outcome,
    Peer,
    accept,
    call,
    drive,
    driver,
    effects,
    fails,
    read,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

MODERN = CLIENTS["ts2-modern"]
TOOLS_CHANGED = "notifications/tools/list_changed"
WITH_NULL = accept({"confirm": None})


def kinds(*names: str) -> pytest.MarkDecorator:
    """For each of some kinds of client."""
    return pytest.mark.parametrize("peer", [CLIENTS[name] for name in names], ids=names)


PUSH = kinds("ts1-push", "ts2-push")
CHAT = kinds("ts1-chat", "ts2-chat")


def is_invalid(outcome: Outcome) -> bool:
    return (
        outcome.is_error and outcome.code == "INVALID_INPUT" and "does not match the requested schema" in outcome.text
    )


@behaviour("ANS-1", "ANS-2", "ANS-5", "PSH-4")
@PUSH
def test_content_that_does_not_fit_ends_a_pushed_call_unless_the_sdk_itself_refuses_it(
    shared_url: str, peer: Peer
) -> None:
    """Where a field holds null, both generations answer -32602 in their handler's place: the chat is asked."""
    unfit = [call("close_ticket", answer, id="T-1") for answer in UNFIT if answer != WITH_NULL]
    by_chat = call("close_ticket", WITH_NULL, TICKED, id="T-1")
    report = drive(peer, shared_url, HISTORY, *unfit, HISTORY, by_chat, HISTORY, expects=(TOOLS_CHANGED,))
    before, *refused, between, closed, after = report.calls
    assert all(is_invalid(outcome) for outcome in refused)
    assert effects(before, between) == []
    assert closed.asked_by == ["form", "chat"]
    assert effects(between, after) == ["closed T-1"]


@behaviour("ANS-1", "ANS-2", "ANS-5")
def test_content_that_does_not_fit_ends_a_modern_call(shared_url: str) -> None:
    unfit = [call("close_ticket", answer, id="T-1") for answer in UNFIT]
    before, *ended, after = drive(MODERN, shared_url, HISTORY, *unfit, HISTORY).calls
    # The SDK refuses null, in the fields' place or in one of them, and does not come back.
    assert [outcome.error["code"] for outcome in ended if outcome.error is not None] == [-32602, -32602]
    assert all(is_invalid(outcome) for outcome in ended if outcome.error is None)
    assert effects(before, after) == []


@behaviour("PSH-4", "CHT-1")
@PUSH
@pytest.mark.parametrize(
    ("code", "asked_by", "next_asked_by"),
    [
        (-32601, ["form", "chat"], ["chat"]),
        (-32600, ["form", "chat"], ["chat"]),
        (-32602, ["form", "chat"], ["form"]),
        (-32603, ["form"], ["form"]),
    ],
)
def test_a_legacy_client_that_answers_with_an_error_is_asked_by_chat_or_not_at_all(
    shared_url: str, peer: Peer, code: int, asked_by: list[str], next_asked_by: list[str]
) -> None:
    goes_on = "chat" in asked_by
    failing = call("close_ticket", fails(code), TICKED, id="T-1")
    following = call("assign_ticket", accept({"agent": "general"}), id="T-2")
    expects = (TOOLS_CHANGED,) if goes_on else ()
    report = drive(peer, shared_url, HISTORY, failing, following, HISTORY, expects=expects)
    before, closed, assigned, after = report.calls
    assert closed.asked_by == asked_by
    assert closed.value["closed"] is goes_on
    assert assigned.asked_by == next_asked_by
    assert effects(before, after) == [*(["closed T-1"] if goes_on else []), "assigned T-2 to general"]
    assert FALLBACK_TOOL not in report.tool_names
    assert (FALLBACK_TOOL in report.tool_names_afterwards) is goes_on


def test_a_modern_client_whose_handler_fails_does_not_come_back(shared_url: str) -> None:
    codes = [-32601, -32000, 7]
    failing = [call("close_ticket", fails(code), id="T-1") for code in codes]
    before, *failed, after = drive(MODERN, shared_url, HISTORY, *failing, HISTORY).calls
    assert [outcome.error and outcome.error["code"] for outcome in failed] == codes
    assert effects(before, after) == []


@behaviour("ANS-4", "ANS-6", "CHT-3", "CHT-8")
@CHAT
def test_a_model_may_correct_its_answer_write_as_models_do_and_send_it_twice(shared_url: str, peer: Peer) -> None:
    corrected = call("close_ticket", accept({"confirm": "perhaps"}), accept({}), TICKED, id="T-1")
    as_text = call("close_ticket", accept('{"confirm": "true"}'), id="T-2")
    as_label = call("assign_ticket", accept({"agent": "Billing"}), id="T-2")
    twice = call("close_ticket", accept({"confirm": True}, times=2), id="T-3")
    report = drive(peer, shared_url, HISTORY, corrected, as_text, as_label, twice, HISTORY)
    before, first, _, _, last, after = report.calls
    assert len(first.refusals) == 2
    assert all("does not match the requested schema" in text and "confirm" in text for text in first.refusals)
    assert last.again == [last.result]
    assert effects(before, after) == ["closed T-1", "closed T-2", "assigned T-2 to billing", "closed T-3"]


@behaviour("CHT-7")
@CHAT
def test_a_question_is_answered_from_its_own_session_only(shared_url: str, peer: Peer) -> None:
    step = call("close_ticket", accept({"confirm": False}, wait="go"), id="T-1")
    with driver(peer, shared_url, HISTORY, step, HISTORY) as client:
        tried = [client.asked()["elicitId"], "no-such-id"]
        ticked = {"action": "accept", "content": {"confirm": True}}
        refused = drive(peer, shared_url, *(call(FALLBACK_TOOL, elicitId=each, **ticked) for each in tried)).calls
        client.release("go")
        before, left, after = client.report().calls
    for elicit_id, outcome in zip(tried, refused, strict=True):
        assert outcome.is_error
        assert f"No pending elicitation found for ID: {elicit_id}" in outcome.text
    assert left.value == {"id": "T-1", "closed": False, "reason": "The user did not tick the box."}
    assert effects(before, after) == []


@behaviour("LEG-7", "LEG-11")
@PUSH
def test_a_client_whose_connection_is_cut_is_not_shown_its_form_again(proxy: CuttingProxy, peer: Peer) -> None:
    step = call("close_ticket", accept({"confirm": True}, wait="go"), id="T-1")
    with driver(peer, proxy.url, step, HISTORY) as client:
        client.asked()
        proxy.cut()
        proxy.wait_until_said("client", b"last-event-id: [0-9a-f]{16}:")
        client.release("go")
        closed, after = client.report().calls
    assert closed.value == {"id": "T-1", "closed": True}
    assert len(closed.questions) == 1
    assert after.value == ["closed T-1"]
    assert proxy.count("server", b'"method":"elicitation/create"') == 1


@kinds("ts2-modern", "mcp2-modern")
def test_a_resource_that_is_read_again_shows_what_was_done_meanwhile(url: str, peer: Peer) -> None:
    assign = call("assign_ticket", id="T-2", agent="billing")
    before, _, after = drive(peer, url, read("desk://tickets/T-2"), assign, read("desk://tickets/T-2")).calls
    assert before.result is not None
    assert after.result is not None
    assert '"agent":null' in before.result["contents"][0]["text"]
    assert '"agent":"billing"' in after.result["contents"][0]["text"]
