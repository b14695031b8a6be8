"""What the help desk remembers: tickets, mails to customers, and every effect that a tool had."""

from typing import Literal

import msgspec

__all__ = ["AGENTS", "Agent", "Desk", "Priority", "Ticket"]

Agent = Literal["access", "billing", "general"]
Priority = Literal["low", "normal", "high"]

AGENTS: tuple[Agent, ...] = ("access", "billing", "general")


class Ticket(msgspec.Struct):
    """A customer's ticket."""

    id: str
    title: str
    agent: Agent | None = None
    priority: Priority = "normal"
    status: Literal["open", "closed"] = "open"


class Desk:
    """A small help desk, in memory."""

    def __init__(self) -> None:
        self.tickets = {
            ticket.id: ticket
            for ticket in (
                Ticket("T-1", "Cannot log in", agent="access"),
                Ticket("T-2", "Invoice total is wrong"),
                Ticket("T-3", "Login link expired", agent="access"),
                Ticket("T-4", "Password reset email missing", priority="high"),
            )
        }
        self.outbox: list[str] = []
        self.history: list[str] = []
        self._opened = len(self.tickets)

    def close(self, ticket: Ticket) -> None:
        """Close a ticket and tell its customer."""
        ticket.status = "closed"
        self.outbox.append(f'To the customer of {ticket.id}: "{ticket.title}" is resolved.')
        self.history.append(f"closed {ticket.id}")

    def assign(self, ticket: Ticket, agent: Agent) -> None:
        """Give a ticket to an agent."""
        ticket.agent = agent
        self.history.append(f"assigned {ticket.id} to {agent}")

    def delete(self, ticket: Ticket) -> None:
        """Delete a ticket for good."""
        del self.tickets[ticket.id]
        self.history.append(f"deleted {ticket.id}")

    def open(self, title: str, priority: Priority, agent: Agent) -> Ticket:
        """Open a new ticket."""
        self._opened += 1
        ticket = Ticket(f"T-{self._opened}", title, agent, priority)
        self.tickets[ticket.id] = ticket
        self.history.append(f"opened {ticket.id}")
        return ticket

    def reserve(self, ticket: Ticket, amount: float) -> str:
        """Put money aside for a refund; return the reservation's number."""
        number = f"R-{len(self.history) + 1}"
        self.history.append(f"reserved {amount:g} for {ticket.id} ({number})")
        return number

    def refund(self, ticket: Ticket, amount: float, reservation: str) -> None:
        """Pay what was put aside."""
        self.outbox.append(f"To the customer of {ticket.id}: {amount:g} is on its way.")
        self.history.append(f"refunded {amount:g} for {ticket.id} ({reservation})")

    def release(self, ticket: Ticket, amount: float, reservation: str) -> None:
        """Give back what was put aside."""
        self.history.append(f"released {amount:g} for {ticket.id} ({reservation})")
