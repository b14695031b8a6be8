"""Any node takes any message of a session: what is said at one holds at the others."""

from typing import Any

import anyio
import pytest

from bridge import Bridge, Context
from bridge.node import Node
from bridge.protocol.clients import ANONYMOUS
from bridge.stores import MemoryStore, Store
from bridge.testing import accept, connect
from tests.behaviours.fleet import Fleet
from tests.behaviours.test_streams import SECONDS, Stream, asking, post_call, resume, text
from tests.conftest import FLEET_KEYS, Serve

behaviour = pytest.mark.behaviour
shared = pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)
URI = "notes://today"


def noting(store: Store) -> Bridge:
    """A bridge of one more process: an object of its own, with a resource and a tool that logs."""
    bridge = Bridge("noting", elicitation=True, store=store, keys=FLEET_KEYS)

    @bridge.resource(URI)
    async def today() -> str:
        return "nothing"

    @bridge.tool
    async def log(ctx: Context) -> str:
        await ctx.debug("in detail")
        await ctx.info("as usual")
        return "logged"

    return bridge


@behaviour("LEG-6", "LEG-2")
@shared
async def test_a_log_level_that_is_set_at_one_node_holds_at_another(serve: Serve, store: Store) -> None:
    here, there = await serve(noting(store)), await serve(noting(store))
    async with connect(here, revision="2025-11-25") as mcp, connect(there, revision="2025-11-25") as other:
        other.session_id = mcp.session_id
        before = await (await post_call(other, "log", identity=1)).rest()
        assert [message["params"]["data"] for message in before[:-1]] == ["as usual"]
        await mcp.request("logging/setLevel", {"level": "debug"})
        with anyio.fail_after(SECONDS):
            while True:
                heard = await (await post_call(other, "log", identity=2)).rest()
                if len(heard) == 3:
                    break  # the other node has heard of it
        assert [message["params"]["data"] for message in heard[:-1]] == ["in detail", "as usual"]


@behaviour("LEG-6", "LEG-7")
@shared
async def test_changes_at_one_node_reach_sessions_whose_stream_is_at_another(serve: Serve, store: Store) -> None:
    publishing = noting(store)
    here, there = await serve(publishing), await serve(noting(store))
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        await mcp.request("resources/subscribe", {"uri": URI})
        standalone = await resume(other, None)
        await publishing.list_changed("tools")
        assert (await standalone.next())["method"] == "notifications/tools/list_changed"
        await publishing.resource_updated("notes://other")
        await publishing.resource_updated(URI)
        assert (await standalone.next())["params"] == {"uri": URI}


@behaviour("MOD-12")
@shared
async def test_changes_at_one_node_reach_modern_clients_that_listen_at_another(serve: Serve, store: Store) -> None:
    publishing = noting(store)
    await serve(publishing)
    async with connect(await serve(noting(store))) as mcp:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": [URI]}
        message = {"id": "s", "method": "subscriptions/listen", "params": {"notifications": wanted}}
        stream = Stream(await mcp.raw.post(mcp._completed(message)))
        await stream.next()
        await publishing.list_changed("tools")
        assert (await stream.next())["method"] == "notifications/tools/list_changed"
        await publishing.resource_updated(URI)
        assert (await stream.next())["params"]["uri"] == URI


class Renaming:
    """A tool that asks and then acts, and what it did."""

    def __init__(self, store: Store) -> None:
        self.bridge = Bridge("renaming", elicitation=True, store=store, keys=FLEET_KEYS)
        self.effects: list[str] = []
        self.begun = anyio.Event()
        self.go = anyio.Event()

        @self.bridge.tool
        async def rename(ctx: Context) -> str:
            answer = await ctx.elicit("To what?", str)
            self.begun.set()
            await self.go.wait()
            self.effects.append(f"renamed to {answer.content}")
            return self.effects[-1]


@behaviour("CHT-8", "CHT-14")
@shared
async def test_a_chat_answer_at_two_nodes_at_once_acts_once_and_both_hear_of_it(serve: Serve, store: Store) -> None:
    work = Renaming(store)
    here, there = await serve(work.bridge), await serve(work.bridge)
    async with connect(here, revision="2025-03-26") as mcp, connect(there, revision="2025-03-26") as other:
        other.session_id = mcp.session_id
        asked = await mcp.request("tools/call", {"name": "rename", "arguments": {}})
        pending = asked["_meta"]["elicitationPending"]
        [field] = pending["schema"]["properties"]
        answer = {"elicitId": pending["elicitId"], "action": "accept", "content": {field: "Ada"}}
        results: list[Any] = []

        async def send(client: Any) -> None:
            params = {"name": "sendElicitationResult", "arguments": answer}
            results.append(text({"result": await client.request("tools/call", params)}))

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send, mcp)
                tasks.start_soon(send, other)
                await work.begun.wait()
                work.go.set()
        await send(other)
        assert results == ["renamed to Ada"] * 3
    assert work.effects == ["renamed to Ada"]


@behaviour("PSH-6")
@shared
async def test_a_question_that_is_taken_back_at_another_node_is_taken_down_at_its_client(
    fleet: Fleet, store: Store
) -> None:
    bridge = asking(store)
    (_, here), (other, _) = await fleet.node(bridge), await fleet.node(bridge)
    async with connect(here, revision="2025-11-25") as mcp:
        call = await post_call(mcp, "ask")
        message = await call.next()
        while message.get("method") != "elicitation/create":
            message = await call.next()
        session = await other.sessions.find(str(mcp.session_id), ANONYMOUS)
        assert session is not None
        assert await other.sessions.withdraw(session, message["id"])
        assert not await other.sessions.withdraw(session, message["id"])
        taken_down, *_, last = await call.rest()
        assert taken_down["method"] == "notifications/cancelled"
        assert taken_down["params"]["requestId"] == message["id"]
        assert text(last) == "cancel"


@behaviour("LEG-7", "PSH-1")
@shared
async def test_a_stream_moves_from_node_to_node(serve: Serve, store: Store) -> None:
    bridge = asking(store)
    nodes = [await serve(bridge) for _ in range(3)]
    async with (
        connect(nodes[0], revision="2025-11-25") as mcp,
        connect(nodes[1], revision="2025-11-25") as second,
        connect(nodes[2], revision="2025-11-25") as third,
    ):
        second.session_id = third.session_id = mcp.session_id
        call = await post_call(mcp, "ask")
        await call.next()
        position = call.reply.last_event_id
        call.reply.disconnect()
        moved = await resume(second, position)
        question = await moved.next()
        moved.reply.disconnect()
        again = await resume(third, moved.reply.last_event_id)
        reply = await second.raw.post({"jsonrpc": "2.0", "id": question["id"], "result": accept({"name": "Ada"})})
        await reply.closed()
        assert text((await again.rest())[-1]) == "Ada"


async def test_a_node_has_its_identity_once_it_starts_so_that_forked_processes_differ() -> None:
    node = Node(MemoryStore())
    assert node.id == "", "an app that is made before its server forks has no identity yet"
    others = []
    for _ in range(2):
        node = Node(MemoryStore())
        await node.start()
        others.append(node.id)
        await node.stop()
    assert len({*others, ""}) == 3
