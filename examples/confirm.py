"""A tool that asks before it acts. Run it with `python examples/confirm.py`, point any MCP client at it."""

from pydantic import BaseModel, Field

from bridge import Bridge, Context

bridge = Bridge("confirm", elicitation=True)
closed: list[str] = []


class Confirm(BaseModel):
    """One box to tick."""

    confirm: bool = Field(description="Tick to close the ticket")


@bridge.tool
async def close_ticket(ticket: str, ctx: Context) -> dict[str, bool | str]:
    """Close a ticket. Asks the user first."""
    answer = await ctx.elicit(f"Close {ticket}?", Confirm)
    if not (answer.accepted and answer.content.confirm):
        return {"closed": False, "reason": f"The user did not agree ({answer.status})."}
    closed.append(ticket)
    return {"closed": True}


if __name__ == "__main__":
    bridge.run()
