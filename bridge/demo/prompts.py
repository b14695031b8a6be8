"""The help desk's prompts: one that asks, and one whose argument is completed."""

from collections.abc import Mapping

from pydantic import BaseModel, Field

from bridge import Bridge, Context, ToolError
from bridge.demo.desk import Desk
from bridge.demo.effects import PRIORITIES, Priority, Ticket
from bridge.demo.forms import TicketId

__all__ = ["add_prompts"]


class PickFirst(BaseModel):
    """What comes first."""

    first: Priority = Field(description="The priority that comes first")


def add_prompts(bridge: Bridge, desk: Desk) -> None:
    """Add the prompts, and completion of ticket ids."""

    @bridge.prompt(title="Sort the open tickets")
    async def triage(ctx: Context) -> str:
        """Have the open tickets worked through. Asks the user which priority comes first."""
        answer = await ctx.elicit("Which priority should come first?", PickFirst)
        if not answer.accepted:
            raise ToolError(f"There is nothing to sort by: the user picked no priority ({answer.status}).")
        first = answer.content.first
        is_open = [ticket for ticket in (await desk.tickets()).values() if ticket.status == "open"]
        ordered = sorted(is_open, key=lambda ticket: (ticket.priority != first, -PRIORITIES.index(ticket.priority)))
        return "\n".join(("Work through these tickets, from the top:", "", *map(_line, ordered)))

    @bridge.prompt(title="Sum up a ticket")
    async def summarize_ticket(id: TicketId) -> str:  # noqa: A002 - the prompt's argument
        """Have one ticket summed up."""
        return f"Sum up this ticket in one sentence, for a colleague who takes it over:\n\n{_line(await desk.find(id))}"

    async def ids(typed: str, others: Mapping[str, str]) -> list[str]:
        return [ticket_id for ticket_id in await desk.tickets() if ticket_id.lower().startswith(typed.lower())]

    bridge.completion("summarize_ticket", "id")(ids)
    bridge.completion("desk://tickets/{id}", "id")(ids)


def _line(ticket: Ticket) -> str:
    return f"- {ticket.id} ({ticket.priority}, {ticket.status}, {ticket.agent or 'nobody'}): {ticket.title}"
