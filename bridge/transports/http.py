"""Streamable HTTP: one ASGI app for both eras. It is given the eras and the sessions, and knows no Bridge.

The era of a request is decided by its `MCP-Protocol-Version` header and its `_meta`, never by its method.
Source: basic/transports/streamable-http of 2026-07-28, basic/transports of the legacy revisions.
"""

import logging
from functools import lru_cache
from typing import Any, Final

import msgspec

from bridge.eras.batches import Batches
from bridge.eras.shutting_down import SHUTTING_DOWN
from bridge.errors import ProtocolError, StoreError
from bridge.protocol.clients import Principal
from bridge.protocol.inbound import Rejected, check_modern, is_modern, unsupported_version
from bridge.protocol.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    SESSION_NOT_FOUND,
    Invalid,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    decode,
    encode,
    error_message,
)
from bridge.protocol.revisions import LEGACY, MODERN
from bridge.session import Session
from bridge.sessions import TooManySessions
from bridge.transports.admission import Admission
from bridge.transports.exchange import (
    CLOSE,
    CLOSING,
    EVENT_STREAM,
    RETRY_AFTER,
    Exchange,
    Receive,
    Send,
    event,
    refuse,
    send_empty,
    send_json,
    send_store_away,
)
from bridge.transports.gate import Accepts, Headers, Refusal, accepts, read_body
from bridge.transports.parts import Parts
from bridge.transports.session_exchange import SessionExchange
from bridge.transports.streams import SessionStream
from bridge.transports.taking_over import TakingOver

__all__ = ["HttpTransport"]

_SESSION: Final = b"mcp-session-id"
_ROUTING: Final = (b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id")
_log = logging.getLogger("bridge.http")


class HttpTransport:
    """The MCP endpoint.

    Args:
        parts: what answers.
    """

    def __init__(self, parts: Parts) -> None:
        self._node = parts.node
        self._modern = parts.modern
        self._legacy = parts.legacy
        self._batches = Batches(parts.legacy, parts.sessions, parts.node.cut_off)
        self._sessions = parts.sessions
        self._publisher = parts.publisher
        self._ownership = parts.ownership
        self._taking_over = TakingOver(
            parts.node, parts.sessions, parts.ownership, parts.legacy, parts.options.grace_seconds
        )
        self._options = parts.options
        self._admission = Admission(parts.options)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one HTTP request to the endpoint."""
        headers: Headers = dict(scope["headers"])
        try:
            principal = await self._admission.admit(scope, headers)
            if isinstance(principal, Refusal):
                return await refuse(send, principal)
            method = scope["method"]
            if method == "POST":
                await self._post(scope, headers, principal, receive, send)
            elif method in ("GET", "DELETE") and not _says_modern(headers):
                await self._get_or_delete(scope, headers, principal, receive, send)
            else:
                await refuse(send, _METHODS)
        except StoreError as error:
            _log.error("%s", error)
            await send_store_away(send)

    async def _post(self, scope: Any, headers: Headers, principal: Principal, receive: Receive, send: Send) -> None:
        if self._node.closing.is_set() and (_SESSION not in headers or _says_modern(headers)):
            # What comes on a session is read: the answers and cancellations among it are for what still runs.
            return await refuse(send, CLOSING)
        takes, refusal = _media(headers.get(b"content-type"), headers.get(b"accept"))
        if refusal is not None:
            return await refuse(send, refusal)
        body = await read_body(headers, receive)
        if body is None:
            return None
        if isinstance(body, Refusal):
            return await refuse(send, body)
        try:
            message = decode(body)
        except ProtocolError as error:
            return await _reject(send, Rejected(error.code, error.message))
        if len(headers) != len(scope["headers"]) and (twice := _twice(scope["headers"])) is not None:
            return await _reject(send, Rejected(INVALID_REQUEST, f"The header {twice} is sent twice"))
        if isinstance(message, list):
            return await self._batch(message, scope, headers, principal, takes, send)
        if isinstance(message, Request | Notification):
            if is_modern(message.params, headers.get(b"mcp-protocol-version")):
                return await self._post_modern(message, scope, headers, principal, takes, receive, send)
        elif _says_modern(headers):
            reason = message.reason if isinstance(message, Invalid) else "clients send requests only"
            return await _reject(send, Rejected(INVALID_REQUEST, f"Invalid request: {reason}", id=message.id))
        return await self._post_legacy(message, scope, headers, principal, takes, receive, send)

    async def _post_modern(
        self,
        message: Request | Notification,
        scope: Any,
        headers: Headers,
        principal: Principal,
        takes: Accepts,
        receive: Receive,
        send: Send,
    ) -> None:
        if isinstance(message, Notification):
            version = headers.get(b"mcp-protocol-version", MODERN.name.encode()).decode("latin-1")
            if version != MODERN.name:
                return await _reject(send, unsupported_version(version, msgspec.UNSET))
            return await send_empty(send, 202)
        accepted = check_modern(message, headers)
        if isinstance(accepted, Rejected):
            return await _reject(send, accepted)
        exchange = Exchange(self._node, scope, receive, send, takes)
        return await exchange.serve(message, lambda: self._modern.handle(accepted, principal, exchange, headers))

    async def _post_legacy(
        self,
        message: Message,
        scope: Any,
        headers: Headers,
        principal: Principal,
        takes: Accepts,
        receive: Receive,
        send: Send,
    ) -> None:
        if isinstance(message, Request) and message.method == "initialize":
            return await self._initialize(message, principal, send)
        identity = msgspec.UNSET if isinstance(message, Notification) else message.id
        session = await self._session(headers, principal, identity)
        if isinstance(session, Rejected):
            return await _reject(send, session, 404 if session.code == SESSION_NOT_FOUND else 400)
        if isinstance(message, Invalid):
            # It was read, and its session lives: an HTTP error would make many clients drop it.
            text = f"Invalid request: {message.reason}"
            return await send_json(send, 200, encode(error_message(message.id, INVALID_REQUEST, text)))
        if isinstance(message, Notification):
            await self._legacy.notified(session, message)
            return await send_empty(send, 202)
        if isinstance(message, Response):
            await self._sessions.answer(session, message)
            return await send_empty(send, 202)
        return await self._on_session(session, message, scope, takes, receive, send)

    async def _on_session(
        self, session: Session, request: Request, scope: Any, takes: Accepts, receive: Receive, send: Send
    ) -> None:
        if self._node.closing.is_set():
            # Many clients drop their session on any other status, and would open a new one elsewhere.
            refused = encode(error_message(request.id, INTERNAL_ERROR, SHUTTING_DOWN))
            return await send_json(send, 200, refused, (CLOSE,))
        if request.id in session.running:
            text = f"Invalid request: the id {request.id!r} is in use by a request under way"
            return await send_json(send, 200, encode(error_message(request.id, INVALID_REQUEST, text)))
        exchange = SessionExchange(
            self._node,
            scope,
            receive,
            send,
            takes,
            session=session,
            sessions=self._sessions,
            ownership=self._ownership,
            request=request,
            grace_seconds=self._options.grace_seconds,
        )
        session.running[request.id] = exchange
        try:
            await exchange.serve(request, lambda: self._legacy.handle(session, request, exchange))
        finally:
            del session.running[request.id]

    async def _initialize(self, request: Request, principal: Principal, send: Send) -> None:
        try:
            session, reply = await self._legacy.initialize(request, principal)
        except ProtocolError as error:
            return await _reject(send, Rejected(error.code, error.message, id=request.id))
        except TooManySessions as full:
            body = encode(error_message(request.id, INTERNAL_ERROR, f"Too many sessions: {full}"))
            return await send_json(send, 503, body, RETRY_AFTER)
        return await send_json(send, 200, encode(reply), ((_SESSION, session.id.encode()),))

    async def _session(
        self, headers: Headers, principal: Principal, identity: RequestId | msgspec.UnsetType
    ) -> Session | Rejected:
        """The session that a message belongs to, or what is wrong with its headers."""
        session_id = headers.get(_SESSION)
        if session_id is None:
            return Rejected(INVALID_REQUEST, "Mcp-Session-Id is required; send initialize first", id=identity)
        session = await self._sessions.find(session_id.decode("latin-1"), principal)
        if session is None:
            return Rejected(SESSION_NOT_FOUND, "Session not found", id=identity)
        version = headers.get(b"mcp-protocol-version")
        if version is not None and version.decode("latin-1") not in LEGACY:
            text = f"Unsupported MCP-Protocol-Version {version.decode('latin-1')!r}; this session speaks "
            return Rejected(INVALID_REQUEST, text + session.profile.revision.name, id=identity)
        return session

    async def _batch(
        self, messages: list[Message], scope: Any, headers: Headers, principal: Principal, takes: Accepts, send: Send
    ) -> None:
        session = await self._session(headers, principal, msgspec.UNSET)
        if isinstance(session, Rejected):
            return await _reject(send, session, 404 if session.code == SESSION_NOT_FOUND else 400)
        refused = self._batches.refused(session, messages)
        if refused is not None:
            return await _reject(send, refused)
        if self._node.closing.is_set():
            return await refuse(send, CLOSING)
        reply = await self._batches.run(session, messages, scope)
        if not reply.messages:
            return await send_empty(send, 202)
        if takes.json:
            await send_json(send, 200, encode(reply.messages))
        else:
            await send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
            events = b"".join(event(encode(message)) for message in reply.messages)
            await send({"type": "http.response.body", "body": events})
        return await reply.delivered()

    async def _get_or_delete(
        self, scope: Any, headers: Headers, principal: Principal, receive: Receive, send: Send
    ) -> None:
        if _SESSION not in headers:
            return await refuse(send, _METHODS)
        session = await self._session(headers, principal, msgspec.UNSET)
        if isinstance(session, Rejected):
            return await _reject(send, session, 404 if session.code == SESSION_NOT_FOUND else 400)
        if scope["method"] == "DELETE":
            await self._sessions.end(session)
            return await send_empty(send, 204)
        if not accepts(headers.get(b"accept")).events:
            return await refuse(send, Refusal(406, "GET gives a stream: Accept must allow text/event-stream"))
        last = headers.get(b"last-event-id")
        stream = SessionStream(
            session,
            self._sessions,
            receive,
            send,
            self._publisher,
            self._node.closing,
            lambda name: self._taking_over.watch(session, name, scope),
        )
        return await stream.serve(None if last is None else last.decode("latin-1"))


_METHODS: Final = Refusal(405, "This endpoint takes POST; GET and DELETE only on a session", ((b"allow", b"POST"),))


def _says_modern(headers: Headers) -> bool:
    return headers.get(b"mcp-protocol-version") == MODERN.name.encode()


@lru_cache(maxsize=256)
def _media(kind: bytes | None, accept: bytes | None) -> tuple[Accepts, Refusal | None]:
    """What a client takes in reply, and why what it sends is refused; clients send the same two headers each time."""
    takes = accepts(accept)
    if kind is None or kind.partition(b";")[0].strip().lower() != b"application/json":
        sent = "missing" if kind is None else kind.decode("latin-1")
        return takes, Refusal(415, f"Content-Type must be application/json, not {sent!r}")
    if not (takes.json or takes.events):
        return takes, Refusal(406, "Accept must allow application/json or text/event-stream")
    return takes, None


def _twice(headers: list[tuple[bytes, bytes]]) -> str | None:
    """The name of a header that decides where a request goes and is there twice."""
    names = [name for name, _ in headers if name in _ROUTING or name.startswith(b"mcp-param-")]
    return next((name.decode() for name in names if names.count(name) > 1), None)


async def _reject(send: Send, rejected: Rejected, status: int | None = None) -> None:
    message = error_message(rejected.id, rejected.code, rejected.message, rejected.data)
    await send_json(send, rejected.status if status is None else status, encode(message))
