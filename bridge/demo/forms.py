"""What the help desk's tools ask in common, and what they say of a ticket that is not there."""

from typing import Annotated

from pydantic import BaseModel, Field

from bridge import ToolError
from bridge.demo.desk import Agent, Desk, Ticket

__all__ = ["Confirm", "OtherTicketId", "PickAgent", "TicketId", "Title", "find"]

TicketId = Annotated[str, Field(description="Ticket id, like T-1", examples=["T-1"])]
OtherTicketId = Annotated[str, Field(description="Ticket id, like T-1", examples=["T-2"])]


class Confirm(BaseModel):
    """One box to tick."""

    confirm: bool = Field(description="Tick to go ahead")


class PickAgent(BaseModel):
    """Who takes a ticket."""

    agent: Agent = Field(description="Support agent")


class Title(BaseModel):
    """The title of a ticket."""

    title: str = Field(description="What the ticket is about", min_length=1, max_length=120)


def find(desk: Desk, ticket_id: str) -> Ticket:
    """The ticket of that id.

    Raises:
        ToolError: there is none.
    """
    ticket = desk.tickets.get(ticket_id)
    if ticket is None:
        raise ToolError(f"Unknown ticket {ticket_id}. The tickets are {', '.join(desk.tickets)}.")
    return ticket
