"""The gateway that is built from parts serves clients of both eras, over a real socket."""

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
import uvicorn

from bridge.protocol.messages import Json
from bridge.testing import KINDS, ClientKind, RpcError, accept, connect, decline
from tests.conftest import Tap
from tests.test_examples import load
from tests.wiretap import tap_asgi

ROOT = Path(__file__).parent.parent


@pytest.fixture
def example() -> Any:
    return load(ROOT / "examples" / "custom_gateway.py")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_every_kind_of_client_is_asked_or_told(example: Any, tap: Tap, kind: ClientKind) -> None:
    app = example.make_app()
    async with app.router.lifespan_context(app):
        tapped = tap_asgi(app, tap)
        async with connect(tapped, revision=kind.revision, capabilities=kind.capabilities) as mcp:
            if kind.name == "modern":
                with pytest.raises(RpcError, match="asks its user in a form") as refused:
                    await mcp.tools.call("order", {"what": "tea"})
                assert refused.value.code == -32021
                return
            mcp.on_elicitation(lambda asked: decline())
            assert (await mcp.tools.call("order", {"what": "tea"})).text() == "tea is not ordered."
            mcp.on_elicitation(lambda asked: accept({"confirm": True}))
            assert (await mcp.tools.call("order", {"what": "tea"})).text() == "tea is ordered."
            assert mcp.asked[-1].message == "Order tea?"
            mcp.on_elicitation(lambda asked: accept({"confirm": "perhaps"}))
            assert "does not match" in (await mcp.tools.call("order", {"what": "tea"})).text()
    assert example.ordered == ["tea"]


@pytest.fixture
async def url(example: Any) -> AsyncIterator[str]:
    """The gateway, served by uvicorn on a port of its own."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(example.make_app(), log_level="error"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listening])
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        server.should_exit = True


async def test_it_serves_both_eras_over_a_socket(example: Any, url: str) -> None:
    async with aiohttp.ClientSession() as http:
        told = await post(http, url, {"method": "initialize", "params": {"protocolVersion": "2025-03-26"}})
        session = {"Mcp-Session-Id": told["session"]}
        asked = await post(http, url, call("order", {"what": "tea"}), session)
        form = asked["result"]["_meta"]["elicitationPending"]
        answer = {"elicitId": form["elicitId"], "action": "accept", "content": {"confirm": True}}
        ended = await post(http, url, call("sendElicitationResult", answer), session)
        assert ended["result"]["content"][0]["text"] == "tea is ordered."
        broken = await post(http, url, call("sendElicitationResult", {**answer, "elicitId": "no"}), session)
        assert broken["result"]["isError"]
        async with http.delete(url, headers=session) as gone:
            assert gone.status == 204
        assert (await post(http, url, call("order", {"what": "tea"}), session))["status"] == 404

        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }
        modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "order"}
        first = call("order", {"what": "milk"})
        first["params"]["_meta"] = meta
        question = (await post(http, url, first, modern))["result"]
        assert question["resultType"] == "input_required"
        first["params"] |= {"requestState": question["requestState"], "inputResponses": {"sure": {"action": "decline"}}}
        assert (await post(http, url, first, modern))["result"]["content"][0]["text"] == "milk is not ordered."
        first["params"]["arguments"] = {"what": "gold"}
        assert (await post(http, url, first, modern))["status"] == 400
        assert (await post(http, url, {"method": "nothing"}, {}))["status"] == 400
    assert example.ordered == ["tea"]


def call(name: str, arguments: Json) -> Json:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def post(http: aiohttp.ClientSession, url: str, message: Json, headers: dict[str, str] | None = None) -> Json:
    """Post a message: the reply, with the status and the session beside it."""
    async with http.post(url, json={"jsonrpc": "2.0", "id": 1, **message}, headers=headers) as reply:
        body = await reply.json(content_type=None) if reply.content_length else {}
        return {**body, "status": reply.status, "session": reply.headers.get("Mcp-Session-Id", "")}
