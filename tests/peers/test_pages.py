"""The tool that sends its user to a page, by every kind of client: by a URL that it opens, or by a link in the chat."""

from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.peers.driving import CLIENTS, DECLINE, HISTORY, Peer, accept, call, drive, driver

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

COMPLETE = "notifications/elicitation/complete"


def press_the_button(page: str) -> None:
    """Be the user in a browser."""
    parts = urlsplit(page)
    request = Request(page, method="POST", headers={"Origin": f"{parts.scheme}://{parts.netloc}"})
    with urlopen(request) as response:
        assert response.status == 200


@behaviour("ASK-9", "CHT-13", "PSH-8")
@pytest.mark.parametrize("kind", CLIENTS)
def test_an_account_is_connected_once_its_page_is_completed(shared_url: str, kind: str) -> None:
    too_early, connect = accept(), accept(wait="go")
    steps = (
        HISTORY,
        call("connect_account", too_early, connect, provider="mail"),
        call("connect_account", DECLINE, provider="mail"),
        HISTORY,
    )
    expects = (COMPLETE,) if kind.endswith("push") else ()
    with driver(CLIENTS[kind], shared_url, *steps, expects=expects) as client:
        client.asked()
        page = client.asked()["url"]
        assert page.startswith(f"{shared_url.removesuffix('/mcp')}/connect/")
        press_the_button(page)
        client.release("go")
        before, connected, declined, after = client.report().calls
    assert connected.value == {"provider": "mail", "connected": True}
    assert connected.asked_by == [("chat" if kind.endswith("chat") else "form")] * 2
    assert [question["url"] for question in connected.questions] == [page, page]
    assert "still open" in connected.messages[1]
    assert declined.is_error
    assert "(decline)" in declined.text
    assert after.value == [*before.value, "connected mail"]


@pytest.mark.parametrize("program", ["mcp2", "ts2"])
def test_a_modern_client_that_cannot_be_asked_is_told_that_it_needs_urls(shared_url: str, program: str) -> None:
    unable = Peer(program, "2026-07-28", can_be_asked=False)  # type: ignore[arg-type]
    (refused,) = drive(unable, shared_url, call("connect_account", provider="mail")).calls
    assert refused.error is not None
    assert refused.error["code"] == -32021
    assert refused.error["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}
