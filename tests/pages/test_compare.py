"""The compare view: one call by every kind of client, each answered in its own way, with the same end."""

import pytest
from playwright.sync_api import expect

from bridge.kinds import KINDS
from tests.pages.browser import Visit

pytestmark = pytest.mark.pages

LANES = tuple(kind.name for kind in KINDS)


def compare(visitor: Visit, tool: str = "close_ticket", answer: str = "accept", run: bool = True) -> None:
    visitor.page.get_by_role("link", name="Compare all clients").click()
    visitor.page.get_by_label("Tool", exact=True).select_option(tool)
    visitor.page.get_by_role("radio", name=answer, exact=True).check()
    visitor.page.get_by_role("button", name="Run it as all seven").click()
    if run:
        expect(visitor.page.locator("#lanes")).to_have_attribute("data-state", "done", timeout=20_000)


def lane(visitor: Visit, kind: str) -> str:
    return " ".join(visitor.page.locator(f"[data-lane='{kind}']").inner_text().split())


def test_each_kind_is_asked_in_its_own_way_and_all_end_alike(visitor: Visit) -> None:
    compare(visitor)
    ways = {kind: lane(visitor, kind) for kind in LANES}
    assert "input_required" in ways["modern-forms"]
    assert "asked once in the result · 2 calls" in ways["modern-forms"]
    for kind in ("2025-11-25-forms-urls", "2025-06-18-forms"):
        assert "elicitation/create" in ways[kind]
        assert "asked once in mid-call · 1 call" in ways[kind]
    for kind in ("2025-06-18-chat", "2025-03-26", "2024-11-05"):
        assert "sendElicitationResult" in ways[kind]
        assert "asked once through the chat · 2 calls · sees the fallback tool" in ways[kind]
    assert "error -32021" in ways["modern"]
    assert "nobody was asked, nothing was done" in ways["modern"]
    for kind in set(LANES) - {"modern"}:
        assert "closed true" in ways[kind]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("decline", "The user said no"),
        ("cancel", "The user closed the question"),
    ],
)
def test_a_no_is_a_no_for_each(visitor: Visit, answer: str, said: str) -> None:
    compare(visitor, answer=answer)
    for kind in set(LANES) - {"modern"}:
        assert said in lane(visitor, kind)


def test_an_answer_that_does_not_fit_is_taken_from_none(visitor: Visit) -> None:
    compare(visitor, answer="what does not fit")
    for kind in set(LANES) - {"modern"}:
        assert "INVALID_INPUT" in lane(visitor, kind)


def test_the_visitor_can_answer_once_for_all(visitor: Visit) -> None:
    compare(visitor, "open_ticket", "ask me once", run=False)
    visitor.answer("Accept", title="The printer burns")
    visitor.answer("Accept", priority="high")
    visitor.answer("Accept", agent="general")
    expect(visitor.page.locator("#lanes")).to_have_attribute("data-state", "done", timeout=20_000)
    for kind in set(LANES) - {"modern"}:
        shown = lane(visitor, kind)
        assert "title The printer burns" in shown
        assert "asked 3 times" in shown


@pytest.mark.parametrize("tool", ["list_tickets", "delete_ticket", "merge_tickets", "refund", "deploy"])
def test_each_client_finds_the_help_desk_as_it_was(visitor: Visit, tool: str) -> None:
    compare(visitor, tool)
    for kind in LANES:
        assert visitor.page.locator(f"[data-lane='{kind}']").get_attribute("data-state") in (
            ("refused",) if kind == "modern" and tool != "list_tickets" else ("done",)
        ), lane(visitor, kind)


def test_the_wire_of_each_can_be_seen(visitor: Visit) -> None:
    compare(visitor)
    visitor.page.locator("[data-lane='2025-03-26']").get_by_role("button").click()
    dialog = visitor.page.get_by_role("dialog", name="Session, before forms · 2025-03-26")
    expect(dialog.locator("li").filter(has_text="initialize").first).to_be_visible()
    expect(dialog.locator("li").filter(has_text="tools/call sendElicitationResult")).to_have_count(1)
    visitor.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_link_leads_to_the_view(visitor: Visit) -> None:
    visitor.open("#compare")
    expect(visitor.page.get_by_role("heading", name="One call, by every kind of client")).to_be_visible()
    expect(visitor.page.locator("#try")).to_be_hidden()
