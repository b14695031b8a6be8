"""WebSocket: both eras on one connection, one message a text frame, the subprotocol `mcp`.

A client that reads nothing while its form is open is normal; one that never reads again is not, and is closed. The
revisions define no such transport; what is here is what the SDKs of the legacy ones speak.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import anyio

from bridge.eras.shutting_down import SHUTTING_DOWN
from bridge.protocol.clients import Principal
from bridge.protocol.messages import MAX_BODY_BYTES
from bridge.transports.admission import Admission
from bridge.transports.connection import Connection, Guest
from bridge.transports.exchange import RETRY_AFTER, Receive, Send, refusal_body
from bridge.transports.gate import Refusal
from bridge.transports.parts import Parts
from bridge.transports.sending import Sending

__all__ = ["PING_SECONDS", "SUBPROTOCOL", "Carrier", "WebSocketTransport", "refuse_handshake"]

SUBPROTOCOL: Final = "mcp"

PING_SECONDS: Final = 20.0
"""How often the server looks whether the connection is alive. No answer is waited for: a client that reads nothing
while its form is open does not see the ping either."""

_CLOSE_SECONDS: Final = 5.0
_CLEANUP_SECONDS: Final = 10.0
"""How long connections may take to end after what ran on them."""

_GOING_AWAY, _NOT_TEXT, _POLICY, _TOO_LARGE = 1001, 1003, 1008, 1009
_log = logging.getLogger("bridge.websocket")


class Carrier(Protocol):
    """An accepted WebSocket, of whatever server."""

    async def receive(self) -> str | bytes | None:
        """The next message, text or binary; None when there will be no more."""
        ...

    async def send(self, message: bytes) -> None:
        """Send a text frame, waiting while the client does not read.

        Raises:
            OSError: the client is not there any more.
        """
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close the connection; at once where the client does not read."""
        ...


class Socket:
    """One client.

    Args:
        parts: what answers.
        carrier: the connection.
        principal: who is authenticated.
        scope: the ASGI scope of its handshake.
    """

    def __init__(self, parts: Parts, carrier: Carrier, principal: Principal, scope: Mapping[str, Any]) -> None:
        self._carrier = carrier
        self._closing = parts.node.closing
        guest = Guest(principal=principal, http=scope, grace_seconds=parts.options.shutdown_seconds)
        self._sending = Sending(carrier.send)
        self._connection = Connection(parts, self._sending.write, guest)
        self._close: tuple[int, str] | None = None
        self.ended = anyio.Event()

    async def serve(self) -> None:
        """Serve until the client leaves, breaks a rule or never reads again, or the server shuts down."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_closing)
                tasks.start_soon(self._until_stalled)
                await self._connection.serve(self._read)
                tasks.cancel_scope.cancel()
            if self._close is not None:
                with anyio.move_on_after(_CLOSE_SECONDS), suppress(OSError):
                    await self._carrier.close(*self._close)
        finally:
            self.ended.set()

    async def _read(self) -> list[bytes] | None:
        message = await self._carrier.receive()
        if message is None:
            self._connection.lose()
            return None
        if isinstance(message, bytes):
            self._break_off(_NOT_TEXT, "a message is a text frame")
            return None
        data = message.encode()
        if len(data) > MAX_BODY_BYTES:
            self._break_off(_TOO_LARGE, f"a message has at most {MAX_BODY_BYTES} bytes")
            return None
        return [data]

    def _break_off(self, code: int, reason: str) -> None:
        """End the connection now: the client has broken a rule of it."""
        _log.info("a WebSocket is closed: %s", reason)
        self._close = code, reason
        self._connection.lose()

    async def _until_closing(self) -> None:
        await self._closing.wait()
        self._close = _GOING_AWAY, "the server shuts down"
        self._connection.stop()

    async def _until_stalled(self) -> None:
        await self._sending.until_stalled(lambda: self._connection.is_asking)
        self._break_off(_POLICY, "what was sent is not read")


class WebSocketTransport:
    """WebSockets in an ASGI app.

    Args:
        parts: what answers.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._admission = Admission(parts.options)
        self._open: set[Socket] = set()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake on."""
        await receive()
        principal = await self.admit(scope)
        if isinstance(principal, Refusal):
            await refuse_handshake(scope, send, principal)
            return
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL if scope.get("subprotocols") else None})
        await self.serve(_AsgiCarrier(receive, send), principal, scope)

    async def admit(self, scope: Any) -> Principal | Refusal:
        """Decide about a handshake: who is behind it, or why it is refused."""
        if self._parts.node.closing.is_set():
            return Refusal(503, SHUTTING_DOWN, RETRY_AFTER)
        principal = await self._admission.admit(scope, dict(scope["headers"]))
        if isinstance(principal, Refusal):
            return principal
        return check_subprotocols(scope.get("subprotocols")) or principal

    async def serve(self, carrier: Carrier, principal: Principal, scope: Mapping[str, Any]) -> None:
        """Serve a connection that was accepted, until it ends."""
        socket = Socket(self._parts, carrier, principal, scope)
        self._open.add(socket)
        try:
            await socket.serve()
        finally:
            self._open.discard(socket)

    async def drain(self) -> None:
        """Wait until no connection is left, once the node is closing."""
        with anyio.move_on_after(self._parts.options.shutdown_seconds + _CLEANUP_SECONDS):
            for socket in list(self._open):
                await socket.ended.wait()


class _AsgiCarrier:
    """See `Carrier`."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def receive(self) -> str | bytes | None:
        event = await self._receive()
        if event["type"] != "websocket.receive":
            return None
        text: str | None = event.get("text")
        return event.get("bytes") or b"" if text is None else text

    async def send(self, message: bytes) -> None:
        await self._send({"type": "websocket.send", "text": message.decode()})

    async def close(self, code: int, reason: str) -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})


def check_subprotocols(offered: Sequence[str] | None) -> Refusal | None:
    """Why a handshake is refused that offers these subprotocols; to offer none is good too."""
    if not offered or SUBPROTOCOL in offered:
        return None
    return Refusal(400, f"Sec-WebSocket-Protocol must offer {SUBPROTOCOL!r}, not only {', '.join(offered)!r}")


async def refuse_handshake(scope: Any, send: Send, refusal: Refusal) -> None:
    """Refuse a handshake: with its status where the server can send one, else as the server does it (403)."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        return await send({"type": "websocket.close", "code": _POLICY, "reason": refusal.message})
    body = refusal_body(refusal)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *refusal.headers]
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
    return await send({"type": "websocket.http.response.body", "body": body})
