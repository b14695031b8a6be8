"""HTTP+SSE of 2024-11-05: one stream to the client, and a second endpoint that takes what it says.

A legacy session on a connection whose two directions are two requests. What is posted goes through a log in the store,
so that it may reach another node than the one that holds the stream. Clients of later revisions speak this too; the
revision is what `initialize` negotiates. Source: basic/transports#http-with-sse of 2024-11-05.
"""

import logging
import secrets
from typing import Any, Final
from urllib.parse import parse_qs

import anyio
import msgspec

from bridge.errors import ProtocolError, StoreError
from bridge.protocol.clients import Principal
from bridge.protocol.messages import SESSION_NOT_FOUND, decode, encode, error_message
from bridge.stores.base import Store
from bridge.stores.reader import LogReader
from bridge.transports.admission import Admission
from bridge.transports.connection import Connection, Guest
from bridge.transports.exchange import (
    CLOSING,
    COMMENT_SECONDS,
    EVENT_STREAM,
    RETRY_MS,
    Receive,
    Send,
    event,
    refuse,
    send_empty,
    send_json,
    send_store_away,
)
from bridge.transports.gate import Headers, Refusal, accepts, read_body
from bridge.transports.parts import Parts
from bridge.transports.sending import Sending

__all__ = ["SseTransport"]

MAX_POSTED: Final = 256
"""How many messages may wait to be taken; a client that posts faster than that loses its stream."""

_STREAM_SECONDS: Final = 4 * COMMENT_SECONDS
"""How long a stream is believed to be open whose node says nothing of it any more."""

_LAST_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
_log = logging.getLogger("bridge.sse")


class SseTransport:
    """Both endpoints.

    Args:
        parts: what answers.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.node.store
        self._admission = Admission(parts.options)

    async def stream(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve `GET /sse`: the stream, until the client leaves or the server shuts down."""
        headers: Headers = dict(scope["headers"])
        try:
            principal = await self._admission.admit(scope, headers)
            if isinstance(principal, Refusal):
                return await refuse(send, principal)
            if scope["method"] != "GET":
                return await refuse(send, Refusal(405, "This endpoint takes GET", ((b"allow", b"GET"),)))
            if not accepts(headers.get(b"accept")).events:
                return await refuse(send, Refusal(406, "GET gives a stream: Accept must allow text/event-stream"))
            if self._parts.node.closing.is_set():
                return await refuse(send, CLOSING)
            posts = _Posts(self._store, secrets.token_urlsafe(24), principal)
            await posts.open()
        except StoreError as error:
            _log.error("%s", error)
            return await send_store_away(send)
        grace_seconds = self._parts.options.shutdown_seconds
        guest = Guest(principal=principal, http=scope, can_be_modern=False, grace_seconds=grace_seconds)
        # Beside this one, wherever that is mounted.
        beside = scope["path"].rstrip("/").rpartition("/")[0]
        return await _Stream(self._parts, posts, guest, receive, send).serve(f"{beside}/messages?sessionId={posts.id}")

    async def post(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve `POST /messages?sessionId=…`: take one message, which is answered on the stream."""
        headers: Headers = dict(scope["headers"])
        try:
            principal = await self._admission.admit(scope, headers)
            if isinstance(principal, Refusal):
                return await refuse(send, principal)
            if (refusal := _unfit(scope["method"], headers)) is not None:
                return await refuse(send, refusal)
            posts = _Posts(self._store, _session_id(scope), principal)
            if not await posts.is_open():
                return await _error(send, 404, SESSION_NOT_FOUND, "Session not found")
            body = await read_body(headers, receive)
            if body is None:
                return None
            if isinstance(body, Refusal):
                return await refuse(send, body)
            # Who posts what is no message is told here; on the stream nobody could tell what is meant.
            decode(body)
            await posts.put(body)
        except ProtocolError as error:
            return await _error(send, 400, error.code, error.message)
        except StoreError as error:
            _log.error("%s", error)
            return await send_store_away(send)
        return await send_empty(send, 202)


class _Posts:
    """What one client posts, from whatever node it reaches to the one that holds its stream."""

    def __init__(self, store: Store, identity: str, principal: Principal) -> None:
        self.id = identity
        self._store = store
        self._key = f"sse/{identity}"
        self._whose = principal.name.encode()
        self._log = LogReader(store, f"sse/{identity}/posted")

    async def open(self) -> None:
        """Say that the stream is open, for a while; its log must not be over before it, or a gap could not be told."""
        await self._store.put(self._key, self._whose, ttl_seconds=_STREAM_SECONDS)
        await self.put(b"")

    async def is_open(self) -> bool:
        """Whether there is such a stream, of this principal."""
        record = await self._store.get(self._key) if self.id else None
        return record is not None and record.value == self._whose

    async def close(self) -> None:
        """Say that the stream is over."""
        await self._store.take(self._key)

    async def put(self, body: bytes) -> None:
        """Hand a message to the node that holds the stream."""
        await self._store.append(self._log.log, body, ttl_seconds=_STREAM_SECONDS, max_entries=MAX_POSTED)

    async def next(self) -> list[bytes] | None:
        """What was posted, perhaps nothing yet; None where some of it was lost."""
        # The first number of a new log tells nothing: a store may begin anywhere.
        is_new = self._log.position == 0
        entries = await self._log.next(COMMENT_SECONDS)
        if self._log.missed and not is_new:
            return None
        return [entry.value for entry in entries if entry.value]


class _Stream:
    """One client's stream."""

    def __init__(self, parts: Parts, posts: _Posts, guest: Guest, receive: Receive, send: Send) -> None:
        self._posts = posts
        self._receive = receive
        self._send = send
        self._closing = parts.node.closing
        self._sending = Sending(self._write)
        self._connection = Connection(parts, lambda message: self._sending.write(event(message)), guest)
        self._is_gone = False

    async def serve(self, endpoint: str) -> None:
        """Tell the client where to post, then serve what it does."""
        await self._send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
        await self._write(b"event: endpoint\ndata: %s\n\n" % endpoint.encode())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_gone)
            tasks.start_soon(self._until_closing)
            tasks.start_soon(self._until_stalled)
            tasks.start_soon(self._keep_open)
            await self._connection.serve(self._read)
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(_LAST_SECONDS, shield=True):
            await self._end()

    async def _end(self) -> None:
        try:
            await self._posts.close()
        except StoreError as error:
            _log.warning("a stream has ended, and the store is away: %s", error)
        if not self._is_gone:
            await self._send({"type": "http.response.body", "body": b"retry: %d\n\n" % RETRY_MS})

    async def _write(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _read(self) -> list[bytes] | None:
        while True:
            try:
                posted = await self._posts.next()
            except StoreError as error:
                _log.warning("what a client posts is not heard at the moment: %s", error)
                await anyio.sleep(_RETRY_SECONDS)
                continue
            if posted is None:
                _log.warning("a stream is ended: its client posted more than %d messages at once", MAX_POSTED)
                self._connection.lose()
            return posted

    async def _keep_open(self) -> None:
        while True:
            await anyio.sleep(COMMENT_SECONDS)
            await self._sending.write(b": still here\n\n")
            try:
                await self._posts.open()
            except StoreError as error:
                _log.warning("a stream is open, and the store is away: %s", error)

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        self._connection.lose()

    async def _until_stalled(self) -> None:
        await self._sending.until_stalled(lambda: self._connection.is_asking)
        _log.info("a stream is ended: what was sent is not read")
        self._connection.lose()

    async def _until_closing(self) -> None:
        await self._closing.wait()
        self._connection.stop()


def _session_id(scope: Any) -> str:
    """The id in the query; empty where there is none that can be one."""
    given = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20).get("sessionId", [""])[0]
    return given if len(given) == 32 and given.isascii() and given.replace("-", "").replace("_", "").isalnum() else ""


def _unfit(method: str, headers: Headers) -> Refusal | None:
    """Why a POST is refused unread."""
    if method != "POST":
        return Refusal(405, "This endpoint takes POST", ((b"allow", b"POST"),))
    kind = headers.get(b"content-type", b"")
    if kind.partition(b";")[0].strip().lower() != b"application/json":
        return Refusal(415, f"Content-Type must be application/json, not {kind.decode('latin-1')!r}")
    return None


async def _error(send: Send, status: int, code: int, text: str) -> None:
    await send_json(send, status, encode(error_message(msgspec.UNSET, code, text)))
