"""One HTTP request and the way back: JSON unless something has to be sent before the reply, then a stream.

An exchange runs in its request's own task. Only when it is still there at the node's pulse does it get a companion
task, which notices that the client has gone, opens the stream when nothing has come for a while, and keeps it
open with comments. Source: basic/transports/streamable-http#receiving-messages.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import anyio
import msgspec

from bridge.calls import Keeper
from bridge.eras.shutting_down import SHUTTING_DOWN, cut_off
from bridge.errors import StoreError
from bridge.node import Node
from bridge.protocol.inbound import HTTP_STATUS
from bridge.protocol.messages import INTERNAL_ERROR, INVALID_REQUEST, Json, Request, encode, error_message
from bridge.transports.gate import Accepts, Refusal
from bridge.transports.running import STORE_AWAY

__all__ = [
    "CLOSE",
    "CLOSING",
    "EVENT_STREAM",
    "RETRY_AFTER",
    "Exchange",
    "Receive",
    "Send",
    "event",
    "refusal_body",
    "refuse",
    "send_empty",
    "send_json",
    "send_store_away",
]

Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]

LATE_SECONDS: Final = 2.0
"""How long nothing may come before the stream is opened all the same."""

COMMENT_SECONDS: Final = 15.0
RETRY_MS: Final = 5000
RETRY_AFTER: Final = ((b"retry-after", b"5"),)
CLOSE: Final = (b"connection", b"close")
"""So that the next request of this client finds another process."""

CLOSING: Final = Refusal(503, SHUTTING_DOWN, (*RETRY_AFTER, CLOSE))
"""How a node that shuts down refuses what it has not read."""

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


async def send_empty(send: Send, status: int) -> None:
    """Send a reply that is its status."""
    headers = [] if status == 204 else [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def refusal_body(refusal: Refusal) -> bytes:
    """What a client reads that is refused unread: an error that names no request."""
    return encode(error_message(msgspec.UNSET, INVALID_REQUEST, refusal.message))


async def refuse(send: Send, refusal: Refusal) -> None:
    """Refuse a request unread."""
    await send_json(send, refusal.status, refusal_body(refusal), refusal.headers)


async def send_store_away(send: Send) -> None:
    """Say that nothing can be done at the moment, before any reply has begun."""
    await send_json(send, 503, encode(error_message(msgspec.UNSET, INTERNAL_ERROR, STORE_AWAY)), RETRY_AFTER)


class Exchange:
    """A request of a modern client: its going away cancels the call.

    Args:
        node: whose pulse it listens to.
        http: the ASGI scope.
        receive: the ASGI callable.
        send: the ASGI callable.
        takes: what the client takes in reply.
    """

    _open = _gone = _over = _is_cut_off = False
    _lock: anyio.Lock | None = None
    _companion: anyio.CancelScope | None = None
    _companion_over: anyio.Event | None = None
    on_delivered: Callable[[], Awaitable[None]] | None = None
    on_gone: Callable[[], None] | None = None
    on_closing: Callable[[], None] | None = None

    @property
    def keeper(self) -> Keeper | None:
        """See `calls.Exchange`: nothing of a modern request is kept but what its client carries."""
        return None

    def __init__(self, node: Node, http: Mapping[str, Any], receive: Receive, send: Send, takes: Accepts) -> None:
        self._node = node
        self.http = http
        self._receive = receive
        self._send = send
        self._takes = takes
        # A bare task.cancel() would spare a tenth of a call's time, and be lost where a library swallows it once.
        self._scope = node.new_scope()

    @property
    def can_stream(self) -> bool:
        """Whether messages can be sent before the reply."""
        return self._takes.events

    def cancel(self) -> None:
        """End the request."""
        self._scope.cancel()

    async def send(self, message: Json) -> None:
        """Send a message before the reply."""
        if self._takes.events and not self._over:
            await self._write(event(encode(message)))

    async def leave(self) -> None:
        """A modern client cannot come back to a stream: it stays."""

    async def serve(self, request: Request, handle: Callable[[], Awaitable[Json]]) -> None:
        """Run a request, and send its reply.

        Args:
            request: the request.
            handle: gives the reply; it is cancelled with the exchange.
        """
        self._node.watch(self)
        status = 200
        headers: tuple[tuple[bytes, bytes], ...] = ()
        data: bytes | None = None
        try:
            with self._scope:
                reply = await handle()
                data = encode(reply)
                status = self._status(reply)
        except StoreError as error:
            _log.error("%s: %s", request.method, error)
            data = encode(error_message(request.id, INTERNAL_ERROR, STORE_AWAY))
            status, headers = 503, RETRY_AFTER
        except Exception:
            _log.exception("a request failed: %s", request.method)
            text = "Internal error; its details are in the server's log"
            data = encode(error_message(request.id, INTERNAL_ERROR, text))
        finally:
            await self._end_companion()
        if data is None and self._is_cut_off:
            data = encode(cut_off(request))
        if data is None:
            await self._abandon()
        else:
            await self._finish(data, status, headers)

    def _status(self, reply: Json) -> int:
        error = reply.get("error")
        return 200 if error is None else HTTP_STATUS.get(error["code"], 200)

    async def _finish(self, data: bytes, status: int, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """Send the reply, and do what goes with its delivery."""
        if self._open or not (self._takes.json or status != 200):
            await self._write(await self._last_event(data), last=True)
        elif not self._gone:
            await send_json(self._send, status, data, headers)
        if self.on_delivered is not None and not self._gone:
            try:
                await self.on_delivered()
            except StoreError as error:
                _log.warning("a reply was delivered, and the store does not take it: %s", error)

    async def _abandon(self) -> None:
        """The request was cancelled: end what has begun, without a reply."""
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
                    tasks.start_soon(self._notice_cancelled)
                    await self._keep_open()
        finally:
            self._companion_over.set()

    async def _end_companion(self) -> None:
        """`receive` reports a disconnect after our own last body too, so nobody may wait on it by then."""
        self._over = True
        self._node.forget(self)
        if self._companion is not None and self._companion_over is not None:
            self._companion.cancel()
            with anyio.CancelScope(shield=True):
                await self._companion_over.wait()

    async def _notice_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        await self._client_gone()

    async def _client_gone(self) -> None:
        self._give_up()

    def _give_up(self) -> None:
        """The client has gone for good."""
        if self.on_gone is None:
            self.cancel()
        else:
            self.on_gone()

    async def _notice_cancelled(self) -> None:
        """A modern request is cancelled by leaving it."""

    async def _notice_closing(self) -> None:
        """What runs when the node shuts down has a while to end by itself."""
        await self._node.closing.wait()
        await self._on_closing()
        await self._node.cut_off()
        self._is_cut_off = True
        self.cancel()

    async def _on_closing(self) -> None:
        """A modern request is answered where it was made; only a session's stream can go on elsewhere."""

    async def _keep_open(self) -> None:
        await anyio.sleep(LATE_SECONDS)
        while True:
            if self._takes.events and not self._gone:
                await self._before_late_opening()
                await self._write(b": still here\n\n" if self._open else b"")
            await self._on_beat()
            await anyio.sleep(COMMENT_SECONDS)

    async def _before_late_opening(self) -> None:
        """When the stream is opened although nothing has come, and with each comment."""

    async def _on_beat(self) -> None:
        """Every 15 s, while the request is under way."""

    async def _last_event(self, data: bytes) -> bytes:
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
