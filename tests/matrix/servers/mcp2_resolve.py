"""The server of the matrix, written with MCPServer of mcp 2.3.0, asking before its tools run: `Resolve`.

Its questions reach clients of both eras. Run it with `python mcp2_resolve.py http PORT`.
"""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("matrix", log_level="WARNING")


class Confirm(BaseModel):
    confirm: bool


class Name(BaseModel):
    name: str


class Count(BaseModel):
    count: int


def ask_to_close(what: str) -> Elicit[Confirm]:
    """Ask whether to close something."""
    return Elicit(f"Close {what}?", Confirm)


def ask_who(what: str) -> Elicit[Name]:
    """Ask who orders."""
    return Elicit(f"Who orders {what}?", Name)


def ask_how_many(what: str, name: Annotated[Name, Resolve(ask_who)]) -> Elicit[Count]:
    """Ask how many go to who orders."""
    return Elicit(f"How many {what} for {name.name}?", Count)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def ask_once(what: str, answer: Annotated[ElicitationResult[Confirm], Resolve(ask_to_close)]) -> str:
    """Close something. Asks the user first."""
    return f"closed {what}" if isinstance(answer, AcceptedElicitation) and answer.data.confirm else f"kept {what}"


@server.tool()
def ask_twice(
    what: str, name: Annotated[Name, Resolve(ask_who)], count: Annotated[Count, Resolve(ask_how_many)]
) -> str:
    """Order something. Asks for a name, then how many go to that name."""
    return f"{count.count} {what} for {name.name}"


@server.tool()
async def count_up(steps: int, ctx: Context) -> str:
    """Count, and report each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@server.resource("matrix://note")
def note() -> str:
    """A note."""
    return "noted"


@server.prompt()
def greet() -> str:
    """A greeting."""
    return "Greet the user."


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[2]))
