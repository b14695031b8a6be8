"""The server of the matrix, written with FastMCP 4: it asks in the middle of a call.

Run it with `python fastmcp4.py http PORT`.
"""

import sys

from fastmcp import Context, FastMCP
from fastmcp.server.elicitation import AcceptedElicitation
from pydantic import BaseModel

server = FastMCP("matrix")


class Confirm(BaseModel):
    confirm: bool


class Name(BaseModel):
    name: str


class Count(BaseModel):
    count: int


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def ask_once(what: str, ctx: Context) -> str:
    """Close something. Asks the user first."""
    answer = await ctx.elicit(f"Close {what}?", Confirm)
    return f"closed {what}" if isinstance(answer, AcceptedElicitation) and answer.data.confirm else f"kept {what}"


@server.tool
async def ask_twice(what: str, ctx: Context) -> str:
    """Order something. Asks for a name, then how many go to that name."""
    name = await ctx.elicit(f"Who orders {what}?", Name)
    if not isinstance(name, AcceptedElicitation):
        return f"no {what}"
    count = await ctx.elicit(f"How many {what} for {name.data.name}?", Count)
    return f"{count.data.count} {what} for {name.data.name}" if isinstance(count, AcceptedElicitation) else f"no {what}"


@server.tool
async def count_up(steps: int, ctx: Context) -> str:
    """Count, and report each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@server.resource("matrix://note")
def note() -> str:
    """A note."""
    return "noted"


@server.prompt
def greet() -> str:
    """A greeting."""
    return "Greet the user."


if __name__ == "__main__":
    server.run("http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="warning")
