"""A server of the official SDK, unchanged, for clients of every revision.

Run it with `python examples/wrap_sdk_server.py`. The SDK itself cannot serve `ctx.elicit` to clients of 2026-07-28, nor
to those that can only chat. Behind the bridge its call stays suspended at the question until the answer comes, so what
the tool did before it asked is done once.
"""

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from bridge import Bridge

mcp = MCPServer("desk", version="1.0")
log: list[str] = []


class Confirm(BaseModel):
    confirm: bool


@mcp.tool()
async def close_ticket(ticket: str, ctx: Context) -> str:
    """Close a ticket. Writes first, asks then: as servers do that know of no bridge."""
    log.append(f"looked at {ticket}")
    answer = await ctx.elicit(f"Close {ticket}?", Confirm)
    if answer.action == "accept" and answer.data.confirm:
        log.append(f"closed {ticket}")
        return f"{ticket} is closed."
    return f"{ticket} stays open."


bridge = Bridge.wrap(mcp)

if __name__ == "__main__":
    bridge.run()
