"""One HTTP request and the way back: JSON unless something has to be sent before the reply, then a stream.

An exchange runs in its request's own task. Only when it is still there at the node's pulse does it get a companion
task, which notices that the client has gone, opens the stream when nothing has come for a while, and keeps it
open with comments. Source: basic/transports/streamable-http#receiving-messages.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import anyio

from bridge.node import Node
from bridge.protocol.messages import Json, encode
from bridge.sessions import Session, Sessions
from bridge.transports.gate import Accepts

__all__ = [
    "EVENT_STREAM",
    "FINAL",
    "INTERIM",
    "Exchange",
    "Receive",
    "Send",
    "SessionExchange",
    "event",
    "send_json",
]

Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]

LATE_SECONDS: Final = 2.0
"""How long nothing may come before the stream is opened all the same."""

COMMENT_SECONDS: Final = 15.0
RETRY_MS: Final = 5000

FINAL: Final = b"\x01"
"""Marks, in a stream's log, the reply that ends the stream."""

INTERIM: Final = b"\x00"

EVENT_STREAM: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_JSON: Final = (b"content-type", b"application/json")
_log = logging.getLogger("bridge.http")


def event(data: bytes, event_id: str | None = None) -> bytes:
    """One server-sent event that holds a message."""
    head = b"" if event_id is None else b"id: %s\n" % event_id.encode()
    return b"%sevent: message\ndata: %s\n\n" % (head, data)


async def send_json(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Send a whole reply of JSON."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


class Exchange:
    """A request of a modern client: its going away cancels the call.

    Args:
        node: whose pulse it listens to.
        receive: the ASGI callable.
        send: the ASGI callable.
        takes: what the client takes in reply.
    """

    def __init__(self, node: Node, receive: Receive, send: Send, takes: Accepts) -> None:
        self._node = node
        self._receive = receive
        self._send = send
        self._takes = takes
        self._open = False
        self._gone = False
        self._over = False
        self._lock: anyio.Lock | None = None
        self._companion: anyio.CancelScope | None = None
        self._companion_over: anyio.Event | None = None
        self.scope = anyio.CancelScope()
        self.on_gone: Callable[[], None] = self.cancel
        self.on_delivered: Callable[[], Awaitable[None]] | None = None

    @property
    def can_stream(self) -> bool:
        """Whether messages can be sent before the reply."""
        return self._takes.events

    def cancel(self) -> None:
        """End the request."""
        self.scope.cancel()

    async def send(self, message: Json) -> None:
        """Send a message before the reply."""
        if self._takes.events:
            await self._write(await self._event(encode(message), INTERIM))

    async def finish(self, message: Json, status: int) -> None:
        """Send the reply, and what goes with its delivery."""
        self._node.forget(self)
        await self._end_companion()
        data = encode(message)
        if self._open or not self._takes.json:
            await self._write(await self._event(data, FINAL), last=True)
        elif not self._gone:
            await send_json(self._send, status, data)
        if self.on_delivered is not None and not self._gone:
            await self.on_delivered()

    async def abandon(self) -> None:
        """The request was cancelled: end what has begun, without a reply."""
        self._node.forget(self)
        await self._end_companion()
        if self._gone:
            return
        if not self._open:
            await self._send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
        await self._send({"type": "http.response.body", "body": b""})

    async def watch(self) -> None:
        """Look after the request until it is over. See `Node.watch`."""
        if self._over:
            return
        self._companion, self._companion_over = anyio.CancelScope(), anyio.Event()
        try:
            with self._companion:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._notice_gone)
                    tasks.start_soon(self._notice_closing)
                    await self._keep_open()
        finally:
            self._companion_over.set()

    async def _end_companion(self) -> None:
        """`receive` reports a disconnect after our own last body too, so nobody may wait on it by then."""
        self._over = True
        if self._companion is not None and self._companion_over is not None:
            self._companion.cancel()
            await self._companion_over.wait()

    async def _notice_gone(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._gone = True
                await self._client_gone()
                return

    async def _client_gone(self) -> None:
        self.on_gone()

    async def _notice_closing(self) -> None:
        """A modern request is answered before the node ends; only a session's stream can go on elsewhere."""

    async def _keep_open(self) -> None:
        await anyio.sleep(LATE_SECONDS)
        while True:
            if self._takes.events:
                await self._write(b": still here\n\n" if self._open else b"")
            await self._on_beat()
            await anyio.sleep(COMMENT_SECONDS)

    async def _on_beat(self) -> None:
        """Every 15 s, while the request is under way."""

    async def _event(self, data: bytes, kind: bytes) -> bytes:
        return event(data)

    def _opening(self) -> bytes:
        return b": open\n\n"

    async def _write(self, body: bytes, *, last: bool = False) -> None:
        """Write to the stream, opening it first; one writer at a time."""
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            if self._gone:
                return
            if not self._open:
                self._open = True
                await self._send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
                body = self._opening() + body
            await self._send({"type": "http.response.body", "body": body, "more_body": not last})


class SessionExchange(Exchange):
    """A request on a legacy session: its events are kept for replay, and its client may come back to them.

    Args:
        session: whose request it is.
        sessions: where events are kept.
        stream: a random id for its stream.
        grace_seconds: how long it goes on when its client has gone.
    """

    def __init__(
        self,
        node: Node,
        receive: Receive,
        send: Send,
        takes: Accepts,
        *,
        session: Session,
        sessions: Sessions,
        stream: str,
        grace_seconds: float,
    ) -> None:
        super().__init__(node, receive, send, takes)
        self._session = session
        self._sessions = sessions
        self._stream = stream
        self._grace_seconds = grace_seconds
        self._sequence = 0
        self._since = session.heard
        self._logged: anyio.Lock | None = None

    async def send(self, message: Json) -> None:
        """Send a message before the reply; kept for replay also while the client is away."""
        if self._takes.events:
            await self._log_and_write(encode(message), INTERIM)

    async def _log_and_write(self, data: bytes, kind: bytes) -> None:
        """Keep and write in one order, so that ids rise on the wire."""
        if self._logged is None:
            self._logged = anyio.Lock()
        async with self._logged:
            await self._write(await self._event(data, kind), last=kind == FINAL)

    async def _event(self, data: bytes, kind: bytes) -> bytes:
        self._sequence = await self._sessions.publish(self._session, self._stream, kind + data)
        return event(data, f"{self._stream}:{self._sequence}")

    def _opening(self) -> bytes:
        if self._session.profile.revision.priming_events:
            return b": open\n\nid: %s:0\ndata:\n\n" % self._stream.encode()
        return b": open\n\n"

    async def _on_beat(self) -> None:
        await self._sessions.touch(self._session)

    async def _notice_closing(self) -> None:
        await self._node.closing.wait()
        if self._open:
            tail = b"id: %s:%d\nretry: %d\n\n" % (self._stream.encode(), self._sequence, RETRY_MS)
            await self._write(tail, last=True)
            self._gone = True

    async def _client_gone(self) -> None:
        """Disconnect is not cancellation: the call goes on for the grace time, and longer if the client is back."""
        attached, position = False, self._since
        deadline = anyio.current_time() + self._grace_seconds
        while attached or anyio.current_time() < deadline:
            patience = COMMENT_SECONDS if attached else deadline - anyio.current_time()
            entries, position = await self._sessions.hear(self._session, position, patience)
            for entry in entries:
                if entry.kind in ("attached", "detached") and entry.name == self._stream:
                    attached = entry.kind == "attached"
                    deadline = anyio.current_time() + self._grace_seconds
        _log.info("session %s: a client did not come back to its call, which is cancelled", self._session.id)
        self.on_gone()
