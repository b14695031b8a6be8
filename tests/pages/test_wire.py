"""What the playground's wire shows is what was sent: it is compared, opened, and sent again."""

import json
import shlex
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Locator, expect

from tests.pages.browser import Visit

pytestmark = pytest.mark.pages


def entry(visitor: Visit, title: str) -> Locator:
    """The last message of that title, opened."""
    found = visitor.page.locator("#wire-list > li").filter(has=visitor.page.locator("b", has_text=title)).last
    found.wait_for()
    if found.locator("> details").get_attribute("open") is None:
        found.locator("> details > summary").click()
    return found


def test_rounds_are_a_question_as_a_result_and_the_call_once_more(visitor: Visit) -> None:
    visitor.call("close_ticket", id="T-1")
    visitor.answer("Accept", confirm=True)
    visitor.outcome()
    expected = ["tools/call close_ticket", "result: input_required", "tools/call close_ticket + answer", "result"]
    assert visitor.wire()[-4:] == expected


def test_a_push_is_a_request_on_the_stream_of_the_call(visitor: Visit) -> None:
    visitor.choose("2025-06-18-forms")
    visitor.call("close_ticket", id="T-1")
    visitor.answer("Accept", confirm=True)
    visitor.outcome()
    wire = visitor.wire()
    asked = wire.index("elicitation/create")
    assert wire[asked - 1] == "tools/call close_ticket"
    assert {"answer: accept", "HTTP 202", "result"} == set(wire[asked + 1 :])
    expect(entry(visitor, "elicitation/create").locator(".chip").first).to_have_text("event on this POST")


def test_http_sse_has_one_stream_and_another_endpoint(visitor: Visit) -> None:
    visitor.choose("2024-11-05")
    assert visitor.wire()[0] == "opens a stream"
    assert visitor.wire()[1].startswith("endpoint: /messages?sessionId=")
    expect(entry(visitor, "result of initialize").locator(".chip").first).to_have_text("event on GET")


def test_headers_and_status_stand_with_each_message(visitor: Visit) -> None:
    visitor.choose("modern")
    visitor.call("close_ticket", id="T-1")
    visitor.outcome()
    called, refused = entry(visitor, "tools/call close_ticket"), entry(visitor, "error -32021")
    expect(called.locator("table")).to_contain_text("Mcp-Name")
    expect(called.locator("table")).to_contain_text("MCP-Protocol-Version")
    expect(refused.locator(".status")).to_have_text("400")
    expect(refused.locator("table")).to_contain_text("content-type")


def test_what_was_shaped_is_marked(visitor: Visit) -> None:
    visitor.choose("2024-11-05")
    listed = entry(visitor, "result: tools")
    expect(listed.locator(".shaped")).to_be_visible()
    expect(listed.locator(".shaped-note")).to_contain_text("2024-11-05")
    first = listed.locator(".json details").filter(has_text='"list_tickets"').last
    expect(first.locator(".gone").filter(has_text="outputSchema")).to_contain_text("this revision has no such field")
    expect(first.locator(".gone").filter(has_text="annotations")).to_have_count(1)


def test_nothing_is_marked_where_nothing_was_shaped(visitor: Visit) -> None:
    expect(entry(visitor, "result: tools").locator(".shaped")).to_have_count(0)


def test_a_result_that_has_to_be_an_object_is_marked_as_wrapped(visitor: Visit) -> None:
    visitor.choose("2025-06-18-forms")
    visitor.call("history")
    visitor.outcome()
    expect(entry(visitor, "result").locator(".mark")).to_have_text("wrapped: here it must be an object")


def test_a_sealed_state_is_opened_with_what_is_in_it(visitor: Visit) -> None:
    visitor.call("refund", id="T-2", amount=20)
    visitor.page.locator(".asking").wait_for()
    asked = entry(visitor, "result: input_required")
    asked.get_by_role("button", name="Open the seal").click()
    opened = asked.locator(".opened")
    expect(opened).to_contain_text('"target": "refund"')
    expect(opened).to_contain_text('"reserve"')
    asked.get_by_role("button", name="Close it again").click()
    expect(opened).to_be_hidden()


def test_json_folds(visitor: Visit) -> None:
    listed = entry(visitor, "result: tools")
    expect(listed.locator(".json")).not_to_contain_text("inputSchema")
    listed.locator("summary", has_text="close_ticket").click()
    expect(listed.get_by_text('"inputSchema"')).to_be_visible()
    listed.locator("summary", has_text="close_ticket").click()
    expect(listed.get_by_text('"inputSchema"')).to_be_hidden()


@pytest.mark.parametrize("kind", ["modern-forms", "2025-06-18-forms"])
def test_what_is_copied_as_curl_does_the_same_again(visitor: Visit, kind: str) -> None:
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.choose(kind)
    visitor.call("rename_ticket", id="it's T-1")
    visitor.outcome()
    entry(visitor, "tools/call rename_ticket").get_by_role("button", name="Copy as curl").click()
    expect(visitor.page.get_by_role("button", name="Copied")).to_be_visible()
    reply = as_curl_would(visitor.page.evaluate("navigator.clipboard.readText()"))
    assert "Unknown ticket it's T-1" in reply["result"]["content"][0]["text"]


def as_curl_would(command: str) -> dict[str, dict[str, list[dict[str, str]]]]:
    """Send what a shell would make of the command."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == ["curl", "-sN"]
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    body = words[words.index("-d") + 1].encode()
    with urlopen(Request(words[2], body, headers, method="POST"), timeout=10) as reply:
        text = reply.read().decode()
    found: dict[str, dict[str, list[dict[str, str]]]] = json.loads(text.split("data: ", 1)[-1])
    return found


def test_the_wire_can_be_cleared(visitor: Visit) -> None:
    visitor.page.get_by_role("button", name="Clear").click()
    assert visitor.wire() == []
    expect(visitor.page.locator("#wire-empty")).to_be_visible()
