"""JSON-RPC batches, which only 2025-03-26 has. Each entry is handled in full; the replies come in one array.

An entry has no stream of its own, so that one that asks goes by the chat. Source: basic/index#batching of 2025-03-26.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio

from bridge.calls import Keeper
from bridge.eras.legacy import LegacyEra
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
    Response,
    error_message,
)
from bridge.sessions import Session, Sessions

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


class Batches:
    """Handles batches.

    Args:
        legacy: answers the requests.
        sessions: takes the answers.
        cut_off: waits until nothing may run any longer.
    """

    def __init__(self, legacy: LegacyEra, sessions: Sessions, cut_off: Callable[[], Awaitable[None]]) -> None:
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
        replies: dict[int, Json] = {}
        result = BatchReply()

        async def answer(position: int, request: Request, exchange: _EntryExchange) -> None:
            try:
                with exchange.scope:
                    replies[position] = await self._legacy.handle(session, request, exchange)
                if exchange.is_cut_off and position not in replies:
                    replies[position] = cut_off(request)
            except Exception:
                _log.exception("an entry of a batch failed: %s", request.method)
                text = "Internal error; its details are in the server's log"
                replies[position] = error_message(request.id, INTERNAL_ERROR, text)
            finally:
                del session.running[request.id]
            if exchange.on_delivered is not None:
                result.deliveries.append(exchange.on_delivered)

        async def end_in_time(begun: list[_EntryExchange]) -> None:
            await self._cut_off()
            for exchange in begun:
                exchange.is_cut_off = True
                exchange.cancel()

        begun: list[_EntryExchange] = []
        async with anyio.create_task_group() as watch:
            watch.start_soon(end_in_time, begun)
            async with anyio.create_task_group() as tasks:
                for position, message in enumerate(messages):
                    if isinstance(message, Invalid):
                        text = f"Invalid request: {message.reason}"
                        replies[position] = error_message(message.id, INVALID_REQUEST, text)
                    elif not isinstance(message, Request):
                        await self._take(session, message)
                    elif message.id in session.running:
                        text = f"Invalid request: the id {message.id!r} is in use by a request under way"
                        replies[position] = error_message(message.id, INVALID_REQUEST, text)
                    else:
                        # Taken at once, so that a second entry with this id finds it in use.
                        exchange = session.running[message.id] = _EntryExchange(http)
                        begun.append(exchange)
                        tasks.start_soon(answer, position, message, exchange)
            watch.cancel_scope.cancel()
        result.messages = [replies[position] for position in sorted(replies)]
        return result

    async def _take(self, session: Session, message: Notification | Response) -> None:
        """Take what gets no reply; that the store is away then must not end the entries beside it."""
        try:
            if isinstance(message, Notification):
                await self._legacy.notified(session, message)
            else:
                await self._sessions.answer(session, message)
        except StoreError as error:
            _log.error("a message was lost: %s", error)
