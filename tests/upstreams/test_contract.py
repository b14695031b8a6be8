"""Every upstream keeps one contract."""

from typing import Any

import pytest
from mcp.server.mcpserver import Context as SdkContext
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

from bridge import Bridge, Context
from bridge.asking.question import Question, Reply
from bridge.testing import check_upstream
from bridge.upstreams.base import Upstream
from bridge.upstreams.targets import ServerOptions
from bridge.upstreams.wrapped import WrapRules
from tests.upstreams.plain import Plain

behaviour = pytest.mark.behaviour


class Confirm(BaseModel):
    confirm: bool


def yes(question: Question) -> Reply:
    """Agree, by whatever the field is called."""
    assert question.schema is not None
    fields: Any = {"boolean": True, "string": "Ada"}
    return Reply("accept", {name: fields[field["type"]] for name, field in question.schema["properties"].items()})


@behaviour("UPS-1")
async def test_native_functions_keep_the_contract() -> None:
    bridge = Bridge("native", elicitation=True)

    @bridge.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @bridge.tool
    async def close(what: str, ctx: Context) -> str:
        first = await ctx.elicit(f"Close {what}?", Confirm)
        second = await ctx.elicit("Really?", Confirm)
        return f"{first.status} {second.status}"

    await check_upstream(
        bridge.make_upstream, simple=("add", {"a": 1, "b": 2}), asking=("close", {"what": "T"}), answer=yes
    )


@pytest.mark.parametrize("resume", ["hold", "rerun"])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@behaviour("UPS-2", "UPS-3")
async def test_a_legacy_server_over_stdio_keeps_the_contract(plain: Plain, resume: Any, shared: bool) -> None:
    def make() -> Upstream:
        return plain.bridge(WrapRules(resume=resume), ServerOptions(shared=shared)).make_upstream()

    await check_upstream(make, simple=("echo", {"x": 1}), asking=("greet", {}), answer=yes)


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
@behaviour("UPS-1", "UPS-3")
async def test_a_server_object_of_the_sdk_keeps_the_contract(protocol: Any) -> None:
    mcp = MCPServer("object")

    @mcp.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool()
    async def close(what: str, ctx: SdkContext) -> str:
        first = await ctx.elicit(f"Close {what}?", Confirm)
        second = await ctx.elicit("Really?", Confirm)
        return f"{first.action} {second.action}"

    def make() -> Upstream:
        return Bridge.wrap(mcp, server=ServerOptions(protocol=protocol)).make_upstream()

    await check_upstream(make, simple=("add", {"a": 1, "b": 2}), asking=("close", {"what": "T"}), answer=yes)
