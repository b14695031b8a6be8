"""A way to a server of `mcp` 2.x in this process: no streams and no messages, each request is a call of its handler.

It runs in the task of whoever asks, so that cancelling the one cancels the other.
"""

import itertools
import logging
from typing import Final

import anyio
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data

from bridge.errors import UpstreamUnreachable
from bridge.protocol.messages import INTERNAL_ERROR, Json
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.closing import Interruptible
from bridge.upstreams.links import Facts, News, Talk
from bridge.upstreams.sdk.v2_drives import Drive, Running
from bridge.upstreams.sdk.v2_exchange import Exchange
from bridge.upstreams.sdk.v2_listening import Listening

__all__ = ["LinkV2"]

_CLEANUP_SECONDS: Final = 5.0
_log = logging.getLogger("bridge.upstream")


class LinkV2:
    """A `Link` to a server of `mcp` 2.x.

    Args:
        running: the server.
        drive: how it is driven.
        facts: what it said of itself.
        news: takes what belongs to no request.
        listening: what the server publishes, where it is known to publish.
    """

    def __init__(self, running: Running, drive: Drive, facts: Facts, news: News, listening: Listening | None) -> None:
        self._running = running
        self._drive = drive
        self._facts = facts
        self._news = news
        self._listening = listening
        self._ids = itertools.count(1)
        self._requests = Interruptible()
        self._is_open = True
        if listening is not None:
            listening.join(self, news)

    @property
    def facts(self) -> Facts:
        """See `Link`."""
        return self._facts

    @property
    def names_requests(self) -> bool:
        """See `Link`."""
        return True

    @property
    def is_open(self) -> bool:
        """See `Link`."""
        return self._is_open

    async def request(self, method: str, params: Json, talk: Talk | None = None) -> Finished | Failed:
        """See `Link`."""
        if not self._is_open:
            raise UpstreamUnreachable("the link is closed")
        if self._listening is not None and method in ("resources/subscribe", "resources/unsubscribe"):
            return await self._watch(self._listening, method, params)
        exchange = Exchange(next(self._ids), talk, self._news)
        with self._requests.under_way():
            return await self._handled(method, params, talk, exchange)

    async def notify(self, method: str, params: Json) -> None:
        """See `Link`."""
        if not self._is_open:
            return
        exchange = Exchange(None, None, self._news)
        connection = self._drive.connection(method, exchange)
        try:
            await self._running.notify(connection, exchange, method, params)
        finally:
            await self._drive.ended(connection)

    async def aclose(self) -> None:
        """See `Link`."""
        self._is_open = False
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            await self._requests.end("the link was closed before the server answered")
            if self._listening is not None:
                await self._listening.leave(self)
            await self._drive.aclose()

    async def _handled(self, method: str, params: Json, talk: Talk | None, exchange: Exchange) -> Finished | Failed:
        identity = exchange.request_id
        assert identity is not None
        connection = self._drive.connection(method, exchange)
        user = exchange.user
        token = None if user is None else auth_context_var.set(user)
        try:
            params = self._drive.params(params, identity, talk)
            return Finished(await self._running.request(connection, exchange, method, params))
        except Exception as error:
            return _failed(method, error)
        finally:
            if token is not None:
                auth_context_var.reset(token)
            exchange.end()
            await self._drive.ended(connection)

    async def _watch(self, listening: Listening, method: str, params: Json) -> Finished | Failed:
        uri = str(params.get("uri"))
        if method == "resources/subscribe":
            return await listening.watch(self, self._news, uri)
        return await listening.unwatch(self, uri)


def _failed(method: str, error: Exception) -> Failed:
    known = handler_exception_to_error_data(error)
    if known is None:
        _log.error("a server's handler of %s failed", method, exc_info=error)
        return Failed(INTERNAL_ERROR, "Internal server error")
    return Failed(known.code, known.message, known.data)
