"""What old clients may do, and what operators decide about them."""

import re
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge import Bridge, ConfigurationError, Context
from bridge.asking.routes import ClientRule, RouteName
from bridge.errors import StoreUnavailable
from bridge.pending import SessionPending
from bridge.routes.push import PushLimits
from bridge.sessions import Sessions
from bridge.stores import Store
from bridge.testing import Client, RpcError, accept, connect
from bridge.upstreams.results import ToolResult, audio, embedded, image, link, text
from tests.conftest import Serve

behaviour = pytest.mark.behaviour

TOOL = "sendElicitationResult"
SECONDS = 10


class Name(BaseModel):
    name: str


class Greeter:
    """A server that asks for a name, and what it did."""

    def __init__(self, store: Store | None = None, **options: Any) -> None:
        self.greeted: list[str] = []
        self.steps: list[str] = []
        self.bridge = Bridge("old", elicitation=True, store=store, **options)

        @self.bridge.tool
        async def greet(ctx: Context, greeting: str = "Hello") -> str:
            await ctx.step("prepare", lambda: self.steps.append(greeting))
            answer = await ctx.elicit("Who?", Name)
            self.greeted.append(f"{greeting} {answer.content.name if answer.accepted else answer.status}")
            return self.greeted[-1]

        @self.bridge.tool
        async def chatty(ctx: Context) -> str:
            for level in ("debug", "info", "warning", "error"):
                await ctx.log(level, level, "chatty")
            await ctx.progress(1, 2, "half")
            return "said"

        @self.bridge.tool
        async def page(ctx: Context) -> str:
            answer = await ctx.elicit_url("Sign in", "https://example.com/in", elicitation_id="flow-1")
            return f"{answer.status} {answer.source}"

        @self.bridge.tool(annotations={"readOnlyHint": True})
        async def look(ctx: Context) -> str:
            return str((await ctx.elicit("Which?", Name)).content)


async def call(mcp: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    return await mcp.request("tools/call", {"name": tool, "arguments": arguments})


def elicit_id(result: dict[str, Any]) -> str:
    found: str = result["_meta"]["elicitationPending"]["elicitId"]
    return found


async def pass_on(mcp: Client, pending: str, **content: Any) -> dict[str, Any]:
    return await call(mcp, TOOL, elicitId=pending, action="accept", content=content)


@behaviour("LEG-6")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_ping_levels_and_subscriptions_work(serve: Serve, revision: str) -> None:
    greeter = Greeter()

    @greeter.bridge.resource("notes://today")
    def today() -> str:
        return "sun"

    async with connect(await serve(greeter.bridge), revision=revision) as mcp:
        assert await mcp.request("ping", {}) == {}
        await mcp.tools.call("chatty")
        assert _levels(mcp) == ["info", "warning", "error"]
        assert await mcp.request("logging/setLevel", {"level": "error"}) == {}
        await mcp.tools.call("chatty")
        assert _levels(mcp) == ["error"]
        with pytest.raises(RpcError) as wrong:
            await mcp.request("logging/setLevel", {"level": "loud"})
        assert wrong.value.code == -32602
        stream = await mcp.raw.get()
        messages = stream.messages()
        assert await mcp.request("resources/subscribe", {"uri": "notes://today"}) == {}
        await greeter.bridge.resource_updated("notes://other")
        await greeter.bridge.resource_updated("notes://today")
        with anyio.fail_after(SECONDS):
            assert (await anext(messages))["params"] == {"uri": "notes://today"}
            assert await mcp.request("resources/unsubscribe", {"uri": "notes://today"}) == {}
            await greeter.bridge.resource_updated("notes://today")
            await greeter.bridge.list_changed("prompts")
            assert (await anext(messages))["method"] == "notifications/prompts/list_changed"
        await mcp.notify("notifications/roots/list_changed")


def _levels(mcp: Client) -> list[str]:
    found = [m["params"]["level"] for m in mcp.notifications if m["method"] == "notifications/message"]
    mcp.notifications.clear()
    return found


@behaviour("LEG-6")
async def test_what_is_registered_while_serving_is_told_of(serve: Serve, store: Store) -> None:
    bridge = Bridge("old", store=store)
    apps = [await serve(bridge)]
    if store.shared:
        apps.append(await serve(bridge))
    async with connect(apps[-1], revision="2025-06-18") as mcp:
        messages = (await mcp.raw.get()).messages()

        @bridge.tool
        async def late() -> str:
            return "late"

        with anyio.fail_after(SECONDS):
            assert (await anext(messages))["method"] == "notifications/tools/list_changed"
        assert [tool["name"] for tool in await mcp.tools.list()] == ["late"]


@behaviour("LEG-8")
async def test_a_batch_is_handled_in_full_under_2025_03_26(serve: Serve, store: Store) -> None:
    greeter = Greeter(store)
    async with connect(await serve(greeter.bridge), revision="2025-03-26") as mcp:
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            {"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": {"name": "greet", "arguments": {}}},
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 7, "result": {}},
            {"jsonrpc": "2.0", "id": 2, "method": 5},
            [],
            {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
        ]
        reply = await mcp.raw.post(_bytes(batch))
        assert reply.status == 200
        replies: Any = await reply.json()
        assert [entry.get("id") for entry in replies] == [1, "1", 1, 2, None, 3]
        assert replies[0]["result"] == {}
        assert [entry["error"]["code"] for entry in replies[2:]] == [-32600, -32600, -32600, -32601]
        pending = elicit_id(replies[1]["result"])
        assert (await pass_on(mcp, pending, name="Ann"))["content"][0]["text"] == "Hello Ann"
        only = [{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]
        assert (await mcp.raw.post(_bytes(only))).status == 202
    assert greeter.greeted == ["Hello Ann"]


@behaviour("LEG-8")
async def test_a_batch_loses_only_what_needs_a_store_that_is_away(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: Any) -> None:
        raise StoreUnavailable("the store is away")

    greeter = Greeter()
    async with connect(await serve(greeter.bridge), revision="2025-03-26") as mcp:
        monkeypatch.setattr(Sessions, "answer", away)
        monkeypatch.setattr(SessionPending, "delivered", away)
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greet", "arguments": {}}},
            {"jsonrpc": "2.0", "id": "s", "result": {}},
            {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        ]
        reply = await mcp.raw.post(_bytes(batch))
        replies: Any = await reply.json()
        await reply.closed()
        assert reply.status == 200
        assert [entry["id"] for entry in replies] == [1, 2]
        assert elicit_id(replies[0]["result"])
    said = [record.getMessage() for record in caplog.records if "the store is away" in record.getMessage()]
    assert said == [
        "a message was lost: the store is away",
        "a reply was delivered, and the store does not take it: the store is away",
    ]


@behaviour("LEG-8")
async def test_what_is_wrapped_sees_the_request_that_a_batch_came_by() -> None:
    app = Greeter().bridge.asgi()
    run, teams = app.upstream.run, list[bytes]()

    async def noting(call: Any) -> Any:
        teams.append(dict(call.http["headers"])[b"x-team"])
        return await run(call)

    app.upstream.run = noting  # type: ignore[method-assign]
    async with app.lifespan(), connect(app, revision="2025-03-26") as mcp:
        called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "chatty"}}
        replies: Any = await (await mcp.raw.post(_bytes([called]), {"x-team": "blue"})).json()
        assert replies[0]["result"]["content"][0]["text"] == "said"
    assert teams == [b"blue"]


@behaviour("LEG-8")
@pytest.mark.parametrize(
    ("revision", "batch"),
    [
        ("2024-11-05", [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "act"}}]),
        ("2025-06-18", [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "act"}}]),
        ("2025-11-25", [{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "act"}}]),
        ("2025-03-26", []),
        ("2025-03-26", [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(51)]),
        (
            "2025-03-26",
            [
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "act"}},
                {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}},
            ],
        ),
    ],
)
async def test_other_batches_are_refused_and_nothing_of_them_is_done(
    serve: Serve, revision: str, batch: list[Any]
) -> None:
    bridge = Bridge("old")
    acted: list[int] = []

    @bridge.tool
    async def act() -> str:
        acted.append(1)
        return "acted"

    async with connect(await serve(bridge), revision=revision) as mcp:
        reply = await mcp.raw.post(_bytes(batch))
        assert reply.status == 400
        body = await reply.json()
        assert body["error"]["code"] == -32600
        assert "id" not in body
        assert await mcp.request("ping", {}) == {}, "the session lives on"
    assert acted == []


def _bytes(batch: list[Any]) -> bytes:
    import msgspec

    return msgspec.json.encode(batch)


@behaviour("LEG-9")
async def test_a_second_request_with_an_id_in_use_is_refused_and_the_first_untouched(serve: Serve) -> None:
    greeter = Greeter()
    async with connect(await serve(greeter.bridge), revision="2025-06-18") as mcp:
        params = {"name": "greet", "arguments": {}}
        first = await mcp.raw.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
        messages = first.messages()
        question = await anext(messages)
        second = await mcp.raw.post({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {}})
        assert second.status == 200
        assert (await second.json())["error"]["code"] == -32600
        other = await mcp.raw.request({"id": "5", "method": "ping"})
        assert other["result"] == {}
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": accept({"name": "Ann"})}
        assert (await mcp.raw.post(answer)).status == 202
        assert (await anext(messages))["result"]["content"][0]["text"] == "Hello Ann"


@behaviour("LEG-10")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_everything_a_native_server_has_is_shaped_for_each_revision(serve: Serve, revision: str) -> None:
    icons = [{"src": "https://example.com/i.png"}]
    bridge = Bridge("old", version="1", title="Old", instructions="Use it.")

    @bridge.tool(title="Rich", annotations={"readOnlyHint": True}, icons=icons, meta={"x/y": 1})
    async def rich() -> ToolResult:
        """Every kind of content."""
        blocks = [
            {**text("t"), "_meta": {"x/y": 1}},
            {**image(b"i", "image/png"), "annotations": {"priority": 1, "lastModified": "2026-01-01T00:00:00Z"}},
            audio(b"a", "audio/wav"),
            link("notes://today", "today", title="Today", icons=icons),
            embedded("notes://today", "sun"),
        ]
        return ToolResult(content=blocks, structured={"a": 1})

    @bridge.tool
    async def numbers() -> list[int]:
        """A result that is no object."""
        return [1, 2]

    @bridge.prompt(title="Hi", icons=icons)
    async def hello(name: str) -> list[Any]:
        """Say hello."""
        return [f"Hello {name}", audio(b"a", "audio/wav")]

    @bridge.resource("notes://today", title="Today", mime_type="text/plain", icons=icons)
    def today() -> str:
        """Today's note."""
        return "sun"

    @bridge.resource("notes://{day}")
    def note(day: str) -> dict[str, str]:
        """A day's note."""
        return {"day": day}

    @bridge.completion("hello", "name")
    def names(value: str, given: dict[str, str]) -> list[str]:
        return [name for name in ("Ann", "Anton", "Bob") if name.startswith(value)]

    async with connect(await serve(bridge), revision=revision) as mcp:
        old = revision < "2025-06-18"
        tools = {tool["name"]: tool for tool in await mcp.tools.list()}
        assert ("title" in tools["rich"]) is not old
        assert ("annotations" in tools["rich"]) is (revision != "2024-11-05")
        assert ("icons" in tools["rich"]) is (revision >= "2025-11-25")
        kinds = [block["type"] for block in (await mcp.tools.call("rich")).raw["content"]]
        assert kinds[2] == ("text" if revision == "2024-11-05" else "audio")
        assert kinds[3] == ("text" if old else "resource_link")
        result = await mcp.tools.call("numbers")
        assert result.json() == [1, 2]
        assert ("outputSchema" in tools["numbers"]) is not old
        prompts = (await mcp.request("prompts/list", {}))["prompts"]
        assert prompts[0]["arguments"] == [{"name": "name", "required": True}]
        got = await mcp.request("prompts/get", {"name": "hello", "arguments": {"name": "Ann"}})
        assert got["messages"][0]["content"]["text"] == "Hello Ann"
        listed = await mcp.request("resources/list", {})
        assert [resource["uri"] for resource in listed["resources"]] == ["notes://today"]
        templates = await mcp.request("resources/templates/list", {})
        assert templates["resourceTemplates"][0]["uriTemplate"] == "notes://{day}"
        read = await mcp.request("resources/read", {"uri": "notes://2026-01-01"})
        assert read["contents"][0]["text"] == '{"day":"2026-01-01"}'
        with pytest.raises(RpcError) as missing:
            await mcp.request("resources/read", {"uri": "files://x"})
        assert missing.value.code == (-32602 if revision == "2026-07-28" else -32002)
        assert missing.value.data == {"uri": "files://x"}
        ref = {"type": "ref/prompt", "name": "hello"}
        completed = await mcp.request("completion/complete", {"ref": ref, "argument": {"name": "name", "value": "An"}})
        assert completed["completion"]["values"] == ["Ann", "Anton"]


@behaviour("LEG-10")
async def test_lists_come_in_pages(serve: Serve) -> None:
    bridge = Bridge("old", page_size=2)
    for number in range(5):
        bridge.tool(name=f"t{number}")(lambda: None)
    async with connect(await serve(bridge)) as mcp:
        names: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = await mcp.request("tools/list", params)
            assert page["cacheScope"] == "public"
            names += [tool["name"] for tool in page["tools"]]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        assert names == ["t0", "t1", "t2", "t3", "t4"]
        for bad in ("", "x", "OTk5", 7, "=" * 100):
            with pytest.raises(RpcError) as wrong:
                await mcp.request("tools/list", {"cursor": bad})
            assert wrong.value.code == -32602


@behaviour("MOD-11")
async def test_logs_go_to_a_modern_client_only_when_it_asks_for_a_level(serve: Serve) -> None:
    async with connect(await serve(Greeter().bridge)) as mcp:
        await mcp.tools.call("chatty")
        assert mcp.notifications == []
        level = "io.modelcontextprotocol/logLevel"
        await mcp.request("tools/call", {"name": "chatty", "_meta": {level: "warning"}})
        assert _levels(mcp) == ["warning", "error"]
        for bad in ("loud", 3, []):
            with pytest.raises(RpcError) as wrong:
                await mcp.request("tools/call", {"name": "chatty", "_meta": {level: bad}})
            assert wrong.value.code == -32602


@behaviour("MOD-15", "MOD-16")
async def test_only_calls_ask_and_never_with_a_state_alone(serve: Serve) -> None:
    greeter = Greeter()

    @greeter.bridge.prompt()
    async def asks(ctx: Context) -> str:
        return f"Hello {(await ctx.elicit('Who?', Name)).content.name}"

    @greeter.bridge.resource("notes://mine")
    async def mine(ctx: Context) -> str:
        return f"Note of {(await ctx.elicit('Whose?', Name)).content.name}"

    async with connect(await serve(greeter.bridge)) as mcp:
        for method, params in (
            ("tools/call", {"name": "greet"}),
            ("prompts/get", {"name": "asks"}),
            ("resources/read", {"uri": "notes://mine"}),
        ):
            first = await mcp.request(method, params)
            assert first["resultType"] == "input_required"
            assert first["inputRequests"]
            answers = dict.fromkeys(first["inputRequests"], accept({"name": "Ann"}))
            again = {**params, "inputResponses": answers, "requestState": first["requestState"]}
            result = await mcp.request(method, again)
            assert result["resultType"] == "complete"
            assert "Ann" in str(result)
            if method == "resources/read":
                assert result["ttlMs"] == 0
        for method in ("tools/list", "prompts/list", "resources/list", "server/discover"):
            assert (await mcp.request(method, {}))["resultType"] == "complete"


@behaviour("PSH-7")
async def test_a_call_ends_at_its_soft_deadline_and_an_equal_one_goes_on(serve: Serve, store: Store) -> None:
    greeter = Greeter(store, push=PushLimits(soft_deadline_seconds=0.2))
    async with connect(await serve(greeter.bridge), revision="2025-06-18") as mcp:
        params = {"name": "greet", "arguments": {"greeting": "Hi"}}
        first = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": params}))
        messages = [message async for message in first.messages()]
        question, ended = messages[0], messages[-1]["result"]
        assert ended["isError"]
        told = ended["content"][0]["text"]
        assert re.search("Nobody has answered yet.*nothing was done.*stays open until.*same arguments", told)
        late = {"jsonrpc": "2.0", "id": question["id"], "result": accept({"name": "Ann"})}
        assert (await mcp.raw.post(late)).status == 202
        assert greeter.greeted == [], "a late answer is never acted on by itself"
        result = await call(mcp, "greet", greeting="Hi")
        assert result["content"][0]["text"] == "Hi Ann"
        assert greeter.steps == ["Hi"], "the call goes on, with its steps"
        again = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": params}))
        assert (await anext(again.messages()))["method"] == "elicitation/create", "an answer is used once"


@behaviour("PSH-7")
async def test_a_soft_deadline_can_be_set_for_some_clients(serve: Serve) -> None:
    rule = ClientRule(name="hurried", soft_deadline_seconds=0.1)
    greeter = Greeter(client_rules=(rule,))
    async with connect(
        await serve(greeter.bridge), revision="2025-06-18", info={"name": "hurried", "version": "1"}
    ) as mcp:
        reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": {"name": "greet"}}))
        with anyio.fail_after(SECONDS):
            messages = [message async for message in reply.messages()]
        assert messages[-1]["result"]["_meta"]["mcp-session-bridge/code"] == "ELICITATION_TIMEOUT"


@behaviour("PSH-8")
async def test_a_url_question_has_an_id_and_its_completion_is_told(serve: Serve, store: Store) -> None:
    greeter = Greeter(store)
    capabilities = {"elicitation": {"form": {}, "url": {}}}
    app = await serve(greeter.bridge)
    async with connect(app, revision="2025-11-25", capabilities=capabilities) as mcp:
        stream = (await mcp.raw.get()).messages()
        mcp.on_elicitation(lambda asked: accept())
        assert (await mcp.tools.call("page")).text() == "accept form"
        asked = mcp.asked[0].params
        assert asked["mode"] == "url"
        assert asked["url"] == "https://example.com/in"
        assert asked["elicitationId"] == "flow-1"
        assert await greeter.bridge.complete_url("flow-1")
        with anyio.fail_after(SECONDS):
            told = await anext(stream)
        assert told["method"] == "notifications/elicitation/complete"
        assert told["params"] == {"elicitationId": "flow-1"}
        assert not await greeter.bridge.complete_url("flow-1")
        assert not await greeter.bridge.complete_url("no such flow")
    async with connect(app, capabilities=capabilities) as modern:
        modern.on_elicitation(lambda asked: accept())
        assert (await modern.tools.call("page")).text() == "accept form"
        assert "elicitationId" not in modern.asked[0].params


@behaviour("CHT-13", "CHT-1")
@pytest.mark.parametrize("client", [{"revision": "2025-06-18"}, {"revision": "2024-11-05"}, {"revision": "2025-11-25"}])
async def test_a_url_question_goes_by_chat_where_no_url_can_be_opened(serve: Serve, client: Any) -> None:
    greeter = Greeter()
    async with connect(await serve(greeter.bridge), **client) as mcp:
        result = await call(mcp, "page")
        assert "https://example.com/in" in result["content"][0]["text"]
        assert "says it is done" in result["content"][0]["text"]
        assert result["_meta"]["elicitationPending"]["url"] == "https://example.com/in"
        done = await call(mcp, TOOL, elicitId=elicit_id(result), action="accept")
        assert done["content"][0]["text"] == "accept chat"


@behaviour("CHT-1")
async def test_a_rule_puts_any_client_on_chat_a_modern_one_too(serve: Serve, store: Store) -> None:
    rules = (
        ClientRule(name="claims-too-much", version="2", route=RouteName.CHAT),
        ClientRule(name="forbidden", route=RouteName.REFUSE),
    )
    greeter = Greeter(store, client_rules=rules)
    app = await serve(greeter.bridge)
    for revision in ("2025-11-25", "2026-07-28"):
        info = {"name": "claims-too-much", "version": "2"}
        async with connect(app, revision=revision, info=info) as mcp:
            page = await mcp.request("tools/list", {})
            assert TOOL in [tool["name"] for tool in page["tools"]]
            if revision == "2026-07-28":
                assert page["cacheScope"] == "private"
            mcp.on_elicitation(lambda asked: accept({"name": "Ann"}))
            assert (await mcp.tools.call("greet", {"greeting": revision})).text() == f"{revision} Ann"
        async with connect(app, revision=revision, info={"name": "claims-too-much", "version": "3"}) as mcp:
            assert TOOL not in [tool["name"] for tool in await mcp.tools.list()]
        async with connect(app, revision=revision, info={"name": "forbidden", "version": "1"}) as mcp:
            assert TOOL not in [tool["name"] for tool in await mcp.tools.list()]
            if revision == "2026-07-28":
                with pytest.raises(RpcError) as refused:
                    await call(mcp, "greet")
                assert refused.value.code == -32021
            else:
                assert (await call(mcp, "greet"))["isError"]
    assert greeter.greeted == ["2025-11-25 Ann", "2026-07-28 Ann"]


@behaviour("CHT-1", "CHT-8")
async def test_a_sealed_elicit_id_needs_no_session_and_runs_once(serve: Serve, store: Store) -> None:
    greeter = Greeter(store, client_rules=(ClientRule(name="x", route=RouteName.CHAT),))
    app = await serve(greeter.bridge)
    info = {"name": "x", "version": "1"}
    async with connect(app, info=info) as mcp, connect(app, info=info) as other:
        pending = elicit_id(await call(mcp, "greet"))
        wrong = await pass_on(mcp, pending, name=7)
        assert wrong["_meta"]["mcp-session-bridge/code"] == "INVALID_INPUT"
        results = [await pass_on(client, pending, name="Ann") for client in (other, mcp, other)]
        assert {result["content"][0]["text"] for result in results} == {"Hello Ann"}
        late = await pass_on(mcp, pending, name="Eve")
        assert late["content"][0]["text"].startswith("No pending elicitation found")
        changed = await pass_on(mcp, pending[:-4] + "AAAA", name="Ann")
        assert changed["content"][0]["text"].startswith("No pending elicitation found")
    assert greeter.greeted == ["Hello Ann"]


@behaviour("CHT-11")
async def test_a_waiting_call_and_the_answering_one_get_the_same_result(serve: Serve, store: Store) -> None:
    greeter = Greeter(store, fallback="wait", wait_seconds=SECONDS)
    async with connect(await serve(greeter.bridge), revision="2025-03-26") as mcp:
        reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": {"name": "greet"}}))
        messages = reply.messages()
        with anyio.fail_after(SECONDS):
            log = await anext(messages)
            assert log["method"] == "notifications/message"
            assert log["params"]["level"] == "warning"
            assert log["params"]["logger"] == "elicitation"
            data = log["params"]["data"]
            assert data["type"] == "elicitation_fallback"
            assert {"elicitId", "message", "schema", "instructions"} <= set(data)
            answered = await pass_on(mcp, data["elicitId"], name="Ann")
            waited = (await anext(messages))["result"]
        assert answered == waited
        assert answered["content"][0]["text"] == "Hello Ann"
    assert greeter.greeted == ["Hello Ann"]


@behaviour("CHT-11")
async def test_a_waiting_call_ends_with_the_asking_result_when_nobody_answers(serve: Serve) -> None:
    greeter = Greeter(fallback="wait", wait_seconds=0.1)
    async with connect(await serve(greeter.bridge), revision="2025-03-26") as mcp:
        result = await call(mcp, "greet")
        assert not result.get("isError")
        assert (await pass_on(mcp, elicit_id(result), name="Ann"))["content"][0]["text"] == "Hello Ann"


@behaviour("CHT-11", "ASK-20")
async def test_with_the_fallback_off_the_call_fails_and_says_why(serve: Serve) -> None:
    greeter = Greeter(fallback="off")
    async with connect(await serve(greeter.bridge), revision="2025-03-26") as mcp:
        assert TOOL not in [tool["name"] for tool in await mcp.tools.list()]
        result = await mcp.tools.call("greet")
        assert result.error_code == "ELICITATION_NOT_SUPPORTED"
        assert 'fallback="result"' in result.text()


@behaviour("CHT-12")
async def test_consent_by_chat_can_be_denied_for_tools_that_change_something(serve: Serve) -> None:
    greeter = Greeter(chat_consent="deny")

    @greeter.bridge.tool(annotations={"destructiveHint": False})
    async def add(ctx: Context) -> str:
        return str((await ctx.elicit("Which?", Name)).content)

    async with connect(await serve(greeter.bridge), revision="2025-03-26") as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": "Ann"}))
        denied = await mcp.tools.call("greet")
        assert denied.error_code == "ELICITATION_NOT_SUPPORTED"
        assert "chat_consent" in denied.text()
        assert "shows forms" in denied.text()
        assert (await mcp.tools.call("look")).text() == "name='Ann'"
        assert (await mcp.tools.call("add")).text() == "name='Ann'"
    assert greeter.greeted == []
    async with connect(await serve(Greeter().bridge), revision="2025-03-26") as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": "Ann"}))
        assert (await mcp.tools.call("greet")).text() == "Hello Ann", "allow is the default"


@behaviour("CHT-15")
def test_a_native_tool_of_the_fallbacks_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=TOOL):
        Bridge("old").tool(name=TOOL)(lambda: None)


@behaviour("CHT-10")
async def test_duplicates_can_be_separate_calls(serve: Serve) -> None:
    bridge = Bridge("old", elicitation=True)

    @bridge.tool(duplicates="separate")
    async def greet(ctx: Context) -> str:
        return str((await ctx.elicit("Who?", Name)).content)

    async with connect(await serve(bridge), revision="2025-03-26") as mcp:
        assert elicit_id(await call(mcp, "greet")) != elicit_id(await call(mcp, "greet"))


@behaviour("TRN-6")
async def test_shutdown_ends_streams_gives_running_calls_time_and_keeps_sessions(serve: Serve, store: Store) -> None:
    bridge = Greeter(store).bridge
    go_on = anyio.Event()
    begun = anyio.Event()

    @bridge.tool
    async def slow() -> str:
        begun.set()
        await go_on.wait()
        return "slow"

    app = bridge.asgi()
    async with app.lifespan(), connect(app, revision="2025-06-18") as mcp:
        standalone = await mcp.raw.get()
        results: list[str] = []

        async def wait() -> None:
            results.append((await mcp.tools.call("slow")).text())

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await begun.wait()
                await app.drain()
                await standalone.closed()
                assert standalone.retry == "5000"
                assert standalone.last_event_id is not None
                go_on.set()
        assert results == ["slow"]
        session_id = mcp.session_id
    if store.durable:
        async with connect(await serve(bridge), revision="2025-06-18") as mcp:
            mcp.session_id = session_id
            assert await mcp.request("ping", {}) == {}


@behaviour("AUT-3")
def test_a_bind_beyond_loopback_needs_words() -> None:
    bridge = Bridge("old")
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com"):
        with pytest.raises(ConfigurationError, match="no_auth"):
            bridge.run(host)
