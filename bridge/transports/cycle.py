"""One request and its reply on a connection of HTTP/1.1, as ASGI has it: uvicorn's cycle with less work.

What a client sees is as uvicorn has it. A head is made once for all replies that have the same, and a request that is
there as a whole waits for nothing. It knows ASGI and bytes, and must not know what is served.
"""

import asyncio
import logging
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.utils import get_client_addr, get_path_with_query_string

__all__ = ["Cycle"]

_HEADS: Final = 1024
_NO_BODY: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_DISCONNECT: Final = {"type": "http.disconnect"}
_EXPECTS: Final = (b"expect", b"100-continue")
_log = logging.getLogger("uvicorn.error")

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]


class Cycle:
    """One request and its reply.

    Args:
        protocol: its connection.
        scope: what ASGI says of the request.
        keep_alive: whether another may follow.
    """

    __slots__ = (
        "_body",
        "_chunked",
        "_disconnected",
        "_has_news",
        "_is_unasked",
        "_left",
        "_more_body",
        "_news",
        "_protocol",
        "_scope",
        "_size",
        "keep_alive",
        "response_complete",
        "response_started",
        "task",
    )

    def __init__(self, protocol: HttpToolsProtocol, scope: Any, keep_alive: bool) -> None:
        self._protocol = protocol
        self._scope = scope
        self.keep_alive = keep_alive
        self.task: asyncio.Task[None] | None = None
        self._disconnected = False
        self._body: list[bytes] = []
        self._size = 0
        self._more_body = True
        self._is_unasked = True
        """Nothing of the body has come, and the client may wait to be told to send it."""
        self._has_news = False
        self._news: asyncio.Event | None = None
        self.response_started = self.response_complete = False
        self._chunked = False
        self._left = 0

    async def run(self, app: Any) -> None:
        """Run the app; what it raises or leaves undone ends the reply, as uvicorn ends it."""
        try:
            result = await app(self._scope, self.receive, self.send)
            if result is not None:
                _log.error("ASGI callable should return None, but returned '%s'.", result)
                self._protocol.transport.close()
            elif not (self.response_complete or self._disconnected):
                undone = "completing" if self.response_started else "starting"
                _log.error("ASGI callable returned without %s response.", undone)
                await self._fail()
        except BaseException as error:
            _log.error("Exception in ASGI application\n", exc_info=error)
            await self._fail()
        finally:
            if self.task is not None:
                self._protocol.tasks.discard(self.task)

    async def _fail(self) -> None:
        if self.response_started:
            self._protocol.transport.close()
            return
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"21"),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": HTTPStatus.INTERNAL_SERVER_ERROR, "headers": headers})
        await self.send({"type": "http.response.body", "body": b"Internal Server Error"})

    def take(self, body: bytes) -> int:
        """A part of the body has come. Returns how many bytes wait to be received."""
        self._is_unasked = False
        self._body.append(body)
        self._size += len(body)
        self._tell()
        return self._size

    def take_end(self) -> None:
        """The body is there as a whole."""
        if not self.response_complete:
            self._is_unasked = self._more_body = False
            self._tell()

    def disconnect(self) -> None:
        """The client has gone."""
        if not self.response_complete:
            self._disconnected = True
        self._tell()

    def _tell(self) -> None:
        self._has_news = True
        if self._news is not None:
            self._news.set()

    async def receive(self) -> dict[str, Any]:
        """See ASGI."""
        if not (self._disconnected or self.response_complete):
            self._protocol.flow.resume_reading()
            if not self._has_news:
                await self._wait()
            self._has_news = False
        if self._disconnected or self.response_complete:
            return _DISCONNECT.copy()
        body, self._body, self._size = b"".join(self._body), [], 0
        return {"type": "http.request", "body": body, "more_body": self._more_body}

    async def _wait(self) -> None:
        if self._is_unasked and not self.response_started:
            self._is_unasked = False
            if _EXPECTS in [(name, value.lower()) for name, value in self._scope["headers"]]:
                self._protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._news is None:
            self._news = asyncio.Event()
        self._news.clear()
        await self._news.wait()

    async def send(self, message: Any) -> None:
        """See ASGI."""
        flow = self._protocol.flow
        if flow.write_paused and not self._disconnected:
            await flow.drain()
        if self._disconnected:
            return
        kind = message["type"]
        expected = "http.response.body" if self.response_started else "http.response.start"
        if self.response_complete:
            raise RuntimeError(f"Unexpected ASGI message {kind!r} sent, after response already completed.")
        if kind != expected:
            raise RuntimeError(f"Expected ASGI message {expected!r}, but got {kind!r}.")
        if not self.response_started:
            self._begin(message["status"], message.get("headers", ()))
        else:
            self._continue(message.get("body", b""), message.get("more_body", False))

    def _begin(self, status: int, headers: Any) -> None:
        protocol = self._protocol
        head = _head(status, tuple(map(tuple, (*protocol.server_state.default_headers, *headers))))
        self.response_started = True
        if protocol.access_log:
            self._log_access(status)
        if head.closes:
            self.keep_alive = False
        data = head.data if self.keep_alive or head.closes else head.data + b"connection: close\r\n"
        self._chunked = head.chunked
        if head.length is not None:
            self._left = head.length
        elif not head.chunked and self._scope["method"] != "HEAD" and status not in _NO_BODY:
            self._chunked = True
            data += b"transfer-encoding: chunked\r\n"
        protocol.transport.write(data + b"\r\n")

    def _log_access(self, status: int) -> None:
        self._protocol.access_logger.info(
            '%s - "%s %s HTTP/%s" %d',
            get_client_addr(self._scope),
            self._scope["method"],
            get_path_with_query_string(self._scope),
            self._scope["http_version"],
            status,
        )

    def _continue(self, body: bytes, more_body: bool) -> None:
        if self._scope["method"] == "HEAD":
            body, self._left = b"", 0
        elif self._chunked:
            body = _chunk(body, more_body)
        elif len(body) > self._left:
            raise RuntimeError("Response content longer than Content-Length")
        else:
            self._left -= len(body)
        if body:
            self._protocol.transport.write(body)
        if more_body:
            return
        if self._left:
            raise RuntimeError("Response content shorter than Content-Length")
        self.response_complete = True
        self._tell()
        if not self.keep_alive:
            self._protocol.transport.close()
        self._protocol.on_response_complete()


def _chunk(body: bytes, more_body: bool) -> bytes:
    part = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return part if more_body else part + b"0\r\n\r\n"


class _Head(NamedTuple):
    """The status line and the headers of a reply, and what they say of its body and its connection."""

    data: bytes
    length: int | None
    chunked: bool
    closes: bool


@lru_cache(maxsize=_HEADS)
def _head(status: int, headers: Headers) -> _Head:
    lines, length, chunked, closes = [STATUS_LINE[status]], None, False, False
    for name, value in headers:
        if HEADER_RE.search(name):
            raise RuntimeError("Invalid HTTP header name.")
        if HEADER_VALUE_RE.search(value):
            raise RuntimeError("Invalid HTTP header value.")
        name = name.lower()
        if name == b"content-length" and length is None and not chunked:
            length = int(value.decode())
        elif name == b"transfer-encoding" and value.lower() == b"chunked":
            length, chunked = None, True
        elif name == b"connection":
            closes = closes or b"close" in [token.lower().strip() for token in value.split(b",")]
        lines += (name, b": ", value, b"\r\n")
    return _Head(b"".join(lines), length, chunked, closes)
