"""HTTP to one server: pooled connections, and what went wrong in this library's errors. Knows no MCP.

Nothing is followed to another origin, no cookie is kept, no request is sent twice. Of aiohttp it takes the connections
and the reading of replies: its own way of writing a request takes longer than all the rest that the bridge does for it.
"""

import asyncio
import errno
from collections.abc import Mapping
from typing import Final

from bridge.errors import MissingExtraError, UpstreamLost, UpstreamUnreachable
from bridge.upstreams.remote.heads import Place
from bridge.upstreams.remote.limits import MAX_MESSAGE_BYTES
from bridge.upstreams.remote.targets import without_secrets

try:
    import aiohttp
    from aiohttp.connector import Connection
    from aiohttp.http import HttpProcessingError, RawResponseMessage
    from yarl import URL
except ImportError as error:
    raise MissingExtraError("a server at an http(s) URL", "remote") from error

__all__ = ["HttpClient", "HttpReply"]

_CONNECT_SECONDS: Final = 10.0
_KEEP_ALIVE_SECONDS: Final = 4.0
"""Less than the 5 s after which common servers close an idle connection, perhaps just as a request goes out on it."""

_MAX_CONNECTIONS: Final = 10_000
_MAX_PLACES: Final = 1000
_MAX_REDIRECTS: Final = 5
_RETIRE_SECONDS: Final = 1.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
_ALWAYS_FOLLOWED: Final = frozenset({307, 308})
_FOLLOWED_BY_GET: Final = frozenset({301, 302, 303, 307, 308})


class HttpReply:
    """A reply whose head has come.

    Args:
        connection: what it comes on; it is free for the next request once the reply is over.
        head: its status and headers.
        body: what is still to come.
    """

    __slots__ = ("_body", "_connection", "_head", "status")

    def __init__(self, connection: Connection, head: RawResponseMessage, body: aiohttp.StreamReader) -> None:
        self._connection = connection
        self._head = head
        self._body = body
        self.status = head.code
        body.on_eof(connection.release)

    @property
    def is_events(self) -> bool:
        """Whether it is a stream of events."""
        return self.content_type == "text/event-stream"

    @property
    def content_type(self) -> str:
        """Its media type, in lower case; empty where it has none."""
        return self._head.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def header(self, name: str) -> str | None:
        """One of its headers."""
        return self._head.headers.get(name)

    async def body(self) -> bytes:
        """Read all of it.

        Raises:
            UpstreamLost: it was cut off, or is larger than a message may be.
        """
        data = await self.piece()
        if self._body.at_eof():
            return data
        pieces, size = [data], len(data)
        while piece := await self.piece():
            pieces.append(piece)
            size += len(piece)
            if size > MAX_MESSAGE_BYTES:
                raise UpstreamLost(f"the reply is larger than {MAX_MESSAGE_BYTES >> 20} MiB")
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """Read what has come, at least one byte; nothing at the end.

        Raises:
            UpstreamLost: it was cut off in the middle of a chunk.
        """
        try:
            return await self._body.readany()
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            raise UpstreamLost(f"the reply was cut off: {_why(error)}") from None

    def retire(self) -> None:
        """What is left of it is of no interest: its connection is kept if it ends by itself in a moment."""
        if not self._body.is_eof():
            later = asyncio.get_running_loop().call_later(_RETIRE_SECONDS, self.close)
            self._body.on_eof(later.cancel)

    def close(self) -> None:
        """End it, with its connection unless it is over."""
        self._connection.close()


class HttpClient:
    """The connections to one server.

    Args:
        url: where it is.
        headers: what goes with each request, such as `Authorization`.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.url: Final = url
        self.name: Final = without_secrets(url)
        self._headers = {"User-Agent": "mcp-session-bridge", **headers}
        self._places: dict[str, Place] = {}
        """By the URL that was asked for, where it is now."""
        self._connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS)
        self.keeps_heads_back = False
        """Whether the server was seen to send the head of a stream no sooner than its first event: no use to wait."""

    async def request(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str | None = None
    ) -> HttpReply:
        """Make a request and return once the head of its reply has come.

        Args:
            method: the HTTP method.
            headers: headers besides those of every request.
            body: what is sent.
            url: another URL of the same server.

        Raises:
            UpstreamUnreachable: it did not go out, or was redirected to where it may not be sent.
            UpstreamLost: it may have gone out.
        """
        where = self.url if url is None else url
        place = self._places.get(where) or self._put(where, URL(where))
        for _ in range(_MAX_REDIRECTS):
            reply = await self._once(method, place, headers, body)
            if not 300 <= reply.status < 400:
                return reply
            reply.close()
            place = self._put(where, self._next(method, place.url, reply))
        raise UpstreamUnreachable(f"{self.name} redirects in a circle")

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connector.close()

    def _put(self, where: str, url: URL) -> Place:
        if len(self._places) >= _MAX_PLACES:
            self._places.clear()
        place = self._places[where] = Place(url, self._headers)
        return place

    async def _once(self, method: str, place: Place, headers: Mapping[str, str], body: bytes | None) -> HttpReply:
        head = place.head(method, headers)
        connection = await self._connect(place)
        protocol, transport = connection.protocol, connection.transport
        assert protocol is not None
        assert transport is not None
        protocol.set_response_params(read_until_eof=True)
        try:
            transport.write(_written(head, body))
            while True:
                message, content = await protocol.read()
                if message.code >= 200 or message.code == 101:
                    return HttpReply(connection, message, content)
        except BaseException as error:
            connection.close()
            if isinstance(error, aiohttp.ClientError | HttpProcessingError | OSError):
                raise UpstreamLost(f"the connection to {self.name} was cut off: {_why(error)}") from None
            raise

    async def _connect(self, place: Place) -> Connection:
        if self._connector.closed:
            raise UpstreamUnreachable(f"{self.name} cannot be reached: its connections were closed")
        try:
            while True:
                connection = await self._connector.connect(place.request, [], _TIMEOUT)
                protocol = connection.protocol
                if protocol is None or not protocol.should_close:
                    return connection
                # Something came on it while nothing was asked: it must not be taken for the reply.
                connection.close()
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamUnreachable(f"{self.name} cannot be reached: {_why(error)}") from None

    def _next(self, method: str, at: URL, reply: HttpReply) -> URL:
        try:
            to = at.join(URL(reply.header("Location") or ""))
        except ValueError:
            to = at
        followed = _FOLLOWED_BY_GET if method == "GET" else _ALWAYS_FOLLOWED
        if reply.status not in followed or to == at or not to.host or to.origin() != at.origin():
            raise UpstreamUnreachable(
                f"{self.name} answered {method} with {reply.status}, to {without_secrets(str(to))}:"
                " if that is the server, give its URL"
            )
        return to.with_user(at.user).with_password(at.password) if at.user else to


def _written(head: bytes, body: bytes | None) -> bytes:
    return b"%b\r\n" % head if body is None else b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no connection within {_CONNECT_SECONDS:g} seconds"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
        return "the connection was refused"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
