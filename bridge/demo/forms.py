"""What the help desk's tools ask in common."""

from typing import Annotated

from pydantic import BaseModel, Field

from bridge.demo.effects import Agent

__all__ = ["Confirm", "OtherTicketId", "PickAgent", "TicketId", "Title"]

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
