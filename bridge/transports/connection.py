"""Both eras on one connection that carries whole messages both ways, such as stdio.

The era of a request is in its `_meta`, and nothing pins it: `initialize` opens the session of this connection whatever
came before. Each request is a task of its own; what has an order (`initialize`, notifications, answers) is taken in it.
Source: basic/transports/stdio of 2026-07-28, basic/transports of the legacy revisions.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from msgspec import UNSET, UnsetType

from bridge.errors import ProtocolError, StoreError
from bridge.protocol.clients import ANONYMOUS
from bridge.protocol.inbound import Rejected, check_modern, is_modern
from bridge.protocol.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Invalid,
    Json,
    Notification,
    Request,
    RequestId,
    Response,
    decode,
    encode,
    error_message,
    result_message,
)
from bridge.publishing import Change
from bridge.sessions import STANDALONE, Session, TooManySessions
from bridge.transports.parts import Parts

__all__ = ["GRACE_SECONDS", "MAX_RUNNING", "Connection"]

MAX_RUNNING: Final = 1024
"""How many requests may be under way; one more is refused. Reading never waits for them, so that the answers and
cancellations that they may wait for come through."""

GRACE_SECONDS: Final = 1.5
"""How long what runs may go on at the end. The official SDK's client waits two seconds before it sends a signal."""

_CLEANUP_SECONDS: Final = 5.0
_BEAT_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = 1.0
_STORE_AWAY: Final = "The server's store is away; try again"
_log = logging.getLogger("bridge.connection")

Write = Callable[[bytes], Awaitable[None]]
Handle = Callable[["ConnectionExchange"], Awaitable[Json]]


class ConnectionExchange:
    """A request under way; see `calls.Exchange`.

    Args:
        say: sends a message to the client.
        scope: what the request runs in.
    """

    can_stream = True

    def __init__(self, say: Write, scope: anyio.CancelScope) -> None:
        self._say = say
        self.scope = scope
        self.is_over = False
        self.task: asyncio.Task[None] | None = None
        self.on_gone: Callable[[], None] = self.cancel
        self.on_delivered: Callable[[], Awaitable[None]] | None = None
        self.on_closing: Callable[[], None] | None = None

    def cancel(self) -> None:
        """End the request; its client is told."""
        self.scope.cancel()

    def withdraw(self) -> None:
        """The client does not want the request any more: nothing more is sent for it."""
        self.is_over = True
        self.on_gone()

    async def send(self, message: Json) -> None:
        """Send a message before the reply."""
        if not self.is_over:
            await self._say(encode(message))

    async def finish(self, reply: bytes) -> None:
        """Send the reply."""
        if not self.is_over:
            await self._say(reply)
            self.is_over = True


class Connection:
    """One client's connection.

    Args:
        parts: what answers.
        write: sends one message; it raises OSError when the client is not there any more.
    """

    def __init__(self, parts: Parts, write: Write) -> None:
        self._parts = parts
        self._write = write
        self._principal = ANONYMOUS
        self._session: Session | None = None
        self._running: dict[RequestId, ConnectionExchange] = {}
        self._idle: anyio.Event | None = None
        self._is_lost = False
        self._reading = anyio.CancelScope()
        self._tasks = anyio.create_task_group()

    async def serve(self, read: Callable[[], Awaitable[list[bytes] | None]]) -> None:
        """Take messages until there are no more, then let what runs end.

        Args:
            read: gives the messages that have come, and None after the last.
        """
        try:
            async with self._tasks:
                with self._reading:
                    while (messages := await read()) is not None:
                        for message in messages:
                            await self._take(message)
                await self._finish()
                self._tasks.cancel_scope.cancel()
        finally:
            await self._end_session()

    def stop(self) -> None:
        """Read no more, and let what runs end."""
        self._reading.cancel()

    async def _say(self, message: bytes) -> None:
        if self._is_lost:
            return
        try:
            await self._write(message)
        except OSError as error:
            _log.info("the client does not read any more: %s", error)
            self._is_lost = True
            self.stop()

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
                if self._session is not None:
                    await self._parts.sessions.answer(self._session, message)
            elif isinstance(message, Invalid):
                await self._refuse(message.id, INVALID_REQUEST, f"Invalid request: {message.reason}")
            else:
                await self._refuse(UNSET, INVALID_REQUEST, "Batches are not served; send one message at a time")
        except StoreError as error:
            _log.error("a message was lost: %s", error)

    async def _requested(self, request: Request) -> None:
        if request.id in self._running:
            _log.warning("a request was dropped: its id %r is in use by a request under way", request.id)
        elif len(self._running) >= MAX_RUNNING:
            text = f"Too many requests: {MAX_RUNNING} are under way; send this one again when some are over"
            await self._refuse(request.id, INTERNAL_ERROR, text)
        elif is_modern(request.params, None):
            await self._modern_requested(request)
        elif self._session is not None:
            self._start_legacy(request, self._session)
        elif request.method == "initialize":
            await self._initialize(request)
        elif request.method == "ping":
            await self._say(encode(result_message(request.id, {})))
        else:
            text = f"Invalid request: {request.method} needs initialize before it, or a protocol version in its _meta"
            await self._refuse(request.id, INVALID_REQUEST, text)

    async def _modern_requested(self, request: Request) -> None:
        accepted = check_modern(request, None)
        if isinstance(accepted, Rejected):
            await self._refuse(accepted.id, accepted.code, accepted.message, accepted.data)
            return

        def handle(exchange: ConnectionExchange) -> Awaitable[Json]:
            return self._parts.modern.handle(accepted, self._principal, exchange, None)

        self._start(request, handle)

    def _start_legacy(self, request: Request, session: Session) -> None:
        async def handle(exchange: ConnectionExchange) -> Json:
            session.running[request.id] = exchange
            try:
                return await self._parts.legacy.handle(session, request, exchange)
            finally:
                del session.running[request.id]

        self._start(request, handle)

    def _start(self, request: Request, handle: Handle) -> None:
        exchange = self._running[request.id] = ConnectionExchange(self._say, self._parts.node.new_scope())
        # A task group would take a third of the time of a short call; `_finish` sees to it that none is left behind.
        exchange.task = asyncio.get_running_loop().create_task(self._run(request, handle, exchange))

    async def _run(self, request: Request, handle: Handle, exchange: ConnectionExchange) -> None:
        try:
            with exchange.scope:
                await exchange.finish(await _reply(request, handle, exchange))
                if exchange.on_delivered is not None and not self._is_lost:
                    await exchange.on_delivered()
            if exchange.scope.cancelled_caught:
                text = f"{request.method} was cancelled: the server is shutting down"
                await exchange.finish(encode(error_message(request.id, INTERNAL_ERROR, text)))
        except StoreError as error:
            _log.warning("a reply was delivered, and the store does not take it: %s", error)
        finally:
            del self._running[request.id]
            if self._idle is not None and not self._running:
                self._idle.set()

    async def _initialize(self, request: Request) -> None:
        try:
            self._session, reply = await self._parts.legacy.initialize(request, self._principal)
        except ProtocolError as error:
            await self._refuse(request.id, error.code, error.message)
        except TooManySessions as full:
            await self._refuse(request.id, INTERNAL_ERROR, f"Too many sessions: {full}")
        except StoreError as error:
            _log.error("initialize: %s", error)
            await self._refuse(request.id, INTERNAL_ERROR, _STORE_AWAY)
        else:
            await self._say(encode(reply))
            self._tasks.start_soon(self._follow, self._session)

    async def _notified(self, message: Notification) -> None:
        if message.method == "notifications/cancelled":
            self._withdraw(message.params.get("requestId"))
        elif self._session is not None and not is_modern(message.params, None):
            await self._parts.legacy.notified(self._session, message)

    def _withdraw(self, identity: Any) -> None:
        exchange = self._running.get(identity) if type(identity) in (int, str) else None
        if exchange is not None:
            exchange.withdraw()

    async def _follow(self, session: Session) -> None:
        """Send what belongs to no call, and keep the session from going idle."""
        sessions = self._parts.sessions
        outbox = sessions.outbox(session, STANDALONE)
        patience = min(_BEAT_SECONDS, sessions.idle_seconds / 3)

        async def tell(change: Change) -> None:
            if change.kind != "resource" or change.uri in session.record.subscriptions:
                await sessions.notify(session, change.message())

        stop = self._parts.publisher.listen(tell)
        try:
            while True:
                try:
                    entries = await outbox.next(patience)
                    await sessions.touch(session)
                except StoreError as error:
                    _log.warning("session %s: the store is away: %s", session.id, error)
                    await anyio.sleep(_RETRY_SECONDS)
                    continue
                for entry in entries:
                    await self._say(entry.value[1:])
        finally:
            stop()

    async def _finish(self) -> None:
        """Let what runs end within the grace time, and cancel the rest. Nobody can answer a question any more."""
        with anyio.move_on_after(0 if self._is_lost else GRACE_SECONDS):
            for exchange in list(self._running.values()):
                if exchange.on_closing is not None:
                    exchange.on_closing()
            await self._until_idle()
        for exchange in list(self._running.values()):
            exchange.cancel()
        with anyio.move_on_after(GRACE_SECONDS):
            await self._until_idle()
        # Somebody does not read what is left to be said.
        self._is_lost = True
        for exchange in self._running.values():
            if exchange.task is not None:
                exchange.task.cancel()
        await self._until_idle()

    async def _until_idle(self) -> None:
        self._idle = anyio.Event()
        if self._running:
            await self._idle.wait()

    async def _end_session(self) -> None:
        """Nobody can come back to the session of a connection."""
        if self._session is None:
            return
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            try:
                await self._parts.sessions.end(self._session)
            except StoreError as error:
                _log.warning("session %s runs out by itself: %s", self._session.id, error)


async def _reply(request: Request, handle: Handle, exchange: ConnectionExchange) -> bytes:
    try:
        return encode(await handle(exchange))
    except StoreError as error:
        _log.error("%s: %s", request.method, error)
        return encode(error_message(request.id, INTERNAL_ERROR, _STORE_AWAY))
    except Exception:
        _log.exception("a request failed: %s", request.method)
        text = "Internal error; its details are in the server's log"
        return encode(error_message(request.id, INTERNAL_ERROR, text))
