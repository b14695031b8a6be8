"""A `Link` to a modern server: every request stands alone, and says itself who makes it.

Source: basic/index and basic/versioning of 2026-07-28.
"""

import itertools
import logging
from typing import Any, Final, TypeGuard

import anyio

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.inbound import ParameterHeaders
from bridge.protocol.messages import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Json,
    Notification,
    RequestId,
    Response,
    request_message,
)
from bridge.protocol.revisions import MODERN
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.links import Facts, Hello, News, Talk
from bridge.upstreams.remote.carriers import Carrier, Heard
from bridge.upstreams.remote.envelope import Envelope, request_headers
from bridge.upstreams.remote.listening import MAX_SUBSCRIPTIONS, Listener
from bridge.upstreams.remote.schemas import ToolHeaders

__all__ = ["ModernLink"]

_MAX_PAGES: Final = 1000
_log = logging.getLogger("bridge.upstream")


class ModernLink:
    """A `Link` to a modern server.

    Args:
        carrier: what carries requests; it is closed with the link.
        facts: what the server said of itself.
        hello: who the link speaks for.
        news: takes what belongs to no request.
    """

    def __init__(self, carrier: Carrier, facts: Facts, hello: Hello, news: News) -> None:
        self._carrier = carrier
        self.facts: Final = facts
        self._envelope = Envelope(hello)
        self._ids = itertools.count(1)
        self._tools = ToolHeaders(carrier.name)
        self._listing = anyio.Lock()
        self._listener = Listener(carrier.name, facts.capabilities, self._listen, news)
        self._listener.start()

    @property
    def names_requests(self) -> bool:
        """See `Link`."""
        return True

    @property
    def is_open(self) -> bool:
        """See `Link`."""
        return self._carrier.is_open

    async def request(self, method: str, params: Json, talk: Talk | None = None) -> Finished | Failed:
        """See `Link`. What only legacy servers know is translated, or done here."""
        if method in _TRANSLATED:
            return await self._translated(method, params)
        annotated: ParameterHeaders = ()
        if method == "tools/call" and self._carrier.has_headers:
            annotated = await self._annotated(params.get("name"))
        response = await self._exchange(method, params, annotated, talk)
        if _code(response) == HEADER_MISMATCH and method == "tools/call":
            # Source: basic/transports/streamable-http#client-behavior: what is known of the tool is out of date.
            self._tools.forget()
            annotated = await self._annotated(params.get("name"))
            response = await self._exchange(method, params, annotated, talk)
        return self._outcome(method, response)

    async def notify(self, method: str, params: Json) -> None:
        """See `Link`: a modern server takes no notification but of cancellation, so all are dropped."""
        _log.debug("%s is modern and takes no %s", self._carrier.name, method)

    async def aclose(self) -> None:
        """See `Link`."""
        with anyio.CancelScope(shield=True):
            await self._listener.aclose()
            await self._carrier.aclose()

    async def _exchange(
        self, method: str, params: Json, annotated: ParameterHeaders = (), talk: Talk | None = None
    ) -> Response:
        identity = next(self._ids)
        message = request_message(identity, method, self._envelope.params(params, identity, talk))
        headers = request_headers(method, params, annotated) if self._carrier.has_headers else {}
        return await self._carrier.carry(message, headers, None if talk is None else _Hearing(talk, identity).take)

    async def _listen(self, params: Json, heard: Heard) -> Response:
        identity, method = next(self._ids), "subscriptions/listen"
        message = request_message(identity, method, self._envelope.params(params, identity, None))
        return await self._carrier.carry(message, request_headers(method, params, ()), heard)

    def _outcome(self, method: str, response: Response) -> Finished | Failed:
        if not isinstance(response.error, dict):
            result = response.result if isinstance(response.result, dict) else {}
            return Finished(
                self._tools.learn(result) if method == "tools/list" and self._carrier.has_headers else result
            )
        code, message = response.error.get("code"), str(response.error.get("message", ""))
        data = response.error.get("data")
        if code == UNSUPPORTED_VERSION:
            supported = data.get("supported") if isinstance(data, dict) else None
            raise UpstreamUnreachable(f"{self._carrier.name} supports {supported}, and no longer {MODERN.name}")
        if code == HEADER_MISMATCH:
            raise UpstreamUnreachable(f"{self._carrier.name} refused the headers of the request: {message}")
        return Failed(code if isinstance(code, int) else INTERNAL_ERROR, message, data)

    async def _annotated(self, tool: Any) -> ParameterHeaders:
        """The parameters of a tool that travel in headers; its server is asked where that is not known."""
        if not isinstance(tool, str):
            return ()
        if (known := self._tools.of(tool)) is None:
            async with self._listing:
                if self._tools.of(tool) is None:
                    await self._list_tools(tool)
            known = self._tools.of(tool)
        return known or ()

    async def _list_tools(self, wanted: str) -> None:
        cursor: Json = {}
        for _ in range(_MAX_PAGES):
            try:
                response = await self._exchange("tools/list", cursor)
            except UpstreamLost as lost:
                # The call itself has not begun, and the server says what it misses.
                _log.warning("%s did not list its tools: %s", self._carrier.name, lost)
                return
            result = response.result if isinstance(response.result, dict) else {}
            self._tools.learn(result)
            if self._tools.of(wanted) is not None or not isinstance(after := result.get("nextCursor"), str):
                break
            cursor = {"cursor": after}
        if self._tools.of(wanted) is None:
            self._tools.assume_none(wanted)

    async def _translated(self, method: str, params: Json) -> Finished | Failed:
        if not self.is_open:
            raise UpstreamUnreachable(f"the link to {self._carrier.name} was closed")
        if method not in _SUBSCRIBING:
            # Log levels go with each request, and there is no session to keep alive.
            return Finished({})
        if not self._listener.can_subscribe:
            return Failed(METHOD_NOT_FOUND, "The server does not offer subscriptions to resources")
        if not isinstance(uri := params.get("uri"), str):
            return Failed(INVALID_PARAMS, "Invalid params: uri must be a string")
        if method == "resources/unsubscribe":
            await self._listener.unsubscribe(uri)
        elif self._listener.uris >= MAX_SUBSCRIPTIONS:
            return Failed(INVALID_REQUEST, f"There are {MAX_SUBSCRIPTIONS} subscriptions already")
        else:
            await self._listener.subscribe(uri)
        return Finished({})


_SUBSCRIBING: Final = frozenset({"resources/subscribe", "resources/unsubscribe"})
_TRANSLATED: Final = _SUBSCRIBING | {"logging/setLevel", "ping"}


class _Hearing:
    """Hands what comes with one request to its talk."""

    __slots__ = ("_identity", "_talk")

    def __init__(self, talk: Talk, identity: RequestId) -> None:
        self._talk = talk
        self._identity = identity

    async def take(self, notification: Notification) -> None:
        params = notification.params
        if notification.method == "notifications/progress":
            if params.get("progressToken") == self._identity and _is_number(progress := params.get("progress")):
                total, message = params.get("total"), params.get("message")
                await self._talk.progress(
                    progress, total if _is_number(total) else None, message if isinstance(message, str) else None
                )
        elif notification.method == "notifications/message" and isinstance(level := params.get("level"), str):
            logger = params.get("logger")
            await self._talk.log(level, params.get("data"), logger if isinstance(logger, str) else None)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _code(response: Response) -> Any:
    return response.error.get("code") if isinstance(response.error, dict) else None
