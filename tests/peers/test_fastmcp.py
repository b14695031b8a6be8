"""The client of FastMCP 4, in either era: what it does in a way of its own.

Every tool, prompt and resource is in `test_every_tool.py`, `test_prompts_and_resources.py` and `test_pages.py`.
"""

import pytest

from tests.peers.driving import (
    CLIENTS,
    FALLBACK_TOOL,
    HISTORY,
    TICKED,
    UNFIT,
    Peer,
    accept,
    call,
    drive,
    driver,
    read,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

PUSH, CHAT, MODERN = CLIENTS["fastmcp4-push"], CLIENTS["fastmcp4-chat"], CLIENTS["fastmcp4-modern"]
UNABLE = Peer("fastmcp4", "2026-07-28", can_be_asked=False)
EACH = pytest.mark.parametrize("peer", [PUSH, CHAT, MODERN], ids=["push", "chat", "modern"])
PROGRESS = "notifications/progress"
NOTHING_IN_IT = accept(None)


def history(url: str) -> list[str]:
    """What was done, as a quick client sees it."""
    lines: list[str] = drive(CLIENTS["ts2-modern"], url, HISTORY).calls[0].value
    return lines


def test_a_modern_client_without_a_handler_is_refused_what_asks_and_served_the_rest(url: str) -> None:
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
    report = drive(UNABLE, url, *asking, *served)
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
def test_its_own_default_chooses_the_modern_era(url: str) -> None:
    report = drive(Peer("fastmcp4", "auto"), url, call("close_ticket", TICKED, id="T-1"), HISTORY)
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
        for _ in at_once:
            client.asked()
        for ticket in ("T-4", "T-2", "T-1"):
            client.release(ticket)
            assert client.ended()["arguments"]["id"] == ticket
        *_, after = client.report().calls
    assert after.value == ["reserved 3 for T-4 (R-1)", "refunded 3 for T-4 (R-1)", "closed T-1"]


@behaviour("PSH-6")
def test_a_client_that_always_asks_for_progress_gets_some_while_its_form_is_open(url: str) -> None:
    step = call("close_ticket", accept({"confirm": True}, wait="go"), id="T-1")
    with driver(PUSH, url, call("list_tickets"), step, HISTORY, expects=(PROGRESS,)) as client:
        client.asked()
        client.release("go")
        report = client.report()
    assert report.notifications == [PROGRESS]
    assert report.calls[-1].value == ["closed T-1"]


@behaviour("PSH-4")
def test_a_form_whose_content_the_client_itself_finds_unfit_is_taken_for_cancel(url: str) -> None:
    """It checks what its handler returns, and has one code for whatever is wrong: -32603."""
    unfit = [answer for answer in UNFIT if answer != NOTHING_IN_IT]
    steps = *(call("close_ticket", answer, id="T-1") for answer in unfit), call("close_ticket", NOTHING_IN_IT, id="T-1")
    *cancelled, invalid, after = drive(PUSH, url, *steps, HISTORY).calls
    assert all("without an answer" in outcome.value["reason"] for outcome in cancelled)
    assert invalid.code == "INVALID_INPUT"
    assert after.value == []


@behaviour("ANS-1", "ANS-2", "ANS-5")
def test_a_modern_client_that_finds_its_content_unfit_does_not_come_back(url: str) -> None:
    *ended, invalid, after = drive(
        MODERN, url, *(call("close_ticket", each, id="T-1") for each in UNFIT), HISTORY
    ).calls
    assert [outcome.error and outcome.error["code"] for outcome in ended] == [-32603] * len(ended)
    assert invalid.code == "INVALID_INPUT"
    assert after.value == []


@behaviour("ANS-4", "ANS-6", "CHT-3", "CHT-8")
def test_a_model_may_correct_its_answer_write_as_models_do_and_send_it_twice(url: str) -> None:
    corrected = call("close_ticket", accept({"confirm": "perhaps"}), accept({}), TICKED, id="T-1")
    as_text = call("close_ticket", accept('{"confirm": "true"}'), id="T-2")
    twice = call("close_ticket", accept({"confirm": True}, times=2), id="T-3")
    first, _, last, after = drive(CHAT, url, corrected, as_text, twice, HISTORY).calls
    assert len(first.refusals) == 2
    assert all("does not match the requested schema" in text and "confirm" in text for text in first.refusals)
    assert last.again == [last.result]
    assert after.value == ["closed T-1", "closed T-2", "closed T-3"]


def test_a_resource_that_is_read_again_shows_what_was_done_meanwhile(url: str) -> None:
    """It keeps nothing unless its user asks for that."""
    assign = call("assign_ticket", id="T-2", agent="billing")
    _, _, after = drive(MODERN, url, read("desk://tickets/T-2"), assign, read("desk://tickets/T-2")).calls
    assert after.result is not None
    assert '"agent":"billing"' in after.result["contents"][0]["text"]
