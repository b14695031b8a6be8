"""`subscriptions/listen`: what modern clients hear of changes, over HTTP and on connections."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge import Bridge
from bridge.protocol.messages import Json
from bridge.testing import Client, HttpReply, connect
from bridge.upstreams.base import Failed, Finished
from tests.behaviours.pipes import served
from tests.behaviours.sockets import connected
from tests.behaviours.talking import META, SECONDS, Talker, request
from tests.behaviours.works import Work, happens, lives, make
from tests.conftest import FLEET_KEYS, Serve
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TODAY = "notes://today"


class Stream:
    """A `subscriptions/listen` request over HTTP."""

    def __init__(self, reply: HttpReply) -> None:
        self.reply = reply
        self._messages = reply.messages()

    async def next(self) -> Json:
        with anyio.fail_after(SECONDS):
            return await anext(self._messages)


async def listen(mcp: Client, wanted: Any, identity: int | str = 1) -> Stream:
    """Listen over HTTP."""
    message = {"id": identity, "method": "subscriptions/listen", "params": {"notifications": wanted}}
    return Stream(await mcp.raw.post(mcp._completed(message)))


def told(message: Json) -> tuple[str, Any]:
    """The kind of a notification, and the subscription that it names."""
    return message["method"], message["params"]["_meta"][SUBSCRIPTION]


# Over HTTP


@behaviour("MOD-12", "MOD-1")
async def test_the_capabilities_say_what_changes_are_told(bridge: Bridge, serve: Serve) -> None:
    async with connect(await serve(bridge)) as mcp:
        capabilities = (await mcp.request("server/discover", {}))["capabilities"]
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
    assert "prompts" not in capabilities


@behaviour("MOD-12")
@pytest.mark.parametrize("identity", [0, 7, "7"], ids=repr)
async def test_what_is_honoured_comes_first_and_every_message_names_the_subscription(
    bridge: Bridge, serve: Serve, identity: int | str
) -> None:
    async with connect(await serve(bridge)) as mcp:
        stream = await listen(mcp, {**LISTS, "resourceSubscriptions": [TODAY, TODAY]}, identity)
        first = await stream.next()
        honoured = {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": [TODAY]}
        assert first["params"] == {"_meta": {SUBSCRIPTION: identity}, "notifications": honoured}
        assert type(first["params"]["_meta"][SUBSCRIPTION]) is type(identity)
        await bridge.list_changed("tools")
        assert told(await stream.next()) == ("notifications/tools/list_changed", identity)
        await bridge.resource_updated(TODAY)
        updated = await stream.next()
        assert told(updated) == ("notifications/resources/updated", identity)
        assert updated["params"]["uri"] == TODAY


@behaviour("MOD-12")
async def test_nothing_comes_that_was_not_asked_for(bridge: Bridge, serve: Serve) -> None:
    async with connect(await serve(bridge)) as mcp:
        stream = await listen(mcp, {"resourcesListChanged": True, "toolsListChanged": False, "future": 1})
        assert (await stream.next())["params"]["notifications"] == {"resourcesListChanged": True}
        await bridge.list_changed("tools")
        await bridge.resource_updated(TODAY)
        await bridge.list_changed("resources")
        assert told(await stream.next())[0] == "notifications/resources/list_changed"


@behaviour("MOD-12")
async def test_several_streams_are_told_apart(bridge: Bridge, serve: Serve) -> None:
    async with connect(await serve(bridge)) as mcp:
        tools, notes = await listen(mcp, LISTS, 1), await listen(mcp, {"resourceSubscriptions": [TODAY]}, "1")
        assert [told(await stream.next())[1] for stream in (tools, notes)] == [1, "1"]
        await bridge.resource_updated(TODAY)
        await bridge.list_changed("tools")
        assert told(await notes.next()) == ("notifications/resources/updated", "1")
        assert told(await tools.next()) == ("notifications/tools/list_changed", 1)


@behaviour("MOD-12")
@pytest.mark.parametrize("wanted", [None, [], {"toolsListChanged": "yes"}, {"resourceSubscriptions": [1]}], ids=repr)
async def test_a_filter_that_is_none_is_refused(bridge: Bridge, serve: Serve, wanted: Any) -> None:
    async with connect(await serve(bridge)) as mcp:
        stream = await listen(mcp, wanted)
        assert (await stream.next())["error"]["code"] == -32602
        assert stream.reply.status == 400


@behaviour("MOD-12")
async def test_a_client_that_takes_no_stream_is_told_so(bridge: Bridge, serve: Serve) -> None:
    async with connect(await serve(bridge), headers={"accept": "application/json"}) as mcp:
        stream = await listen(mcp, LISTS)
        assert (await stream.next())["error"]["code"] == -32600


@behaviour("MOD-12", "TRN-6")
async def test_at_shutdown_the_stream_ends_with_the_result(bridge: Bridge) -> None:
    app = bridge.asgi()
    async with app.lifespan(), connect(app) as mcp:
        stream = await listen(mcp, LISTS, "s")
        await stream.next()
        await app.drain()
        reply = await stream.next()
        assert (reply["id"], reply["result"]["resultType"]) == ("s", "complete")
        assert reply["result"]["_meta"][SUBSCRIPTION] == "s"
        with pytest.raises(StopAsyncIteration):
            await stream.next()


@behaviour("MOD-12")
async def test_a_change_on_another_node_is_told(
    redis_url: str, work: Work, serve: Serve, closing: AsyncExitStack
) -> None:
    here, there = (make(work, store=redis_url, keys=FLEET_KEYS) for _ in range(2))
    for bridge in (here, there):
        closing.push_async_callback(bridge.store.aclose)
    await serve(there)
    async with connect(await serve(here)) as mcp:
        stream = await listen(mcp, LISTS)
        await stream.next()
        await there.list_changed("tools")
        assert told(await stream.next())[0] == "notifications/tools/list_changed"


# What is wrapped


class Watching:
    """An upstream's `relay`, which refuses one resource."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.left = anyio.Event()

    async def __call__(self, method: str, params: Json, caller: Any) -> Finished | Failed:
        if method == "subscriptions/listen":
            return Finished({})
        self.heard.append((method.removeprefix("resources/"), params["uri"]))
        if method == "resources/unsubscribe":
            self.left.set()
        return Failed(-32602, "no such resource") if params["uri"] == "notes://none" else Finished({})


@behaviour("MOD-12")
async def test_the_server_behind_is_told_of_each_who_watches_and_when_the_last_has_left(bridge: Bridge) -> None:
    app = bridge.asgi()
    app.upstream.relay = watching = Watching()  # type: ignore[method-assign]
    async with app.lifespan(), connect(app) as mcp:
        one = await listen(mcp, {"resourceSubscriptions": ["notes://none", TODAY]})
        assert (await one.next())["params"]["notifications"] == {"resourceSubscriptions": [TODAY]}
        other = await listen(mcp, {"resourceSubscriptions": [TODAY]})
        await other.next()
        one.reply.disconnect()
        await one.reply.closed()
        assert not watching.left.is_set()
        other.reply.disconnect()
        await happens(watching.left)
    assert watching.heard == [
        ("subscribe", "notes://none"),
        *[("subscribe", TODAY)] * 2,
        ("unsubscribe", TODAY),
    ]


# On a connection


@pytest.fixture(params=["stdio", "websocket"])
def connection(request: pytest.FixtureRequest, tap: Tap) -> Any:
    """Connects a client to a bridge over each transport in turn."""

    @asynccontextmanager
    async def over_websocket(bridge: Bridge) -> AsyncIterator[tuple[Talker, Any]]:
        app = bridge.asgi()
        async with app.lifespan(), connected(app, tap) as mcp:
            yield mcp, app.drain

    @asynccontextmanager
    async def over_stdio(bridge: Bridge) -> AsyncIterator[tuple[Talker, Any]]:
        async with served(bridge, tap) as mcp:

            async def close() -> None:
                mcp.close()

            yield mcp, close

    return over_websocket if request.param == "websocket" else over_stdio


async def subscribe(mcp: Talker, identity: Any) -> None:
    params = {"notifications": {"toolsListChanged": True}, "_meta": META}
    await mcp.send(request(identity, "subscriptions/listen", params))
    assert (await mcp.notification(ACKNOWLEDGED))["_meta"] == {SUBSCRIPTION: identity}


@behaviour("MOD-12", "MOD-17")
async def test_on_a_connection_it_is_cancelled_by_its_id(connection: Any, bridge: Bridge) -> None:
    async with connection(bridge) as (mcp, _):
        await subscribe(mcp, 1)
        await subscribe(mcp, "1")
        await mcp.notify("notifications/cancelled", {"requestId": 1})
        await lives_modern(mcp)
        await bridge.list_changed("tools")
        assert (await mcp.notification("notifications/tools/list_changed"))["_meta"] == {SUBSCRIPTION: "1"}
        await lives_modern(mcp)
        assert mcp.heard == []


@behaviour("MOD-12", "TRN-6")
async def test_on_a_connection_it_ends_with_the_result_and_a_cancellation(connection: Any, bridge: Bridge) -> None:
    async with connection(bridge) as (mcp, end), anyio.create_task_group() as tasks:
        await subscribe(mcp, "s")
        tasks.start_soon(end)
        reply = await mcp.reply("s")
        assert reply["result"]["_meta"][SUBSCRIPTION] == "s"
        assert await mcp.notification("notifications/cancelled") == {"requestId": "s"}
        await happens(mcp.ended)


async def lives_modern(mcp: Talker) -> None:
    assert (await mcp.call("add", META, a=2, b=3))["structuredContent"] == 5


@behaviour("MOD-12")
async def test_a_session_is_not_told_twice(connection: Any, bridge: Bridge) -> None:
    async with connection(bridge) as (mcp, _):
        await mcp.initialize()
        await subscribe(mcp, 1)
        await bridge.list_changed("tools")
        heard = [await mcp.next(), await mcp.next()]
        assert sorted("params" in (message or {}) for message in heard) == [False, True]
        await lives(mcp)
        assert mcp.heard == []
