"""A real Redis that goes and comes back in the middle of conversations."""

from collections.abc import AsyncIterator, Iterator

import anyio
import pytest

from bridge import Bridge, Context, sessions
from bridge.stores.redis import RedisStore
from bridge.testing import RpcError, accept, connect
from tests.behaviours.fleet import Fleet
from tests.conftest import FLEET_KEYS, Serve
from tests.redis_server import RedisServer

pytestmark = pytest.mark.anyio
behaviour = pytest.mark.behaviour


@pytest.fixture
def server() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.stop()


def made(server: RedisServer, wait_seconds: float) -> Bridge:
    bridge = Bridge("away", elicitation=True, store=RedisStore(server.url, wait_seconds=wait_seconds), keys=FLEET_KEYS)

    @bridge.tool
    async def ask(ctx: Context) -> bool:
        return (await ctx.elicit("Go on?", bool)).content is True

    return bridge


@pytest.fixture
async def app(server: RedisServer, serve: Serve) -> AsyncIterator[object]:
    bridge = made(server, 20)
    yield await serve(bridge)
    server.stop()
    server.start()
    await bridge.store.aclose()


@behaviour("LEG-3")
async def test_a_call_waits_for_a_store_that_is_away_and_ends_as_if_nothing_had_been(
    server: RedisServer, app: object
) -> None:
    async with connect(app) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        first = await mcp.request("tools/call", {"name": "ask", "arguments": {}})
        (key,) = first["inputRequests"]
        answered = {key: {"action": "accept", "content": {"confirm": True}}}
        again = {"name": "ask", "arguments": {}, "inputResponses": answered, "requestState": first["requestState"]}
        server.stop()
        async with anyio.create_task_group() as group:
            results: list[object] = []

            async def call() -> None:
                results.append((await mcp.request("tools/call", again))["content"][0]["text"])

            group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            assert not results
            await anyio.to_thread.run_sync(server.start)
        assert results == ["true"]


@behaviour("LEG-3")
async def test_a_store_that_was_emptied_knows_no_session_and_makes_new_ones(server: RedisServer, app: object) -> None:
    async with connect(app, revision="2025-06-18") as mcp:
        server.stop()
        await anyio.to_thread.run_sync(server.start)
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        async with connect(app, revision="2025-06-18") as other:
            other.on_elicitation(lambda asked: accept({"confirm": True}))
            assert (await other.tools.call("ask")).text() == "true"


@behaviour("LEG-3")
async def test_a_store_that_stays_away_is_503_and_is_used_again_once_it_is_back(
    server: RedisServer, serve: Serve
) -> None:
    bridge = made(server, 1.5)
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        server.stop()
        reply = await mcp.raw.post(
            {
                "jsonrpc": "2.0",
                "id": "i",
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"},
                },
            }
        )
        assert reply.status == 503
        assert int(reply.headers["retry-after"]) > 0
        await reply.closed()
        await anyio.to_thread.run_sync(server.start)
        async with connect(await serve(bridge), revision="2025-06-18") as other:
            other.on_elicitation(lambda asked: accept({"confirm": True}))
            assert (await other.tools.call("ask")).text() == "true"
    await bridge.store.aclose()


@behaviour("MOD-5", "MOD-8")
async def test_what_was_sealed_over_a_store_that_was_emptied_holds_no_more(
    server: RedisServer, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_LOOK_SECONDS", 0.1)
    bridge = made(server, 20)
    node, app = await fleet.node(bridge)
    async with connect(app) as mcp:
        first = await mcp.request("tools/call", {"name": "ask", "arguments": {}})
        (key,) = first["inputRequests"]
        answered = {key: accept({"confirm": True})}
        again = {"name": "ask", "arguments": {}, "inputResponses": answered, "requestState": first["requestState"]}
        assert (await mcp.request("tools/call", again))["content"][0]["text"] == "true"
        before = node.sessions.identity.value
        server.stop()
        await anyio.to_thread.run_sync(server.start)
        with anyio.fail_after(20):
            while node.sessions.identity.value == before:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        with pytest.raises(RpcError, match="Invalid or expired requestState"):
            await mcp.request("tools/call", again)
    await bridge.store.aclose()
