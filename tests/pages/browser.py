"""A real browser, and what a visitor does on the playground's page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Response, expect, sync_playwright

__all__ = ["WAIT_MS", "Visit", "chromium", "unless_in_ci", "visit"]

WAIT_MS = 8_000
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_EXPECTED = "Failed to load resource: the server responded with a status of 400"
"""What a browser says where a modern client is refused, with HTTP 400."""


def unless_in_ci(reason: str) -> None:
    """Skip what cannot run here; in CI everything has to run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
    if not os.path.exists(path):
        unless_in_ci("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_QUIET))
        yield browser
        browser.close()


class Visit:
    """Somebody at the page. What goes wrong in the browser's console is kept, and what was loaded.

    Args:
        page: the browser's page.
        url: the playground's.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.problems: list[str] = []
        self.loaded: list[Response] = []
        page.set_default_timeout(WAIT_MS)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("response", lambda response: self.loaded.append(response))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_EXPECTED):
            self.problems.append(message.text)

    def open(self, path: str = "") -> None:
        """Load the page and wait until its client is connected."""
        self.page.goto(self.url + path)
        self.ready()

    def ready(self) -> None:
        expect(self.page.locator("body")).to_have_attribute("data-ready", "true", timeout=WAIT_MS)

    def start_over(self) -> None:
        """Put the help desk back to how it was."""
        with self.page.expect_response("**/playground/restart"):
            self.page.get_by_role("button", name="Start over").click()

    def choose(self, kind: str) -> None:
        """Become a client of a kind, by its id."""
        self.page.locator(f".card:has(input[value='{kind}'])").click()
        self.ready()

    def pick_tool(self, tool: str) -> None:
        if self.page.locator("#tool-list").get_attribute("open") != "":
            self.page.locator("#tool-list > summary").click()
        self.page.locator(f"#tools input[value='{tool}']").check()

    def call(self, tool: str, **arguments: Any) -> None:
        """Call a tool, its fields filled in by name."""
        self.pick_tool(tool)
        for name, value in arguments.items():
            self.fill("#arguments", name, value)
        self.page.get_by_role("button", name=f"Call {tool}").click()

    def fill(self, place: str, name: str, value: Any) -> None:
        """Fill a field in, whatever kind it is."""
        within = self.page.locator(place).last
        field = within.locator(f"[name='{name}']").first
        if field.count():
            if field.get_attribute("type") == "checkbox":
                field.set_checked(value)
            elif field.evaluate("element => element.tagName") == "SELECT":
                field.select_option(label=str(value))
            else:
                field.fill(str(value))
        else:
            within.get_by_role("radio", name=str(value), exact=True).check()

    def answer(self, action: str, **content: Any) -> None:
        """Answer the open form with one of its buttons."""
        form = ".asking:not(.is-answered)"
        expect(self.page.locator(form)).not_to_have_count(0)
        for name, value in content.items():
            self.fill(form, name, value)
        self.page.locator(form).first.get_by_role("button", name=action, exact=True).click()

    def pass_on(self, reply: str) -> None:
        """Say something in the chat, and as the model pass it on as the page understood it."""
        said = self.page.get_by_role("textbox", name="The person's reply")
        said.fill(reply)
        said.press("Enter")
        self.page.get_by_role("button", name="Call sendElicitationResult").click()

    def outcome(self) -> str:
        """How the call ended, in words."""
        self.page.locator(".outcome").wait_for()
        return self.page.locator(".outcome").inner_text()

    def wire(self) -> list[str]:
        """The titles of the messages."""
        return self.page.locator("#wire-list .what b").all_inner_texts()


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """Open the page in a browser of its own, as it were; nothing may go wrong in it."""
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce", **options})
    try:
        visitor = Visit(context.new_page(), url)
        visitor.open()
        yield visitor
        assert visitor.problems == []
    finally:
        with suppress(Error):
            context.close()
