"""How a server of `mcp` 2.x is driven in each era: what it is told of its client, and the `Connection` of a request.

The server sees a `Connection` of its SDK: in the modern era a fresh one for each request, in the legacy era one with
the state of a session.
"""

from contextlib import AsyncExitStack
from typing import Any, Final, Protocol
from uuid import uuid4

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
)
from mcp_types.methods import CLIENT_NOTIFICATIONS, CLIENT_REQUESTS

from bridge.protocol.messages import Json
from bridge.protocol.revisions import LATEST_LEGACY, MODERN, REVISIONS
from bridge.upstreams.links import Facts, Hello, Talk
from bridge.upstreams.sdk.v2_calls import CALL, Handler, ToolCalls
from bridge.upstreams.sdk.v2_exchange import Exchange

__all__ = ["Drive", "LegacyDrive", "ModernDrive", "Running"]

_KNOWN: Final = frozenset((*CLIENT_REQUESTS, *CLIENT_NOTIFICATIONS))
_ONLY_LEGACY: Final = frozenset(
    method for method, version in _KNOWN if version == LATEST_LEGACY.name and (method, MODERN.name) not in _KNOWN
)
"""What a modern connection refuses, though the server may have a handler for it, such as `logging/setLevel`."""


class Running:
    """A server whose lifespan has begun.

    Args:
        low: the low-level server.
        state: what its lifespan yielded.
    """

    def __init__(self, low: "LowLevelServer[Any]", state: Any) -> None:
        self.low = low
        self.state = state
        self._calls = ToolCalls(low, state)

    async def request(
        self, connection: Connection, exchange: Exchange, method: str, params: Json, handler: Handler | None = None
    ) -> Json:
        """Call the handler of a request; what that raises is raised.

        Args:
            connection: the connection of the request.
            exchange: the request.
            method: its method.
            params: its params, with what the drive wants in `_meta`.
            handler: called in place of the server's, for a call of a tool.
        """
        if method == CALL and (handler := handler or self._calls.handler(connection, params)) is not None:
            return await self._calls.make(handler, connection, exchange, params)
        runner = ServerRunner(self.low, connection, self.state)
        try:
            return await runner.on_request(exchange, method, params)
        finally:
            # It caches a method of its own, and such a cycle would wait for the garbage collector at each call.
            del runner.on_request

    async def notify(self, connection: Connection, exchange: Exchange, method: str, params: Json | None) -> None:
        """Call the handler of a notification; what that raises is logged."""
        runner = ServerRunner(self.low, connection, self.state)
        await runner.on_notify(exchange, method, params)


class Drive(Protocol):
    """One client of the server, in one era."""

    async def meet(self, exchange: Exchange) -> Facts:
        """Ask the server what it is."""
        ...

    def params(self, params: Json, identity: int, talk: Talk | None) -> Json:
        """The params of a request, with what this era wants in `_meta`."""
        ...

    def connection(self, method: str, exchange: Exchange) -> Connection:
        """The connection of one message."""
        ...

    async def ended(self, connection: Connection) -> None:
        """A message is over: clean up after it."""
        ...

    async def aclose(self) -> None:
        """The client leaves: clean up after it."""
        ...


class ModernDrive:
    """A client whose requests stand alone. It can be asked within a request all the same, as its code may do.

    Args:
        running: the server.
        hello: who the client is.
    """

    def __init__(self, running: Running, hello: Hello) -> None:
        self._running = running
        info = hello.info or None
        self._modern = Connection.from_envelope(MODERN.name, info, hello.capabilities)
        self._legacy = Connection.from_envelope(LATEST_LEGACY.name, info, hello.capabilities)
        self._meta = {
            PROTOCOL_VERSION_META_KEY: MODERN.name,
            CLIENT_CAPABILITIES_META_KEY: hello.capabilities,
            **({CLIENT_INFO_META_KEY: info} if info else {}),
        }

    async def meet(self, exchange: Exchange) -> Facts:
        """See `Drive`."""
        method = "server/discover"
        result = await self._running.request(self.connection(method, exchange), exchange, method, {"_meta": self._meta})
        info = (result.get("_meta") or {}).get(SERVER_INFO_META_KEY)
        return _facts(MODERN.name, result, info)

    def params(self, params: Json, identity: int, talk: Talk | None) -> Json:
        """See `Drive`."""
        given = params.get("_meta")
        meta = {**given, **self._meta} if given else dict(self._meta)
        if talk is not None:
            if talk.wants_progress:
                meta["progressToken"] = identity
            if talk.log_level is not None:
                meta[LOG_LEVEL_META_KEY] = talk.log_level
        return {**params, "_meta": meta}

    def connection(self, method: str, exchange: Exchange) -> Connection:
        """See `Drive`."""
        # The SDK's own way to build one validates the client's capabilities, which are the same for every request.
        connection = _like(self._legacy if method in _ONLY_LEGACY else self._modern)
        connection.outbound = exchange
        connection.state = {}
        connection.exit_stack = AsyncExitStack()
        return connection

    async def ended(self, connection: Connection) -> None:
        """See `Drive`."""
        # Nearly no handler leaves anything to clean up, and the cancel scope around that costs as much as the rest.
        if getattr(connection.exit_stack, "_exit_callbacks", True):
            await aclose_shielded(connection)

    async def aclose(self) -> None:
        """See `Drive`."""


class LegacyDrive:
    """A client with a session: the server is initialized for it, and keeps state for it.

    Args:
        running: the server.
        hello: who the client is.
    """

    def __init__(self, running: Running, hello: Hello) -> None:
        self._running = running
        self._hello = hello
        self._session = Connection.from_envelope(LATEST_LEGACY.name, hello.info, hello.capabilities)
        # A server may key its state by the session, and must not take the id from the client's own HTTP headers.
        self._session.session_id = uuid4().hex

    async def meet(self, exchange: Exchange) -> Facts:
        """See `Drive`."""
        self._session.outbound = exchange
        hello = {
            "protocolVersion": LATEST_LEGACY.name,
            "capabilities": self._hello.capabilities,
            "clientInfo": self._hello.info,
        }
        result = await self._running.request(self._session, exchange, "initialize", hello)
        exchange.request_id = None
        await self._running.notify(self._session, exchange, "notifications/initialized", None)
        return _facts(result.get("protocolVersion"), result, result.get("serverInfo"))

    def params(self, params: Json, identity: int, talk: Talk | None) -> Json:
        """See `Drive`."""
        if talk is None or not talk.wants_progress:
            return params
        return {**params, "_meta": {**(params.get("_meta") or {}), "progressToken": identity}}

    def connection(self, method: str, exchange: Exchange) -> Connection:
        """See `Drive`."""
        connection = _like(self._session)
        connection.outbound = exchange
        return connection

    async def ended(self, connection: Connection) -> None:
        """See `Drive`."""

    async def aclose(self) -> None:
        """See `Drive`."""
        await aclose_shielded(self._session)


def _like(connection: Connection) -> Connection:
    """A copy, in a third of the time that `copy.copy` takes."""
    same = Connection.__new__(Connection)
    same.__dict__.update(connection.__dict__)
    return same


def _facts(version: Any, result: Json, info: Any) -> Facts:
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return Facts(
        revision=REVISIONS.get(version, LATEST_LEGACY),
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        info=info if isinstance(info, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
    )
