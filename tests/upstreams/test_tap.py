"""The tap towards wrapped servers judges what it hears."""

import pytest

from bridge.testing import connect
from tests.conftest import Serve
from tests.upstreams.plain import Plain
from tests.wiretap import Tap
from tests.wiretap.upstream import TappedWire


class _Nowhere:
    """A wire that carries nothing."""

    names_requests = False

    async def send(self, message: object, http: object = None) -> None:
        pass

    async def initialized(self, revision: str) -> None:
        pass


async def test_what_leaves_for_a_wrapped_server_is_judged(plain: Plain, serve: Serve, tapped_upstream: Tap) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-11-25") as mcp:
        await mcp.tools.call("echo")
    assert tapped_upstream.checked >= 6
    assert tapped_upstream.violations == []


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}},
        {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "requestState": "modern"}},
    ],
    ids=["no-name", "modern-method", "modern-field"],
)
async def test_what_no_client_of_the_revision_may_say_is_found(message: dict[str, object]) -> None:
    tap = Tap()
    await TappedWire(_Nowhere(), tap).send(message)  # type: ignore[arg-type]
    assert len(tap.violations) == 1
