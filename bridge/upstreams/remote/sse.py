"""A `Wire` over HTTP+SSE, the transport of 2024-11-05: one stream of events, which names where messages are POSTed.

Source: basic/transports#http-with-sse of 2024-11-05.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import anyio

from bridge.errors import ProtocolError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json, encode
from bridge.upstreams.closing import Interruptible
from bridge.upstreams.remote.events import Event, EventReader
from bridge.upstreams.remote.http import HttpClient, HttpReply
from bridge.upstreams.remote.limits import MAX_MESSAGE_BYTES, Complaints, hand_over
from bridge.upstreams.remote.refusals import refusal
from bridge.upstreams.remote.targets import without_secrets
from bridge.upstreams.remote.tasks import Tasks
from bridge.upstreams.wires import Closed, Receive

__all__ = ["SseWire"]

_ENDPOINT_SECONDS: Final = 10.0
_POSTED: Final = {"Content-Type": "application/json"}


class SseWire:
    """A `Wire` to the SSE endpoint of a server.

    Args:
        client: the connections to the server, which outlive the wire.
    """

    names_requests: bool = False

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._complaints = Complaints(client.name)
        self._requests = Interruptible()
        self._tasks = Tasks()
        self._events = EventReader(MAX_MESSAGE_BYTES)
        self._stream: HttpReply | None = None
        self._headers: dict[str, str] = {}
        self._endpoint = ""
        self._why_closed: str | None = "the wire was not opened"

    async def open(self, receive: Receive, closed: Closed) -> None:
        """See `Wire`: open the stream, and wait for its `endpoint` event."""
        try:
            with anyio.fail_after(_ENDPOINT_SECONDS):
                early = await self._connect()
        except TimeoutError:
            raise UpstreamUnreachable(
                f"{self._client.name} did not name its endpoint within {_ENDPOINT_SECONDS:g} seconds"
            ) from None
        except UpstreamLost as lost:
            raise UpstreamUnreachable(str(lost)) from None
        finally:
            if not self._endpoint and self._stream is not None:
                self._stream.close()
        self._why_closed = None
        self._tasks.start(self._read(early, receive, closed), f"stream of {self._client.name}")

    async def send(self, message: Json, http: Mapping[str, Any] | None = None) -> None:
        """See `Wire`: return once the server has taken the message; the reply comes on the stream."""
        if self._why_closed is not None:
            raise UpstreamUnreachable(self._why_closed)
        with self._requests.under_way():
            reply = await self._client.request("POST", {**_POSTED, **self._headers}, encode(message), self._endpoint)
            reply.retire()
            if reply.status >= 400:
                raise refusal(self._client.name, reply.status)

    async def initialized(self, revision: str) -> None:
        """See `Wire`: name the revision from now on. Its own knows no such header, a later one wants it."""
        self._headers["MCP-Protocol-Version"] = revision

    async def listen(self) -> None:
        """See `Wire`: its one stream stands since `open`."""

    async def aclose(self) -> None:
        """See `Wire`: end the stream, and with it the session."""
        self._why_closed = self._why_closed or "the wire was closed"
        self._requests.interrupt("the wire was closed")
        with anyio.CancelScope(shield=True):
            await self._tasks.aclose()
        if self._stream is not None:
            self._stream.close()

    async def _connect(self) -> list[Event]:
        """Open the stream up to its `endpoint` event; return what came after it."""
        self._stream = await self._client.request("GET", {"Accept": "text/event-stream"})
        if self._stream.status >= 400:
            raise UpstreamUnreachable(str(refusal(self._client.name, self._stream.status)))
        if not self._stream.is_events:
            raise UpstreamUnreachable(f"{self._client.name} answered with {self._stream.content_type}, not with events")
        while piece := await self._stream.piece():
            events = self._feed(piece)
            for at, event in enumerate(events):
                if event.kind == "endpoint":
                    self._endpoint = self._checked(event.data.decode(errors="replace").strip())
                    return events[at + 1 :]
        raise UpstreamUnreachable(f"{self._client.name} ended its stream before it named its endpoint")

    def _feed(self, piece: bytes) -> list[Event]:
        try:
            return self._events.feed(piece)
        except ProtocolError as error:
            raise UpstreamLost(error.message) from None

    def _checked(self, endpoint: str) -> str:
        """Resolve the endpoint: messages, and the credentials that go with them, stay at the same origin."""
        base = self._client.url
        url = urljoin(base, endpoint)
        if _origin(url) != _origin(base):
            raise UpstreamUnreachable(
                f"{self._client.name} wants messages at {without_secrets(url)}, another origin: that is refused"
            )
        user, at, _ = urlsplit(base).netloc.rpartition("@")
        host = urlsplit(url).netloc.rpartition("@")[2]
        return urlsplit(url)._replace(netloc=f"{user}{at}{host}").geturl()

    async def _read(self, early: list[Event], receive: Receive, closed: Closed) -> None:
        assert self._stream is not None
        why, events = f"{self._client.name} ended its stream", early
        try:
            while True:
                for event in events:
                    if event.kind == "message":
                        await hand_over(event.data, None, receive, self._complaints)
                piece = await self._stream.piece()
                if not piece:
                    break
                events = self._feed(piece)
        except UpstreamLost as lost:
            why = f"{self._client.name}: {lost}"
        self._stream.close()
        if self._why_closed is None:
            self._why_closed = why
            closed(why)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)
