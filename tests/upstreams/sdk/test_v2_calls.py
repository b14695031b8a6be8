"""A tool call goes the short way or that of the SDK's runner: what can be seen of it is the same."""

import dataclasses
import datetime
import decimal
import enum
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import pytest
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from bridge.asking.journal import Journal
from bridge.protocol.messages import Json
from bridge.upstreams.base import CallRequest, Failed, Finished
from bridge.upstreams.returned import read_returned
from bridge.upstreams.sdk import server_of, v2_drives
from bridge.upstreams.sdk.v2 import InProcessV2
from tests.upstreams.sdk.talking import HELLO, Heard, Talking, http_scope

Params = types.CallToolRequestParams
Handler = Callable[[ServerRequestContext[Any, Any], Params], Awaitable[Any]]


class Inner(BaseModel):
    at: datetime.date
    none: str | None = None


class Colour(enum.Enum):
    RED = "red"


class Told(types.CallToolResult):
    more: int = 7


async def looks_on(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Middleware that does nothing: with one of anybody's, all goes the runner's way."""
    return await call_next(ctx)


def low_level(handler: Handler) -> Server[Any]:
    return Server("low", on_call_tool=handler)


async def called(target: Any, params: Json, talk: Talking | None = None) -> Finished | Failed:
    """How a call of `params` at a server ends, as the bridge hands it on."""
    server = server_of(target)
    assert isinstance(server, InProcessV2)
    await server.start()
    link = await server.connect(HELLO, Heard())
    try:
        returned = await link.request("tools/call", params, talk)
    finally:
        await link.aclose()
        await server.aclose()
    read = read_returned(CallRequest("tools/call", "t", {}), returned, Journal(), link="")
    assert isinstance(read, Finished | Failed) or type(read).__name__ == "Stopped"
    return read  # type: ignore[return-value]


def text(value: Any, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(value))], **more)


SHORT = {
    "text": text("é \N{SNOWMAN}"),
    "nothing": types.CallToolResult(content=[]),
    "an error": text("no", is_error=True),
    "nested": text(1, structured_content={"none": None, "list": [None, {"none": None}], "big": 2**70, "f": 1.5}),
    "of python": text(
        1,
        structured_content={
            "date": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
            "bytes": b"abc",
            "decimal": decimal.Decimal("1.10"),
            "set": {1},
            "enum": Colour.RED,
            "model": Inner(at=datetime.date(2026, 1, 2)),
            "keys": {1: "a", None: "b"},
        },
    ),
    "no object": text(1, structured_content=[1, 2]),
    "no json": text(1, structured_content={"nan": math.nan, "inf": math.inf}),
    "unserializable": text(1, structured_content={"object": object()}),
}
LONG = {
    "annotated": types.CallToolResult(
        content=[types.TextContent(type="text", text="a", annotations=types.Annotations(priority=0.5))]
    ),
    "meta of a block": types.CallToolResult(content=[types.TextContent(type="text", text="a", _meta={"x": 1})]),
    "meta": text("a", _meta={"x": {"y": None}}),
    "an image": types.CallToolResult(content=[types.ImageContent(type="image", data="aGk=", mime_type="image/png")]),
    "a subclass": Told(content=[]),
    "a dict": {"content": [{"type": "text", "text": "a", "unknown": 1}], "unknown": 2},
    "a bad dict": {"content": "a"},
    "none": None,
    "a number": 5,
    "error data": types.ErrorData(code=-32001, message="m", data={"d": 1}),
    "built unchecked": types.CallToolResult.model_construct(content=[types.TextContent.model_construct(text=5)]),
    "of another type": text("a", result_type="com.example/odd"),
    "questions": types.InputRequiredResult(
        input_requests={
            "k": types.ElicitRequest(
                params=types.ElicitRequestFormParams(
                    message="?", requested_schema={"type": "object", "properties": {"a": {"type": "string"}}}
                )
            )
        },
        request_state="s",
    ),
}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", [*SHORT, *LONG])
async def test_a_result_is_the_same_either_way(name: str, caplog: pytest.LogCaptureFixture) -> None:
    result = (SHORT | LONG)[name]

    async def handler(ctx: ServerRequestContext[Any, Any], params: Params) -> Any:
        return result

    caplog.set_level(logging.ERROR)
    found = []
    for watched in (False, True):
        server = low_level(handler)
        if watched:
            server.middleware.append(looks_on)
        caplog.clear()
        outcome = await called(server, {"name": "t", "arguments": {}})
        found.append((outcome, [record.message for record in caplog.records]))
    if name == "questions":
        (short, _), (long, _) = found
        assert [question.key for question in short.questions] == [question.key for question in long.questions] == ["k"]
    else:
        assert found[0] == found[1]


@pytest.mark.parametrize("error", [MCPError(-32001, "m", {"d": 1}), ValueError("secret"), ToolError("told")])
async def test_what_a_handler_raises_is_the_same_either_way(error: Exception) -> None:
    async def handler(ctx: ServerRequestContext[Any, Any], params: Params) -> Any:
        raise error

    watched = low_level(handler)
    watched.middleware.append(looks_on)
    params = {"name": "t", "arguments": {}}
    assert await called(low_level(handler), params) == await called(watched, params)


@pytest.mark.parametrize("talk", [None, Talking(http=http_scope()), Talking(level="info")])
async def test_a_handler_sees_the_same_either_way(talk: Talking | None) -> None:
    seen: list[Any] = []

    async def handler(ctx: ServerRequestContext[Any, Any], params: Params) -> Any:
        session = ctx.session
        fields = {field.name: getattr(ctx, field.name) for field in dataclasses.fields(ctx)}
        del fields["session"]
        request = fields.pop("request")
        seen.append(
            (fields, params, session.client_params, session.protocol_version, request and dict(request.headers))
        )
        return text(1)

    watched = low_level(handler)
    watched.middleware.append(looks_on)
    for server in (low_level(handler), watched):
        await called(server, {"name": "t", "arguments": {"a": [1, None]}}, talk)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("params", [{"name": 5}, {"name": "t", "arguments": [1]}, {}, {"name": None, "arguments": {}}])
async def test_bad_params_are_refused_alike(params: Json) -> None:
    async def handler(ctx: ServerRequestContext[Any, Any], params: Params) -> Any:
        return text("ran")

    watched = low_level(handler)
    watched.middleware.append(looks_on)
    short = await called(low_level(handler), params)
    assert isinstance(short, Failed)
    assert short == await called(watched, params)


def desk() -> MCPServer:
    server = MCPServer("desk")

    @server.tool()
    async def add(a: int, b: int = 2) -> int:
        return a + b

    @server.tool()
    def fail() -> str:
        raise RuntimeError("secret")

    @server.tool()
    async def refuse() -> str:
        raise ToolError("told")

    @server.tool()
    async def model() -> Inner:
        return Inner(at=datetime.date(2026, 1, 2))

    @server.tool()
    async def blocks(ctx: Context) -> list[Any]:
        return ["a", types.ImageContent(type="image", data="aGk=", mime_type="image/png"), {"x": ctx.request_id}]

    return server


@pytest.mark.parametrize(
    "params",
    [
        {"name": "add", "arguments": {"a": 1}},
        {"name": "add", "arguments": {"a": "x"}},
        {"name": "add", "arguments": {"a": 1}, "_meta": {"theirs": 1}},
        {"name": "add"},
        {"name": "fail", "arguments": {}},
        {"name": "refuse", "arguments": {}},
        {"name": "model", "arguments": {}},
        {"name": "blocks", "arguments": {}},
        {"name": "unknown", "arguments": {}},
        {"name": "add", "arguments": {"a": 1}, "requestState": "forged"},
    ],
    ids=str,
)
async def test_a_tool_ends_the_same_either_way(params: Json) -> None:
    watched = desk()
    watched.middleware.append(looks_on)
    assert await called(desk(), params) == await called(watched, params)


async def test_a_plain_call_goes_the_short_way_and_one_that_is_watched_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[str] = []

    class Runner(v2_drives.ServerRunner[Any]):
        async def _on_request(self, dctx: Any, method: str, params: Any) -> Json:
            runs.append(method)
            return await super()._on_request(dctx, method, params)

    monkeypatch.setattr(v2_drives, "ServerRunner", Runner)
    watched, plain = desk(), {"name": "add", "arguments": {"a": 1}}
    watched.middleware.append(looks_on)
    await called(desk(), plain)
    assert "tools/call" not in runs
    await called(watched, plain)
    await called(desk(), {**plain, "_meta": {"theirs": 1}})
    assert runs.count("tools/call") == 2


async def test_a_tool_may_ask_unless_its_server_gives_it_nothing_to_ask_with() -> None:
    async def may(target: Any, tool: str, method: str = "tools/call") -> bool:
        server = server_of(target)
        assert isinstance(server, InProcessV2)
        await server.start()
        try:
            return server.asks_midway(method, tool)
        finally:
            await server.aclose()

    async def handler(ctx: ServerRequestContext[Any, Any], params: Params) -> Any:
        return text(1)

    watched = desk()
    watched.middleware.append(looks_on)
    assert not await may(desk(), "add")
    assert await may(desk(), "blocks")
    assert await may(desk(), "unknown")
    assert await may(desk(), "add", "prompts/get")
    assert await may(watched, "add")
    assert await may(low_level(handler), "add")


# --- Tools that are given no context


class Runs:
    """A desk whose tools are given no context, and how often they ran."""

    def __init__(self) -> None:
        self.count = 0
        self.server = server = MCPServer("blind")

        @server.tool()
        async def image() -> types.ImageContent:
            self.count += 1
            return types.ImageContent(type="image", data="aGk=", mime_type="image/png")

        @server.tool()
        async def told() -> types.CallToolResult:
            self.count += 1
            return text("a", _meta={"x": {"y": None}})

        @server.tool()
        async def asks() -> types.InputRequiredResult:
            self.count += 1
            return LONG["questions"]  # type: ignore[return-value]

        @server.tool()
        def pages() -> str:
            self.count += 1
            raise MCPError(-32042, "m", {"elicitations": []})

        @server.tool()
        def sync() -> list[int]:
            self.count += 1
            return [1, 2]

        @server.tool()
        async def wrong() -> int:
            self.count += 1
            return "no number"  # type: ignore[return-value]


@pytest.mark.parametrize("tool", ["image", "told", "asks", "pages", "sync", "wrong"])
async def test_a_tool_without_a_context_runs_once_and_ends_the_same_either_way(tool: str) -> None:
    params = {"name": tool, "arguments": {}}
    blind, watched = Runs(), Runs()
    watched.server.middleware.append(looks_on)
    short, long = await called(blind.server, params), await called(watched.server, params)
    assert (blind.count, watched.count) == (1, 1)
    if tool == "asks":
        assert [question.key for question in short.questions] == ["k"]  # type: ignore[union-attr]
        assert [question.key for question in long.questions] == ["k"]  # type: ignore[union-attr]
    else:
        assert short == long


async def test_a_failure_of_a_tool_without_a_context_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bridge.upstream")
    await called(desk(), {"name": "refuse", "arguments": {}})
    await called(desk(), {"name": "fail", "arguments": {}})
    found = [(record.levelname, record.message) for record in caplog.records if record.name == "bridge.upstream"]
    assert found == [
        ("INFO", "the tool 'refuse' failed: 'Error executing tool refuse: told'"),
        ("ERROR", "the tool 'fail' failed unexpectedly"),
    ]
    assert "secret" in caplog.text


async def test_what_stands_between_a_server_and_its_tools_sees_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Own(MCPServer):
        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            seen.append(context.request_id)
            return await super().call_tool(name, arguments, context)

    own = Own("own")

    @own.tool()
    async def add(a: int) -> int:
        return a

    async def instrumented(self: MCPServer, ctx: Any, params: Any) -> Any:
        seen.append(params.name)
        return await handle(self, ctx, params)

    async def intercepts(ctx: Any, params: Any) -> Any:
        seen.append("intercepted")
        return await intercepted._handle_call_tool(ctx, params)

    add_one = {"name": "add", "arguments": {"a": 1}}
    assert (await called(own, add_one)).result["structuredContent"] == {"result": 1}  # type: ignore[union-attr]
    intercepted = desk()
    intercepted._lowlevel_server.add_request_handler("tools/call", Params, intercepts)
    await called(intercepted, add_one)
    handle = MCPServer._handle_call_tool
    monkeypatch.setattr(MCPServer, "_handle_call_tool", instrumented)
    await called(desk(), add_one)
    assert len(seen) == 3
    assert seen[1:] == ["intercepted", "add"]
