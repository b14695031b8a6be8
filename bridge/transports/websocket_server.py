"""WebSockets served by `websockets` itself, for those who serve nothing else: no ASGI server is needed."""

import signal
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import anyio
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from bridge.protocol.clients import Principal
from bridge.protocol.messages import MAX_BODY_BYTES
from bridge.transports.exchange import refusal_body
from bridge.transports.gate import Refusal
from bridge.transports.parts import Parts
from bridge.transports.websocket import PING_SECONDS, SUBPROTOCOL, WebSocketTransport

__all__ = ["WebSocketServer"]

PATH: Final = "/ws"
_WAITING: Final = 16
"""How many messages are read before they are taken."""

_CLOSE_SECONDS: Final = 5.0


class WebSocketServer:
    """Serves WebSockets at `/ws`, and nothing else.

    Args:
        parts: what answers.
    """

    def __init__(self, parts: Parts) -> None:
        self._transport = WebSocketTransport(parts)
        self._node = parts.node
        self._admitted: WeakKeyDictionary[ServerConnection, tuple[Principal, Mapping[str, Any]]] = WeakKeyDictionary()
        """By connection: a handshake may still fail that was let in."""

    async def serve(self, host: str, port: int, started: Callable[[str], object] | None = None) -> None:
        """Serve until a signal comes or the node is closing, then let what runs end.

        Args:
            host: the address to bind.
            port: the TCP port; 0 for a free one.
            started: told the server's URL once it listens.
        """
        server = await serve(
            self._serve_one,
            host,
            port,
            process_request=self._admit,
            select_subprotocol=_select,
            compression=None,
            server_header=None,
            max_size=MAX_BODY_BYTES,
            max_queue=_WAITING,
            ping_interval=PING_SECONDS,
            ping_timeout=None,
            close_timeout=_CLOSE_SECONDS,
        )
        try:
            if started is not None:
                started(_url(server))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._heed_signals)
                await self._node.closing.wait()
                tasks.cancel_scope.cancel()
            server.close(close_connections=False)
            await self._transport.drain()
        finally:
            server.close()
            await server.wait_closed()

    async def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        scope = _scope(connection, request)
        if scope["path"] != PATH:
            return _refused(Refusal(404, f"Not found: WebSockets are served at {PATH}"))
        principal = await self._transport.admit(scope)
        if isinstance(principal, Refusal):
            return _refused(principal)
        self._admitted[connection] = principal, scope
        return None

    async def _serve_one(self, connection: ServerConnection) -> None:
        principal, scope = self._admitted.pop(connection)
        await self._transport.serve(_Carrier(connection), principal, scope)

    async def _heed_signals(self) -> None:
        if sys.platform == "win32":
            return
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                self._node.close()
                return


class _Carrier:
    """See `Carrier`."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._is_sending = False

    async def receive(self) -> str | bytes | None:
        try:
            return await self._connection.recv()
        except ConnectionClosed:
            return None

    async def send(self, message: bytes) -> None:
        self._is_sending = True
        try:
            await self._connection.send(message, text=True)
        except ConnectionClosed as closed:
            raise OSError(str(closed)) from None
        self._is_sending = False

    async def close(self, code: int, reason: str) -> None:
        if self._is_sending:
            # What the client does not read is before it.
            self._connection.transport.abort()
        else:
            await self._connection.close(code, reason)


def _select(connection: ServerConnection, offered: Any) -> Subprotocol | None:
    return Subprotocol(SUBPROTOCOL) if SUBPROTOCOL in offered else None


def _scope(connection: ServerConnection, request: Request) -> dict[str, Any]:
    """The ASGI scope of a handshake: what `authenticate` and servers in this process look at."""
    url = urlsplit(request.path)
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.raw_items()]
    offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
    return {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": url.path,
        "raw_path": url.path.encode("latin-1"),
        "root_path": "",
        "query_string": url.query.encode("latin-1"),
        "headers": headers,
        "client": connection.remote_address,
        "server": connection.local_address,
        "subprotocols": [name.strip() for name in offered.split(",") if name.strip()],
    }


def _refused(refusal: Refusal) -> Response:
    body = refusal_body(refusal)
    headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"})
    for name, value in refusal.headers:
        headers[name.decode("latin-1")] = value.decode("latin-1")
    return Response(refusal.status, HTTPStatus(refusal.status).phrase, headers, body)


def _url(server: Server) -> str:
    host, port = server.sockets[0].getsockname()[:2]
    return f"ws://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
