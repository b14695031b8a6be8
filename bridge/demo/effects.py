"""What can happen at the help desk, and what is the case once it has. Pure: time comes in with each effect.

The desk is what its effects made of it, in their order. Every node folds the same effects in the same order, so
every node sees the same desk, and what an effect comes to is decided by its place among the others: of two that delete
a ticket the first does.
"""

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

__all__ = [
    "AGENTS",
    "MAX_LINES",
    "PRIORITIES",
    "RESERVATION_SECONDS",
    "Agent",
    "Assigned",
    "Closed",
    "Connected",
    "Deleted",
    "Deployed",
    "Effect",
    "Expired",
    "Merged",
    "Opened",
    "Outcome",
    "Priority",
    "Refunded",
    "Released",
    "Renamed",
    "Reserved",
    "Restarted",
    "State",
    "Ticket",
    "touched",
]

Agent = Literal["access", "billing", "general"]
Priority = Literal["low", "normal", "high"]

AGENTS: tuple[Agent, ...] = ("access", "billing", "general")
PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high")

RESERVATION_SECONDS: Final = 900.0
"""How long money stays put aside for a refund that nobody has agreed to."""

MAX_LINES: Final = 50_000
"""How many lines of the history, and how many mails, are remembered; the oldest are forgotten."""


class Ticket(msgspec.Struct, frozen=True):
    """A customer's ticket."""

    id: str
    title: str
    agent: Agent | None = None
    priority: Priority = "normal"
    status: Literal["open", "closed"] = "open"


class Closed(msgspec.Struct, frozen=True, tag=True):
    """A ticket was closed, and its customer told."""

    id: str


class Assigned(msgspec.Struct, frozen=True, tag=True):
    """A ticket was given to an agent."""

    id: str
    agent: Agent


class Renamed(msgspec.Struct, frozen=True, tag=True):
    """A ticket was given another title."""

    id: str
    title: str


class Deleted(msgspec.Struct, frozen=True, tag=True):
    """A ticket was deleted for good."""

    id: str


class Merged(msgspec.Struct, frozen=True, tag=True):
    """Two tickets were made one."""

    kept: str
    other: str
    note: str


class Opened(msgspec.Struct, frozen=True, tag=True):
    """A ticket was opened."""

    title: str
    priority: Priority
    agent: Agent


class Deployed(msgspec.Struct, frozen=True, tag=True):
    """The help desk's newest version was brought out."""

    environment: str
    note: str


class Connected(msgspec.Struct, frozen=True, tag=True):
    """An account at a provider is used from now on."""

    provider: str


class Reserved(msgspec.Struct, frozen=True, tag=True):
    """Money was put aside for a refund."""

    id: str
    amount: float


class Refunded(msgspec.Struct, frozen=True, tag=True):
    """Money that was put aside was paid, where it still was."""

    id: str
    amount: float
    reservation: str


class Released(msgspec.Struct, frozen=True, tag=True):
    """Money that was put aside was given back, where it still was."""

    id: str
    amount: float
    reservation: str


class Expired(msgspec.Struct, frozen=True, tag=True):
    """Somebody looked; what was put aside for too long is released."""


class Restarted(msgspec.Struct, frozen=True, tag=True):
    """Everything was put back to how it was."""


Effect: TypeAlias = (
    Closed
    | Assigned
    | Renamed
    | Deleted
    | Merged
    | Opened
    | Deployed
    | Connected
    | Reserved
    | Refunded
    | Released
    | Expired
    | Restarted
)

Outcome: TypeAlias = Ticket | str | bool | None
"""What an effect came to: the ticket, a reservation's number, whether it happened; None where its ticket is gone."""


class Reservation(msgspec.Struct, frozen=True):
    """Money that is put aside."""

    what: str
    until: float


def _first_tickets() -> dict[str, Ticket]:
    first = (
        Ticket("T-1", "Cannot log in", agent="access"),
        Ticket("T-2", "Invoice total is wrong"),
        Ticket("T-3", "Login link expired", agent="access"),
        Ticket("T-4", "Password reset email missing", priority="high"),
    )
    return {ticket.id: ticket for ticket in first}


class State(msgspec.Struct):
    """What is the case at the help desk.

    Args:
        tickets: by id.
        outbox: the mails to customers, oldest first.
        done: when what was done, oldest first.
        reservations: the money that is put aside, by number.
        opened: how many tickets there ever were.
        noted: how many lines the history ever had.
    """

    tickets: dict[str, Ticket] = msgspec.field(default_factory=_first_tickets)
    outbox: list[str] = []
    done: list[tuple[float, str]] = []
    reservations: dict[str, Reservation] = {}
    opened: int = 4
    noted: int = 0

    def has_expired(self, at: float) -> bool:
        """Whether money has been put aside for too long."""
        return any(reservation.until <= at for reservation in self.reservations.values())

    def apply(self, effect: Effect, at: float) -> Outcome:
        """Let an effect happen."""
        if isinstance(effect, Restarted):
            return self._restart()
        for number, reservation in list(self.reservations.items()):
            if reservation.until <= at:
                del self.reservations[number]
                self._note(at, f"released {reservation.what} ({number}), as nobody agreed in time")
        match effect:
            case Deployed(environment, note):
                return self._note(at, _with_note(f"deployed to {environment}", note))
            case Connected(provider):
                return self._note(at, f"connected {provider}")
            case Reserved() | Refunded() | Released():
                return self._pay(effect, at)
            case Expired():
                return True
            case _:
                return self._change(effect, at)

    def _restart(self) -> bool:
        self.tickets = _first_tickets()
        self.outbox, self.done, self.reservations = [], [], {}
        self.opened, self.noted = len(self.tickets), 0
        return True

    def _change(self, effect: Opened | Closed | Assigned | Renamed | Deleted | Merged, at: float) -> Ticket | None:
        if isinstance(effect, Opened):
            self.opened += 1
            opened = Ticket(f"T-{self.opened}", effect.title, effect.agent, effect.priority)
            return self._set(opened, at, f"opened {opened.id}")
        ticket = self.tickets.get(effect.kept if isinstance(effect, Merged) else effect.id)
        if ticket is None or (isinstance(effect, Merged) and effect.other not in self.tickets):
            return None
        match effect:
            case Closed():
                self._mail(f'To the customer of {ticket.id}: "{ticket.title}" is resolved.')
                return self._set(msgspec.structs.replace(ticket, status="closed"), at, f"closed {ticket.id}")
            case Assigned(_, agent):
                return self._set(msgspec.structs.replace(ticket, agent=agent), at, f"assigned {ticket.id} to {agent}")
            case Renamed(_, title):
                return self._set(msgspec.structs.replace(ticket, title=title), at, f"renamed {ticket.id}")
            case Deleted():
                del self.tickets[ticket.id]
                self._note(at, f"deleted {ticket.id}")
            case Merged(_, other, note):
                del self.tickets[other]
                self._note(at, _with_note(f"merged {other} into {ticket.id}", note))
        return ticket

    def _pay(self, effect: Reserved | Refunded | Released, at: float) -> Outcome:
        if isinstance(effect, Reserved):
            number, what = f"R-{self.noted + 1}", f"{effect.amount:g} for {effect.id}"
            self.reservations[number] = Reservation(what, at + RESERVATION_SECONDS)
            self._note(at, f"reserved {what} ({number})")
            return number
        what = f"{effect.amount:g} for {effect.id}"
        if effect.reservation not in self.reservations or self.reservations[effect.reservation].what != what:
            return False
        del self.reservations[effect.reservation]
        what = f"{what} ({effect.reservation})"
        if isinstance(effect, Released):
            return self._note(at, f"released {what}")
        self._mail(f"To the customer of {effect.id}: {effect.amount:g} is on its way.")
        return self._note(at, f"refunded {what}")

    def _set(self, ticket: Ticket, at: float, what: str) -> Ticket:
        self.tickets[ticket.id] = ticket
        self._note(at, what)
        return ticket

    def _mail(self, text: str) -> None:
        self.outbox.append(text)
        del self.outbox[:-MAX_LINES]

    def _note(self, at: float, what: str) -> bool:
        self.noted += 1
        self.done.append((at, what))
        del self.done[:-MAX_LINES]
        return True


def touched(effect: Effect) -> Iterator[str]:
    """The ids of the tickets that an effect changes; that of a new one is in its outcome."""
    match effect:
        case Closed(id) | Assigned(id, _) | Renamed(id, _) | Deleted(id):
            yield id
        case Merged(kept, other, _):
            yield kept
            yield other


def _with_note(what: str, note: str) -> str:
    return f"{what}: {note}" if note else what
