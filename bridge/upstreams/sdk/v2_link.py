"""A way to a server of `mcp` 2.x in this process: no streams and no messages, each request is a call of its handler.

It runs in the task of whoever asks, so that cancelling the one cancels the other.
"""

import itertools
import logging
from contextvars import Token
from typing import Any, Final

import anyio
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data

from bridge.errors import UpstreamUnreachable
from bridge.protocol.messages import INTERNAL_ERROR, Json
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.closing import Interruptible
from bridge.upstreams.links import Facts, News, Talk
from bridge.upstreams.sdk.v2_blind import BlindCalls
from bridge.upstreams.sdk.v2_calls import CALL, Handler, plain_result
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
        blind: makes the calls of tools that are given no context, where that can be told.
        listening: what the server publishes, where it is known to publish.
    """

    def __init__(
        self,
        running: Running,
        drive: Drive,
        facts: Facts,
        news: News,
        *,
        blind: BlindCalls | None,
        listening: Listening | None,
    ) -> None:
        self._running = running
        self._drive = drive
        self._facts = facts
        self._news = news
        self._blind = blind
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
        token = _sign_in(talk)
        try:
            with self._requests.under_way():
                if method == CALL and self._blind is not None and self._blind.takes(params):
                    return await self._call_blindly(self._blind, params, talk)
                return await self._handled(method, params, talk)
        finally:
            if token is not None:
                auth_context_var.reset(token)

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

    async def _call_blindly(self, blind: BlindCalls, params: Json, talk: Talk | None) -> Finished | Failed:
        try:
            made = await blind.make(params)
        except Exception as error:
            return _failed(CALL, error)
        plain = plain_result(made)
        if plain is not None:
            return Finished(plain)

        async def handler(context: object, read: object) -> Any:
            return made

        # Only the SDK knows how such a result is written.
        return await self._handled(CALL, params, talk, handler)

    async def _handled(
        self, method: str, params: Json, talk: Talk | None, handler: Handler | None = None
    ) -> Finished | Failed:
        identity = next(self._ids)
        exchange = Exchange(identity, talk, self._news)
        connection = self._drive.connection(method, exchange)
        try:
            params = self._drive.params(params, identity, talk)
            return Finished(await self._running.request(connection, exchange, method, params, handler))
        except Exception as error:
            return _failed(method, error)
        finally:
            exchange.end()
            await self._drive.ended(connection)

    async def _watch(self, listening: Listening, method: str, params: Json) -> Finished | Failed:
        uri = str(params.get("uri"))
        if method == "resources/subscribe":
            return await listening.watch(self, self._news, uri)
        return await listening.unwatch(self, uri)


def _sign_in(talk: Talk | None) -> Token[AuthenticatedUser | None] | None:
    """Have `get_access_token()` know the user whom the SDK's own middleware put into the scope, if any."""
    http = None if talk is None else talk.http
    user = None if http is None else http.get("user")
    return auth_context_var.set(user) if isinstance(user, AuthenticatedUser) else None


def _failed(method: str, error: Exception) -> Failed:
    known = handler_exception_to_error_data(error)
    if known is None:
        _log.error("a server's handler of %s failed", method, exc_info=error)
        return Failed(INTERNAL_ERROR, "Internal server error")
    return Failed(known.code, known.message, known.data)
