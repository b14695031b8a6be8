"""The playground in a real browser: every kind of client, every tool of the help desk, every answer."""

import re

import pytest
from playwright.sync_api import expect

from tests.pages.browser import Visit

pytestmark = pytest.mark.pages

FALLBACK = "sendElicitationResult"
KINDS = {
    "modern-forms": ("2026-07-28", "rounds"),
    "modern": ("2026-07-28", "refuse"),
    "2025-11-25-forms-urls": ("2025-11-25", "push"),
    "2025-06-18-forms": ("2025-06-18", "push"),
    "2025-06-18-chat": ("2025-06-18", "chat"),
    "2025-03-26": ("2025-03-26", "chat"),
    "2024-11-05": ("2024-11-05", "chat"),
}
ASKABLE = [kind for kind, (_, route) in KINDS.items() if route != "refuse"]


def say(visitor: Visit, kind: str, action: str = "Accept", reply: str = "Yes", **content: object) -> None:
    """Answer the question that is open, in the way of this kind of client."""
    if KINDS[kind][1] == "chat":
        visitor.pass_on(reply if action == "Accept" else {"Decline": "No", "Cancel": "Never mind"}[action])
    else:
        visitor.answer(action, **(content if action == "Accept" else {}))


@pytest.mark.parametrize("kind", KINDS)
def test_each_card_says_how_its_client_is_asked_and_what_it_sees(visitor: Visit, kind: str) -> None:
    revision, route = KINDS[kind]
    visitor.choose(kind)
    expect(visitor.page.locator("#connection")).to_contain_text(revision)
    expect(visitor.page.locator("#route")).to_have_class(f"route {route}")
    expect(visitor.page.locator("#route .why")).to_contain_text("because")
    expect(visitor.page.locator(f"[data-tool={FALLBACK}]")).to_have_count(int(route == "chat"))


def test_the_fallback_tool_appears_and_disappears(visitor: Visit) -> None:
    visitor.choose("2025-06-18-chat")
    expect(visitor.page.locator(f"[data-tool={FALLBACK}]")).to_be_visible()
    expect(visitor.page.locator(f"[data-tool={FALLBACK}]")).to_be_in_viewport()
    visitor.choose("2025-06-18-forms")
    expect(visitor.page.locator(f"[data-tool={FALLBACK}]")).to_have_count(0)


@pytest.mark.parametrize("kind", ASKABLE)
def test_a_yes_closes_the_ticket(visitor: Visit, kind: str) -> None:
    visitor.choose(kind)
    visitor.call("close_ticket", id="T-1")
    say(visitor, kind, confirm=True)
    assert '"closed": true' in visitor.outcome()


@pytest.mark.parametrize("action", ["Decline", "Cancel"])
@pytest.mark.parametrize("kind", ASKABLE)
def test_a_no_leaves_the_ticket_open(visitor: Visit, kind: str, action: str) -> None:
    visitor.choose(kind)
    visitor.call("close_ticket", id="T-1")
    say(visitor, kind, action)
    why = "The user said no" if action == "Decline" else "closed the question"
    assert why in visitor.outcome()


def test_a_modern_client_without_forms_is_refused_and_told_what_is_missing(visitor: Visit) -> None:
    visitor.choose("modern")
    visitor.call("close_ticket", id="T-1")
    outcome = visitor.outcome()
    assert "-32021" in outcome
    assert '{"elicitation":{"form":{}}}' in outcome


@pytest.mark.parametrize("kind", ["modern-forms", "2025-11-25-forms-urls", "2025-06-18-forms"])
def test_an_answer_that_does_not_fit_is_refused_by_the_server(visitor: Visit, kind: str) -> None:
    visitor.choose(kind)
    visitor.call("close_ticket", id="T-1")
    visitor.page.get_by_text("Answer with other JSON").click()
    visitor.page.get_by_role("textbox", name="The answer's content, as JSON").fill('{"confirm": "perhaps"}')
    visitor.answer("Accept")
    assert "INVALID_INPUT" in visitor.outcome()


@pytest.mark.parametrize("kind", ["2025-06-18-chat", "2025-03-26", "2024-11-05"])
def test_an_answer_that_does_not_fit_can_be_given_anew_in_the_chat(visitor: Visit, kind: str) -> None:
    visitor.choose(kind)
    visitor.call("close_ticket", id="T-1")
    visitor.page.get_by_role("textbox", name="The person's reply").fill("Yes")
    visitor.page.get_by_role("button", name="Reply").click()
    composed = visitor.page.get_by_role("textbox", name=f"Arguments of {FALLBACK}")
    composed.fill(composed.input_value().replace("true", '"perhaps"'))
    visitor.page.get_by_role("button", name=f"Call {FALLBACK}").click()
    expect(visitor.page.locator(".by-tool.bad")).to_contain_text("INVALID_INPUT")
    visitor.pass_on("Yes")
    assert '"closed": true' in visitor.outcome()


def test_what_is_no_json_is_not_sent(visitor: Visit) -> None:
    visitor.call("close_ticket", id="T-1")
    visitor.page.get_by_text("Answer with other JSON").click()
    visitor.page.get_by_role("textbox", name="The answer's content, as JSON").fill("{")
    visitor.page.get_by_role("button", name="Accept").click()
    expect(visitor.page.get_by_text("This is no JSON")).to_be_visible()


@pytest.mark.parametrize("kind", ["modern-forms", "2025-11-25-forms-urls", "2025-03-26"])
class TestEveryTool:
    def test_those_that_only_read(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        for tool, holds in (("list_tickets", "Cannot log in"), ("history", "[]"), ("outbox", "[]")):
            visitor.call(tool)
            expect(visitor.page.locator(".outcome")).to_contain_text(holds)

    def test_delete_ticket(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("delete_ticket", id="T-3")
        say(visitor, kind, reply="T-3", id="T-3")
        assert '"deleted": true' in visitor.outcome()

    def test_assign_ticket(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("assign_ticket", id="T-2")
        say(visitor, kind, reply="billing please", agent="billing")
        assert '"agent": "billing"' in visitor.outcome()

    def test_open_ticket_asks_three_times(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("open_ticket")
        say(visitor, kind, reply="The printer burns", title="The printer burns")
        expect(visitor.page.get_by_text('How much does "The printer burns" matter?').last).to_be_visible()
        say(visitor, kind, reply="high", priority="high")
        expect(visitor.page.get_by_text('Who takes "The printer burns"').last).to_be_visible()
        say(visitor, kind, reply="general", agent="general")
        outcome = visitor.outcome()
        assert "The printer burns" in outcome
        assert '"priority": "high"' in outcome

    def test_rename_ticket(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("rename_ticket", id="T-4")
        say(visitor, kind, reply="Mail is slow", title="Mail is slow")
        assert "Mail is slow" in visitor.outcome()

    def test_merge_tickets_asks_two_things_at_once(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("merge_tickets", first="T-1", second="T-2")
        if KINDS[kind][1] == "chat":
            visitor.page.get_by_role("textbox", name="The person's reply").fill("T-1 stays")
            visitor.page.get_by_role("button", name="Reply").click()
            model = visitor.page.locator(".model-part")
            model.get_by_role("radio", name="T-1").check()
            model.locator("input[name=note]").fill("the same")
            visitor.page.get_by_role("button", name=f"Call {FALLBACK}").click()
        else:
            questions = visitor.page.locator(".asking:not(.is-answered)")
            stays, noted = questions.filter(has_text="Which one stays"), questions.filter(has_text="noted")
            stays.get_by_role("radio", name="T-1").check()
            stays.get_by_role("button", name="Accept").click()
            noted.locator("input[name=note]").fill("the same")
            noted.get_by_role("button", name="Accept").click()
        outcome = visitor.outcome()
        assert '"kept": "T-1"' in outcome
        assert '"note": "the same"' in outcome

    def test_refund(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("refund", id="T-2", amount=12.5)
        say(visitor, kind, confirm=True)
        assert '"refunded": true' in visitor.outcome()

    def test_deploy_fails_without_a_yes(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("deploy", environment="production")
        say(visitor, kind, "Decline")
        assert "Nothing was deployed" in visitor.outcome()

    def test_deploy(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        visitor.call("deploy", environment="staging")
        say(visitor, kind, approve=True, note="at last")
        assert '"deployed": true' in visitor.outcome()

    def test_connect_account_goes_on_once_its_page_is_done(self, visitor: Visit, kind: str) -> None:
        visitor.choose(kind)
        if kind == "modern-forms":
            visitor.page.get_by_text("Edit this client").click()
            visitor.page.get_by_label("It opens links").check()
            visitor.page.get_by_role("button", name="Connect anew").click()
            visitor.ready()
        visitor.call("connect_account", provider="mail")
        with visitor.page.context.expect_page() as opened:
            visitor.page.locator(".page-link").first.click()
        opened.value.get_by_role("button", name="Connect").click()
        opened.value.get_by_role("heading", name="Done").wait_for()
        opened.value.close()
        say(visitor, kind, reply="Done")
        assert '"connected": true' in visitor.outcome()


def test_a_call_can_be_stopped(visitor: Visit) -> None:
    visitor.choose("2025-11-25-forms-urls")
    visitor.call("close_ticket", id="T-1")
    visitor.page.locator(".asking").wait_for()
    visitor.page.get_by_role("button", name="Stop").click()
    assert "Stopped" in visitor.outcome()
    expect(visitor.page.locator("#wire-list")).to_contain_text("notifications/cancelled")


def test_a_question_in_the_chat_can_be_left_open(visitor: Visit) -> None:
    visitor.choose("2025-03-26")
    visitor.call("close_ticket", id="T-1")
    visitor.page.get_by_role("button", name="Leave it open").click()
    assert "stays open" in visitor.outcome()


def test_a_client_can_be_edited(visitor: Visit) -> None:
    visitor.choose("2025-06-18-chat")
    visitor.page.get_by_text("Edit this client").click()
    visitor.page.get_by_label("It shows forms").check()
    visitor.page.get_by_label("Revision").select_option("2025-11-25")
    visitor.page.get_by_label("Name", exact=True).fill("my-client")
    visitor.page.get_by_role("button", name="Connect anew").click()
    expect(visitor.page.locator("#route")).to_have_class("route push")
    expect(visitor.page.locator("#connection")).to_contain_text("2025-11-25")
    visitor.page.locator("#wire-list .entry").filter(has_text="initialize").first.locator("summary").first.click()
    expect(visitor.page.locator("#wire-list")).to_contain_text('"my-client"')


def test_capabilities_that_are_no_json_are_said_to_be_none(visitor: Visit) -> None:
    visitor.page.get_by_text("Edit this client").click()
    visitor.page.get_by_label("Capabilities").fill("{")
    visitor.page.get_by_role("button", name="Connect anew").click()
    expect(visitor.page.get_by_text("The capabilities are no JSON")).to_be_visible()


def test_the_keyboard_alone_does_it_all(visitor: Visit) -> None:
    page = visitor.page
    visitor.open()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the call")).to_be_focused()
    tab_to(visitor, "input[name=kind]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#route")).to_have_class("route push")
    visitor.ready()
    tab_to(visitor, "#arguments input")
    page.keyboard.press("Enter")
    expect(page.locator(".asking h3")).to_be_focused()
    tab_to(visitor, ".asking input[type=checkbox]")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator(".outcome h3")).to_be_focused()
    assert '"closed": true' in visitor.outcome()
    tab_to(visitor, "#wire-list summary")
    page.keyboard.press("Enter")
    expect(page.locator("#wire-list > li > details").first).to_have_attribute("open", "")


def tab_to(visitor: Visit, selector: str, most: int = 60) -> None:
    for _ in range(most):
        if visitor.page.evaluate("selector => document.activeElement?.matches(selector)", selector):
            return
        visitor.page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by the Tab key")


def test_what_happens_is_told_to_a_screen_reader(visitor: Visit) -> None:
    status = visitor.page.get_by_role("status")
    visitor.choose("2025-06-18-chat")
    expect(status).to_contain_text(re.compile("Connected as|has appeared"))
    visitor.choose("2025-11-25-forms-urls")
    visitor.call("close_ticket", id="T-1")
    expect(status).to_contain_text("The user is asked: Close T-1")
    visitor.answer("Decline")
    expect(status).to_contain_text("Result.")
