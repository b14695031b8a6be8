"""Both eras on one connection that carries whole messages both ways, such as stdio.

The era of a request is in its `_meta`, and nothing pins it: `initialize` opens the session of this connection whatever
came before. Requests run beside each other; what has an order (`initialize`, notifications, answers) is taken in it.
Source: basic/transports/stdio of 2026-07-28, basic/transports of the legacy revisions.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from bridge.eras.batches import Batches
from bridge.eras.listening import LISTEN
from bridge.eras.shutting_down import SHUTTING_DOWN
from bridge.errors import ProtocolError, StoreError
from bridge.protocol.clients import ANONYMOUS, Principal
from bridge.protocol.inbound import Rejected, check_modern, is_modern
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
    decode,
    encode,
    error_message,
    notification,
    result_message,
)
from bridge.publishing import Change
from bridge.session import STANDALONE, Session
from bridge.sessions import TooManySessions
from bridge.transports.parts import Parts
from bridge.transports.running import STORE_AWAY, ConnectionExchange, RunningRequests, Say

__all__ = ["GRACE_SECONDS", "MAX_RUNNING", "Connection", "Guest"]

MAX_RUNNING: Final = 1024
"""How many requests may be under way; one more is refused. Reading never waits for them to end, so that the answers
and cancellations that they may wait for come through."""

GRACE_SECONDS: Final = 1.5
"""How long what runs may go on at the end. The official SDK's client waits two seconds before it sends a signal."""

_TOO_MANY: Final = f"Too many requests: {MAX_RUNNING} are under way; send this one again when some are over"
_CLEANUP_SECONDS: Final = 5.0
_BEAT_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 1.0
_log = logging.getLogger("bridge.connection")


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at the other end, and how long that may matter.

    Args:
        principal: who is authenticated.
        http: the ASGI scope of the request that opened the connection; None where there was none.
        can_be_modern: whether requests that stand alone are served too; otherwise only a session is.
        grace_seconds: how long what runs may go on when the connection is to end.
    """

    principal: Principal = ANONYMOUS
    http: Mapping[str, Any] | None = None
    can_be_modern: bool = True
    grace_seconds: float = GRACE_SECONDS


class Connection:
    """One client's connection.

    Args:
        parts: what answers.
        write: sends one message; it raises OSError when the client is not there any more.
        guest: who is at the other end.
    """

    def __init__(self, parts: Parts, write: Say, guest: Guest | None = None) -> None:
        self._modern = parts.modern
        self._legacy = parts.legacy
        self._batches = Batches(parts.legacy, parts.sessions, parts.node.cut_off)
        self._sessions = parts.sessions
        self._publisher = parts.publisher
        self._write = write
        self._guest = guest or Guest()
        self._session: Session | None = None
        self._running = RunningRequests(parts.node, self._say, self._guest.http)
        self._is_lost = False
        self._is_stopping = False
        self._is_serving = False
        self._reading = anyio.CancelScope()
        self._tasks = anyio.create_task_group()

    async def serve(self, read: Callable[[], Awaitable[list[bytes] | None]]) -> None:
        """Take messages until there are no more, then let what runs end.

        Args:
            read: gives the messages that have come, and None after the last.
        """
        async with self._tasks:
            self._is_serving = True
            if self._is_stopping:
                self._tasks.start_soon(self._wind_down)
            try:
                with self._reading:
                    while (messages := await read()) is not None:
                        for message in messages:
                            await self._take(message)
            finally:
                with anyio.CancelScope(shield=True):
                    at_once = self._is_lost or self._is_stopping
                    await self._running.finish(0 if at_once else self._guest.grace_seconds, GRACE_SECONDS)
                    await self._end_session()
            self._tasks.cancel_scope.cancel()

    @property
    def is_asking(self) -> bool:
        """Whether a person at the client is being asked something; many clients read nothing meanwhile."""
        return self._running.is_asking

    def stop(self) -> None:
        """Refuse new requests, and let what runs end; answers and cancellations still reach it."""
        if not self._is_stopping:
            self._is_stopping = True
            if self._is_serving:
                self._tasks.start_soon(self._wind_down)

    async def _wind_down(self) -> None:
        await self._running.finish(self._guest.grace_seconds, GRACE_SECONDS)
        self._reading.cancel()

    def lose(self) -> None:
        """The client is not there any more: what runs is cancelled, and nothing more is sent."""
        self._is_lost = True
        self._reading.cancel()

    async def _say(self, message: bytes) -> None:
        if self._is_lost:
            return
        try:
            await self._write(message)
        except OSError as error:
            _log.info("the client does not read any more: %s", error)
            self.lose()

    async def _refuse(self, identity: RequestId | UnsetType, code: int, text: str, data: object = None) -> None:
        await self._say(encode(error_message(identity, code, text, data)))

    async def _take(self, data: bytes) -> None:
        try:
            message = decode(data)
        except ProtocolError as error:
            return await self._refuse(UNSET, error.code, error.message)
        try:
            if isinstance(message, Request):
                await self._requested(message)
            elif isinstance(message, Notification):
                await self._notified(message)
            elif isinstance(message, Response):
                self._running.answered(message.id)
                if self._session is not None:
                    await self._sessions.answer(self._session, message)
            elif isinstance(message, Invalid):
                await self._refuse(message.id, INVALID_REQUEST, f"Invalid request: {message.reason}")
            else:
                await self._batch(message)
        except StoreError as error:
            _log.error("a message was lost: %s", error)

    async def _requested(self, request: Request) -> None:
        if len(self._running) >= MAX_RUNNING:
            # Those that only had no turn yet get it.
            await anyio.lowlevel.checkpoint()
        if self._is_stopping:
            await self._refuse(request.id, INTERNAL_ERROR, SHUTTING_DOWN)
        elif request.id in self._running:
            _log.warning("a request was dropped: its id %r is in use by a request under way", request.id)
        elif len(self._running) >= MAX_RUNNING:
            await self._refuse(request.id, INTERNAL_ERROR, _TOO_MANY)
        elif self._guest.can_be_modern and is_modern(request.params, None):
            await self._modern_requested(request)
        elif self._session is not None:
            self._start_legacy(request, self._session)
        elif request.method == "initialize":
            await self._initialize(request)
        elif request.method == "ping":
            await self._say(encode(result_message(request.id, {})))
        else:
            otherwise = ", or a protocol version in its _meta" if self._guest.can_be_modern else ""
            text = f"Invalid request: {request.method} needs initialize before it{otherwise}"
            await self._refuse(request.id, INVALID_REQUEST, text)

    async def _modern_requested(self, request: Request) -> None:
        accepted = check_modern(request, None)
        if isinstance(accepted, Rejected):
            await self._refuse(accepted.id, accepted.code, accepted.message, accepted.data)
            return

        async def handle(exchange: ConnectionExchange) -> Json:
            reply = await self._modern.handle(accepted, self._guest.principal, exchange, None)
            if request.method == LISTEN and "result" in reply:
                # On a channel that goes on, this says that nothing more comes for the subscription.
                over = notification("notifications/cancelled", {"requestId": request.id})
                exchange.on_delivered = lambda: self._say(encode(over))
            return reply

        self._running.start(request, handle)

    def _start_legacy(self, request: Request, session: Session) -> None:
        async def handle(exchange: ConnectionExchange) -> Json:
            session.running[request.id] = exchange
            try:
                return await self._legacy.handle(session, request, exchange)
            finally:
                del session.running[request.id]

        self._running.start(request, handle)

    async def _initialize(self, request: Request) -> None:
        try:
            self._session, reply = await self._legacy.initialize(request, self._guest.principal)
        except ProtocolError as error:
            await self._refuse(request.id, error.code, error.message)
        except TooManySessions as full:
            await self._refuse(request.id, INTERNAL_ERROR, f"Too many sessions: {full}")
        except StoreError as error:
            _log.error("initialize: %s", error)
            await self._refuse(request.id, INTERNAL_ERROR, STORE_AWAY)
        else:
            await self._say(encode(reply))
            self._tasks.start_soon(self._follow, self._session)

    async def _notified(self, message: Notification) -> None:
        if message.method == "notifications/cancelled":
            if not self._running.withdraw(message.params.get("requestId")) and self._session is not None:
                # An entry of a batch.
                await self._legacy.notified(self._session, message)
        elif self._session is not None and not is_modern(message.params, None):
            await self._legacy.notified(self._session, message)

    async def _batch(self, messages: list[Message]) -> None:
        session = self._session
        if session is None:
            return await self._refuse(UNSET, INVALID_REQUEST, "Invalid request: a batch needs initialize before it")
        if self._is_stopping:
            return await self._refuse(UNSET, INTERNAL_ERROR, SHUTTING_DOWN)
        refused = self._batches.refused(session, messages)
        if refused is not None:
            return await self._refuse(UNSET, refused.code, refused.message)
        if len(self._running) >= MAX_RUNNING:
            return await self._refuse(UNSET, INTERNAL_ERROR, _TOO_MANY)

        async def run() -> None:
            reply = await self._batches.run(session, messages, self._guest.http)
            if reply.messages:
                await self._say(encode(reply.messages))
            await reply.delivered()

        return self._running.start_other(run)

    async def _follow(self, session: Session) -> None:
        """Send what belongs to no call, and keep the session from going idle."""
        outbox = self._sessions.outbox(session, STANDALONE)
        patience = min(_BEAT_SECONDS, max(self._sessions.idle_seconds / 3, 0.1))

        async def tell(change: Change) -> None:
            if change.kind != "resource" or change.uri in session.record.subscriptions:
                await self._sessions.notify(session, change.message())

        stop = self._publisher.listen(tell)
        try:
            while True:
                try:
                    entries = await outbox.next(patience)
                    await self._sessions.touch(session)
                except StoreError as error:
                    _log.warning("session %s: the store is away: %s", session.id, error)
                    await anyio.sleep(_RETRY_SECONDS)
                    continue
                for entry in entries:
                    await self._say(entry.value[1:])
        finally:
            stop()

    async def _end_session(self) -> None:
        """Nobody can come back to the session of a connection."""
        if self._session is None:
            return
        with anyio.move_on_after(_CLEANUP_SECONDS):
            try:
                await self._sessions.end(self._session)
            except StoreError as error:
                _log.warning("session %s runs out by itself: %s", self._session.id, error)
