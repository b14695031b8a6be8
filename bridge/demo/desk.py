"""The help desk's memory: a log of effects in the bridge's store, which every node of a fleet folds into the same desk.

An effect is one entry, appended at once: it is there as a whole or not at all, and once. What came of it is known
when it is read back, behind all that happened before it, whoever did that. Every now and then what all this comes to is
kept as a record, so that the log need not be kept for ever.
"""

import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import anyio
import msgspec

from bridge import ToolError
from bridge.demo.effects import (
    Agent,
    Assigned,
    Closed,
    Connected,
    Deleted,
    Deployed,
    Effect,
    Expired,
    Merged,
    Opened,
    Outcome,
    Priority,
    Refunded,
    Released,
    Renamed,
    Reserved,
    Restarted,
    State,
    Ticket,
    touched,
)
from bridge.errors import StoreError
from bridge.stores import LogEntry, LogPage, Store

__all__ = ["Desk"]

_LOG: Final = "demo/desk"
_KEPT: Final = "demo/desk"
_KEEP_SECONDS: Final = 365 * 86400.0
_KEEP_EVERY: Final = 1_000
_MAX_ENTRIES: Final = 10 * _KEEP_EVERY
"""More than enough for a node that was to keep the desk and was lost at that moment."""

_PAGE: Final = 1_000
_log = logging.getLogger("bridge.demo")
_Result = TypeVar("_Result")


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """An effect, the time, and the name under which the one who appended it waits for its outcome."""

    name: str
    at: float
    effect: Effect


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """What was the case after the log's entry of that number."""

    seq: int
    state: State


class Desk:
    """A small help desk.

    Args:
        store: where it lives; those who share it see the same desk.
        now: the time, in seconds.
        changed: told the URI of each resource that has changed.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], float] = time.time,
        changed: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        self._store = store
        self._now = now
        self._changed = changed
        self._state: State | None = None
        self._seq = 0
        self._outcomes: dict[str, Outcome] = {}
        self._reading = anyio.Lock(fast_acquire=True)

    async def restart(self) -> None:
        """Be as new: the first tickets, and nothing done."""
        await self._do(Restarted())

    async def tickets(self) -> dict[str, Ticket]:
        """The tickets, by id."""
        return dict((await self._read()).tickets)

    async def find(self, ticket_id: str) -> Ticket:
        """The ticket of that id.

        Raises:
            ToolError: there is none.
        """
        ticket = (await self._read()).tickets.get(ticket_id)
        return await self._known(ticket, ticket_id)

    async def outbox(self) -> list[str]:
        """The mails to customers, oldest first."""
        return list((await self._read()).outbox)

    async def history(self, seconds: float | None = None) -> list[str]:
        """What was done, once each, oldest first: everything, or in the last `seconds`."""
        if (await self._read()).has_expired(self._now()):
            await self._do(Expired())
        since = 0.0 if seconds is None else self._now() - seconds
        return [what for at, what in (await self._read()).done if at >= since]

    async def close(self, ticket_id: str) -> Ticket:
        """Close a ticket and tell its customer."""
        return await self._known(await self._do(Closed(ticket_id)), ticket_id)

    async def assign(self, ticket_id: str, agent: Agent) -> Ticket:
        """Give a ticket to an agent."""
        return await self._known(await self._do(Assigned(ticket_id, agent)), ticket_id)

    async def rename(self, ticket_id: str, title: str) -> Ticket:
        """Give a ticket another title."""
        return await self._known(await self._do(Renamed(ticket_id, title)), ticket_id)

    async def delete(self, ticket_id: str) -> Ticket:
        """Delete a ticket for good."""
        return await self._known(await self._do(Deleted(ticket_id)), ticket_id)

    async def merge(self, kept: str, other: str, note: str) -> Ticket:
        """Make two tickets one."""
        return await self._known(await self._do(Merged(kept, other, note)), f"{kept} or {other}")

    async def open(self, title: str, priority: Priority, agent: Agent) -> Ticket:
        """Open a new ticket."""
        return _of(Ticket, await self._do(Opened(title, priority, agent)))

    async def deploy(self, environment: str, note: str) -> None:
        """Bring the help desk's newest version out."""
        await self._do(Deployed(environment, note))

    async def connect(self, provider: str) -> None:
        """Use an account at a provider from now on."""
        await self._do(Connected(provider))

    async def reserve(self, ticket_id: str, amount: float) -> str:
        """Put money aside for a refund, for 15 minutes; return the reservation's number.

        A call can end at its question: the client cannot be asked, its answer does not fit, nobody answers. The tool
        does not run again then, so no line of it can give the money back. That is why a reservation ends by itself.
        """
        return _of(str, await self._do(Reserved(ticket_id, amount)))

    async def refund(self, ticket_id: str, amount: float, reservation: str) -> bool:
        """Pay what was put aside; False where it no longer is."""
        return _of(bool, await self._do(Refunded(ticket_id, amount, reservation)))

    async def release(self, ticket_id: str, amount: float, reservation: str) -> None:
        """Give back what was put aside, where it still is."""
        await self._do(Released(ticket_id, amount, reservation))

    async def _known(self, found: Outcome, ticket_id: str) -> Ticket:
        if not isinstance(found, Ticket):
            known = ", ".join((await self._read()).tickets)
            raise ToolError(f"Unknown ticket {ticket_id}. The tickets are {known}.")
        return found

    async def _do(self, effect: Effect) -> Outcome:
        """Let an effect happen, and return what it came to."""
        name = secrets.token_hex(8)
        self._outcomes[name] = None
        entry = msgspec.json.encode(_Entry(name, self._now(), effect))
        try:
            seq = await self._store.append(_LOG, entry, ttl_seconds=_KEEP_SECONDS, max_entries=_MAX_ENTRIES)
            await self._read()
            outcome = self._outcomes[name]
        finally:
            del self._outcomes[name]
        try:
            if seq % _KEEP_EVERY == 0:
                await self._keep()
            await self._tell(effect, outcome)
        except StoreError as error:
            _log.warning("the desk has changed, and not everybody was told: %s", error)
        return outcome

    async def _tell(self, effect: Effect, outcome: Outcome) -> None:
        ids = [outcome.id] if isinstance(effect, Opened) and isinstance(outcome, Ticket) else list(touched(effect))
        if self._changed is None or not ids or outcome is None:
            return
        for uri in ("desk://tickets", *(f"desk://tickets/{each}" for each in ids)):
            await self._changed(uri)

    async def _read(self) -> State:
        """What is the case, with everything that has happened by now."""
        async with self._reading:
            state = self._state
            page = await self._page() if state is not None else None
            if state is None or page is None or not self._goes_on(page):
                state = await self._begin()
                page = await self._page()
            while page.entries:
                for entry in page.entries:
                    self._fold(state, entry)
                if self._seq >= page.last_seq:
                    break
                page = await self._page()
            return state

    async def _page(self) -> LogPage:
        return await self._store.read(_LOG, after=self._seq, limit=_PAGE)

    def _goes_on(self, page: LogPage) -> bool:
        """Whether nothing is missing between what was read and this page; else the store has lost its data."""
        return page.first_seq <= self._seq + 1 and page.last_seq >= self._seq

    async def _begin(self) -> State:
        kept = await self._store.get(_KEPT)
        found = _Kept(0, State()) if kept is None else _kept_decoder.decode(kept.value)
        self._state, self._seq = found.state, found.seq
        return found.state

    def _fold(self, state: State, entry: LogEntry) -> None:
        happened = _entry_decoder.decode(entry.value)
        outcome = state.apply(happened.effect, happened.at)
        self._seq = entry.seq
        if happened.name in self._outcomes:
            self._outcomes[happened.name] = outcome

    async def _keep(self) -> None:
        """Keep what is the case. Two nodes that do this at once do no harm: the log has what the older one lacks."""
        assert self._state is not None
        await self._store.put(_KEPT, msgspec.json.encode(_Kept(self._seq, self._state)), ttl_seconds=None)


def _of(kind: type[_Result], outcome: Any) -> _Result:
    """The outcome, which is there unless the store has lost its data in between."""
    if not isinstance(outcome, kind):
        raise ToolError("The help desk's data were lost while this was done.")
    return outcome


_entry_decoder: Final = msgspec.json.Decoder(_Entry)
_kept_decoder: Final = msgspec.json.Decoder(_Kept)
