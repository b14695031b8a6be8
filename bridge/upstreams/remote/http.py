"""HTTP to one server: pooled connections, and what went wrong in this library's errors. Knows no MCP.

Nothing is followed to another origin, no cookie is kept, no request is sent twice.
"""

import asyncio
import errno
import io
from collections.abc import Mapping
from typing import Final

from bridge.errors import MissingExtraError, UpstreamLost, UpstreamUnreachable
from bridge.upstreams.remote.limits import MAX_MESSAGE_BYTES
from bridge.upstreams.remote.targets import without_secrets

try:
    import aiohttp
    from yarl import URL
except ImportError as error:
    raise MissingExtraError("a server at an http(s) URL", "remote") from error

__all__ = ["HttpClient", "HttpReply"]

_CONNECT_SECONDS: Final = 10.0
_KEEP_ALIVE_SECONDS: Final = 4.0
"""Less than the 5 s after which common servers close an idle connection, perhaps just as a request goes out on it."""

_MAX_CONNECTIONS: Final = 10_000
_MAX_REDIRECTS: Final = 5
_RETIRE_SECONDS: Final = 1.0
_LARGE_BYTES: Final = 1024 * 1024
_ALWAYS_FOLLOWED: Final = frozenset({307, 308})
_FOLLOWED_BY_GET: Final = frozenset({301, 302, 303, 307, 308})


class HttpReply:
    """A reply whose head has come."""

    __slots__ = ("_response", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    @property
    def is_events(self) -> bool:
        """Whether it is a stream of events."""
        return self._response.content_type == "text/event-stream"

    @property
    def content_type(self) -> str:
        """Its media type."""
        return self._response.content_type

    def header(self, name: str) -> str | None:
        """One of its headers."""
        return self._response.headers.get(name)

    async def body(self) -> bytes:
        """Read all of it.

        Raises:
            UpstreamLost: it was cut off, or is larger than a message may be.
        """
        data = await self.piece()
        if self._response.content.at_eof():
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
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamLost(f"the reply was cut off: {_why(error)}") from None

    def retire(self) -> None:
        """What is left of it is of no interest: its connection is kept if it ends by itself in a moment."""
        response = self._response
        if response.connection is not None:
            later = asyncio.get_running_loop().call_later(_RETIRE_SECONDS, response.close)
            response.content.on_eof(later.cancel)

    def close(self) -> None:
        """End it, with its connection unless it is over."""
        self._response.close()


class HttpClient:
    """The connections to one server.

    Args:
        url: where it is.
        headers: what goes with each request, such as `Authorization`.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.url: Final = url
        self.name: Final = without_secrets(url)
        self._moved: dict[str, URL] = {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "mcp-session-bridge", **headers},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )

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
        for _ in range(_MAX_REDIRECTS):
            at = self._moved.get(where) or self._moved.setdefault(where, URL(where))
            reply = await self._once(method, at, headers, body)
            if not 300 <= reply.status < 400:
                return reply
            reply.close()
            self._moved[where] = self._next(method, at, reply)
        raise UpstreamUnreachable(f"{self.name} redirects in a circle")

    async def aclose(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def _once(self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None) -> HttpReply:
        # A large body as bytes draws a warning.
        data = io.BytesIO(body) if body is not None and len(body) >= _LARGE_BYTES else body
        try:
            return HttpReply(
                await self._session.request(method, url, headers=headers, data=data, allow_redirects=False)
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise UpstreamUnreachable(f"{self.name} cannot be reached: {_why(error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamLost(f"the connection to {self.name} was cut off: {_why(error)}") from None
        except RuntimeError as error:
            # What aiohttp says of a session that was closed meanwhile.
            raise UpstreamUnreachable(f"{self.name} cannot be reached: {error}") from None

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


def _why(error: BaseException) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {_CONNECT_SECONDS:g} seconds"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
        return "the connection was refused"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__
