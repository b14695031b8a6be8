"""The help desk's tools that change tickets. What each asks is what only its user can decide."""

import inspect
import textwrap
from typing import Annotated, Any

import msgspec
from anyio import from_thread
from pydantic import BaseModel, Field

from bridge import Bridge, Context
from bridge.demo.desk import Desk
from bridge.demo.effects import Agent, Priority
from bridge.demo.forms import Confirm, OtherTicketId, PickAgent, TicketId, Title

__all__ = ["add_tickets", "closing_source"]


class TypeId(BaseModel):
    """The id of a ticket, typed by hand."""

    id: str = Field(description="The ticket's id, to be sure", max_length=20)


class PickPriority(BaseModel):
    """How much a ticket matters."""

    priority: Priority = Field(description="How much it matters")


class Note(BaseModel):
    """A note, or none."""

    note: str | None = Field(default=None, description="What to remember about it", max_length=200)


def add_tickets(bridge: Bridge, desk: Desk) -> None:
    """Add the tools that change tickets."""
    _add_closing(bridge, desk)
    _add_deleting(bridge, desk)
    _add_assigning(bridge, desk)
    _add_opening(bridge, desk)
    _add_renaming(bridge, desk)
    _add_merging(bridge, desk)


def _add_closing(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool
    async def close_ticket(id: TicketId, ctx: Context) -> dict[str, Any]:  # noqa: A002 - the tool's argument
        """Close a ticket and mail its customer that it is resolved. Asks the user first."""
        ticket = await desk.find(id)
        answer = await ctx.elicit(f'Close {id} ("{ticket.title}") and mail the customer that it is resolved?', Confirm)
        if answer.status == "decline":
            return {"id": id, "closed": False, "reason": "The user said no. Leave the ticket open."}
        if not answer.accepted:
            return {"id": id, "closed": False, "reason": "The user closed the question without an answer."}
        if not answer.content.confirm:
            return {"id": id, "closed": False, "reason": "The user did not tick the box."}
        await desk.close(id)
        return {"id": id, "closed": True}


def closing_source() -> str:
    """The code of `close_ticket`, to be shown."""
    lines = inspect.getsource(_add_closing).splitlines()[1:]
    return textwrap.dedent("\n".join(lines)).replace("  # noqa: A002 - the tool's argument", "")


def _add_deleting(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool(annotations={"destructiveHint": True})
    async def delete_ticket(id: TicketId, ctx: Context) -> dict[str, Any]:  # noqa: A002 - the tool's argument
        """Delete a ticket for good. Asks the user to type its id."""
        ticket = await desk.find(id)
        answer = await ctx.elicit(f'Delete {id} ("{ticket.title}") for good? Type its id to be sure.', TypeId)
        if not answer.accepted:
            return {"id": id, "deleted": False, "reason": f"The user did not agree ({answer.status})."}
        if answer.content.id.strip() != id:
            return {"id": id, "deleted": False, "reason": f"The user typed {answer.content.id!r}, not {id!r}."}
        await desk.delete(id)
        return {"id": id, "deleted": True}


def _add_assigning(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool
    async def assign_ticket(
        id: TicketId,  # noqa: A002 - the tool's argument
        ctx: Context,
        agent: Annotated[Agent | None, Field(description="Who takes it; leave out to let the user pick")] = None,
    ) -> dict[str, Any]:
        """Assign a ticket to an agent. Without an agent, the user is asked."""
        ticket = await desk.find(id)
        if agent is None:
            answer = await ctx.elicit(f'Who takes {id} ("{ticket.title}")?', PickAgent)
            if not answer.accepted:
                return {"id": id, "assigned": False, "reason": f"The user picked no agent ({answer.status})."}
            agent = answer.content.agent
        await desk.assign(id, agent)
        return {"id": id, "assigned": True, "agent": agent}


def _add_opening(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool
    async def open_ticket(ctx: Context) -> dict[str, Any]:
        """Open a new ticket. Asks the user for its title, its priority and its agent, one after the other."""
        title = await ctx.elicit("What is the new ticket about?", Title)
        if not title.accepted:
            return {"opened": False, "reason": f"The user gave no title ({title.status})."}
        text = title.content.title
        priority = await ctx.elicit(f'How much does "{text}" matter?', PickPriority)
        if not priority.accepted:
            return {"opened": False, "reason": f"The user picked no priority ({priority.status})."}
        level = priority.content.priority
        agent = await ctx.elicit(f'Who takes "{text}", of {level} priority?', PickAgent)
        if not agent.accepted:
            return {"opened": False, "reason": f"The user picked no agent ({agent.status})."}
        ticket = await desk.open(text, level, agent.content.agent)
        return {"opened": True, **msgspec.to_builtins(ticket)}


def _add_renaming(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool
    def rename_ticket(id: TicketId, ctx: Context) -> dict[str, Any]:  # noqa: A002 - the tool's argument
        """Give a ticket another title. Asks the user for it. A plain function: no thread waits for the answer."""
        ticket = from_thread.run(desk.find, id)
        answer = ctx.elicit_sync(f'What should {id} be called, instead of "{ticket.title}"?', Title)
        if not answer.accepted:
            return {"id": id, "renamed": False, "reason": f"The user gave no title ({answer.status})."}
        ticket = from_thread.run(desk.rename, id, answer.content.title)
        return {"id": id, "renamed": True, "title": ticket.title}


def _add_merging(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool(annotations={"destructiveHint": True})
    async def merge_tickets(first: TicketId, second: OtherTicketId, ctx: Context) -> dict[str, Any]:
        """Make two tickets one. Asks the user two things at once: which one stays, and for a note."""
        tickets = {ticket.id: ticket for ticket in (await desk.find(first), await desk.find(second))}
        if len(tickets) == 1:
            return {"merged": False, "reason": f"{first} cannot be merged with itself."}
        field = {"type": "string", "enum": list(tickets), "description": "The ticket that stays"}
        stays = {"type": "object", "properties": {"id": field}, "required": ["id"]}
        answers = await ctx.elicit_all(
            {
                "stays": (f"Which one stays, {first} or {second}? The other is deleted.", stays),
                "note": (f"What should be noted about merging {first} and {second}?", Note),
            }
        )
        if not answers["stays"].accepted:
            return {"merged": False, "reason": f"The user picked none ({answers['stays'].status})."}
        kept = tickets.pop(answers["stays"].content["id"])
        (other,) = tickets.values()
        note = answers["note"].content.note if answers["note"].accepted else None
        await desk.merge(kept.id, other.id, note or "")
        return {"merged": True, "kept": kept.id, "note": note}
