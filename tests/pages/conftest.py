"""A browser for the tests of a module, and a help desk with its playground in a process of its own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.pages.browser import Visit, chromium, visit
from tests.peers.demo_server import demo_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def demo_url(browser: Browser) -> Iterator[str]:
    """The page of a help desk that the tests of a module share."""
    with demo_server() as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture
def visitor(browser: Browser, demo_url: str) -> Iterator[Visit]:
    """Somebody at the page of a help desk that is as new."""
    with visit(browser, demo_url) as visitor:
        visitor.start_over()
        yield visitor
