"""The server of the matrix, written for the bridge. All servers here have the same tools, resource and prompt.

Run it with `python native.py http PORT` or `python native.py stdio`.
"""

import sys

from pydantic import BaseModel

from bridge import Bridge, Context

bridge = Bridge("matrix", elicitation=True)


class Confirm(BaseModel):
    confirm: bool


class Name(BaseModel):
    name: str


class Count(BaseModel):
    count: int


@bridge.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@bridge.tool
async def ask_once(what: str, ctx: Context) -> str:
    """Close something. Asks the user first."""
    answer = await ctx.elicit(f"Close {what}?", Confirm)
    return f"closed {what}" if answer.accepted and answer.content.confirm else f"kept {what}"


@bridge.tool
async def ask_twice(what: str, ctx: Context) -> str:
    """Order something. Asks for a name, then how many go to that name."""
    name = await ctx.elicit(f"Who orders {what}?", Name)
    if not name.accepted:
        return f"no {what}"
    count = await ctx.elicit(f"How many {what} for {name.content.name}?", Count)
    return f"{count.content.count} {what} for {name.content.name}" if count.accepted else f"no {what}"


@bridge.tool
async def count_up(steps: int, ctx: Context) -> str:
    """Count, and report each step."""
    for step in range(1, steps + 1):
        await ctx.progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@bridge.resource("matrix://note")
def note() -> str:
    """A note."""
    return "noted"


@bridge.prompt()
def greet() -> str:
    """A greeting."""
    return "Greet the user."


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        bridge.run_stdio()
    else:
        bridge.run(port=int(sys.argv[2]))
