"""A `Wire` over a WebSocket: the subprotocol `mcp`, one message a text frame. No revision describes it; SDKs do."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.protocol import State
from websockets.typing import Subprotocol

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json, encode
from bridge.upstreams.remote.limits import MAX_MESSAGE_BYTES, Complaints, hand_over
from bridge.upstreams.remote.refusals import refusal
from bridge.upstreams.remote.targets import without_secrets
from bridge.upstreams.remote.tasks import Tasks
from bridge.upstreams.wires import Closed, Receive

__all__ = ["WebSocketWire"]

_CONNECT_SECONDS: Final = 10.0
_PING_SECONDS: Final = 20.0
_CLOSE_SECONDS: Final = 2.0


class WebSocketWire:
    """A `Wire` to a ws or wss URL.

    Args:
        url: where the server is.
        headers: what goes with the handshake, such as `Authorization`.
    """

    names_requests: bool = False

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._name = without_secrets(url)
        self._headers = headers
        self._complaints = Complaints(self._name)
        self._socket: ClientConnection | None = None
        self._tasks = Tasks()
        self._why_closed: str | None = "the wire was not opened"

    async def open(self, receive: Receive, closed: Closed) -> None:
        """See `Wire`: connect and shake hands."""
        try:
            self._socket = await self._connect()
        except InvalidStatus as error:
            raise UpstreamUnreachable(str(refusal(self._name, error.response.status_code))) from None
        except TimeoutError:
            raise UpstreamUnreachable(
                f"{self._name} cannot be reached: no connection within {_CONNECT_SECONDS:g} seconds"
            ) from None
        except (OSError, WebSocketException, ValueError) as error:
            why = "the connection was refused" if isinstance(error, ConnectionRefusedError) else str(error)
            raise UpstreamUnreachable(f"{self._name} cannot be reached: {why}") from None
        self._why_closed = None
        self._tasks.start(self._read(self._socket, receive, closed), f"socket of {self._name}")

    async def send(self, message: Json, http: Mapping[str, Any] | None = None) -> None:
        """See `Wire`: return once the message is written."""
        if self._why_closed is not None or self._socket is None or self._socket.state is not State.OPEN:
            raise UpstreamUnreachable(self._why_closed or f"{self._name} closed the connection")
        try:
            await self._socket.send(encode(message), text=True)
        except ConnectionClosed as error:
            raise UpstreamLost(f"{self._name} closed the connection: {error}") from None

    async def initialized(self, revision: str) -> None:
        """See `Wire`: nothing changes here."""

    async def listen(self) -> None:
        """See `Wire`: everything comes the one way."""

    async def aclose(self) -> None:
        """See `Wire`: close the connection in good order, within two seconds."""
        self._why_closed = self._why_closed or "the wire was closed"
        with anyio.CancelScope(shield=True):
            if self._socket is not None:
                await self._socket.close()
            await self._tasks.aclose()

    async def _connect(self) -> ClientConnection:
        parts = urlsplit(self._url)
        return await connect(
            self._url,
            subprotocols=[Subprotocol("mcp")],
            additional_headers=dict(self._headers),
            user_agent_header="mcp-session-bridge",
            # With a host given, redirects to another origin are refused.
            host=parts.hostname,
            port=parts.port or (443 if parts.scheme == "wss" else 80),
            proxy=None,
            max_size=MAX_MESSAGE_BYTES,
            open_timeout=_CONNECT_SECONDS,
            ping_interval=_PING_SECONDS,
            close_timeout=_CLOSE_SECONDS,
        )

    async def _read(self, socket: ClientConnection, receive: Receive, closed: Closed) -> None:
        try:
            while True:
                await hand_over(await socket.recv(decode=False), None, receive, self._complaints)
        except ConnectionClosed as error:
            why = f"{self._name} closed the connection: {error}"
        if self._why_closed is None:
            self._why_closed = why
            closed(why)
