"""The client of FastMCP 4, in either era: what it does in a way of its own.

Every tool, prompt and resource is in `test_every_tool.py`, `test_prompts_and_resources.py` and `test_pages.py`.
"""

import pytest

from tests.peers.driving import (
    CLIENTS,
    HISTORY,
    TICKED,
    UNFIT,
    Answer,
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
PROGRESS = "notifications/progress"


def is_empty(answer: Answer) -> bool:
    """Whether there is nothing in the form: the only thing that the client does not check."""
    return answer.content is None


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
