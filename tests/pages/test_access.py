"""The page for everybody: no serious fault that axe-core finds, light and dark, on a phone; small, and alone."""

from collections.abc import Callable
from functools import cache
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.pages.browser import Visit, unless_in_ci, visit
from tests.peers.environments import NotInstalled, install

pytestmark = pytest.mark.pages

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
MAX_BYTES = 100_000


@cache
def axe() -> str:
    """The source of axe-core."""
    try:
        folder = install("axe")
    except NotInstalled as reason:
        unless_in_ci(f"axe-core cannot be installed: {reason}")
        raise
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def as_it_is(visitor: Visit) -> None:
    """The page, just loaded."""


def asked_in_a_form(visitor: Visit) -> None:
    visitor.call("merge_tickets", first="T-1", second="T-2")
    visitor.page.locator(".asking").first.wait_for()
    visitor.page.get_by_text("Answer with other JSON").first.click()


def asked_in_the_chat(visitor: Visit) -> None:
    visitor.choose("2025-03-26")
    visitor.call("open_ticket")
    visitor.page.get_by_role("textbox", name="The person's reply").fill("A title")
    visitor.page.get_by_role("button", name="Reply").click()
    visitor.page.locator(".model-part").wait_for()


def edited(visitor: Visit) -> None:
    visitor.page.get_by_text("Edit this client").click()
    visitor.page.get_by_label("Capabilities").fill("{")


def with_an_open_wire(visitor: Visit) -> None:
    visitor.call("close_ticket", id="T-1")
    visitor.page.get_by_role("button", name="Open the seal").click()
    visitor.answer("Accept", confirm=True)
    visitor.outcome()
    visitor.page.evaluate("document.querySelectorAll('#wire-list > li > details').forEach((one) => (one.open = true))")
    expect(visitor.page.locator("#wire-list .entry-body:empty")).to_have_count(0)


def refused(visitor: Visit) -> None:
    visitor.choose("modern")
    visitor.call("close_ticket", id="T-1")
    visitor.outcome()


def compared(visitor: Visit) -> None:
    visitor.page.get_by_role("link", name="Compare all clients").click()
    visitor.page.get_by_role("button", name="Run it as all seven").click()
    expect(visitor.page.locator("#lanes")).to_have_attribute("data-state", "done", timeout=20_000)


STATES = (as_it_is, asked_in_a_form, asked_in_the_chat, edited, with_an_open_wire, refused, compared)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize(
    "options", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"]
)
def test_axe_finds_no_serious_fault_and_all_fits_the_screen(
    browser: Browser, demo_url: str, options: dict[str, object], state: Callable[[Visit], None]
) -> None:
    source = axe()
    with visit(browser, demo_url, bypass_csp=True, **options) as visitor:
        visitor.start_over()
        state(visitor)
        overhang = visitor.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overhang <= 0
        visitor.page.evaluate(source)
        found = visitor.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    serious = [
        (fault["impact"], fault["id"], [node["target"] for node in fault["nodes"]])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_call_can_be_made_on_a_phone(browser: Browser, demo_url: str) -> None:
    with visit(browser, demo_url, **PHONE) as visitor:
        visitor.choose("2025-06-18-forms")
        visitor.call("close_ticket", id="T-1")
        expect(visitor.page.locator(".asking h3")).to_be_in_viewport()
        visitor.answer("Accept", confirm=True)
        assert '"closed": true' in visitor.outcome()


def test_the_page_is_small_and_asks_no_other_host(visitor: Visit, demo_url: str) -> None:
    visitor.loaded.clear()
    visitor.open()
    of_the_page = [response for response in visitor.loaded if not urlsplit(response.url).path.startswith("/mcp")]
    sizes = [response.request.sizes() for response in of_the_page]
    assert len(of_the_page) > 10
    assert sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes) < MAX_BYTES
    assert {urlsplit(response.url).netloc for response in visitor.loaded} == {urlsplit(demo_url).netloc}


def test_no_script_runs_that_is_not_the_pages_own(visitor: Visit) -> None:
    visitor.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<p id=probe onclick=\"this.remove()\">x</p>')"
    )
    visitor.page.locator("#probe").click()
    expect(visitor.page.locator("#probe")).to_have_count(1)
    assert any("Content Security Policy" in problem for problem in visitor.problems)
    visitor.problems.clear()
