"""How callers share a stdio server, and what it says beside calls: children, processes, sampling, roots, news."""

from typing import Any

import anyio
import pytest

from bridge.protocol.messages import notification
from bridge.testing import Client, connect, decline
from bridge.upstreams.targets import ServerOptions
from tests.conftest import Serve
from tests.upstreams.plain import Plain
from tests.wiretap import Tap, tap_asgi

behaviour = pytest.mark.behaviour

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
MORE = {"sampling": {}, "roots": {"listChanged": True}}


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
@behaviour("ASK-18", "UPS-3", "UPS-4")
async def test_sampling_and_roots_are_asked_of_the_client_that_declares_them(
    plain: Plain, serve: Serve, revision: str
) -> None:
    async with connect(await serve(plain.bridge()), revision=revision, capabilities=MORE) as mcp:
        mcp.on_request("sampling/createMessage", lambda params: {**SAMPLED, "stopReason": str(params["maxTokens"])})
        mcp.on_request("roots/list", lambda params: {"roots": [{"uri": "file:///w"}]})
        assert '"stopReason": "9"' in (await mcp.tools.call("summarize")).text()
        assert '"uri": "file:///w"' in (await mcp.tools.call("roots")).text()


@behaviour("UPS-4")
async def test_what_the_caller_does_not_declare_is_refused_and_named(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-11-25") as mcp:
        refused = await mcp.tools.call("summarize")
        assert refused.error_code == "ELICITATION_NOT_SUPPORTED"
        assert "sampling" in refused.text()
        await plain.wrote("cancelled")


async def _calls_at_once(clients: list[Client], tool: str) -> None:
    async with anyio.create_task_group() as tasks:
        for client in clients:
            tasks.start_soon(client.tools.call, tool, {})


@behaviour("UPS-6")
async def test_modern_calls_of_anonymous_callers_share_one_child(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge())
    before = sum(line.startswith("initialize") for line in plain.lines)
    async with connect(app) as one, connect(app) as other:
        await _calls_at_once([one, other], "echo")
    assert sum(line.startswith("initialize") for line in plain.lines) == before + 1


@behaviour("UPS-6")
async def test_calls_are_spread_over_as_many_children_as_are_wanted(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge(server=ServerOptions(shared=True, processes=2)))
    async with (
        connect(app, revision="2025-11-25") as one,
        connect(app, revision="2025-11-25") as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(one.tools.call, "hang", {})
        await plain.wrote("hanging")
        # The other child is free, though the first never answers.
        assert not (await other.tools.call("echo")).is_error
        tasks.cancel_scope.cancel()
    assert sum(line.startswith("initialize") for line in plain.lines) == 2


@behaviour("UPS-5")
async def test_a_call_waits_for_its_turn_in_a_child_that_is_shared(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge(server=ServerOptions(shared=True)))
    async with connect(app, revision="2025-11-25") as one, connect(app, revision="2025-11-25") as other:
        message = one._completed({"method": "tools/call", "params": {"name": "hang", "arguments": {}}})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.raw.post, message)
            await plain.wrote("hanging")
            with anyio.move_on_after(0.3) as waited:
                await other.tools.call("close", {"what": "T-1"})
            assert waited.cancelled_caught
            assert plain.effects == ["hanging"]
            await one.notify("notifications/cancelled", {"requestId": message["id"]})
            assert (await other.tools.call("close", {"what": "T-2"})).text() == "kept (decline) T-2"
            tasks.cancel_scope.cancel()


@behaviour("UPS-5")
async def test_a_question_among_several_active_calls_is_refused(plain: Plain, serve: Serve, caplog: Any) -> None:
    app = await serve(plain.bridge(server=ServerOptions(shared=True, concurrent=True)))
    async with (
        connect(app, revision="2025-11-25") as one,
        connect(app, revision="2025-11-25") as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(one.tools.call, "hang", {})
        await plain.wrote("hanging")
        other.on_elicitation(lambda asked: decline())
        assert (await other.tools.call("close", {"what": "T-1"})).text() == "kept (error) T-1"
        assert other.asked == []
        tasks.cancel_scope.cancel()
    assert "which call asks cannot be told" in caplog.text


@behaviour("UPS-8")
async def test_subscriptions_completion_and_prompts_reach_the_server(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-11-25") as mcp:
        assert (await mcp.prompts.get("hello"))["messages"][0]["content"]["text"] == "hi"
        assert await mcp.request("resources/subscribe", {"uri": "note://1"}) == {}
        await plain.wrote("subscribed note://1")
        await mcp.tools.call("touch", {"uri": "note://1"})
        await mcp.notify("notifications/roots/list_changed")
        await plain.wrote("roots changed")
        stream = await mcp.raw.get()
        seen = []
        async for note in stream.messages():
            seen.append(note["method"])
            if len(seen) == 2:
                break
        assert seen == ["notifications/resources/updated", "notifications/tools/list_changed"]


@behaviour("UPS-6", "LEG-4")
async def test_a_child_that_ended_between_two_calls_is_started_anew(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-11-25") as mcp:
        assert (await mcp.tools.call("die")).error_code == "INTERRUPTED"
        assert not (await mcp.tools.call("echo")).is_error


@behaviour("MOD-12", "UPS-8")
async def test_a_modern_client_hears_of_the_resources_that_it_listens_for(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge())) as mcp:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["note://1"]}
        message = {"id": "s", "method": "subscriptions/listen", "params": {"notifications": wanted}}
        reply = await mcp.raw.post(mcp._completed(message))
        heard = reply.messages()
        assert (await anext(heard))["params"]["notifications"]["resourceSubscriptions"] == ["note://1"]
        await plain.wrote("subscribed note://1")
        await mcp.tools.call("touch", {"uri": "note://1"})
        told = [await anext(heard), await anext(heard)]
        methods = ["notifications/resources/updated", "notifications/tools/list_changed"]
        assert [message["method"] for message in told] == methods
        assert all(message["params"]["_meta"][SUBSCRIPTION] == "s" for message in told)
        reply.disconnect()
        await plain.wrote("unsubscribed note://1")


@behaviour("MOD-12", "UPS-8")
async def test_who_listens_is_told_of_lists_though_it_never_called(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge(server=ServerOptions(shared=True)))
    async with connect(app) as mcp, connect(app, revision="2025-11-25") as other:
        message = {"id": 1, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}}}
        reply = await mcp.raw.post(mcp._completed(message))
        heard = reply.messages()
        await anext(heard)
        await other.tools.call("touch", {"uri": "note://1"})
        assert (await anext(heard))["method"] == "notifications/tools/list_changed"
        reply.disconnect()


@behaviour("UPS-6", "LEG-6")
async def test_a_child_that_is_started_anew_hears_what_the_session_had_set_up(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-11-25") as mcp:
        await mcp.request("resources/subscribe", {"uri": "note://1"})
        await mcp.request("resources/subscribe", {"uri": "note://2"})
        await mcp.request("resources/unsubscribe", {"uri": "note://2"})
        await mcp.tools.call("die")
        await mcp.tools.call("echo")
        await plain.wrote("subscribed note://1", 2)
    assert sum(line == "subscribed note://2" for line in plain.lines) == 1


@behaviour("UPS-8", "LEG-7")
async def test_news_reach_a_session_that_the_node_has_not_at_hand(plain: Plain, tap: Tap) -> None:
    app = plain.bridge().asgi()
    async with app.lifespan(), connect(tap_asgi(app, tap), revision="2025-11-25") as mcp:
        app.sessions._cache.clear()  # as when many others were served meanwhile
        assert mcp.session_id is not None
        await app.sessions.tell_session(mcp.session_id, notification("notifications/tools/list_changed"))
        stream = await mcp.raw.get()
        async for note in stream.messages():
            assert note["method"] == "notifications/tools/list_changed"
            break
