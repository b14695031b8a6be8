"""What a wrapped server asks at once, its client is asked in one round, under the names that the operator gives."""

from typing import Any

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

from bridge import Bridge, ConfigurationError, ServerOptions, ToolRules, WrapRules
from bridge.testing import accept, connect
from tests.conftest import Serve
from tests.upstreams.plain import Plain

behaviour = pytest.mark.behaviour


class Name(BaseModel):
    name: str


def asking_at_once() -> Any:
    server = MCPServer("at once", log_level="WARNING")

    @server.tool()
    async def both(ctx: Context) -> str:
        """Ask two things, in two tasks."""
        found: dict[str, str] = {}

        async def ask(who: str) -> None:
            answer: Any = await ctx.elicit(f"{who}?", Name)
            found[who] = answer.data.name

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "First")
            tasks.start_soon(ask, "Second")
        return f"{found['First']}, {found['Second']}"

    return server


@behaviour("UPS-3", "ASK-8")
async def test_questions_that_are_asked_at_once_go_out_in_one_round(serve: Serve) -> None:
    bridge = Bridge.wrap(asking_at_once(), server=ServerOptions(protocol="legacy"))
    async with connect(await serve(bridge)) as mcp:
        asked = await mcp.request("tools/call", {"name": "both"})
        assert [request["params"]["message"] for request in asked["inputRequests"].values()] == ["First?", "Second?"]
        mcp.on_elicitation(lambda asked: accept({"name": asked.message[:-1].lower()}))
        assert (await mcp.tools.call("both")).text() == "first, second"


@behaviour("ASK-3", "UPS-3")
@pytest.mark.parametrize("resume", ["hold", "rerun"])
async def test_the_questions_of_a_server_go_by_the_names_that_the_operator_gives(
    plain: Plain, serve: Serve, resume: Any
) -> None:
    bridge = plain.bridge(WrapRules(tools={"greet": ToolRules(keys=("who",), resume=resume)}))
    async with connect(await serve(bridge)) as mcp:
        first = await mcp.request("tools/call", {"name": "greet"})
        assert list(first["inputRequests"]) == ["who"]
        again = {"name": "greet", "requestState": first["requestState"]}
        second = await mcp.request("tools/call", {**again, "inputResponses": {"who": accept({"name": "Ada"})}})
        (key,) = second["inputRequests"]
        assert key == "elicitation-2"
        again = {"name": "greet", "requestState": second["requestState"]}
        ended = await mcp.request("tools/call", {**again, "inputResponses": {key: accept({"confirm": True})}})
        assert ended["content"][0]["text"] == "Ada is sure"


def test_two_questions_cannot_go_by_one_name() -> None:
    with pytest.raises(ConfigurationError, match="key of its own"):
        ToolRules(keys=("who", "who"))
