"""What nodes tell each other of a call that is suspended in one of them and answered at another.

Who holds calls reads its orders in one log of its own. What it has to say of a call it writes into a log that the
order names. This module knows no call: only what travels.
"""

import secrets
from typing import Any, Final, TypeAlias

import msgspec

from bridge.asking.journal import Journal
from bridge.asking.question import Question
from bridge.stores.base import Store
from bridge.stores.reader import LogReader
from bridge.upstreams.base import Failed, Finished

__all__ = ["Asks", "Cancel", "Event", "GoOn", "Gone", "Keep", "Logged", "Order", "Over", "Post", "Progressed"]

_LOG_SECONDS: Final = 600.0
_MAX_ORDERS: Final = 10_000
_MAX_EVENTS: Final = 1000


class GoOn(msgspec.Struct, frozen=True, tag=True):
    """Go on with a call.

    Args:
        call_id: which.
        driver: names this driving of it, and the log for what happens.
        node: who drives it. Where that node is lost, nobody wants the call any more.
        journal: what is known of the call, its answers among it.
        wants_progress: whether its client wants to hear of progress.
        log_level: the lowest level of log messages that its client wants, or None for none.
    """

    call_id: str
    driver: str
    node: str
    journal: Journal
    wants_progress: bool
    log_level: str | None


class Keep(msgspec.Struct, frozen=True, tag=True):
    """Stay suspended though the request that asked has ended, until then (seconds since the epoch)."""

    call_id: str
    driver: str
    until: float


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """End a call without an answer."""

    call_id: str
    driver: str


Order: TypeAlias = GoOn | Keep | Cancel


class Progressed(msgspec.Struct, frozen=True, tag=True):
    """The call reports progress."""

    progress: float
    total: float | None
    message: str | None


class Logged(msgspec.Struct, frozen=True, tag=True):
    """The call logs."""

    level: str
    data: Any
    logger: str | None


class Asks(msgspec.Struct, frozen=True, tag=True):
    """The call has stopped at questions.

    Args:
        questions: what is asked.
        journal: what is known of the call now.
        holds: whether it stays suspended; else it is run again with the answers.
    """

    questions: list[Question]
    journal: Journal
    holds: bool


class Over(msgspec.Struct, frozen=True, tag=True):
    """Nobody's answer is wanted any more: the call has ended, or has withdrawn its question."""


class Gone(msgspec.Struct, frozen=True, tag=True):
    """No such call is suspended here."""


Event: TypeAlias = Progressed | Logged | Asks | Over | Gone | Finished | Failed


class Post:
    """Carries orders to a node, and what happens back from it.

    Args:
        store: what the nodes share.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def order(self, node: str, order: Order) -> None:
        """Tell a node what to do with a call that it holds."""
        await self._append(f"orders/{node}", order, _MAX_ORDERS)

    def orders(self, node: str) -> LogReader:
        """What a node is told, from its first order on."""
        return LogReader(self._store, f"orders/{node}")

    async def report(self, driver: str, event: Event) -> None:
        """Tell who drives a call what has happened.

        Raises:
            ValueError: what happened cannot be written down.
        """
        await self._append(f"driven/{driver}", event, _MAX_EVENTS)

    def events(self, driver: str) -> LogReader:
        """What happened to a call since it was driven under that name."""
        return LogReader(self._store, f"driven/{driver}")

    async def _append(self, log: str, message: Order | Event, most: int) -> None:
        try:
            value = msgspec.json.encode(message)
        except (OverflowError, TypeError) as error:
            raise ValueError(str(error)) from error
        await self._store.append(log, value, ttl_seconds=_LOG_SECONDS, max_entries=most)

    @staticmethod
    def new_driver() -> str:
        """A name for one driving of a call that nobody can guess."""
        return secrets.token_urlsafe(12)

    @staticmethod
    def read_order(value: bytes) -> Order:
        """Read an order."""
        return _orders.decode(value)

    @staticmethod
    def read_event(value: bytes) -> Event:
        """Read what happened."""
        return _events.decode(value)


_orders: Final[msgspec.json.Decoder[Order]] = msgspec.json.Decoder(Order)
_events: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)
