"""One message to a server of `mcp` 2.x, as that server sees it: what it asks and says meanwhile goes to the `Talk`.

The server is handed this object as the channel of the request and as that of its connection, so that a question
belongs to its request by object, whatever the author passed. This module knows no link.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from starlette.requests import HTTPConnection

from bridge.protocol.messages import METHOD_NOT_FOUND
from bridge.upstreams.base import Failed
from bridge.upstreams.links import ASKS, News, Talk
from bridge.upstreams.sdk.scopes import connection_of

__all__ = ["Exchange"]

_REQUEST_TIMEOUT: Final = -32001
_KIND: Final = "mcp-session-bridge"
_DEAF: Final = TransportContext(kind=_KIND, can_send_request=False)
_ASKABLE: Final = TransportContext(kind=_KIND, can_send_request=True)
_log = logging.getLogger("bridge.upstream")


class Exchange:
    """One request or notification to the server, a `DispatchContext` of the SDK.

    Args:
        identity: the id of the request; None for a notification.
        talk: takes what the server says about the request; None: it cannot ask.
        news: takes what belongs to no request.
    """

    __slots__ = ("_cancelled", "_is_over", "_news", "_talk", "request_id")

    def __init__(self, identity: int | None, talk: Talk | None, news: News) -> None:
        self.request_id = identity
        self._talk = talk
        self._news = news
        self._cancelled: anyio.Event | None = None
        self._is_over = False

    @property
    def request(self) -> HTTPConnection | None:
        """The client's HTTP request, for tools that look at it."""
        return None if self._talk is None else connection_of(self._talk.http)

    @property
    def transport(self) -> TransportContext:
        """What the server may know of how the message came."""
        request = self.request
        if request is not None:
            return TransportContext(kind=_KIND, can_send_request=self.can_send_request, headers=dict(request.headers))
        return _ASKABLE if self.can_send_request else _DEAF

    @property
    def can_send_request(self) -> bool:
        """Whether a question can be asked: while the request is under way, if somebody takes it."""
        return self._talk is not None and not self._is_over

    @property
    def message_metadata(self) -> MessageMetadata:
        """The client's HTTP request, as the SDK's runner is given it."""
        request = self.request
        return None if request is None else ServerMessageMetadata(request_context=request)

    @property
    def cancel_requested(self) -> anyio.Event:
        """Set when the request is over without a reply."""
        if self._cancelled is None:
            self._cancelled = anyio.Event()
            if self._is_over:
                self._cancelled.set()
        return self._cancelled

    def end(self) -> None:
        """The request is over: what still comes of it belongs to none."""
        self._is_over = True
        if self._cancelled is not None:
            self._cancelled.set()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Take a question of the server, and return its answer.

        Raises:
            NoBackChannelError: nobody takes it.
            MCPError: it was answered with an error, or not in the time that the server gave it.
        """
        if self._talk is None or self._is_over:
            raise NoBackChannelError(method)
        if method == "ping":
            return {}
        if method not in ASKS:
            raise MCPError(METHOD_NOT_FOUND, f"Method not found: {method}")
        seconds = None if opts is None else opts.get("timeout")
        try:
            with anyio.fail_after(seconds):
                answer = await self._talk.ask(method, {} if params is None else dict(params))
        except TimeoutError:
            raise MCPError(_REQUEST_TIMEOUT, f"Timed out while waiting for response to {method}") from None
        if isinstance(answer, Failed):
            raise MCPError(answer.code, answer.message, answer.data)
        return answer.result

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Take a notification of the server; one that does not get through is logged."""
        content = {} if params is None else dict(params)
        try:
            if method == "notifications/progress":
                await self.progress(content["progress"], content.get("total"), content.get("message"))
            elif method == "notifications/message" and self._talk is not None and not self._is_over:
                await self._talk.log(content["level"], content.get("data"), content.get("logger"))
            else:
                await self._news(method, content)
        except Exception:
            # A server's notification is a courtesy: it has no way to hear that it failed.
            _log.exception("a server's %s got lost", method)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Take a report of progress, if anybody wants it."""
        if self._talk is not None and not self._is_over and self._talk.wants_progress:
            await self._talk.progress(progress, total, message)
