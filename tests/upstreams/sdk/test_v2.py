"""Servers of `mcp` 2.x in this process: `MCPServer` and the low-level `Server`, unmodified."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from pydantic import BaseModel

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.revisions import LATEST_LEGACY, MODERN
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.links import Link
from bridge.upstreams.sdk import server_of
from bridge.upstreams.sdk.v2 import InProcessV2
from tests.upstreams.sdk.talking import CANCEL, DECLINE, HELLO, Heard, Talking, accept, http_scope, tasks_left, text

pytestmark = [
    pytest.mark.behaviour("UPS-1"),
    # What 2.x deprecates is what unmodified servers use.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

Connect = Callable[..., Awaitable[Link]]


class Confirm(BaseModel):
    sure: bool


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Starts a server and links to it until the test is over; nothing may be left of either."""
    async with AsyncExitStack() as stack:
        started: dict[int, InProcessV2] = {}

        async def start(target: Any, news: Heard | None = None, **options: Any) -> Link:
            server = started.get(id(target))
            if server is None:
                made = server_of(target, **options)
                assert isinstance(made, InProcessV2)
                server = started[id(target)] = made
                await server.start()
                stack.push_async_callback(server.aclose)
            link = await server.connect(HELLO, news or Heard())
            stack.push_async_callback(link.aclose)
            return link

        yield start
    assert tasks_left() == []


def desk() -> MCPServer:
    server = MCPServer("desk", version="3.1", instructions="Ask first.")

    @server.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def close(ticket: str, ctx: Context) -> str:
        answer = await ctx.elicit(f"Close {ticket}?", Confirm)
        return f"{answer.action} {answer.data.sure if answer.action == 'accept' else None}"

    @server.tool()
    async def twice(ctx: Context) -> str:
        first = await ctx.elicit("First?", Confirm)
        second = await ctx.elicit("Second?", Confirm)
        return f"{first.action} {second.action}"

    return server


def call(link: Link, name: str, talk: Talking | None = None, **arguments: Any) -> Awaitable[Finished | Failed]:
    return link.request("tools/call", {"name": name, "arguments": arguments}, talk)


async def test_a_tool_is_called_and_listed(connect: Connect) -> None:
    link = await connect(desk())

    assert text(await call(link, "add", a=1, b=2)) == "3"
    listed = await link.request("tools/list", {})
    assert isinstance(listed, Finished)
    assert [tool["name"] for tool in listed.result["tools"]] == ["add", "close", "twice"]


async def test_a_server_says_who_it_is(connect: Connect) -> None:
    modern = (await connect(desk())).facts
    legacy = (await connect(desk(), protocol="legacy")).facts

    assert (modern.revision, legacy.revision) == (MODERN, LATEST_LEGACY)
    for facts in (modern, legacy):
        assert facts.info == {"name": "desk", "version": "3.1"}
        assert facts.instructions == "Ask first."
        assert {"tools", "prompts", "resources"} <= set(facts.capabilities)


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
@pytest.mark.parametrize(
    ("answer", "said"), [(accept(sure=True), "accept True"), (DECLINE, "decline None"), (CANCEL, "cancel None")]
)
async def test_a_tool_that_asks_gets_the_answer(connect: Connect, protocol: str, answer: Finished, said: str) -> None:
    link = await connect(desk(), protocol=protocol)
    talk = Talking(answer)

    assert text(await call(link, "close", talk, ticket="T-1")) == said
    [(method, params)] = talk.asked
    assert method == "elicitation/create"
    assert params["message"] == "Close T-1?"
    assert params["requestedSchema"]["properties"] == {"sure": {"title": "Sure", "type": "boolean"}}


async def test_a_tool_asks_twice_in_a_row(connect: Connect) -> None:
    talk = Talking(accept(sure=True), DECLINE)

    assert text(await call(await connect(desk()), "twice", talk)) == "accept decline"
    assert [params["message"] for _, params in talk.asked] == ["First?", "Second?"]


async def test_an_error_that_answers_a_question_reaches_the_tool(connect: Connect) -> None:
    talk = Talking(Failed(-32021, "No forms here"))

    reply = await call(await connect(desk()), "close", talk, ticket="T-1")
    assert isinstance(reply, Failed) or reply.result["isError"]


async def test_a_call_that_nobody_listens_to_cannot_ask(connect: Connect) -> None:
    reply = await call(await connect(desk()), "close", None, ticket="T-1")

    assert isinstance(reply, Failed) or reply.result["isError"]


async def test_questions_of_two_links_and_of_one_call_at_once_reach_their_own_call(connect: Connect) -> None:
    server = MCPServer("many")

    @server.tool()
    async def both(who: str, ctx: Context) -> str:
        said: dict[str, str] = {}

        async def ask(what: str) -> None:
            answer = await ctx.session.elicit(f"{who} {what}", {"type": "object", "properties": {}})
            said[what] = str(answer.content)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "a")
            tasks.start_soon(ask, "b")
        return f"{said['a']} {said['b']}"

    links = [await connect(server), await connect(server)]
    talks = [Talking(accept(n=1), accept(n=2)), Talking(accept(n=3), accept(n=4))]
    replies: list[str] = ["", ""]

    async def run(index: int) -> None:
        replies[index] = text(await call(links[index], "both", talks[index], who=f"call {index}"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, 0)
        tasks.start_soon(run, 1)

    assert replies == ["{'n': 1} {'n': 2}", "{'n': 3} {'n': 4}"]
    for index, talk in enumerate(talks):
        assert [params["message"] for _, params in talk.asked] == [f"call {index} a", f"call {index} b"]


async def test_a_tool_asks_for_a_url_a_sample_and_roots(connect: Connect) -> None:
    server = MCPServer("asker")

    @server.tool()
    async def link_account(ctx: Context) -> str:
        answer = await ctx.elicit_url("Sign in", "https://example.com/in", "e-1")
        await ctx.session.send_elicit_complete("e-1")
        return answer.action

    @server.tool()
    async def sample(ctx: Context) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))
        sampled = await ctx.session.create_message([message], max_tokens=5)
        assert isinstance(sampled.content, types.TextContent)
        return sampled.content.text

    @server.tool()
    async def roots(ctx: Context) -> str:
        return str((await ctx.session.list_roots()).roots[0].uri)

    heard = Heard()
    link = await connect(server, heard)
    opened = Talking(Finished({"action": "accept"}))
    assert text(await call(link, "link_account", opened)) == "accept"
    assert opened.asked[0][1]["url"] == "https://example.com/in"
    assert heard.news == [("notifications/elicitation/complete", {"elicitationId": "e-1"})]

    sampled = Finished({"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"})
    assert text(await call(link, "sample", Talking(sampled))) == "Hello"
    assert text(await call(link, "roots", Talking(Finished({"roots": [{"uri": "file:///a"}]})))) == "file:///a"


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
async def test_progress_and_logs_go_to_the_call(connect: Connect, protocol: str) -> None:
    server = MCPServer("busy")

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.info("started", logger_name="work")
        await ctx.debug("detail")
        return "done"

    talk = Talking(level="info")
    assert text(await call(await connect(server, protocol=protocol), "work", talk)) == "done"
    assert talk.reports == [(1, 2, "half")]
    assert talk.logs[0] == ("info", "started", "work")
    # In the legacy era the level is for whoever takes the messages to keep.
    assert [level for level, _, _ in talk.logs] == (["info"] if protocol == "modern" else ["info", "debug"])


async def test_resources_prompts_and_completion_are_served(connect: Connect) -> None:
    server = MCPServer("library")

    @server.resource("book://{title}")
    def book(title: str) -> str:
        return f"Once upon a {title}"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}"

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
        return types.Completion(values=[argument.value + "y"])

    link = await connect(server)

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        reply = await link.request(method, params)
        assert isinstance(reply, Finished), reply
        return reply.result

    assert (await ask("resources/read", {"uri": "book://time"}))["contents"][0]["text"] == "Once upon a time"
    assert (await ask("resources/templates/list", {}))["resourceTemplates"][0]["uriTemplate"] == "book://{title}"
    assert (await ask("resources/list", {}))["resources"] == []
    assert (await ask("prompts/list", {}))["prompts"][0]["name"] == "greet"
    got = await ask("prompts/get", {"name": "greet", "arguments": {"name": "Bo"}})
    assert got["messages"][0]["content"]["text"] == "Greet Bo"
    reference = {"type": "ref/prompt", "name": "greet"}
    completed = await ask("completion/complete", {"ref": reference, "argument": {"name": "name", "value": "B"}})
    assert completed["completion"]["values"] == ["By"]


async def test_errors_keep_their_code_and_what_a_handler_did_not_expect_is_internal(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        raise OSError("secret detail")

    link = await connect(Server("broken", on_call_tool=broken))

    unknown = await link.request("prompts/list", {})
    assert isinstance(unknown, Failed)
    assert unknown.code == -32601
    invalid = await link.request("tools/call", {"name": 5})
    assert isinstance(invalid, Failed)
    assert invalid.code == -32602
    assert await call(link, "any") == Failed(-32603, "Internal server error")
    assert "secret detail" in caplog.text


async def test_a_server_that_returns_its_questions_is_relayed(connect: Connect) -> None:
    asked = types.InputRequiredResult(
        input_requests={
            "q": types.ElicitRequest(
                params=types.ElicitRequestFormParams(
                    message="Sure?", requested_schema={"type": "object", "properties": {}}
                )
            )
        },
        request_state="s",
    )

    async def ask(ctx: Any, params: types.CallToolRequestParams) -> Any:
        if params.input_responses is None:
            return asked
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"state {params.request_state}")])

    link = await connect(Server("rounds", on_call_tool=ask))

    first = await call(link, "any", Talking())
    assert isinstance(first, Finished)
    assert first.result["resultType"] == "input_required"
    assert first.result["inputRequests"]["q"]["params"]["message"] == "Sure?"
    params = {"name": "any", "requestState": "s", "inputResponses": {"q": {"action": "accept", "content": {}}}}
    assert text(await link.request("tools/call", params, Talking())) == "state s"


async def test_a_cancelled_call_runs_its_finally_and_leaves_no_task(connect: Connect) -> None:
    cleaned: list[str] = []
    server = MCPServer("held")

    @server.tool()
    async def hold(ctx: Context) -> str:
        try:
            await ctx.elicit("Well?", Confirm)
            return "answered"
        finally:
            cleaned.append("finally")

    link = await connect(server)
    before = len(asyncio.all_tasks())
    talks = [Talking() for _ in range(500)]
    async with anyio.create_task_group() as tasks:
        for talk in talks:
            tasks.start_soon(call, link, "hold", talk)
        for talk in talks:
            await talk.has_asked.wait()
        tasks.cancel_scope.cancel()

    assert len(cleaned) == 500
    assert len(asyncio.all_tasks()) == before


async def test_closing_a_link_cancels_what_is_under_way(connect: Connect) -> None:
    link = await connect(desk())
    talk = Talking()

    async def held() -> None:
        with pytest.raises(UpstreamLost, match="the link was closed"):
            await call(link, "close", talk, ticket="T-1")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held)
        await talk.has_asked.wait()
        await link.aclose()
    assert not link.is_open
    with pytest.raises(UpstreamUnreachable, match="closed"):
        await call(link, "add", a=1, b=2)


async def test_the_lifespan_is_entered_once_and_left_at_the_end() -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[dict[str, int]]:
        entered.append("in")
        async with anyio.create_task_group():
            yield {"n": 7}
        entered.append("out")

    server = MCPServer("lasting", lifespan=lifespan)

    @server.tool()
    async def read(ctx: Context[dict[str, int], Any]) -> int:
        return ctx.request_context.lifespan_context["n"]

    wrapped = server_of(server)
    assert isinstance(wrapped, InProcessV2)
    await wrapped.start()
    links = [await wrapped.connect(HELLO, Heard()) for _ in range(2)]
    assert [text(await call(link, "read")) for link in links] == ["7", "7"]
    assert entered == ["in"]
    for link in links:
        await link.aclose()
    await wrapped.aclose()
    assert entered == ["in", "out"]


async def test_a_lifespan_that_fails_makes_the_server_unreachable() -> None:
    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    wrapped = server_of(MCPServer("broken", lifespan=lifespan))
    assert wrapped is not None
    with pytest.raises(UpstreamUnreachable, match="no database"):
        await wrapped.start()
    await wrapped.aclose()


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
async def test_a_tool_reads_headers_and_the_access_token(connect: Connect, protocol: str) -> None:
    server = MCPServer("reader")

    @server.tool()
    async def read(ctx: Context) -> str:
        token = get_access_token()
        assert ctx.headers is not None
        return f"{ctx.headers['x-team']} {ctx.request_context.request.method} {token and token.client_id}"

    link = await connect(server, protocol=protocol)
    scope = http_scope(x_team="blue")
    assert text(await call(link, "read", Talking(http=scope))) == "blue POST None"
    scope["user"] = AuthenticatedUser(AccessToken(token="t", client_id="app", scopes=[]))
    assert text(await call(link, "read", Talking(http=scope))) == "blue POST app"
    assert get_access_token() is None
    socket = {**http_scope(x_team="red"), "type": "websocket"}
    reply = await call(link, "read", Talking(http=socket))
    assert isinstance(reply, Finished)


async def test_fields_that_the_sdk_lets_through_and_large_numbers_are_kept(connect: Connect) -> None:
    async def odd(ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
        return {
            "resultType": "complete",
            "content": [],
            "structuredContent": {"big": 2**70, "echo": params.arguments},
            "_meta": {"example.com/x": [1]},
        }

    reply = await call(await connect(Server("odd", on_call_tool=odd)), "any", None, n=2**65)
    assert isinstance(reply, Finished)
    assert reply.result["structuredContent"] == {"big": 2**70, "echo": {"n": 2**65}}
    assert reply.result["_meta"]["example.com/x"] == [1]


async def test_changes_that_a_server_publishes_are_news(connect: Connect) -> None:
    server = MCPServer("changing")

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        await ctx.notify_resource_updated("note://1")
        return "done"

    ours, theirs = Heard(), Heard()
    link, _ = await connect(server, ours), await connect(server, theirs)
    assert link.facts.capabilities["resources"]["subscribe"] is True
    assert await link.request("resources/subscribe", {"uri": "note://1"}) == Finished({})
    await call(link, "change")
    changed, updated = (
        ("notifications/tools/list_changed", {}),
        ("notifications/resources/updated", {"uri": "note://1"}),
    )
    assert sorted(await ours.wait(2)) == sorted([changed, updated])
    assert await theirs.wait() == [changed]

    assert await link.request("resources/unsubscribe", {"uri": "note://1"}) == Finished({})
    await call(link, "change")
    assert await theirs.wait(2) == [changed, changed]
    assert len(await ours.wait(3)) == 3


async def test_what_only_legacy_clients_ask_reaches_a_handler_that_is_there(connect: Connect) -> None:
    levels: list[str] = []
    told: list[str] = []

    async def set_level(ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        levels.append(params.level)
        return types.EmptyResult()

    async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        await ctx.session.send_resource_updated(params.uri)
        return types.EmptyResult()

    async def roots_changed(ctx: Any, params: Any) -> None:
        told.append(ctx.method)

    heard = Heard()
    server = Server(
        "old ways", on_set_logging_level=set_level, on_subscribe_resource=subscribe, on_roots_list_changed=roots_changed
    )
    link = await connect(server, heard)
    assert await link.request("logging/setLevel", {"level": "error"}) == Finished({})
    assert levels == ["error"]
    assert await link.request("resources/subscribe", {"uri": "note://2"}) == Finished({})
    assert heard.news == [("notifications/resources/updated", {"uri": "note://2"})]
    await link.notify("notifications/roots/list_changed", {})
    assert told == ["notifications/roots/list_changed"]


async def test_a_session_keeps_its_state_and_cleans_up_when_it_ends(connect: Connect) -> None:
    cleaned: list[str] = []

    async def count(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        connection = ctx.session._connection
        state = connection.state
        state["n"] = state.get("n", 0) + 1
        connection.exit_stack.callback(cleaned.append, str(state["n"]))
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(state["n"]))])

    server = Server("counting", on_call_tool=count)
    session = await connect(server, protocol="legacy")
    assert [text(await call(session, "any")) for _ in range(2)] == ["1", "2"]
    assert cleaned == []
    await session.aclose()
    assert cleaned == ["2", "1"]

    cleaned.clear()
    stateless = await connect(Server("counting", on_call_tool=count))
    assert [text(await call(stateless, "any")) for _ in range(2)] == ["1", "1"]
    assert cleaned == ["1", "1"]
