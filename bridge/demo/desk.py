"""What the help desk remembers: tickets, mails to customers, money put aside, and every effect that a tool had."""

import time
from collections.abc import Callable
from typing import Final, Literal

import msgspec

__all__ = ["AGENTS", "PRIORITIES", "RESERVATION_SECONDS", "Agent", "Desk", "Priority", "Ticket"]

Agent = Literal["access", "billing", "general"]
Priority = Literal["low", "normal", "high"]

AGENTS: tuple[Agent, ...] = ("access", "billing", "general")
PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high")

RESERVATION_SECONDS: Final = 900.0
"""How long money stays put aside for a refund that nobody has agreed to."""


class Ticket(msgspec.Struct):
    """A customer's ticket."""

    id: str
    title: str
    agent: Agent | None = None
    priority: Priority = "normal"
    status: Literal["open", "closed"] = "open"


class _Reservation(msgspec.Struct, frozen=True):
    what: str
    until: float


class Desk:
    """A small help desk, in memory.

    Args:
        now: the time, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.restart()

    def restart(self) -> None:
        """Be as new: the first tickets, and nothing done."""
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
        self._done: list[tuple[float, str]] = []
        self._reservations: dict[str, _Reservation] = {}
        self._opened = len(self.tickets)

    def history(self, seconds: float | None = None) -> list[str]:
        """What was done, once each, oldest first: everything, or in the last `seconds`."""
        self._expire()
        since = 0.0 if seconds is None else self._now() - seconds
        return [what for at, what in self._done if at >= since]

    def close(self, ticket: Ticket) -> None:
        """Close a ticket and tell its customer."""
        ticket.status = "closed"
        self.outbox.append(f'To the customer of {ticket.id}: "{ticket.title}" is resolved.')
        self._note(f"closed {ticket.id}")

    def assign(self, ticket: Ticket, agent: Agent) -> None:
        """Give a ticket to an agent."""
        ticket.agent = agent
        self._note(f"assigned {ticket.id} to {agent}")

    def rename(self, ticket: Ticket, title: str) -> None:
        """Give a ticket another title."""
        ticket.title = title
        self._note(f"renamed {ticket.id}")

    def delete(self, ticket: Ticket) -> None:
        """Delete a ticket for good."""
        del self.tickets[ticket.id]
        self._note(f"deleted {ticket.id}")

    def merge(self, kept: Ticket, other: Ticket, note: str) -> None:
        """Make two tickets one."""
        del self.tickets[other.id]
        self._note(_with_note(f"merged {other.id} into {kept.id}", note))

    def open(self, title: str, priority: Priority, agent: Agent) -> Ticket:
        """Open a new ticket."""
        self._opened += 1
        ticket = Ticket(f"T-{self._opened}", title, agent, priority)
        self.tickets[ticket.id] = ticket
        self._note(f"opened {ticket.id}")
        return ticket

    def deploy(self, environment: str, note: str) -> None:
        """Bring the help desk's newest version out."""
        self._note(_with_note(f"deployed to {environment}", note))

    def connect(self, provider: str) -> None:
        """Use an account at a provider from now on."""
        self._note(f"connected {provider}")

    def reserve(self, ticket: Ticket, amount: float) -> str:
        """Put money aside for a refund, for 15 minutes; return the reservation's number.

        A call can end at its question: the client cannot be asked, its answer does not fit, nobody answers. The tool
        does not run again then, so no line of it can give the money back. That is why a reservation ends by itself.
        """
        self._expire()
        number, what = f"R-{len(self._done) + 1}", f"{amount:g} for {ticket.id}"
        self._reservations[number] = _Reservation(what, self._now() + RESERVATION_SECONDS)
        self._note(f"reserved {what} ({number})")
        return number

    def refund(self, ticket: Ticket, amount: float, reservation: str) -> bool:
        """Pay what was put aside; False where it no longer is."""
        if not self._take(ticket, amount, reservation):
            return False
        self.outbox.append(f"To the customer of {ticket.id}: {amount:g} is on its way.")
        self._note(f"refunded {amount:g} for {ticket.id} ({reservation})")
        return True

    def release(self, ticket: Ticket, amount: float, reservation: str) -> None:
        """Give back what was put aside, where it still is."""
        if self._take(ticket, amount, reservation):
            self._note(f"released {amount:g} for {ticket.id} ({reservation})")

    def _take(self, ticket: Ticket, amount: float, number: str) -> bool:
        """End a reservation. After a restart its number may be another's, so what it is for counts too."""
        self._expire()
        reservation = self._reservations.get(number)
        if reservation is None or reservation.what != f"{amount:g} for {ticket.id}":
            return False
        del self._reservations[number]
        return True

    def _expire(self) -> None:
        now = self._now()
        for number, reservation in list(self._reservations.items()):
            if reservation.until <= now:
                del self._reservations[number]
                self._note(f"released {reservation.what} ({number}), as nobody agreed in time")

    def _note(self, what: str) -> None:
        self._done.append((self._now(), what))


def _with_note(what: str, note: str) -> str:
    return f"{what}: {note}" if note else what
