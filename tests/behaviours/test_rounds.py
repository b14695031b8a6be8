"""Modern clients: discovery, metadata, headers, sealed rounds that run once, late streams, cancellation."""

import base64
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel, Field

from bridge import Bridge, Context, KeyRing, random_keys
from bridge.asking.seal import BROKEN_SEAL
from bridge.claims import Execution
from bridge.protocol.messages import encode
from bridge.stores import MemoryStore, Store
from bridge.testing import Client, accept, connect, decline
from bridge.transports import exchange
from bridge.wanted import Wanted
from tests.conftest import FLEET_KEYS, Serve

behaviour = pytest.mark.behaviour

META = "io.modelcontextprotocol/"


class Name(BaseModel):
    name: str


class Desk:
    """A server with one tool that asks, and what its runs did."""

    def __init__(self, store: Store | None = None, keys: KeyRing | None = None, **annotations: bool) -> None:
        self.effects: list[str] = []
        self.bridge = Bridge("rounds", version="1.2", elicitation=True, store=store, keys=keys, instructions="Ask.")
        self.started = anyio.Event()
        self.finish = anyio.Event()
        self.finish.set()
        self.cleaned: list[str] = []

        @self.bridge.tool(annotations=annotations)  # type: ignore[arg-type]
        async def greet(ctx: Context, greeting: str = "Hello") -> str:
            answer = await ctx.elicit("Who?", Name)
            self.started.set()
            try:
                await self.finish.wait()
                self.effects.append(f"{greeting} {answer.content.name if answer.content else answer.status}")
                return self.effects[-1]
            finally:
                self.cleaned.append("finally")

        @self.bridge.tool
        async def region(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none") -> str:
            return region

        @self.bridge.tool
        async def rows(n: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Rows"})]) -> int:
            return n


async def first_round(mcp: Client, **arguments: Any) -> dict[str, Any]:
    return await mcp.request("tools/call", {"name": "greet", "arguments": arguments})


def retry(first: dict[str, Any], answer: Any, **arguments: Any) -> dict[str, Any]:
    responses = dict.fromkeys(first["inputRequests"], answer)
    state = first["requestState"]
    return {"name": "greet", "arguments": arguments, "inputResponses": responses, "requestState": state}


@behaviour("MOD-1", "MOD-2")
async def test_discover_lists_every_revision_and_says_who_answers(serve: Serve) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        result = await mcp.request("server/discover", {})
    assert result["supportedVersions"] == ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    assert "tools" in result["capabilities"]
    assert result["instructions"] == "Ask."
    assert result["resultType"] == "complete"
    assert result["_meta"][META + "serverInfo"] == {"name": "rounds", "version": "1.2"}
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] == "public"


@behaviour("MOD-1", "MOD-3")
@pytest.mark.parametrize("version", ["2025-11-25", "2030-01-01"])
async def test_a_request_under_another_revision_is_told_the_one_that_requests_have(serve: Serve, version: str) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        message = {"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": {"_meta": {}}}
        message["params"]["_meta"] = {META + "protocolVersion": version, META + "clientCapabilities": {}}  # type: ignore[index]
        reply = await mcp.raw.post(message, {"mcp-protocol-version": version})
        assert reply.status == 400
        body = await reply.json()
    assert body["id"] == 7
    assert body["error"]["code"] == -32022
    assert body["error"]["data"] == {"supported": ["2026-07-28"], "requested": version}


@behaviour("MOD-2")
async def test_every_result_has_its_type_and_lists_have_cache_fields(serve: Serve) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        tools = await mcp.request("tools/list", {})
        assert tools["resultType"] == "complete"
        assert tools["ttlMs"] > 0
        assert tools["cacheScope"] == "public"
        first = await first_round(mcp)
        assert first["resultType"] == "input_required"
        assert "ttlMs" not in first
        assert first["_meta"][META + "serverInfo"]["name"] == "rounds"


@behaviour("MOD-3")
@pytest.mark.parametrize(
    ("meta", "status"),
    [
        ({}, 400),
        ({META + "clientCapabilities": {}}, 400),
        ({META + "protocolVersion": "2026-07-28"}, 400),
        ({META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}, 200),
    ],
)
async def test_missing_metadata_is_refused_but_client_info_may_be_absent(
    serve: Serve, meta: dict[str, Any], status: int
) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        message = {"jsonrpc": "2.0", "id": "m", "method": "server/discover", "params": {"_meta": meta}}
        reply = await mcp.raw.post(message)
        assert reply.status == status
        body = await reply.json()
        assert body["id"] == "m"
        if status == 400:
            assert body["error"]["code"] == -32602


@behaviour("MOD-3")
@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"])
async def test_an_unknown_method_gets_404(serve: Serve, method: str) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        message = mcp._completed({"method": method})
        reply = await mcp.raw.post(message)
        assert reply.status == 404
        assert (await reply.json())["error"]["code"] == -32601


@behaviour("MOD-4")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"mcp-method": ""}, 400),
        ({"mcp-method": "tools/list"}, 400),
        ({"mcp-method": "TOOLS/CALL"}, 400),
        ({"mcp-name": ""}, 400),
        ({"mcp-name": "other"}, 400),
        ({"mcp-name": " region "}, 200),
        ({"mcp-name": "=?base64?cmVnaW9u?="}, 200),
        ({"mcp-name": "=?base64?cmVnaW9?="}, 400),
        ({"mcp-protocol-version": ""}, 400),
        ({"mcp-protocol-version": "2025-11-25"}, 400),
        ({"MCP-METHOD": "tools/call"}, 200),
    ],
)
async def test_headers_must_be_there_and_match_the_body(serve: Serve, headers: dict[str, str], status: int) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": {"name": "region"}}), headers)
        assert reply.status == status
        if status == 400:
            assert (await reply.json())["error"]["code"] == -32020


@behaviour("MOD-4")
@pytest.mark.parametrize(
    ("tool", "arguments", "header", "status"),
    [
        ("region", {"region": "us"}, {"mcp-param-region": "us"}, 200),
        ("region", {"region": "us"}, {}, 400),
        ("region", {"region": "us"}, {"mcp-param-region": "eu"}, 400),
        ("region", {"region": "Grüße"}, {"mcp-param-region": "=?base64?R3LDvMOfZQ==?="}, 200),
        ("region", {"region": None}, {}, 200),
        ("region", {}, {}, 200),
        ("region", {}, {"mcp-param-region": "us"}, 400),
        ("rows", {"n": 42}, {"mcp-param-rows": "42.0"}, 200),
        ("rows", {"n": 42}, {"mcp-param-rows": "43"}, 400),
    ],
)
async def test_parameters_in_headers_match_the_arguments(
    serve: Serve, tool: str, arguments: dict[str, Any], header: dict[str, str], status: int
) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        message = mcp._completed({"method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        reply = await mcp.raw.post(message, header)
        assert reply.status == status


@behaviour("MOD-4")
async def test_notifications_get_202_and_responses_400(serve: Serve) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        reply = await mcp.raw.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
        assert reply.status == 202
        reply = await mcp.raw.post({"jsonrpc": "2.0", "id": 1, "result": {}})
        assert reply.status == 400


@behaviour("MOD-5")
async def test_a_state_holds_only_where_it_was_made(
    serve: Serve, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    keys = random_keys()
    desk = Desk(store, keys)
    async with (
        connect(await serve(desk.bridge)) as mcp,
        connect(await serve(Desk(MemoryStore(), keys).bridge)) as other,
    ):
        first = await first_round(mcp, greeting="Hi")
        good = retry(first, accept({"name": "Ann"}), greeting="Hi")
        middle = len(first["requestState"]) // 2
        flipped = "A" if first["requestState"][middle] != "A" else "B"
        changed = first["requestState"][:middle] + flipped + first["requestState"][middle + 1 :]
        bad = [
            {**good, "requestState": changed},
            {**good, "requestState": first["requestState"] + "-TAMPERED"},
            {**good, "requestState": "é"},
            {**good, "requestState": ""},
            {**good, "requestState": 7},
            {**good, "arguments": {"greeting": "Bye"}},
            {**good, "name": "region"},
        ]
        replies = [await mcp.raw.request({"method": "tools/call", "params": params}) for params in bad]
        replies.append(await other.raw.request({"method": "tools/call", "params": good}))
        assert {(r["error"]["code"], r["error"]["message"]) for r in replies} == {(-32602, BROKEN_SEAL)}
        assert desk.effects == []
        assert "changed since it was sealed" in caplog.text
        assert "made for another arguments" in caplog.text
        assert "made for another store" in caplog.text
        assert (await mcp.request("tools/call", good))["content"][0]["text"] == "Hi Ann"


@behaviour("MOD-5")
async def test_a_state_says_nothing_and_expires(serve: Serve) -> None:
    bridge = Bridge("rounds", elicitation=True, round_seconds=0.0)

    @bridge.tool
    async def greet(ctx: Context) -> str:
        await ctx.step("secret", lambda: "hunter2")
        return str(await ctx.elicit("Who?", Name))

    async with connect(await serve(bridge)) as mcp:
        first = await first_round(mcp)
        raw = base64.urlsafe_b64decode(first["requestState"] + "==")
        assert b"hunter2" not in raw
        assert b"Who" not in raw
        reply = await mcp.raw.request({"method": "tools/call", "params": retry(first, accept({"name": "Ann"}))})
    assert reply["error"]["message"] == BROKEN_SEAL


@behaviour("MOD-5")
async def test_an_old_key_still_opens_and_a_strange_one_does_not(serve: Serve) -> None:
    old, new = bytes(32), bytes(31) + b"\1"
    store = MemoryStore()
    before, after = Desk(store, KeyRing([old])), Desk(store, KeyRing([new, old]))
    strange = Desk(store, KeyRing([new]))
    async with connect(await serve(before.bridge)) as mcp:
        first = await first_round(mcp)
    async with connect(await serve(strange.bridge)) as mcp:
        reply = await mcp.raw.request({"method": "tools/call", "params": retry(first, accept({"name": "Ann"}))})
        assert reply["error"]["message"] == BROKEN_SEAL
    async with connect(await serve(after.bridge)) as mcp:
        assert (await mcp.request("tools/call", retry(first, accept({"name": "Ann"}))))["content"]


@behaviour("MOD-6")
async def test_answers_without_a_state_are_ignored(serve: Serve) -> None:
    desk = Desk()
    async with connect(await serve(desk.bridge)) as mcp:
        params = {"name": "greet", "arguments": {}, "inputResponses": {"elicitation-1": accept({"name": "Eve"})}}
        assert (await mcp.request("tools/call", params))["resultType"] == "input_required"
    assert desk.effects == []


@behaviour("MOD-7")
@pytest.mark.parametrize("identity", [0, 1, "1", "", -5, 2**53])
async def test_the_id_is_echoed_with_its_type(serve: Serve, identity: Any) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        reply = await mcp.raw.request({"id": identity, "method": "tools/call", "params": {"name": "greet"}})
    assert reply["id"] == identity
    assert type(reply["id"]) is type(identity)


@behaviour("MOD-8")
async def test_an_answered_round_runs_once_whoever_sends_it_again(serve: Serve, store: Store) -> None:
    desk = Desk(store)
    nodes = [await serve(desk.bridge)]
    if store.shared:
        nodes.append(await serve(desk.bridge))
    replies: list[str] = []
    async with connect(nodes[0]) as first_mcp, connect(nodes[-1]) as second_mcp:
        first = await first_round(first_mcp)
        desk.finish = anyio.Event()

        async def send(mcp: Client) -> None:
            result = await mcp.request("tools/call", retry(first, accept({"name": "Ann"})))
            replies.append(result["content"][0]["text"])

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for mcp in (first_mcp, second_mcp, first_mcp, second_mcp):
                    tasks.start_soon(send, mcp)
                await desk.started.wait()
                desk.finish.set()
        assert replies == ["Hello Ann"] * 4
        await send(second_mcp)
        assert replies[-1] == "Hello Ann"
        other = await first_mcp.request("tools/call", retry(first, decline()))
    assert other["isError"]
    assert "already answered" in other["content"][0]["text"]
    assert desk.effects == ["Hello Ann"]


@behaviour("MOD-8", "MOD-10")
@pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)
@pytest.mark.parametrize("stays", [True, False], ids=["one stays", "both leave"])
async def test_a_round_is_cancelled_only_once_its_last_waiter_at_any_node_has_gone(
    serve: Serve, store: Store, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, come = anyio.Event(), Wanted.come

    async def told(self: Wanted, round_id: str) -> None:
        await come(self, round_id)
        waits.set()

    monkeypatch.setattr(Wanted, "come", told)
    monkeypatch.setattr(exchange, "LATE_SECONDS", 0.0)
    desk = Desk(store, FLEET_KEYS)
    here, there = await serve(desk.bridge), await serve(desk.bridge)
    async with connect(here) as mcp, connect(there) as other:
        first = await first_round(mcp)
        desk.finish = anyio.Event()
        request = mcp._completed({"method": "tools/call", "params": retry(first, accept({"name": "Ann"}))})
        with anyio.fail_after(20):
            owner = await mcp.raw.post(request)
            await desk.started.wait()
            waiter = await other.raw.post(request)
            await waits.wait()
            owner.disconnect()
            if not stays:
                waiter.disconnect()
                while not desk.cleaned:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            desk.finish.set()
            heard = [message async for message in waiter.messages()]
    assert desk.effects == (["Hello Ann"] if stays else [])
    assert ("Hello Ann" in str(heard)) is stays


@behaviour("MOD-8", "ASK-4")
async def test_a_round_that_asks_again_is_stored_like_any_other(serve: Serve) -> None:
    bridge = Bridge("rounds", elicitation=True)
    runs = 0

    @bridge.tool
    async def greet(ctx: Context) -> str:
        nonlocal runs
        runs += 1
        return f"{await ctx.elicit('One?', bool)} {await ctx.elicit('Two?', bool)}"

    async with connect(await serve(bridge)) as mcp:
        first = await first_round(mcp)
        again = retry(first, accept({"confirm": True}))
        second = await mcp.request("tools/call", again)
        assert second == await mcp.request("tools/call", again)
        assert runs == 2


@behaviour("MOD-10")
@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_round_that_was_cut_off_is_not_run_again_unless_the_tool_allows_it(
    serve: Serve, store: Store, repeatable: bool
) -> None:
    desk = Desk(store, idempotentHint=repeatable)
    async with connect(await serve(desk.bridge)) as mcp:
        first = await first_round(mcp)
        desk.finish = anyio.Event()
        again = retry(first, accept({"name": "Ann"}))
        async with anyio.create_task_group() as tasks:
            gone = anyio.Event()
            tasks.start_soon(_leave, mcp, again, gone)
            with anyio.fail_after(20):
                await desk.started.wait()
                gone.set()
                await _until(lambda: len(desk.cleaned) == 1)
        desk.finish.set()
        result = await mcp.request("tools/call", again)
    if repeatable:
        assert result["content"][0]["text"] == "Hello Ann"
        assert desk.effects == ["Hello Ann"]
    else:
        assert result["isError"]
        assert result["_meta"]["mcp-session-bridge/code"] == "INTERRUPTED"
        assert "may have partly run" in result["content"][0]["text"]
        assert desk.effects == []


async def _leave(mcp: Client, params: dict[str, Any], gone: anyio.Event) -> None:
    """Send a call over a stream and hang up."""
    async with anyio.create_task_group() as tasks:

        async def hang_up() -> None:
            await gone.wait()
            for hang_up_now in hung:
                hang_up_now()
            tasks.cancel_scope.cancel()

        hung: list[Any] = []
        tasks.start_soon(hang_up)
        original = mcp._http._serve

        async def serve(scope: Any, body: bytes, reply: Any, leave: anyio.Event) -> None:
            hung.append(leave.set)
            await original(scope, body, reply, leave)

        mcp._http._serve = serve  # type: ignore[method-assign]
        try:
            await mcp.raw.post(mcp._completed({"method": "tools/call", "params": params}))
        finally:
            mcp._http._serve = original  # type: ignore[method-assign]


async def _until(true: Any) -> None:
    while not true():
        await anyio.lowlevel.checkpoint()


@behaviour("MOD-10")
async def test_a_client_that_goes_away_cancels_its_call_once_nobody_waits_for_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, leave = anyio.Event(), Execution.leave

    def noted(self: Execution) -> None:
        leave(self)
        left.set()

    monkeypatch.setattr(Execution, "leave", noted)
    desk = Desk()
    app = await serve(desk.bridge)
    async with connect(app) as leaving, connect(app) as staying:
        first = await first_round(leaving)
        desk.finish = anyio.Event()
        again = retry(first, accept({"name": "Ann"}))
        gone = anyio.Event()
        results: list[Any] = []

        async def stay() -> None:
            results.append(await staying.request("tools/call", again))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_leave, leaving, again, gone)
                await desk.started.wait()
                tasks.start_soon(stay)
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                gone.set()
                await left.wait()
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                assert desk.cleaned == [], "one still waits"
                desk.finish.set()
    assert results[0]["content"][0]["text"] == "Hello Ann"


@behaviour("MOD-9")
async def test_a_notification_or_a_long_silence_opens_a_stream(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LATE_SECONDS", 0.05)
    monkeypatch.setattr(exchange, "COMMENT_SECONDS", 0.05)
    bridge = Bridge("streams")
    go_on = anyio.Event()

    @bridge.tool
    async def quick() -> str:
        return "quick"

    @bridge.tool
    async def reports(ctx: Context) -> str:
        await ctx.progress(1, 2, "half")
        return "reported"

    @bridge.tool
    async def slow() -> str:
        await go_on.wait()
        return "slow"

    @bridge.tool
    async def fails(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.elicit("Never?", bool)
        return ""

    async with connect(await serve(bridge)) as mcp:
        call = {"method": "tools/call", "params": {"name": "quick"}}
        assert (await mcp.raw.post(mcp._completed(call))).headers["content-type"] == "application/json"
        params = {"name": "reports", "_meta": {"progressToken": "p"}}
        reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": params}))
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.headers["x-accel-buffering"] == "no"
        assert reply.headers["cache-control"] == "no-cache, no-transform"
        messages = [message async for message in reply.messages()]
        assert messages[0]["params"] == {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}
        assert messages[1]["result"]["content"][0]["text"] == "reported"
        assert reply.raw.startswith(b":")
        slow_call = mcp._completed({"method": "tools/call", "params": {"name": "slow"}})
        with anyio.fail_after(20):
            reply = await mcp.raw.post(slow_call)
            assert reply.headers["content-type"] == "text/event-stream"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reply.closed)
                while b": still here" not in reply.raw:
                    await anyio.lowlevel.checkpoint()
                go_on.set()
            assert [message["result"]["content"][0]["text"] for _, message in reply.events] == ["slow"]


@behaviour("MOD-9")
async def test_no_stream_is_opened_where_the_client_does_not_take_one(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "LATE_SECONDS", 0.0)
    bridge, late = Bridge("streams"), anyio.Event()
    beat = exchange.Exchange._on_beat

    async def noted(self: exchange.Exchange) -> None:
        # Past the moment at which a stream would have been opened.
        await beat(self)
        late.set()

    monkeypatch.setattr(exchange.Exchange, "_on_beat", noted)

    @bridge.tool
    async def slow(ctx: Context) -> str:
        await ctx.progress(1)
        await late.wait()
        return "slow"

    async with connect(await serve(bridge), headers={"accept": "application/json"}) as mcp:
        params = {"name": "slow", "_meta": {"progressToken": 1}}
        reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": params}))
        assert reply.headers["content-type"] == "application/json"
        assert (await reply.json())["result"]["content"][0]["text"] == "slow"


@behaviour("MOD-13")
async def test_what_belongs_to_sessions_is_ignored_or_refused(serve: Serve) -> None:
    async with connect(await serve(Desk().bridge)) as mcp:
        stray = {"mcp-session-id": "no-such-session-anywhere", "last-event-id": "x:1"}
        reply = await mcp.raw.post(mcp._completed({"method": "tools/list"}), stray)
        assert reply.status == 200
        assert "mcp-session-id" not in reply.headers
        assert (await mcp.raw.get()).status == 405
        assert (await mcp.raw.delete()).status == 405


@behaviour("MOD-2")
async def test_a_client_that_declares_no_form_is_told_what_it_lacks(serve: Serve) -> None:
    desk = Desk()
    app = await serve(desk.bridge)
    for capabilities in ({}, {"elicitation": {"url": {}}}):
        async with connect(app, capabilities=capabilities) as mcp:
            assert "sendElicitationResult" not in [tool["name"] for tool in await mcp.tools.list()]
            reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": {"name": "greet"}}))
            assert reply.status == 400
            error = (await reply.json())["error"]
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert encode(desk.effects) == b"[]"
