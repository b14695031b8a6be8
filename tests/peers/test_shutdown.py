"""Stopping the help desk while its clients are connected, or have left in the middle of a question."""

from contextlib import ExitStack

import pytest

from tests.peers.demo_server import demo_server
from tests.peers.driving import Peer, accept, call, driver

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

WAITING = accept({"confirm": True}, wait="never")
PEERS = pytest.mark.parametrize(
    "peer",
    [
        pytest.param(Peer("mcp1"), id="mcp1-push"),
        pytest.param(Peer("mcp1", can_be_asked=False), id="mcp1-chat"),
        pytest.param(Peer("mcp2"), id="mcp2-push"),
        pytest.param(Peer("mcp2", "2026-07-28"), id="mcp2-modern"),
    ],
)


@behaviour("LEG-7")
@PEERS
@pytest.mark.parametrize("is_there", [True, False], ids=["client connected", "client gone"])
def test_the_server_leaves_though_a_question_is_open(peer: Peer, is_there: bool) -> None:
    with ExitStack() as clients:
        with demo_server() as port:  # at its end it checks that the server leaves soon and in silence
            url = f"http://127.0.0.1:{port}/mcp"
            client = clients.enter_context(driver(peer, url, call("close_ticket", WAITING, id="T-1")))
            client.asked()
            if not is_there:
                client.abandon()
        client.abandon()
