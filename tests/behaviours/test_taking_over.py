"""A call whose node is lost: another goes on with it for the client that comes back, and nothing is done twice."""

import time
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge import Bridge, Context
from bridge.stores import Store
from bridge.testing import accept, connect
from bridge.transports import exchange
from bridge.transports.session_exchange import SessionExchange
from tests.behaviours.fleet import Fleet
from tests.behaviours.test_streams import SECONDS, last_id, post_call, respond, resume, text
from tests.conftest import Serve

behaviour = pytest.mark.behaviour
shared = pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)


class Name(BaseModel):
    name: str


class Desk:
    """A bridge whose tools write down what they do."""

    def __init__(self, store: Store) -> None:
        self.trace: list[str] = []
        self.begun = anyio.Event()
        self.bridge = bridge = Bridge("desk", elicitation=True, store=store)

        @bridge.tool
        async def rename(ctx: Context) -> str:
            """Asks twice, with a step before and an effect after."""
            await ctx.step("reserve", lambda: self.trace.append("reserved"))
            first = await ctx.elicit("First?", Name)
            second = await ctx.elicit("Second?", Name)
            self.trace.append("renamed")
            return f"{first.content and first.content.name} {second.content and second.content.name}"

        @bridge.tool
        async def work(ctx: Context) -> str:
            """Says that it has begun, and does not end."""
            return await self._work(ctx)

        @bridge.tool(annotations={"readOnlyHint": True})
        async def look(ctx: Context) -> str:
            """Likewise, and only reads."""
            return await self._work(ctx)

    async def _work(self, ctx: Context) -> str:
        self.trace.append("began")
        if len(self.trace) > 1:
            return "looked again"
        await ctx.info("begun")
        self.begun.set()
        await anyio.sleep_forever()
        return "never"


async def question(stream: Any) -> Any:
    message = await stream.next()
    while message.get("method") != "elicitation/create":
        message = await stream.next()
    return message


@behaviour("LEG-7", "LEG-11", "PSH-1")
@shared
@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18"])
async def test_a_call_that_waits_for_its_user_goes_on_at_another_node_when_its_own_is_lost(
    fleet: Fleet, store: Store, revision: str
) -> None:
    desk = Desk(store)
    (lost, here), (_, there) = await fleet.node(desk.bridge), await fleet.node(desk.bridge)
    async with connect(here, revision=revision) as mcp, connect(there, revision=revision) as other:
        other.session_id = mcp.session_id
        cut = await post_call(mcp, "rename", identity=7)
        first = await question(cut)
        fleet.silence(lost)
        cut.reply.disconnect()
        resumed = await resume(other, last_id(cut))
        await respond(other, first["id"], accept({"name": "Ada"}))
        second = await question(resumed)
        assert second["params"]["message"] == "Second?"
        await respond(other, second["id"], accept({"name": "Byron"}))
        [last] = await resumed.rest()
        assert (last["id"], text(last)) == (7, "Ada Byron")
    assert desk.trace == ["reserved", "renamed"], "the node that was not quite gone did nothing any more"


@behaviour("TRN-6", "LEG-7")
@shared
async def test_a_call_that_waits_for_its_user_outlives_a_restart(serve: Serve, fleet: Fleet, store: Store) -> None:
    desk = Desk(store)
    app = desk.bridge.asgi()
    async with app.lifespan(), connect(app, revision="2025-11-25") as mcp:
        call = await post_call(mcp, "rename")
        first = await question(call)
        await respond(mcp, first["id"], accept({"name": "Ada"}))
        second = await question(call)
        session, position = mcp.session_id, last_id(call)
        await app.stop()
    begun = time.monotonic()
    async with connect(await serve(desk.bridge), revision="2025-11-25") as mcp:
        mcp.session_id = session
        await respond(mcp, second["id"], accept({"name": "Byron"}))
        resumed = await resume(mcp, position)
        [last] = await resumed.rest()
        assert text(last) == "Ada Byron"
    assert time.monotonic() - begun < 2, "a node that ended by itself said so"
    assert desk.trace == ["reserved", "renamed"]


@behaviour("LEG-7", "MOD-10")
@shared
async def test_a_call_that_ran_when_its_node_was_lost_is_not_run_again_and_says_so(fleet: Fleet, store: Store) -> None:
    desk = Desk(store)
    (lost, here), (_, there) = await fleet.node(desk.bridge), await fleet.node(desk.bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        cut = await post_call(mcp, "work")
        await cut.next()
        fleet.silence(lost)
        begun = time.monotonic()
        cut.reply.disconnect()
        [last] = await (await resume(other, last_id(cut))).rest()
        assert time.monotonic() - begun < 5.5
        assert last["result"]["isError"]
        assert "INTERRUPTED" in text(last)
    assert desk.trace == ["began"]


@behaviour("LEG-7", "MOD-10")
@shared
async def test_a_call_that_only_reads_runs_again_when_its_node_is_lost(fleet: Fleet, store: Store) -> None:
    desk = Desk(store)
    (lost, here), (_, there) = await fleet.node(desk.bridge), await fleet.node(desk.bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        cut = await post_call(mcp, "look")
        await cut.next()
        fleet.silence(lost)
        cut.reply.disconnect()
        assert text((await (await resume(other, last_id(cut))).rest())[-1]) == "looked again"


@behaviour("LEG-7")
@shared
async def test_a_call_that_said_nothing_yet_is_not_waited_for_in_vain(
    fleet: Fleet, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "LATE_SECONDS", 0.0)
    bridge = Bridge("silent", store=store)
    begun = anyio.Event()

    @bridge.tool
    async def work() -> None:
        begun.set()
        await anyio.sleep_forever()

    (lost, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    async with connect(here, revision="2025-11-25") as mcp, connect(there, revision="2025-11-25") as other:
        other.session_id = mcp.session_id
        cut = await post_call(mcp, "work")
        async with anyio.create_task_group() as reading:
            reading.start_soon(cut.rest)
            with anyio.fail_after(SECONDS):
                await begun.wait()
                while cut.reply.last_event_id is None:  # noqa: ASYNC110
                    await anyio.sleep(0.01)  # an event without a message is told to nobody
            reading.cancel_scope.cancel()
        fleet.silence(lost)
        cut.reply.disconnect()
        [last] = await (await resume(other, last_id(cut))).rest()
        assert "INTERRUPTED" in text(last)


@behaviour("PSH-1")
@shared
async def test_a_question_that_reached_nobody_is_asked_again_by_the_node_that_goes_on(
    fleet: Fleet, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(store)
    (lost, here), (_, there) = await fleet.node(desk.bridge), await fleet.node(desk.bridge)
    async with connect(here, revision="2025-11-25") as mcp, connect(there, revision="2025-11-25") as other:
        other.session_id = mcp.session_id
        asking = anyio.Event()
        send = SessionExchange.send

        async def die_before_the_second(self: SessionExchange, message: Any) -> None:
            if message.get("params", {}).get("message") == "Second?" and not asking.is_set():
                asking.set()
                await anyio.sleep_forever()
            await send(self, message)

        monkeypatch.setattr(SessionExchange, "send", die_before_the_second)
        cut = await post_call(mcp, "rename")
        first = await question(cut)
        await respond(mcp, first["id"], accept({"name": "Ada"}))
        with anyio.fail_after(SECONDS):
            await asking.wait()
        fleet.silence(lost)
        cut.reply.disconnect()
        resumed = await resume(other, last_id(cut))
        second = await question(resumed)
        await respond(other, second["id"], accept({"name": "Byron"}))
        assert text((await resumed.rest())[-1]) == "Ada Byron"
    assert desk.trace == ["reserved", "renamed"]


@behaviour("LEG-7", "PSH-3")
@shared
async def test_an_answer_that_came_before_the_client_did_is_used(fleet: Fleet, store: Store) -> None:
    desk = Desk(store)
    (gone, here), (_, there) = await fleet.node(desk.bridge), await fleet.node(desk.bridge)
    async with connect(here, revision="2025-11-25") as mcp, connect(there, revision="2025-11-25") as other:
        other.session_id = mcp.session_id
        call = await post_call(mcp, "rename")
        first = await question(call)
        await gone.stop()
        await respond(other, first["id"], accept({"name": "Ada"}))
        await respond(other, first["id"], accept({"name": "Eve"}))
        resumed = await resume(other, last_id(call))
        second = await question(resumed)
        await respond(other, second["id"], accept({"name": "Byron"}))
        assert text((await resumed.rest())[-1]) == "Ada Byron"


@behaviour("LEG-4")
@shared
async def test_a_call_that_was_taken_over_ends_with_its_session(fleet: Fleet, store: Store) -> None:
    desk = Desk(store)
    (gone, here), (kept, there) = await fleet.node(desk.bridge), await fleet.node(desk.bridge)
    async with connect(here, revision="2025-11-25") as mcp, connect(there, revision="2025-11-25") as other:
        other.session_id = mcp.session_id
        call = await post_call(mcp, "rename", identity=5)
        await question(call)
        await gone.stop()
        resumed = await resume(other, last_id(call))
        [session] = [session for session in kept.sessions.known() if session.id == mcp.session_id]
        with anyio.fail_after(SECONDS):
            while 5 not in session.running:  # noqa: ASYNC110
                await anyio.sleep(0.01)  # the call tells nobody that it was taken over
        assert (await other.raw.delete()).status == 204
        assert await resumed.rest() == []
        with anyio.fail_after(SECONDS):
            while session.running:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    assert desk.trace == ["reserved"]
