"""The help desk's tools. Each asks first and acts afterwards; what must happen once before a question is a step."""

from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, Field

from bridge import Bridge, Context, KeyRing, ToolError
from bridge.demo.desk import Agent, Desk, Priority, Ticket
from bridge.stores import Store

__all__ = ["bridge", "make"]

TicketId = Annotated[str, Field(description="Ticket id, like T-1")]


class Confirm(BaseModel):
    """One box to tick."""

    confirm: bool = Field(description="Tick to go ahead")


class PickAgent(BaseModel):
    """Who takes a ticket."""

    agent: Agent = Field(description="Support agent")


class TypeId(BaseModel):
    """The id of a ticket, typed by hand."""

    id: str = Field(description="The ticket's id, to be sure", max_length=20)


class Title(BaseModel):
    """The title of a new ticket."""

    title: str = Field(description="What the ticket is about", min_length=1, max_length=120)


class PickPriority(BaseModel):
    """How much a ticket matters."""

    priority: Priority = Field(description="How much it matters")


def make(*, store: Store | str | None = None, keys: KeyRing | None = None, **options: Any) -> Bridge:
    """Make a help desk of its own.

    Args:
        store: where sessions and open questions live; see `Bridge`.
        keys: what seals `requestState`; see `Bridge`.
        options: see `Options`.
    """
    desk = Desk()
    bridge = Bridge(
        "help-desk",
        version="1.0.0",
        title="Help desk",
        instructions="Tools of a help desk. Those that change something ask the user first.",
        elicitation=True,
        store=store,
        keys=keys,
        **options,
    )
    _add_reading(bridge, desk)
    _add_closing(bridge, desk)
    _add_assigning(bridge, desk)
    _add_opening(bridge, desk)
    _add_refunding(bridge, desk)
    return bridge


def _ticket(desk: Desk, ticket_id: str) -> Ticket:
    ticket = desk.tickets.get(ticket_id)
    if ticket is None:
        raise ToolError(f"Unknown ticket {ticket_id}. The tickets are {', '.join(desk.tickets)}.")
    return ticket


def _add_reading(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool(annotations={"readOnlyHint": True})
    def list_tickets() -> list[dict[str, Any]]:
        """List the tickets of the help desk."""
        tickets: list[dict[str, Any]] = msgspec.to_builtins(list(desk.tickets.values()))
        return tickets

    @bridge.tool(annotations={"readOnlyHint": True})
    async def history() -> list[str]:
        """List everything that was done, once each, oldest first."""
        return list(desk.history)

    @bridge.tool(annotations={"readOnlyHint": True})
    async def outbox() -> list[str]:
        """List the mails to customers, oldest first."""
        return list(desk.outbox)


def _add_closing(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool
    async def close_ticket(id: TicketId, ctx: Context) -> dict[str, Any]:  # noqa: A002 - the tool's argument
        """Close a ticket and mail its customer that it is resolved. Asks the user first."""
        ticket = _ticket(desk, id)
        answer = await ctx.elicit(f'Close {id} ("{ticket.title}") and mail the customer that it is resolved?', Confirm)
        if answer.status == "decline":
            return {"id": id, "closed": False, "reason": "The user said no. Leave the ticket open."}
        if not answer.accepted:
            return {"id": id, "closed": False, "reason": "The user closed the question without an answer."}
        if not answer.content.confirm:
            return {"id": id, "closed": False, "reason": "The user did not tick the box."}
        desk.close(ticket)
        return {"id": id, "closed": True}

    @bridge.tool(annotations={"destructiveHint": True})
    async def delete_ticket(id: TicketId, ctx: Context) -> dict[str, Any]:  # noqa: A002 - the tool's argument
        """Delete a ticket for good. Asks the user to type its id."""
        ticket = _ticket(desk, id)
        answer = await ctx.elicit(f'Delete {id} ("{ticket.title}") for good? Type its id to be sure.', TypeId)
        if not answer.accepted:
            return {"id": id, "deleted": False, "reason": f"The user did not agree ({answer.status})."}
        if answer.content.id.strip() != id:
            return {"id": id, "deleted": False, "reason": f"The user typed {answer.content.id!r}, not {id!r}."}
        desk.delete(ticket)
        return {"id": id, "deleted": True}


def _add_assigning(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool
    async def assign_ticket(
        id: TicketId,  # noqa: A002 - the tool's argument
        ctx: Context,
        agent: Annotated[Agent | None, Field(description="Who takes it; leave out to let the user pick")] = None,
    ) -> dict[str, Any]:
        """Assign a ticket to an agent. Without an agent, the user is asked."""
        ticket = _ticket(desk, id)
        if agent is None:
            answer = await ctx.elicit(f'Who takes {id} ("{ticket.title}")?', PickAgent)
            if not answer.accepted:
                return {"id": id, "assigned": False, "reason": f"The user picked no agent ({answer.status})."}
            agent = answer.content.agent
        desk.assign(ticket, agent)
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
        ticket = desk.open(text, level, agent.content.agent)
        return {"opened": True, **msgspec.to_builtins(ticket)}


def _add_refunding(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool(annotations={"destructiveHint": True})
    async def refund(
        id: TicketId,  # noqa: A002 - the tool's argument
        amount: Annotated[float, Field(gt=0, le=1000, description="How much to pay back")],
        ctx: Context,
    ) -> dict[str, Any]:
        """Pay a customer back. Puts the money aside, asks the user, and pays it or gives it back."""
        ticket = _ticket(desk, id)
        reservation = await ctx.step("reserve", lambda: desk.reserve(ticket, amount))
        answer = await ctx.elicit(f'Pay {amount:g} back for {id} ("{ticket.title}")?', Confirm)
        if not (answer.accepted and answer.content.confirm):
            desk.release(ticket, amount, reservation)
            return {"id": id, "refunded": False, "reason": f"The user did not agree ({answer.status})."}
        desk.refund(ticket, amount, reservation)
        return {"id": id, "refunded": True, "amount": amount}


bridge = make()
