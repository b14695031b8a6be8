"""One tool, three clients: a modern one, an old one that shows forms, an old one that can only chat.

Run it with `python examples/mixed_fleet.py`: it prints how each is asked, and what each gets.
"""

from collections.abc import Callable
from typing import Any

import anyio

from bridge import Bridge, Context
from bridge.testing import Asked, Client, accept, connect

bridge = Bridge("desk", elicitation=True)
closed: list[str] = []


@bridge.tool
async def close_ticket(ticket: str, ctx: Context) -> str:
    """Close a ticket. Asks first."""
    answer = await ctx.elicit(f"Close {ticket}?", bool)
    if not answer.accepted or not answer.content:
        return f"{ticket} stays open."
    closed.append(ticket)
    return f"{ticket} is closed ({answer.source})."


FLEET: dict[str, dict[str, Any]] = {
    "a client of 2026-07-28": {},
    "a client of 2025-06-18 with forms": {"revision": "2025-06-18"},
    "a client of 2025-03-26 that can only chat": {"revision": "2025-03-26"},
}


async def visit(name: str, mcp: Client, say: Callable[[str], None]) -> None:
    """Call the tool as one client, and answer its question."""

    def answer(asked: Asked) -> Any:
        say(f"  its user is asked: {asked.message}")
        return accept({"confirm": True})

    mcp.on_elicitation(answer)
    tools = ", ".join(tool["name"] for tool in await mcp.tools.list())
    say(f"{name} sees {tools}")
    result = await mcp.tools.call("close_ticket", {"ticket": "T-1"})
    say(f"  and gets: {result.text()}")


async def main(say: Callable[[str], None] = print) -> None:
    """Let every client of the fleet call the same server."""
    app = bridge.asgi()
    async with app.lifespan():
        for name, client in FLEET.items():
            async with connect(app, **client) as mcp:
                await visit(name, mcp, say)


if __name__ == "__main__":
    anyio.run(main)
