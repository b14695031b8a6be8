"""What unmodified servers of `mcp` 1.x and of FastMCP 2, 3 and 4 do behind the bridge.

This file runs in environments of its own: see `test_environments.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from importlib import import_module, metadata
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge.errors import UpstreamUnreachable
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.sdk import server_of
from bridge.upstreams.sdk.detect import Lifespan
from bridge.upstreams.session import LegacyLink
from tests.upstreams.sdk.talking import CANCEL, DECLINE, HELLO, Heard, Talking, accept, http_scope, tasks_left, text

FIRST_GENERATION = metadata.version("mcp").startswith("1.")
types: Any = import_module("mcp.types" if FIRST_GENERATION else "mcp_types")
auth: Any = import_module("mcp.server.auth.middleware.auth_context")

Connect = Callable[..., Awaitable[Any]]


class Confirm(BaseModel):
    sure: bool


class Kind:
    """One class of servers, with the class of the context that its tools get."""

    def __init__(self, module: str) -> None:
        self.make: Any = import_module(module).FastMCP
        self.context: Any = import_module(module).Context
        self.is_of_sdk = module.startswith("mcp.")

    def user(self, name: str) -> Any:
        """What the middleware of this kind's SDK puts into a scope for an authenticated client."""
        tokens: Any = import_module("mcp.server.auth.provider" if self.is_of_sdk else "fastmcp.server.auth.auth")
        return auth.AuthenticatedUser(tokens.AccessToken(token="t", client_id=name, scopes=[]))


KINDS = ["fastmcp", *(["mcp.server.fastmcp"] if FIRST_GENERATION else [])]
only_sessions = pytest.mark.skipif(not FIRST_GENERATION, reason="mcp 2.x has no streams here")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Starts a server and links to it until the test is over; nothing may be left of either."""
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        started: dict[int, Any] = {}

        async def start(target: Any, news: Heard | None = None, lifespan: Lifespan = "session") -> Any:
            server = started.get(id(target))
            if server is None:
                server = started[id(target)] = server_of(target, lifespan=lifespan)
                await server.start()
                stack.push_async_callback(server.aclose)
            if FIRST_GENERATION:
                link: Any = LegacyLink(server.wire(), news or Heard(), tasks.start_soon)
                await link.open(HELLO)
            else:
                link = await server.connect(HELLO, news or Heard())
            stack.push_async_callback(link.aclose)
            return link

        yield start
    assert tasks_left() == []


def call(link: Any, name: str, talk: Talking | None = None, **arguments: Any) -> Awaitable[Finished | Failed]:
    return link.request("tools/call", {"name": name, "arguments": arguments}, talk)  # type: ignore[no-any-return]


async def asked(link: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    reply = await link.request(method, params)
    assert isinstance(reply, Finished), reply
    return reply.result


def desk(kind: Kind) -> Any:
    server, Context = kind.make("desk", instructions="Ask first."), kind.context

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


async def test_a_tool_is_called_and_listed(kind: Kind, connect: Connect) -> None:
    link = await connect(desk(kind))

    assert text(await call(link, "add", a=1, b=2)) == "3"
    listed = await asked(link, "tools/list", {})
    assert sorted(tool["name"] for tool in listed["tools"]) == ["add", "close", "twice"]
    assert link.facts.info["name"] == "desk"
    assert link.facts.instructions == "Ask first."
    assert {"tools", "prompts", "resources"} <= set(link.facts.capabilities)


@pytest.mark.parametrize(
    ("answer", "said"), [(accept(sure=True), "accept True"), (DECLINE, "decline None"), (CANCEL, "cancel None")]
)
async def test_a_tool_that_asks_gets_the_answer(kind: Kind, connect: Connect, answer: Finished, said: str) -> None:
    talk = Talking(answer)

    assert text(await call(await connect(desk(kind)), "close", talk, ticket="T-1")) == said
    [(method, params)] = talk.asked
    assert method == "elicitation/create"
    assert params["message"] == "Close T-1?"
    assert params["requestedSchema"]["properties"]["sure"]["type"] == "boolean"


async def test_a_tool_asks_twice_in_a_row(kind: Kind, connect: Connect) -> None:
    talk = Talking(accept(sure=True), DECLINE)

    assert text(await call(await connect(desk(kind)), "twice", talk)) == "accept decline"
    assert [params["message"] for _, params in talk.asked] == ["First?", "Second?"]


async def test_an_error_that_answers_a_question_reaches_the_tool(kind: Kind, connect: Connect) -> None:
    reply = await call(await connect(desk(kind)), "close", Talking(Failed(-32021, "No forms")), ticket="T-1")

    assert isinstance(reply, Failed) or reply.result["isError"]


async def test_questions_of_two_sessions_and_of_one_call_at_once_reach_their_own_call(
    kind: Kind, connect: Connect
) -> None:
    server, Context = kind.make("many"), kind.context

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
    talks = [Talking(accept(n=2 * i), accept(n=2 * i + 1)) for i in range(4)]
    replies = [""] * 4

    async def run(index: int) -> None:
        replies[index] = text(await call(links[index % 2], "both", talks[index], who=f"call {index}"))

    async with anyio.create_task_group() as tasks:
        for index in range(4):
            tasks.start_soon(run, index)

    assert replies == [f"{{'n': {2 * i}}} {{'n': {2 * i + 1}}}" for i in range(4)]
    for index, talk in enumerate(talks):
        assert [params["message"] for _, params in talk.asked] == [f"call {index} a", f"call {index} b"]


async def test_a_tool_in_a_thread_asks_through_the_loop(kind: Kind, connect: Connect) -> None:
    server, Context = kind.make("threads"), kind.context

    @server.tool()
    async def close(ctx: Context) -> str:
        def work() -> str:
            return str(anyio.from_thread.run(ctx.elicit, "Close?", Confirm).action)

        return await anyio.to_thread.run_sync(work)

    assert text(await call(await connect(server), "close", Talking(DECLINE))) == "decline"


async def test_a_tool_asks_for_a_url_a_sample_and_roots(kind: Kind, connect: Connect) -> None:
    server, Context = kind.make("asker"), kind.context

    @server.tool()
    async def link_account(ctx: Context) -> str:
        answer = await ctx.session.elicit_url("Sign in", "https://example.com/in", "e-1")
        await ctx.session.send_elicit_complete("e-1")
        return str(answer.action)

    @server.tool()
    async def sample(ctx: Context) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))
        return str((await ctx.session.create_message([message], max_tokens=5)).content.text)

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


async def test_progress_and_logs_go_to_the_call(kind: Kind, connect: Connect) -> None:
    server, Context = kind.make("busy"), kind.context

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await ctx.info("started")
        return "done"

    talk = Talking()
    assert text(await call(await connect(server), "work", talk)) == "done"
    assert talk.reports == [(1, 2, "half")]
    [(level, data, _)] = talk.logs
    assert level == "info"
    # FastMCP wraps the text in an object with room for more.
    assert data == "started" if isinstance(data, str) else data["msg"] == "started"


async def test_resources_and_prompts_are_served(kind: Kind, connect: Connect) -> None:
    server = kind.make("library")

    @server.resource("book://{title}")
    def book(title: str) -> str:
        return f"Once upon a {title}"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}"

    link = await connect(server)
    read = await asked(link, "resources/read", {"uri": "book://time"})
    assert read["contents"][0]["text"] == "Once upon a time"
    assert (await asked(link, "resources/templates/list", {}))["resourceTemplates"][0][
        "uriTemplate"
    ] == "book://{title}"
    assert (await asked(link, "resources/list", {}))["resources"] == []
    assert (await asked(link, "prompts/list", {}))["prompts"][0]["name"] == "greet"
    got = await asked(link, "prompts/get", {"name": "greet", "arguments": {"name": "Bo"}})
    assert got["messages"][0]["content"]["text"] == "Greet Bo"
    missing = await link.request("prompts/get", {"name": "none"})
    assert isinstance(missing, Failed)


async def test_completion_is_served(connect: Connect) -> None:
    server = Kind(KINDS[-1]).make("completing")
    if not hasattr(server, "completion"):
        pytest.skip("this FastMCP has none")

    @server.prompt()
    def greet(name: str) -> str:
        return name

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        return types.Completion(values=[argument.value + "y"])

    params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "B"}}
    completed = await asked(await connect(server), "completion/complete", params)
    assert completed["completion"]["values"] == ["By"]


async def test_500_cancelled_calls_run_their_finally_and_leave_no_task(kind: Kind, connect: Connect) -> None:
    cleaned: list[str] = []
    ended: list[None] = []
    server, Context = kind.make("held"), kind.context
    all_clean = anyio.Event()

    @server.tool()
    async def hold(ctx: Context) -> str:
        try:
            await ctx.elicit("Well?", Confirm)
            cleaned.append("went on")
            return "answered"
        except Exception as error:
            cleaned.append(f"swallowed {error}")
            return "swallowed"
        finally:
            ended.append(None)
            if len(ended) == 500:
                all_clean.set()

    link = await connect(server)
    talks = [Talking() for _ in range(500)]
    async with anyio.create_task_group() as tasks:
        for talk in talks:
            tasks.start_soon(call, link, "hold", talk)
        for talk in talks:
            await talk.has_asked.wait()
        tasks.cancel_scope.cancel()

    with anyio.fail_after(10):
        await all_clean.wait()
        # FastMCP 2 has a few tasks of its own, which come and go.
        while len(asyncio.all_tasks()) > 50:
            await anyio.lowlevel.checkpoint()
    assert cleaned == []
    # The session lives on.
    assert text(await call(link, "hold", Talking(DECLINE))) == "answered"


async def test_a_call_that_is_cancelled_as_soon_as_it_is_sent_does_not_go_on(kind: Kind, connect: Connect) -> None:
    server = kind.make("hasty")
    done: list[str] = []

    @server.tool()
    async def work() -> str:
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        done.append("work")
        return "done"

    link = await connect(server)
    for steps in range(12):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, link, "work")
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    for _ in range(200):
        await anyio.lowlevel.checkpoint()
    assert done == []


async def test_closing_a_session_with_a_held_call_cancels_it_and_does_not_answer_it(
    kind: Kind, connect: Connect
) -> None:
    server, Context = kind.make("held"), kind.context
    seen: list[str] = []

    @server.tool()
    async def hold(ctx: Context) -> str:
        try:
            await ctx.elicit("Well?", Confirm)
            seen.append("answered")
        except Exception as error:
            seen.append(f"error {error}")
        finally:
            seen.append("finally")
        return "acted"

    link = await connect(server)
    talk = Talking()

    async def held() -> None:
        with pytest.raises(Exception, match="closed"):
            await call(link, "hold", talk)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held)
        await talk.has_asked.wait()
        await link.aclose()
    assert seen == ["finally"]
    with pytest.raises(UpstreamUnreachable):
        await call(link, "hold", talk)


@pytest.mark.parametrize("lifespan", ["session", "once"])
async def test_the_lifespan_is_entered_for_each_session_or_once(kind: Kind, lifespan: Lifespan) -> None:
    entered: list[str] = []

    @asynccontextmanager
    async def living(server: Any) -> AsyncIterator[dict[str, int]]:
        entered.append("in")
        # FastMCP 3 and 4 leave a lifespan inside another cancel scope, which no task group in one survives.
        async with anyio.create_task_group() if kind.is_of_sdk else nullcontext():
            yield {"n": 7}
        entered.append("out")

    server, Context = kind.make("lasting", lifespan=living), kind.context

    @server.tool()
    async def read(ctx: Context) -> int:
        return int(ctx.request_context.lifespan_context["n"])

    wrapped: Any = server_of(server, lifespan=lifespan)
    per_session = kind.is_of_sdk and lifespan == "session"
    async with anyio.create_task_group() as tasks:
        await wrapped.start()
        links = []
        for _ in range(2):
            if FIRST_GENERATION:
                links.append(LegacyLink(wrapped.wire(), Heard(), tasks.start_soon))
                await links[-1].open(HELLO)
            else:
                links.append(await wrapped.connect(HELLO, Heard()))
        assert [text(await call(link, "read")) for link in links] == ["7", "7"]
        assert entered == (["in", "in"] if per_session else ["in"])
        for link in links:
            await link.aclose()
        await wrapped.aclose()
    assert entered == (["in", "in", "out", "out"] if per_session else ["in", "out"])
    assert tasks_left() == []


async def test_a_lifespan_that_fails_makes_the_server_unreachable(kind: Kind) -> None:
    @asynccontextmanager
    async def living(server: Any) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    wrapped: Any = server_of(kind.make("broken", lifespan=living), lifespan="once")
    with pytest.raises(UpstreamUnreachable, match="no database"):
        await wrapped.start()
    await wrapped.aclose()
    assert tasks_left() == []


async def test_a_tool_reads_headers_and_the_access_token(kind: Kind, connect: Connect) -> None:
    server, Context = kind.make("reader"), kind.context

    @server.tool()
    async def read(ctx: Context) -> str:
        token = auth.get_access_token()
        return f"{ctx.request_context.request.headers['x-team']} {token and token.client_id}"

    if not kind.is_of_sdk:
        dependencies: Any = import_module("fastmcp.server.dependencies")

        @server.tool()
        async def fast_read() -> str:
            token = dependencies.get_access_token()
            return f"{dependencies.get_http_headers()['x-team']} {token and token.client_id}"

    link = await connect(server)
    scope = http_scope(x_team="blue", authorization="Bearer t")
    names = ["read"] if kind.is_of_sdk else ["read", "fast_read"]
    assert [text(await call(link, name, Talking(http=scope))) for name in names] == ["blue None"] * len(names)
    scope["user"] = kind.user("app")
    assert [text(await call(link, name, Talking(http=scope))) for name in names] == ["blue app"] * len(names)
    assert auth.get_access_token() is None


async def test_two_users_of_two_sessions_are_told_apart(kind: Kind, connect: Connect) -> None:
    server = kind.make("reader")

    @server.tool()
    async def read() -> str:
        return str(auth.get_access_token().client_id)

    links = [await connect(server), await connect(server)]
    users = [kind.user("ann"), kind.user("bo")]
    for _ in range(2):
        said = [
            text(await call(link, "read", Talking(http={**http_scope(), "user": user})))
            for link, user in zip(links, users, strict=True)
        ]
        assert said == ["ann", "bo"]


async def test_unknown_fields_and_large_numbers_are_kept(connect: Connect) -> None:
    if not FIRST_GENERATION:
        pytest.skip("see test_v2.py")
    low = import_module("mcp.server.lowlevel").Server("odd")

    @low.list_tools()
    async def tools() -> list[Any]:
        return [types.Tool(name="odd", inputSchema={"type": "object", "x-odd": 2**70}, example=[1])]

    @low.call_tool(validate_input=False)
    async def odd(name: str, arguments: dict[str, Any]) -> Any:
        content = types.TextContent(type="text", text="", example={"a": None, "b": 2**65})
        return types.CallToolResult(
            content=[content], structuredContent={"big": 2**70, "echo": arguments}, example=True, _meta={"x": [1]}
        )

    link = await connect(low)
    [tool] = (await asked(link, "tools/list", {}))["tools"]
    assert (tool["inputSchema"]["x-odd"], tool["example"]) == (2**70, [1])
    reply = await call(link, "odd", None, n=2**65)
    assert isinstance(reply, Finished)
    assert reply.result["structuredContent"] == {"big": 2**70, "echo": {"n": 2**65}}
    assert reply.result["example"] is True
    assert reply.result["_meta"] == {"x": [1]}
    assert reply.result["content"][0]["example"]["b"] == 2**65


@only_sessions
async def test_a_low_level_server_asks_without_naming_its_call(connect: Connect) -> None:
    low = import_module("mcp.server.lowlevel").Server("low")

    @low.call_tool()
    async def ask(name: str, arguments: dict[str, Any]) -> Any:
        session = low.request_context.session
        answer = await session.elicit("Sure?", {"type": "object", "properties": {}})
        await session.send_tool_list_changed()
        await session.send_progress_notification(low.request_context.meta.progressToken, 1.0)
        return [types.TextContent(type="text", text=answer.action)]

    heard = Heard()
    link = await connect(low, heard)
    talk = Talking(DECLINE)
    assert text(await call(link, "any", talk)) == "decline"
    assert talk.reports == [(1.0, None, None)]
    assert heard.news == [("notifications/tools/list_changed", {})]


@only_sessions
async def test_a_wire_names_the_request_of_every_message(connect: Connect) -> None:
    server = Kind(KINDS[-1])
    mcp, Context = server.make("named"), server.context

    @mcp.tool()
    async def ask(ctx: Context) -> str:
        await ctx.info("hello")
        return str((await ctx.session.list_roots()).roots)

    wrapped: Any = server_of(mcp)
    await wrapped.start()
    wire = wrapped.wire()
    received: list[tuple[Any, Any]] = []
    more = anyio.Event()

    async def receive(message: Any, related: Any) -> None:
        received.append((type(message).__name__, related))
        more.set()

    async def expect(*names: tuple[str, Any]) -> None:
        nonlocal more
        with anyio.fail_after(5):
            while len(received) < len(names):
                more = anyio.Event()
                await more.wait()
        assert received == list(names)
        received.clear()

    await wire.open(receive, lambda reason: None)
    hello = {"protocolVersion": "2025-11-25", "capabilities": HELLO.capabilities, "clientInfo": HELLO.info}
    await wire.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    await expect(("Response", 1))
    await wire.initialized("2025-11-25")
    await wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    await wire.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "ask", "arguments": {}}})
    await expect(("Notification", 7), ("Request", 7))
    await wire.send({"jsonrpc": "2.0", "id": 0, "result": {"roots": []}})
    await expect(("Response", 7))
    await wire.aclose()
    with pytest.raises(UpstreamUnreachable, match="over"):
        await wire.send({"jsonrpc": "2.0", "id": 8, "method": "ping"})
    await wrapped.aclose()
    assert tasks_left() == []


@pytest.mark.skipif(FIRST_GENERATION, reason="mcp 1.x knows no modern era")
async def test_fastmcp_4_in_the_modern_era_returns_its_questions(connect: Connect) -> None:
    server = import_module("fastmcp").FastMCP("rounds")
    question = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object", "properties": {}})
    )

    @server.tool()
    async def ask() -> types.InputRequiredResult:
        return types.InputRequiredResult(input_requests={"q": question})

    wrapped: Any = server_of(server, protocol="modern")
    await wrapped.start()
    link = await wrapped.connect(HELLO, Heard())
    reply = await call(link, "ask", Talking())
    assert isinstance(reply, Finished)
    assert reply.result["resultType"] == "input_required"
    assert reply.result["inputRequests"]["q"]["params"]["message"] == "Sure?"
    await link.aclose()
    await wrapped.aclose()
