"""From what a user names (a server object, a URL, a command) to how it is reached.

Packages that only some targets need are imported when one of those is named.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from typing_extensions import TypeIs

from bridge.errors import ConfigurationError
from bridge.protocol.revisions import Era
from bridge.upstreams.links import Hello, Link, News, Server, Sharing
from bridge.upstreams.remote.targets import Command, Url
from bridge.upstreams.sdk import server_of
from bridge.upstreams.session import LegacyLink
from bridge.upstreams.wires import Wire

if TYPE_CHECKING:
    from bridge.upstreams.sdk.v1 import InProcessV1
    from bridge.upstreams.sdk.v2 import InProcessV2

__all__ = ["Command", "ServerOptions", "Url", "server_maker"]


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a wrapped server is reached.

    Args:
        headers: HTTP headers to add to what is sent to it, such as its own `Authorization`. A caller's token never is.
        protocol: the era to speak with it; `auto` finds out. One over HTTP that serves both eras is spoken to in
            sessions where it begins them, since there its tools may ask in their body; say `modern` where they ask by
            what they return (`InputRequiredResult`).
        shared: one session with it (over stdio: one child) for all callers, for a server whose state is in memory.
        processes: over how many children calls are spread that share one.
        concurrent: several calls at once in one session where its transport does not tell which of them asks: for a
            server that is known not to ask. A question that comes while several run is refused.
        lifespan: for a server object of mcp 1: entered for each `session`, as over HTTP, or `once`.
    """

    headers: Mapping[str, str] = {}
    protocol: Literal["auto", "modern", "legacy"] = "auto"
    shared: bool = False
    processes: int = 1
    concurrent: bool = False
    lifespan: Literal["session", "once"] = "session"


def server_maker(target: Any, options: ServerOptions) -> Callable[[], Server]:
    """Find out how to reach a target.

    Args:
        target: see `Bridge.wrap`.
        options: how.

    Returns:
        What makes one way to it: each app that serves it has its own.

    Raises:
        ConfigurationError: it is nothing that can be wrapped.
    """
    if isinstance(target, str):
        target = Url(target)
    if isinstance(target, Command | Url):
        remote = target
        return lambda: _Remote(remote, options)
    if server_of(target, lifespan=options.lifespan, protocol=options.protocol) is None:
        kind = f"{type(target).__module__}.{type(target).__qualname__}"
        raise ConfigurationError(
            f"{kind} is no server that can be wrapped: give a server object of mcp or fastmcp, a URL, or a Command"
        )
    return lambda: _in_process(target, options)


def _in_process(target: Any, options: ServerOptions) -> Server:
    server = server_of(target, lifespan=options.lifespan, protocol=options.protocol)
    assert server is not None
    return _Direct(server, options) if _connects(server) else _Sessions(server, options)


def _connects(server: "InProcessV1 | InProcessV2") -> "TypeIs[InProcessV2]":
    """Whether it is called without a session. Its class is not imported for that, since it needs its SDK."""
    return hasattr(server, "connect")


class _Wired(Protocol):
    """What gives out wires to a legacy server."""

    @property
    def name(self) -> str: ...
    async def start(self) -> None: ...
    def wire(self) -> Wire: ...
    async def aclose(self) -> None: ...


class _Sessions:
    """A legacy server: every link is a session over a wire of its own."""

    def __init__(self, server: _Wired, options: ServerOptions) -> None:
        self._server = server
        self._options = options

    @property
    def name(self) -> str:
        """See `Server`."""
        return self._server.name

    def asks_midway(self, method: str, target: str) -> bool:
        """See `Server`."""
        return True

    @property
    def sharing(self) -> Sharing:
        """See `Server`."""
        return "all" if self._options.shared else "own"

    async def start(self, spawn: Callable[..., None]) -> None:
        """See `Server`."""
        self._spawn = spawn
        await self._server.start()

    async def connect(self, hello: Hello, news: News) -> Link:
        """See `Server`."""
        link = LegacyLink(self._server.wire(), news, self._spawn, several=self._options.concurrent)
        await link.open(hello)
        return link

    async def aclose(self) -> None:
        """See `Server`."""
        await self._server.aclose()


class _Direct:
    """A server object that is called without a session."""

    def __init__(self, server: "InProcessV2", options: ServerOptions) -> None:
        self._server = server
        self._options = options

    def asks_midway(self, method: str, target: str) -> bool:
        """See `Server`."""
        return self._server.asks_midway(method, target)

    @property
    def name(self) -> str:
        """See `Server`."""
        return self._server.name

    @property
    def sharing(self) -> Sharing:
        """See `Server`: driven at the modern revision, it keeps nothing between two calls."""
        if self._options.shared:
            return "all"
        return "same" if self._server.protocol == "modern" else "own"

    async def start(self, spawn: Callable[..., None]) -> None:
        """See `Server`."""
        await self._server.start()

    async def connect(self, hello: Hello, news: News) -> Link:
        """See `Server`."""
        return await self._server.connect(hello, news)

    async def aclose(self) -> None:
        """See `Server`."""
        await self._server.aclose()


class _Remote(_Sessions):
    """A server elsewhere: of one era or the other, which is found out at the start."""

    def __init__(self, target: Command | Url, options: ServerOptions) -> None:
        from bridge.upstreams.remote.server import RemoteServer

        self._target = target
        self._remote = RemoteServer(target, headers=options.headers, protocol=options.protocol)
        super().__init__(self._remote, options)

    @property
    def sharing(self) -> Sharing:
        """See `Server`: a modern server that no child process is keeps nothing."""
        if self._options.shared:
            return "all"
        return "own" if self._remote.era is Era.LEGACY or isinstance(self._target, Command) else "same"

    def asks_midway(self, method: str, target: str) -> bool:
        """See `Server`: a modern one over HTTP does not."""
        return self._remote.era is Era.LEGACY or not (isinstance(self._target, Url) and self._target.is_http)

    async def connect(self, hello: Hello, news: News) -> Link:
        """See `Server`."""
        if self._remote.era is Era.LEGACY:
            return await super().connect(hello, news)
        return await self._remote.connect_modern(hello, news)
