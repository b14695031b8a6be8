"""JSON-RPC batches, which only 2025-03-26 has. Each entry is handled in full; the replies come in one array.

An entry has no stream of its own, so that one that asks goes by the chat. Source: basic/index#batching of 2025-03-26.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from msgspec import UnsetType

from bridge.calls import Keeper
from bridge.eras.ports import Legacy
from bridge.eras.shutting_down import cut_off
from bridge.errors import StoreError
from bridge.protocol.inbound import Rejected
from bridge.protocol.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Invalid,
    Json,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    error_message,
)
from bridge.session import Session
from bridge.sessions import Sessions

__all__ = ["MAX_BATCH", "BatchReply", "Batches"]

MAX_BATCH: Final = 50
"""How many entries a batch may have."""


_log = logging.getLogger("bridge.batches")


class BatchReply:
    """The replies of a batch, and what goes with their delivery."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.deliveries: list[Callable[[], Awaitable[None]]] = []

    async def delivered(self) -> None:
        """Do what goes with the delivery, once the replies have been sent."""
        for follow_up in self.deliveries:
            try:
                await follow_up()
            except StoreError as error:
                _log.warning("a reply was delivered, and the store does not take it: %s", error)


class _EntryExchange:
    """One request of a batch: nothing can be sent before the reply."""

    can_stream = False
    on_gone: Callable[[], None] | None = None
    on_closing: Callable[[], None] | None = None
    keeper: Keeper | None = None
    on_delivered: Callable[[], Awaitable[None]] | None = None

    def __init__(self, http: Mapping[str, Any] | None) -> None:
        self.http = http
        self.scope = anyio.CancelScope()
        self.is_cut_off = False

    async def send(self, message: Json) -> None:
        """See `Exchange`: there is no way for it."""

    async def leave(self) -> None:
        """See `Exchange`: there is no stream."""

    def cancel(self) -> None:
        """See `Exchange`."""
        self.scope.cancel()


class _Entries:
    """The requests of one batch, under way or answered."""

    def __init__(self, legacy: Legacy, session: Session, http: Mapping[str, Any] | None) -> None:
        self._legacy = legacy
        self._session = session
        self._http = http
        self._begun: list[_EntryExchange] = []
        self._replies: dict[int, Json] = {}
        self._reply = BatchReply()

    def refuse(self, position: int, identity: RequestId | UnsetType, reason: str) -> None:
        self._replies[position] = error_message(identity, INVALID_REQUEST, f"Invalid request: {reason}")

    def begin(self, request: Request) -> _EntryExchange:
        """Take an id at once, so that a second entry with it finds it in use."""
        exchange = self._session.running[request.id] = _EntryExchange(self._http)
        self._begun.append(exchange)
        return exchange

    def cut_off(self) -> None:
        """The node waits no longer."""
        for exchange in self._begun:
            exchange.is_cut_off = True
            exchange.cancel()

    async def answer(self, position: int, request: Request, exchange: _EntryExchange) -> None:
        try:
            with exchange.scope:
                self._replies[position] = await self._legacy.handle(self._session, request, exchange)
            if exchange.is_cut_off and position not in self._replies:
                self._replies[position] = cut_off(request)
        except Exception:
            _log.exception("an entry of a batch failed: %s", request.method)
            text = "Internal error; its details are in the server's log"
            self._replies[position] = error_message(request.id, INTERNAL_ERROR, text)
        finally:
            del self._session.running[request.id]
        if exchange.on_delivered is not None:
            self._reply.deliveries.append(exchange.on_delivered)

    def reply(self) -> BatchReply:
        """The replies, in the order of their requests."""
        self._reply.messages = [self._replies[position] for position in sorted(self._replies)]
        return self._reply


class Batches:
    """Handles batches.

    Args:
        legacy: answers the requests.
        sessions: takes the answers.
        cut_off: waits until nothing may run any longer.
    """

    def __init__(self, legacy: Legacy, sessions: Sessions, cut_off: Callable[[], Awaitable[None]]) -> None:
        self._cut_off = cut_off
        self._legacy = legacy
        self._sessions = sessions

    def refused(self, session: Session, messages: list[Message]) -> Rejected | None:
        """Why a batch is refused as a whole, nothing of it executed; or None."""
        revision = session.profile.revision
        if not revision.batches:
            text = f"Batches are not served under {revision.name}; send one message at a time"
        elif not messages:
            text = "Invalid request: an empty batch"
        elif len(messages) > MAX_BATCH:
            text = f"A batch may have at most {MAX_BATCH} entries, not {len(messages)}"
        elif any(isinstance(message, Request) and message.method == "initialize" for message in messages):
            text = "initialize must not be part of a batch"
        else:
            return None
        return Rejected(INVALID_REQUEST, text)

    async def run(self, session: Session, messages: list[Message], http: Mapping[str, Any] | None) -> BatchReply:
        """Handle every entry, at once; the replies stand in the order of their requests.

        Args:
            session: whose batch it is.
            messages: the entries.
            http: the ASGI scope that they came by; None where there was none.
        """
        entries = _Entries(self._legacy, session, http)
        async with anyio.create_task_group() as watch:
            watch.start_soon(self._end_in_time, entries)
            async with anyio.create_task_group() as tasks:
                for position, message in enumerate(messages):
                    if isinstance(message, Invalid):
                        entries.refuse(position, message.id, message.reason)
                    elif not isinstance(message, Request):
                        await self._take(session, message)
                    elif message.id in session.running:
                        entries.refuse(position, message.id, f"the id {message.id!r} is in use by a request under way")
                    else:
                        tasks.start_soon(entries.answer, position, message, entries.begin(message))
            watch.cancel_scope.cancel()
        return entries.reply()

    async def _end_in_time(self, entries: "_Entries") -> None:
        await self._cut_off()
        entries.cut_off()

    async def _take(self, session: Session, message: Notification | Response) -> None:
        """Take what gets no reply; that the store is away then must not end the entries beside it."""
        try:
            if isinstance(message, Notification):
                await self._legacy.notified(session, message)
            else:
                await self._sessions.answer(session, message)
        except StoreError as error:
            _log.error("a message was lost: %s", error)
