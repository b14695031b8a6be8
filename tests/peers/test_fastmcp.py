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
    Answer,
    Peer,
    accept,
    call,
    drive,
    driver,
    effects,
    read,
)

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

PUSH, CHAT, MODERN = CLIENTS["fastmcp4-push"], CLIENTS["fastmcp4-chat"], CLIENTS["fastmcp4-modern"]
UNABLE = Peer("fastmcp4", "2026-07-28", can_be_asked=False)
EACH = pytest.mark.parametrize("peer", [PUSH, CHAT, MODERN], ids=["push", "chat", "modern"])
PROGRESS = "notifications/progress"


def is_empty(answer: Answer) -> bool:
    """Whether there is nothing in the form: the only thing that the client does not check."""
    return answer.content is None


def test_a_modern_client_without_a_handler_is_refused_what_asks_and_served_the_rest(shared_url: str) -> None:
    asking = (
        call("close_ticket", id="T-1"),
        call("open_ticket"),
        call("rename_ticket", id="T-1"),
        call("merge_tickets", first="T-1", second="T-2"),
        call("deploy", environment="staging"),
    )
    served = call("list_tickets"), call("assign_ticket", id="T-2", agent="billing")
    report = drive(UNABLE, shared_url, HISTORY, *asking, *served, HISTORY)
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
def test_its_own_default_chooses_the_modern_era(shared_url: str) -> None:
    report = drive(Peer("fastmcp4", "auto"), shared_url, HISTORY, call("close_ticket", TICKED, id="T-1"), HISTORY)
    before, _, after = report.calls
    assert report.revision == "2026-07-28"
    assert effects(before, after) == ["closed T-1"]


@behaviour("PSH-3")
@EACH
def test_calls_at_once_do_nothing_until_each_has_its_own_answer(shared_url: str, peer: Peer) -> None:
    at_once = (
        call("close_ticket", accept({"confirm": True}, about="T-1", wait="T-1"), id="T-1"),
        call("close_ticket", accept({"confirm": False}, about="T-2", wait="T-2"), id="T-2"),
        call("assign_ticket", accept({"agent": "access"}, about="T-4", wait="T-4"), id="T-4"),
    )
    with driver(peer, shared_url, HISTORY, at_once, HISTORY) as client:
        client.ended()
        for _ in at_once:
            client.asked()
        (meanwhile,) = drive(CLIENTS["ts2-modern"], shared_url, HISTORY).calls
        for ticket in ("T-4", "T-2", "T-1"):
            client.release(ticket)
            assert client.ended()["arguments"]["id"] == ticket
        before, *_, after = client.report().calls
    assert meanwhile.value == before.value
    assert effects(before, after) == ["assigned T-4 to access", "closed T-1"]


@behaviour("PSH-6")
def test_a_client_that_always_asks_for_progress_gets_some_while_its_form_is_open(shared_url: str) -> None:
    step = call("close_ticket", accept({"confirm": True}, wait="go"), id="T-1")
    with driver(PUSH, shared_url, call("list_tickets"), step, expects=(PROGRESS,)) as client:
        client.asked()
        client.release("go")
        report = client.report()
    assert report.notifications == [PROGRESS]
    assert report.calls[-1].value == {"id": "T-1", "closed": True}


@behaviour("PSH-4")
def test_a_form_whose_content_the_client_itself_finds_unfit_is_taken_for_cancel(shared_url: str) -> None:
    """It checks what its handler returns, and has one code for whatever is wrong: -32603."""
    unfit = [call("close_ticket", answer, id="T-1") for answer in sorted(UNFIT, key=is_empty)]
    before, *cancelled, invalid, after = drive(PUSH, shared_url, HISTORY, *unfit, HISTORY).calls
    assert all("without an answer" in outcome.value["reason"] for outcome in cancelled)
    assert invalid.code == "INVALID_INPUT"
    assert effects(before, after) == []


@behaviour("ANS-1", "ANS-2", "ANS-5")
def test_a_modern_client_that_finds_its_content_unfit_does_not_come_back(shared_url: str) -> None:
    unfit = [call("close_ticket", answer, id="T-1") for answer in sorted(UNFIT, key=is_empty)]
    before, *ended, invalid, after = drive(MODERN, shared_url, HISTORY, *unfit, HISTORY).calls
    assert [outcome.error and outcome.error["code"] for outcome in ended] == [-32603] * len(ended)
    assert invalid.code == "INVALID_INPUT"
    assert effects(before, after) == []


@behaviour("ANS-4", "ANS-6", "CHT-3", "CHT-8")
def test_a_model_may_correct_its_answer_write_as_models_do_and_send_it_twice(shared_url: str) -> None:
    corrected = call("close_ticket", accept({"confirm": "perhaps"}), accept({}), TICKED, id="T-1")
    as_text = call("close_ticket", accept('{"confirm": "true"}'), id="T-2")
    twice = call("close_ticket", accept({"confirm": True}, times=2), id="T-3")
    before, first, _, last, after = drive(CHAT, shared_url, HISTORY, corrected, as_text, twice, HISTORY).calls
    assert len(first.refusals) == 2
    assert all("does not match the requested schema" in text and "confirm" in text for text in first.refusals)
    assert last.again == [last.result]
    assert effects(before, after) == ["closed T-1", "closed T-2", "closed T-3"]


def test_a_resource_that_is_read_again_shows_what_was_done_meanwhile(shared_url: str) -> None:
    """It keeps nothing unless its user asks for that."""
    assigned = [call("assign_ticket", id="T-2", agent=agent) for agent in ("billing", "general")]
    resource = read("desk://tickets/T-2")
    _, before, _, after = drive(MODERN, shared_url, assigned[0], resource, assigned[1], resource).calls
    assert before.result is not None
    assert after.result is not None
    assert '"agent":"billing"' in before.result["contents"][0]["text"]
    assert '"agent":"general"' in after.result["contents"][0]["text"]
