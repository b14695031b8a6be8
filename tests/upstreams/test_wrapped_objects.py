"""Server objects of the SDK behind the bridge: however they ask, every client is asked, and they act once."""

from collections.abc import Callable
from typing import Annotated, Any

import anyio
import pytest
from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver import Context as SdkContext
from pydantic import BaseModel

from bridge import Bridge, ClientRule, ConfigurationError, RouteName
from bridge.testing import Client, accept, connect, decline
from bridge.upstreams.wrapped import WrapRules
from tests.conftest import Serve

behaviour = pytest.mark.behaviour

REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}


class Confirm(BaseModel):
    confirm: bool


class Name(BaseModel):
    name: str


class Desk:
    """A server that asks in every way that the SDK has, and what it did."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.mcp = mcp = MCPServer("desk", version="3", instructions="Ask nicely.")
        effects = self.effects

        async def confirmed(what: str) -> Elicit[Confirm]:
            return Elicit(f"Close {what}?", Confirm)

        @mcp.tool()
        async def resolved(what: str, answer: Annotated[ElicitationResult[Confirm], Resolve(confirmed)]) -> str:
            """Close something: asked before it runs."""
            done = isinstance(answer, AcceptedElicitation) and answer.data.confirm
            effects.append(f"{'closed' if done else 'kept'} {what}")
            return effects[-1]

        @mcp.tool()
        async def in_the_body(what: str, ctx: SdkContext) -> str:
            """Close something: writes, asks, and asks again."""
            effects.append(f"began {what}")
            who = await ctx.elicit("Who are you?", Name)
            if who.action != "accept":
                return f"nobody ({who.action})"
            sure = await ctx.elicit(f"Close {what}, {who.data.name}?", Confirm)
            done = sure.action == "accept" and sure.data.confirm
            effects.append(f"{'closed' if done else 'kept'} {what}")
            return f"{who.data.name}: {effects[-1]}"

        @mcp.prompt()
        async def greeting(ctx: SdkContext) -> str:
            """A prompt that asks."""
            who = await ctx.elicit("Who are you?", Name)
            return f"Hello {who.data.name if who.action == 'accept' else who.action}"

        @mcp.tool()
        async def headers(ctx: SdkContext) -> dict[str, str]:
            """What the server sees of the request."""
            request = ctx.request_context.request
            return {} if request is None else dict(request.headers)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def answering(mcp: Client, **answers: Any) -> None:
    mcp.on_elicitation(lambda asked: answers[asked.message.split()[0]])


@pytest.mark.parametrize("revision", REVISIONS)
@behaviour("UPS-1", "UPS-3")
async def test_a_dependency_that_asks_is_asked_of_every_client(desk: Desk, serve: Serve, revision: str) -> None:
    async with connect(await serve(Bridge.wrap(desk.mcp)), revision=revision) as mcp:
        answering(mcp, Close=accept({"confirm": True}))
        assert (await mcp.tools.call("resolved", {"what": "T-1"})).text() == "closed T-1"
        answering(mcp, Close=decline())
        assert (await mcp.tools.call("resolved", {"what": "T-2"})).text() == "kept T-2"
    assert desk.effects == ["closed T-1", "kept T-2"]


@pytest.mark.parametrize("revision", REVISIONS)
@behaviour("UPS-1", "UPS-3")
async def test_a_body_that_asks_twice_runs_once_for_every_client(desk: Desk, serve: Serve, revision: str) -> None:
    async with connect(await serve(Bridge.wrap(desk.mcp)), revision=revision) as mcp:
        answering(mcp, Who=accept({"name": "Ada"}), Close=accept({"confirm": True}))
        assert (await mcp.tools.call("in_the_body", {"what": "T-1"})).text() == "Ada: closed T-1"
    assert desk.effects == ["began T-1", "closed T-1"]


@pytest.mark.parametrize("revision", REVISIONS[:3])
@behaviour("ASK-19", "UPS-3")
async def test_a_prompt_that_asks_is_answered(desk: Desk, serve: Serve, revision: str) -> None:
    async with connect(await serve(Bridge.wrap(desk.mcp)), revision=revision) as mcp:
        answering(mcp, Who=accept({"name": "Ada"}))
        got = await mcp.prompts.get("greeting")
        assert got["messages"][0]["content"]["text"] == "Hello Ada"


@behaviour("CHT-1", "UPS-3")
async def test_a_modern_client_that_the_operator_puts_on_chat_goes_on_where_it_stopped(
    desk: Desk, serve: Serve
) -> None:
    bridge = Bridge.wrap(desk.mcp, client_rules=(ClientRule(route=RouteName.CHAT),))
    async with connect(await serve(bridge)) as mcp:
        assert "sendElicitationResult" in [tool["name"] for tool in await mcp.tools.list()]
        answering(mcp, Who=accept({"name": "Ada"}), Close=accept({"confirm": True}))
        assert (await mcp.tools.call("in_the_body", {"what": "T-1"})).text() == "Ada: closed T-1"
    assert desk.effects == ["began T-1", "closed T-1"]


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
@behaviour("ANS-1", "ANS-2", "ANS-4")
async def test_an_answer_that_does_not_fit_never_reaches_the_server(desk: Desk, serve: Serve, revision: str) -> None:
    async with connect(await serve(Bridge.wrap(desk.mcp)), revision=revision) as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": 7}))
        refused = await mcp.tools.call("in_the_body", {"what": "T-1"})
        assert refused.error_code == "INVALID_INPUT"
    assert desk.effects == ["began T-1"]


@behaviour("MOD-8", "ANS-2", "UPS-3")
async def test_a_corrected_answer_goes_on_with_the_suspended_call_and_a_repeated_one_gets_its_result(
    desk: Desk, serve: Serve
) -> None:
    call = {"name": "in_the_body", "arguments": {"what": "T-1"}}
    async with connect(await serve(Bridge.wrap(desk.mcp))) as mcp:
        first = await mcp.request("tools/call", call)
        [key] = first["inputRequests"]

        def retry(name: Any) -> dict[str, Any]:
            answers = {key: accept({"name": name})}
            return {**call, "inputResponses": answers, "requestState": first["requestState"]}

        assert (await mcp.request("tools/call", retry(7)))["isError"]
        second = await mcp.request("tools/call", retry("Ada"))
        again = await mcp.request("tools/call", retry("Ada"))
        assert again["inputRequests"] == second["inputRequests"]
        other = await mcp.request("tools/call", retry("Bob"))
        assert "already answered" in other["content"][0]["text"]
    assert desk.effects == ["began T-1"]


@behaviour("UPS-1")
async def test_a_server_sees_the_request_and_says_who_it_is(desk: Desk, serve: Serve) -> None:
    app = await serve(Bridge.wrap(desk.mcp))
    async with connect(app, headers={"x-tenant": "blue"}) as mcp, connect(app, revision="2025-11-25") as old:
        assert (await mcp.tools.call("headers")).json()["x-tenant"] == "blue"
        assert old.initialize_result["serverInfo"] == {"name": "desk", "version": "3"}
        assert old.initialize_result["instructions"] == "Ask nicely."


@behaviour("ASK-14")
async def test_elicitation_can_be_switched_off_for_a_wrapped_server(desk: Desk, serve: Serve) -> None:
    async with connect(await serve(Bridge.wrap(desk.mcp, elicitation=False)), revision="2025-03-26") as mcp:
        assert "sendElicitationResult" not in [tool["name"] for tool in await mcp.tools.list()]
        refused = await mcp.tools.call("in_the_body", {"what": "T-1"})
        assert refused.error_code == "ELICITATION_DISABLED"
    assert desk.effects == ["began T-1"]


@behaviour("UPS-1")
def test_a_bridge_that_wraps_takes_no_functions_and_says_what_can_be_wrapped(desk: Desk) -> None:
    bridge = Bridge.wrap(desk.mcp)
    register: Callable[[Any], Any] = bridge.tool
    with pytest.raises(ConfigurationError, match="register tools"):
        register(lambda: None)
    with pytest.raises(ConfigurationError, match="is no server that can be wrapped"):
        Bridge.wrap(object())
    with pytest.raises(ConfigurationError, match="is no URL of an MCP server"):
        Bridge.wrap("ftp://example.com")


@behaviour("UPS-8", "UPS-10")
async def test_a_tool_that_cannot_ask_ends_with_its_time_though_it_swallows_a_cancellation(serve: Serve) -> None:
    mcp_server, swallowed = MCPServer("stubborn"), []

    @mcp_server.tool()
    async def stubborn() -> str:
        try:
            await anyio.sleep_forever()
        except BaseException as cancelled:
            swallowed.append(type(cancelled).__name__)
        await anyio.sleep_forever()
        return "never"

    async with connect(await serve(Bridge.wrap(mcp_server, rules=WrapRules(call_seconds=0.3)))) as mcp:
        late = await mcp.tools.call("stubborn")
        assert late.error_code == "INTERRUPTED"
        assert "took longer than 0.3 seconds" in late.text()
    assert swallowed == ["CancelledError"]
