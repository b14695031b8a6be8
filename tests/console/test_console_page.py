"""The console in a browser: what a person sees and does there, also with the keyboard, on a phone, and in the dark."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from bridge.cli.direct import Direct
from bridge.kinds import kind_named
from bridge.testing import connect

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = Path("/usr/bin/chromium")
ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-the-page-of-32-letters"
pytestmark = [
    pytest.mark.pages,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's Chromium at /usr/bin/chromium"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The help desk with its console, in a process of its own."""
    command = [sys.executable, "-m", "bridge", "serve", "bridge.demo.helpdesk:bridge", "--port", "0", "--console"]
    surroundings = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "MCP_SESSION_BRIDGE_CONSOLE_TOKEN": TOKEN}
    with subprocess.Popen(
        [*command, "--log-level", "error"], stderr=subprocess.PIPE, text=True, cwd=ROOT, env=surroundings
    ) as server:
        assert server.stderr is not None
        try:
            told = [server.stderr.readline() for _ in range(3)]
            assert TOKEN not in "".join(told)
            found = re.search(r"(http://\S+)/console", "".join(told))
            assert found is not None, told
            yield found[1]
        finally:
            server.terminate()
            server.communicate(timeout=20)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=flags)
        yield browser
        browser.close()


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    """Where the clients live: the browser is driven from this thread, and they from another."""
    with start_blocking_portal() as portal:
        yield portal


@contextmanager
def opened(chromium: Any, url: str, **looks: Any) -> Iterator[Any]:
    """The page of the console, logged in; it asks no other host for anything, and has no complaint."""
    context = chromium.new_context(**looks)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{url}/console")
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Live sessions").wait_for()
    yield page
    assert complaints == []
    assert [one for one in asked if not one.startswith(url)] == []
    context.close()


class Connected:
    """A client whose user is being asked, for as long as a test looks at it."""

    def __init__(self, url: str, kind: str, name: str) -> None:
        self.url = f"{url}/mcp"
        self.kind = kind_named(kind)
        self.name = name
        self.ended: list[str] = []
        self.asked = anyio.Event()
        self.over = anyio.Event()

    async def run(self, *, task_status: Any) -> None:
        direct = Direct(self.url, {})
        about = {"revision": self.kind.revision, "capabilities": self.kind.capabilities}
        async with direct.lifespan(), connect(direct, **about, info={"name": self.name, "version": "9"}) as client:

            async def look(question: Any) -> None:
                task_status.started()

            client._serve = look  # type: ignore[method-assign]
            try:
                self.ended.append((await client.tools.call("delete_ticket", {"id": "T-3"})).text())
            except Exception as error:
                self.ended.append(str(error))


@contextmanager
def asking(portal: BlockingPortal, url: str, name: str) -> Iterator[Connected]:
    connected = Connected(url, "2025-06-18-forms", name)
    future, _ = portal.start_task(connected.run)
    yield connected
    future.cancel()


def row(page: Any, section: str, text: str) -> Any:
    return page.locator("section", has=page.get_by_role("heading", name=section, exact=True)).locator(
        "tr", has_text=text
    )


def test_a_question_is_seen_and_cancelled_and_its_call_goes_on(chromium: Any, url: str, portal: BlockingPortal) -> None:
    with asking(portal, url, "Questioner") as client, opened(chromium, url) as page:
        found = row(page, "Open questions", "Questioner")
        assert "delete_ticket" in found.inner_text()
        assert "in the call" in found.inner_text()
        found.get_by_text("Cancel…").click()
        found.get_by_role("button", name="Cancel it").click()
        page.get_by_role("status").wait_for()
        assert page.get_by_role("status").inner_text().startswith("The question was cancelled")
        assert row(page, "Open questions", "Questioner").count() == 0
        assert row(page, "Sessions", "Questioner").count() == 1
        page.wait_for_function("location.search === ''")
        while not client.ended:
            page.wait_for_timeout(20)
        assert "cancel" in client.ended[0] or "false" in client.ended[0]


def test_a_session_is_ended_with_the_keyboard_alone(chromium: Any, url: str, portal: BlockingPortal) -> None:
    with asking(portal, url, "Leaver"), opened(chromium, url) as page:
        row(page, "Sessions", "Leaver").locator(".action summary").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "End it"
        page.keyboard.press("Enter")
        page.get_by_role("status").wait_for()
        assert row(page, "Sessions", "Leaver").count() == 0


def test_the_reason_is_there_for_who_wants_it(chromium: Any, url: str, portal: BlockingPortal) -> None:
    with asking(portal, url, "Wonderer"), opened(chromium, url) as page:
        found = row(page, "Sessions", "Wonderer")
        assert not found.get_by_text("The client says that it can be asked so.").is_visible()
        found.locator(".why summary").click()
        assert found.get_by_text("The client says that it can be asked so.").is_visible()


def test_sessions_are_filtered(chromium: Any, url: str, portal: BlockingPortal) -> None:
    with asking(portal, url, "Alpha"), asking(portal, url, "Beta"), opened(chromium, url) as page:
        page.get_by_label("Client").fill("alp")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url("**client=alp**")
        assert row(page, "Sessions", "Alpha").count() == 1
        assert row(page, "Sessions", "Beta").count() == 0
        page.get_by_label("Revision").select_option("")
        page.get_by_label("Client").fill("nobody at all")
        page.get_by_role("button", name="Filter").click()
        page.get_by_text("No session fits the filter.").wait_for()


def test_what_comes_is_shown_without_loading_the_page_again(chromium: Any, url: str, portal: BlockingPortal) -> None:
    with opened(chromium, url) as page:
        assert row(page, "Sessions", "Newcomer").count() == 0
        with asking(portal, url, "Newcomer"):
            row(page, "Sessions", "Newcomer").wait_for(timeout=15_000)
        assert "Live from the store" in page.locator("#pulse").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_its_screen_and_can_be_read(
    chromium: Any, url: str, portal: BlockingPortal, width: int, scheme: str
) -> None:
    looks = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with asking(portal, url, "A client with quite a long name of its own"), opened(chromium, url, **looks) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("svg[role=img]").count() == 4
        assert all(
            label for label in page.locator("svg[role=img]").evaluate_all("all => all.map(one => one.ariaLabel)")
        )
        assert page.locator("h1").count() == 1


def test_it_works_without_scripts_and_its_login_ends(chromium: Any, url: str) -> None:
    with opened(chromium, url, java_script_enabled=False) as page:
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()
        page.goto(f"{url}/console")
        assert page.get_by_role("heading", name="Live sessions").count() == 0


def test_a_wrong_token_is_said_to_be_one(chromium: Any, url: str) -> None:
    page = chromium.new_page()
    page.goto(f"{url}/console")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    assert page.get_by_role("alert").inner_text() == "That is not the token."
    page.close()
