"""Every tool of the help desk, with every kind of answer, by every kind of client: the same questions and results."""

from collections.abc import Iterator

import pytest

from tests.peers.demo_server import demo_server
from tests.peers.driving import CLIENTS, FALLBACK_TOOL
from tests.peers.walk import MAIL_T1, MAIL_T2, STEPS, Step, Walked, walk

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

ASKING_BY_URL = "connect_account"
TOOLS = {step.call.name for step in STEPS} | {"list_tickets", "history", "outbox", ASKING_BY_URL}


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Each kind of client in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def walked(client: str) -> Iterator[Walked]:
    """What that client saw, walking through a help desk of its own."""
    with demo_server() as port:
        yield walk(CLIENTS[client], f"http://127.0.0.1:{port}/mcp")


@behaviour("ASK-1", "ASK-2", "ASK-4", "ASK-6", "ASK-7", "ASK-13", "ASK-17", "ANS-1", "CHT-4", "CHT-6", "PSH-1")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_tool_asks_what_it_has_to_and_acts_once(walked: Walked, step: Step) -> None:
    walked.went_well(step)


def test_a_refusal_says_how_the_user_refused(walked: Walked) -> None:
    values = {name: outcome.value for name, (_, outcome, _) in walked.steps.items() if not outcome.is_error}
    reasons = {name: value.get("reason", "") for name, value in values.items()}
    assert "said no" in reasons["close, declined"]
    assert "without an answer" in reasons["close, cancelled"]
    assert "did not tick" in reasons["close, no tick"]
    for name in ("assign", "delete", "refund"):
        assert "(decline)" in reasons[f"{name}, declined"]
        assert "(cancel)" in reasons[f"{name}, cancelled"]
    assert "(accept)" in reasons["refund, no tick"]
    assert "'T-4'" in reasons["delete, wrong id"]


def test_reading_shows_the_effects(walked: Walked) -> None:
    assert [ticket["id"] for ticket in walked.tickets.value] == ["T-1", "T-2", "T-3", "T-4"]
    tickets = {ticket["id"]: ticket for ticket in walked.tickets_afterwards.value}
    assert list(tickets) == ["T-1", "T-2", "T-4"]
    assert tickets["T-1"]["status"] == "closed"
    assert tickets["T-4"]["title"] == "Mail is missing"
    assert tickets["T-2"]["agent"] == "general"
    assert walked.outbox.value == [MAIL_T1, MAIL_T2]


@behaviour("CHT-1")
def test_only_a_client_that_chats_is_listed_the_fallback_tool(walked: Walked, client: str) -> None:
    expected = {*TOOLS, FALLBACK_TOOL} if client.endswith("chat") else TOOLS
    assert sorted(walked.report.tool_names) == sorted(expected)
    assert walked.report.tools_afterwards == walked.report.tools
    assert "notifications/tools/list_changed" not in walked.report.notifications


@behaviour("LEG-1")
def test_the_revision_is_the_newest_that_the_client_speaks(walked: Walked, client: str) -> None:
    assert walked.report.revision == ("2026-07-28" if client.endswith("modern") else "2025-11-25")


@behaviour("ASK-2")
def test_a_form_has_its_fields_with_their_choices_and_limits(walked: Walked) -> None:
    _, outcome, _ = walked.steps["open, accepted"]
    title, priority, agent = (question["requestedSchema"]["properties"] for question in outcome.questions)
    assert title["title"]["description"] == "What the ticket is about"
    assert (title["title"]["minLength"], title["title"]["maxLength"]) == (1, 120)
    assert priority["priority"]["enum"] == ["low", "normal", "high"]
    assert agent["agent"]["enum"] == ["access", "billing", "general"]
    assert all(list(question["requestedSchema"]["required"]) for question in outcome.questions)
