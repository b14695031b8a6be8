"""The pictures of the documentation, taken from the page as it is, into `docs/images/`: `make pictures`."""

from pathlib import Path

from PIL import Image
from playwright.sync_api import expect

from tests.pages.browser import chromium, visit
from tests.peers.demo_server import demo_server

FOLDER = Path(__file__).parents[2] / "docs" / "images"


def take() -> None:
    """Take them all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, demo_server() as port:
        url = f"http://127.0.0.1:{port}/"
        with visit(browser, url) as visitor:
            visitor.page.get_by_role("link", name="Compare all clients").click()
            visitor.page.get_by_role("button", name="Run it as all seven").click()
            expect(visitor.page.locator("#lanes")).to_have_attribute("data-state", "done")
            visitor.page.evaluate("document.activeElement.blur()")
            visitor.page.screenshot(path=FOLDER / "compare.png", full_page=True)
        with visit(browser, url, color_scheme="dark") as visitor:
            visitor.choose("2025-11-25-forms-urls")
            visitor.call("close_ticket", id="T-1")
            visitor.page.locator(".asking").wait_for()
            visitor.page.evaluate("document.activeElement.blur()")
            visitor.page.screenshot(path=FOLDER / "playground.png")
        phone = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
        with visit(browser, url, **phone) as visitor:
            visitor.choose("2025-06-18-chat")
            visitor.call("close_ticket", id="T-1")
            visitor.page.get_by_role("textbox", name="The person's reply").fill("Yes, please")
            visitor.page.locator("#screen").scroll_into_view_if_needed()
            visitor.page.evaluate("document.querySelector('#call-form .buttons').scrollIntoView()")
            visitor.page.screenshot(path=FOLDER / "phone.png")


def make_small(folder: Path) -> None:
    """Give each picture a palette: a page has few colours."""
    for path in folder.glob("*.png"):
        with Image.open(path) as picture:
            small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        small.save(path, optimize=True)


if __name__ == "__main__":
    take()
    make_small(FOLDER)
