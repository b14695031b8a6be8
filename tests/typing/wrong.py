"""Never run: each line whose comment says so must be an error for both checkers, and no other line may be one."""

from pydantic import BaseModel

from bridge import Bridge, Context
from bridge.testing import Client


class Confirm(BaseModel):
    confirm: bool


Bridge("x", elicit=True)  # error: no such option
Bridge("x", elicitation="yes")  # error: not a bool
Bridge("x", fallback="chat")  # error: none of the choices
Bridge()  # error: it has no name

bridge = Bridge("x")


@bridge.tool(nme="x")  # error: no such option
def misspelt() -> str:
    return ""


@bridge.tool(annotations={"readOnly": True})  # error: no such hint
def misannotated() -> str:
    return ""


@bridge.tool
async def kept(ctx: Context, id: int) -> str:  # noqa: A002
    answer = await ctx.elicit("Sure?", Confirm)
    answer.content.confirmed  # error: no such field
    answer.answer  # error: no such attribute
    number: int = answer.content.confirm.real
    text: str = answer.content.confirm  # error: a bool
    plain = ctx.elicit_sync("Sure?", bool)
    plain.content.upper()  # error: a bool
    ctx.elicit_sync("Sure?", Confirm, on_invalid="again")  # error: none of the choices
    ctx.elicit_sync("Sure?")  # error: no schema
    stepped: str = await ctx.step("a", lambda: 1)  # error: an int
    return f"{number}{text}{stepped}"


async def calls(ctx: Context, mcp: Client) -> None:
    await kept(ctx, "x")  # error: an int is wanted
    await kept(ctx)  # error: no id
    (await mcp.tools.call("x")).texts()  # error: no such method
    await mcp.tools.call(1)  # error: a name is a text
    mcp.on_elicitation(lambda asked: asked.messages)  # error: no such attribute
