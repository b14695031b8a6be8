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
    UNTICKED,
    Outcome,
    Peer,
    accept,
    call,
    drive,
    driver,
    fails,
    read,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

UNABLE = Peer("ts2", "2026-07-28", can_be_asked=False)
MODERN = CLIENTS["ts2-modern"]
TOOLS_CHANGED = "notifications/tools/list_changed"
GENERAL = accept({"agent": "general"})
NULL_IN_IT = accept({"confirm": None})


def kinds(*names: str) -> pytest.MarkDecorator:
    """For each of some kinds of client."""
    return pytest.mark.parametrize("peer", [CLIENTS[name] for name in names], ids=names)


EACH = kinds("ts1-push", "ts1-chat", "ts2-push", "ts2-chat", "ts2-modern")
PUSH = kinds("ts1-push", "ts2-push")
CHAT = kinds("ts1-chat", "ts2-chat")


def history(url: str) -> list[str]:
    """What was done, as another client sees it."""
    lines: list[str] = drive(UNABLE, url, HISTORY).calls[0].value
    return lines


def is_invalid(outcome: Outcome) -> bool:
    return (
        outcome.is_error and outcome.code == "INVALID_INPUT" and "does not match the requested schema" in outcome.text
    )


@pytest.mark.parametrize("mode", ["2026-07-28", "auto"])
def test_a_modern_client_without_a_handler_is_refused_what_asks_and_served_the_rest(url: str, mode: str) -> None:
    asking = (
        call("close_ticket", id="T-1"),
        call("delete_ticket", id="T-3"),
        call("assign_ticket", id="T-2"),
        call("open_ticket"),
        call("rename_ticket", id="T-1"),
        call("merge_tickets", first="T-1", second="T-2"),
        call("deploy", environment="staging"),
    )
    served = call("list_tickets"), call("assign_ticket", id="T-2", agent="billing"), HISTORY
    unable = Peer("ts2", mode, can_be_asked=False)  # type: ignore[arg-type]
    report = drive(unable, url, *asking, *served)
    *refused, tickets, assigned, after = report.calls
    for outcome in refused:
        assert outcome.error is not None
        assert outcome.error["code"] == -32021
        assert outcome.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert len(tickets.value) == 4
    assert assigned.value == {"id": "T-2", "assigned": True, "agent": "billing"}
    assert after.value == ["assigned T-2 to billing"]
    assert FALLBACK_TOOL not in report.tool_names


@behaviour("MOD-1")
def test_a_client_that_speaks_both_eras_chooses_the_modern_one(url: str) -> None:
    report = drive(Peer("ts2", "auto"), url, call("close_ticket", TICKED, id="T-1"), HISTORY)
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
@PUSH
def test_content_that_does_not_fit_ends_a_pushed_call(url: str, peer: Peer) -> None:
    unfit = [answer for answer in UNFIT if answer != NULL_IN_IT]
    *refused, after = drive(peer, url, *(call("close_ticket", answer, id="T-1") for answer in unfit), HISTORY).calls
    assert all(is_invalid(outcome) for outcome in refused)
    assert after.value == []


@behaviour("PSH-4")
@PUSH
def test_content_that_the_sdk_itself_refuses_is_asked_for_by_chat(url: str, peer: Peer) -> None:
    """Both generations answer -32602 in their handler's place when a field holds null."""
    step = call("close_ticket", NULL_IN_IT, TICKED, id="T-1")
    closed, after = drive(peer, url, step, HISTORY, expects=(TOOLS_CHANGED,)).calls
    assert closed.asked_by == ["form", "chat"]
    assert after.value == ["closed T-1"]


@behaviour("ANS-1", "ANS-2", "ANS-5")
def test_content_that_does_not_fit_ends_a_modern_call(url: str) -> None:
    *ended, after = drive(MODERN, url, *(call("close_ticket", answer, id="T-1") for answer in UNFIT), HISTORY).calls
    # The SDK refuses null, in the fields' place or in one of them, and does not come back.
    of_the_sdk = [outcome.error["code"] for outcome in ended if outcome.error is not None]
    assert of_the_sdk == [-32602, -32602]
    assert all(is_invalid(outcome) for outcome in ended if outcome.error is None)
    assert after.value == []


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
    url: str, peer: Peer, code: int, asked_by: list[str], next_asked_by: list[str]
) -> None:
    steps = call("close_ticket", fails(code), TICKED, id="T-1"), call("assign_ticket", GENERAL, id="T-2"), HISTORY
    goes_on = "chat" in asked_by
    report = drive(peer, url, *steps, expects=(TOOLS_CHANGED,) if goes_on else ())
    closed, assigned, after = report.calls
    assert closed.asked_by == asked_by
    assert closed.value["closed"] is goes_on
    assert assigned.asked_by == next_asked_by
    assert after.value == [*(["closed T-1"] if goes_on else []), "assigned T-2 to general"]
    assert FALLBACK_TOOL not in report.tool_names
    assert (FALLBACK_TOOL in report.tool_names_afterwards) is goes_on


def test_a_modern_client_whose_handler_fails_does_not_come_back(url: str) -> None:
    *failed, after = drive(
        MODERN, url, *(call("close_ticket", fails(code), id="T-1") for code in (-32601, -32000, 7)), HISTORY
    ).calls
    assert [outcome.error and outcome.error["code"] for outcome in failed] == [-32601, -32000, 7]
    assert after.value == []


@behaviour("ANS-4", "ANS-6", "CHT-3", "CHT-8")
@CHAT
def test_a_model_may_correct_its_answer_write_as_models_do_and_send_it_twice(url: str, peer: Peer) -> None:
    corrected = call("close_ticket", accept({"confirm": "perhaps"}), accept({}), TICKED, id="T-1")
    as_text = call("close_ticket", accept('{"confirm": "true"}'), id="T-2")
    as_label = call("assign_ticket", accept({"agent": "Billing"}), id="T-2")
    twice = call("close_ticket", accept({"confirm": True}, times=2), id="T-3")
    first, _, _, last, after = drive(peer, url, corrected, as_text, as_label, twice, HISTORY).calls
    assert len(first.refusals) == 2
    assert all("does not match the requested schema" in text and "confirm" in text for text in first.refusals)
    assert last.again == [last.result]
    assert after.value == ["closed T-1", "closed T-2", "assigned T-2 to billing", "closed T-3"]


@behaviour("CHT-7")
@CHAT
def test_a_question_is_answered_from_its_own_session_only(url: str, peer: Peer) -> None:
    with driver(peer, url, call("close_ticket", accept({"confirm": False}, wait="go"), id="T-1")) as client:
        elicit_id = client.asked()["elicitId"]
        answers = [{"elicitId": id, "action": "accept", "content": {"confirm": True}} for id in (elicit_id, "no-such")]
        for answer, refused in zip(
            answers, drive(peer, url, *(call(FALLBACK_TOOL, **each) for each in answers)).calls, strict=True
        ):
            assert refused.is_error
            assert f"No pending elicitation found for ID: {answer['elicitId']}" in refused.text
        client.release("go")
        (left,) = client.report().calls
    assert left.value == {"id": "T-1", "closed": False, "reason": "The user did not tick the box."}
    assert history(url) == []


@behaviour("ASK-6")
@EACH
def test_what_is_put_aside_before_a_question_is_put_aside_once(url: str, peer: Peer) -> None:
    steps = call("refund", TICKED, id="T-2", amount=20), call("refund", UNTICKED, id="T-2", amount=5), HISTORY
    *_, after = drive(peer, url, *steps).calls
    assert after.value == [
        "reserved 20 for T-2 (R-1)",
        "refunded 20 for T-2 (R-1)",
        "reserved 5 for T-2 (R-3)",
        "released 5 for T-2 (R-3)",
    ]


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


@pytest.mark.xfail(strict=True, reason="what was read may be kept for list_ttl_seconds, 60 s, and nothing says less")
@kinds("ts2-modern", "mcp2-modern")
def test_a_resource_that_is_read_again_shows_what_was_done_meanwhile(url: str, peer: Peer) -> None:
    assign = call("assign_ticket", id="T-2", agent="billing")
    before, _, after = drive(peer, url, read("desk://tickets/T-2"), assign, read("desk://tickets/T-2")).calls
    assert before.result is not None
    assert after.result is not None
    assert '"agent":null' in before.result["contents"][0]["text"]
    assert '"agent":"billing"' in after.result["contents"][0]["text"]
