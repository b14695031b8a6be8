"""A call of a wrapped server that is suspended in one node and answered at another: it goes on where it is."""

import time
from typing import Any

import pytest

from bridge import PushLimits, sessions
from bridge.stores import Store
from bridge.testing import accept, connect
from tests.behaviours.fleet import Fleet
from tests.behaviours.test_streams import last_id, post_call, respond, resume, text
from tests.conftest import Serve
from tests.upstreams.plain import Plain

behaviour = pytest.mark.behaviour
shared = pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)

CLOSE = {"name": "close", "arguments": {"what": "T-1"}}
FORMS = {"elicitation": {"form": {}}}


def retry(call: Any, first: Any, **answers: Any) -> Any:
    """The next round of a call, its questions answered in their order."""
    responses = dict(zip(first["inputRequests"], answers.values(), strict=True))
    return {**call, "requestState": first["requestState"], "inputResponses": responses}


@behaviour("UPS-12", "UPS-3")
@shared
async def test_a_round_that_lands_at_another_node_goes_on_with_the_suspended_call(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    (_, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    async with connect(here) as mcp, connect(there) as other:
        first = await mcp.request("tools/call", CLOSE)
        last = await other.request("tools/call", retry(CLOSE, first, a=accept({"confirm": True})))
        assert text({"result": last}) == "closed T-1"
        assert plain.effects == ["began T-1", "closed T-1"]
        again = await mcp.request("tools/call", retry(CLOSE, first, a=accept({"confirm": True})))
        assert again == last, "the same round, sent again, has the same result wherever it lands"
    assert plain.effects == ["began T-1", "closed T-1"]


@behaviour("UPS-12")
@shared
async def test_a_call_that_asks_again_is_asked_through_whatever_node_its_rounds_reach(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    nodes = [(await fleet.node(bridge))[1] for _ in range(3)]
    greet: Any = {"name": "greet", "arguments": {}}
    async with connect(nodes[0]) as first, connect(nodes[1]) as second, connect(nodes[2]) as third:
        name = await first.request("tools/call", greet)
        sure = await second.request("tools/call", retry(greet, name, a=accept({"name": "Ada"})))
        assert list(sure["inputRequests"]) == ["elicitation-2"]
        last = await third.request("tools/call", retry(greet, sure, a=accept({"confirm": True})))
        assert text({"result": last}) == "Ada is sure"


@behaviour("UPS-12", "CHT-14")
@shared
async def test_a_chat_answer_at_another_node_goes_on_with_the_suspended_call(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    (_, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    async with connect(here, revision="2025-03-26") as mcp, connect(there, revision="2025-03-26") as other:
        other.session_id = mcp.session_id
        asked = await mcp.request("tools/call", CLOSE)
        pending = asked["_meta"]["elicitationPending"]["elicitId"]
        answer = {"elicitId": pending, "action": "accept", "content": {"confirm": True}}
        last = await other.request("tools/call", {"name": "sendElicitationResult", "arguments": answer})
        assert text({"result": last}) == "closed T-1"
    assert plain.effects == ["began T-1", "closed T-1"]


@behaviour("UPS-12", "PSH-7")
@shared
async def test_a_node_pushes_the_next_question_of_a_call_that_another_holds(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store, push=PushLimits(soft_deadline_seconds=0.2))
    (_, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    options: Any = {"revision": "2025-06-18", "capabilities": {"elicitation": {}}}
    async with connect(here, **options) as mcp, connect(there, **options) as other:
        other.session_id = mcp.session_id
        call = await post_call(mcp, "greet")
        question = await call.next()
        assert "Nobody has answered yet" in text((await call.rest())[-1])
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        call = await post_call(other, "greet")
        question = await call.next()
        assert question["params"]["message"] == "Are you sure, Ada?"
        await respond(mcp, question["id"], accept({"confirm": True}))
        assert text((await call.rest())[-1]) == "Ada is sure"


@behaviour("UPS-12", "UPS-8")
@shared
async def test_what_the_suspended_call_reports_reaches_the_client_at_the_other_node(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    (_, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    count: Any = {"name": "ask_and_count", "arguments": {"steps": 3}, "_meta": {"progressToken": "p"}}
    async with connect(here) as mcp, connect(there) as other:
        first = await mcp.request("tools/call", count)
        reply = await other.raw.post(
            other._completed({"method": "tools/call", "params": retry(count, first, a=accept({"confirm": True}))})
        )
        heard = [message async for message in reply.messages()]
    assert [message["params"]["progress"] for message in heard[:-1]] == [1, 2, 3]
    assert text(heard[-1]) == "counted"


@behaviour("UPS-12", "UPS-11")
@shared
async def test_a_node_that_is_lost_is_noticed_and_its_call_is_not_run_again(
    plain: Plain, fleet: Fleet, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = plain.bridge(store=store)
    (lost, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    async with connect(here) as mcp, connect(there) as other:
        first = await mcp.request("tools/call", CLOSE)
        fleet.silence(lost)
        begun = time.monotonic()
        monkeypatch.setattr(lost.upstream._attending, "_go_on", ignore)  # type: ignore[attr-defined]
        last = await other.request("tools/call", retry(CLOSE, first, a=accept({"confirm": True})))
        assert time.monotonic() - begun < 5.5
        assert last["isError"]
        assert "INTERRUPTED" in text({"result": last})
    assert plain.effects == ["began T-1"]


@behaviour("UPS-12", "UPS-11")
@shared
async def test_a_tool_that_only_reads_runs_again_where_the_node_is_lost_that_held_it(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    gone = bridge.asgi()
    async with gone.lifespan(), connect(gone) as mcp:
        greet: Any = {"name": "greet", "arguments": {}}
        name = await mcp.request("tools/call", greet)
    begun = time.monotonic()
    async with connect((await fleet.node(bridge))[1]) as other:
        sure = await other.request("tools/call", retry(greet, name, a=accept({"name": "Ada"})))
        assert list(sure["inputRequests"]) == ["elicitation-2"]
    assert time.monotonic() - begun < 3, "a node that ended by itself said so"


@behaviour("UPS-12")
@shared
async def test_where_the_node_is_lost_that_drives_a_call_its_server_is_told(
    plain: Plain, fleet: Fleet, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (_, here), (lost, there) = [
        await fleet.node(plain.bridge(store=store, push=PushLimits(soft_deadline_seconds=seconds)))
        for seconds in (0.2, 60.0)
    ]
    options: Any = {"revision": "2025-06-18", "capabilities": {"elicitation": {}}}
    async with connect(here, **options) as mcp, connect(there, **options) as other:
        other.session_id = mcp.session_id
        call = await post_call(mcp, "greet")
        question = await call.next()
        await call.rest()
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        call = await post_call(other, "greet")
        assert (await call.next())["params"]["message"] == "Are you sure, Ada?"
        fleet.silence(lost)
        await plain.wrote("cancelled")


@behaviour("UPS-12", "MOD-10")
@shared
async def test_a_client_that_leaves_another_node_cancels_the_call_where_it_is(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    (_, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    hang: Any = {"name": "ask_and_hang", "arguments": {}}
    async with connect(here) as mcp, connect(there) as other:
        first = await mcp.request("tools/call", hang)
        reply = await other.raw.post(
            other._completed({"method": "tools/call", "params": retry(hang, first, a=accept({"confirm": True}))})
        )
        await plain.wrote("hanging")
        reply.disconnect()
        await plain.wrote("cancelled")


@behaviour("UPS-12", "UPS-11")
@shared
async def test_a_call_that_nobody_answers_in_time_is_cancelled_where_it_is_whoever_asked_last(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store, round_seconds=1.0)
    (_, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    greet: Any = {"name": "greet", "arguments": {}}
    async with connect(here) as mcp, connect(there) as other:
        name = await mcp.request("tools/call", greet)
        await other.request("tools/call", retry(greet, name, a=accept({"name": "Ada"})))
        await plain.wrote("cancelled")


async def ignore(order: object) -> None:
    """Do nothing, as a process that is gone does."""


@behaviour("UPS-11", "LEG-7")
@shared
async def test_a_client_that_comes_back_for_a_call_that_a_lost_node_held_learns_so(
    plain: Plain, fleet: Fleet, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    (lost, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        cut = await post_call(mcp, "close", {"what": "T-1"})
        assert (await cut.next())["method"] == "elicitation/create"
        fleet.silence(lost)
        cut.reply.disconnect()
        [last] = await (await resume(other, last_id(cut))).rest()
        assert "INTERRUPTED" in text(last)
        assert "was not run again" in text(last)
    assert plain.effects == ["began T-1"]


@behaviour("UPS-6", "LEG-2")
@shared
async def test_a_session_with_the_server_is_set_up_again_after_a_restart(
    plain: Plain, serve: Serve, store: Store
) -> None:
    bridge = plain.bridge(store=store)
    app = bridge.asgi()
    capabilities = {"sampling": {}, "roots": {"listChanged": True}}
    async with app.lifespan(), connect(app, revision="2025-11-25", capabilities=capabilities) as mcp:
        session = mcp.session_id
        await mcp.request("resources/subscribe", {"uri": "note://1"})
    said = [line for line in plain.lines if line.startswith("initialize")][-1]
    assert "sampling" in said
    async with connect(await serve(bridge), revision="2025-11-25") as mcp:
        mcp.session_id = session
        await mcp.tools.call("echo")
        await plain.wrote("subscribed note://1", 2)
        assert [line for line in plain.lines if line.startswith("initialize")][-1] == said


@behaviour("LEG-4", "UPS-9")
@shared
async def test_a_session_that_ends_at_another_node_ends_its_child_here(
    plain: Plain, fleet: Fleet, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_CACHED", 1)
    bridge = plain.bridge(store=store)
    (_, here), (_, there) = await fleet.node(bridge), await fleet.node(bridge)
    async with connect(here, revision="2025-03-26") as mcp, connect(there, revision="2025-03-26") as other:
        other.session_id = mcp.session_id
        await mcp.request("tools/call", CLOSE)
        async with connect(here, revision="2025-03-26") as newer:
            await newer.request("ping", {})
            ended = plain.lines.count("ended")
            assert (await other.raw.delete()).status == 204
            await plain.wrote("ended", ended + 1)
