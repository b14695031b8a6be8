"""A server in another process or on another machine, of either era: found out once, then reached.

Source: basic/versioning of 2026-07-28.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio

from bridge.errors import ConfigurationError, UpstreamUnreachable
from bridge.protocol.revisions import MODERN, Era
from bridge.upstreams.links import Facts, Hello, News
from bridge.upstreams.remote.modern import ModernLink
from bridge.upstreams.remote.stdio import StdioWire
from bridge.upstreams.remote.targets import Command, Target, name_of
from bridge.upstreams.remote.ways import SharedWay, Way
from bridge.upstreams.remote.websocket import WebSocketWire
from bridge.upstreams.wires import Wire

__all__ = ["Protocol", "RemoteServer"]

Protocol: TypeAlias = Literal["auto", "modern", "legacy"]
"""Which era a server is taken for: `auto` finds out, and takes one of both for legacy where it begins sessions."""

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})


class RemoteServer:
    """A server at a target.

    Args:
        target: a command or a URL.
        headers: what goes with each HTTP request, and with the handshake of a WebSocket.
        protocol: the era that it is taken for.

    Raises:
        ConfigurationError: headers that cannot be sent.
        MissingExtraError: an http(s) URL, where aiohttp is not installed.
    """

    def __init__(
        self, target: Target, *, headers: Mapping[str, str] | None = None, protocol: Protocol = "auto"
    ) -> None:
        self.name: Final = name_of(target)
        self._protocol = protocol
        self._way = _way_to(target, _checked(target, headers or {}))
        self._facts: Facts | None = None
        self._era: Era | None = None
        self._starting = anyio.Lock()

    @property
    def era(self) -> Era | None:
        """The era that was found out; None before `start`."""
        return self._era

    @property
    def facts(self) -> Facts | None:
        """What a modern server said of itself; None before `start`, and for a legacy one, which tells each session."""
        return self._facts

    async def start(self) -> None:
        """Find out the era, once. It may be tried again where it failed.

        Raises:
            UpstreamUnreachable: it cannot be reached, or is no MCP server. The text says why in one line.
        """
        async with self._starting:
            if self._era is not None:
                return
            try:
                await self._find_out()
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._way.aclose()
                raise

    def wire(self) -> Wire:
        """Make a wire to a legacy server, for one session."""
        if self._era is not Era.LEGACY:
            raise ConfigurationError(f"{self.name} is not known to be legacy: call start() first, and look at era")
        return self._way.wire()

    async def connect_modern(self, hello: Hello, news: News) -> ModernLink:
        """Make a link to a modern server.

        Args:
            hello: who it speaks for.
            news: takes what belongs to no request.

        Raises:
            UpstreamUnreachable: it cannot be made.
        """
        if self._facts is None:
            raise ConfigurationError(f"{self.name} is not known to be modern: call start() first, and look at era")
        return ModernLink(await self._way.carrier(), self._facts, hello, news)

    async def aclose(self) -> None:
        """End what `start` began. Wires and links are closed before."""
        await self._way.aclose()

    async def _find_out(self) -> None:
        if self._protocol == "legacy":
            await self._way.assume_legacy()
            self._era = Era.LEGACY
            return
        outcome = await self._way.probe(sessions=self._protocol == "auto")
        if isinstance(outcome, Facts):
            self._facts, self._era = outcome, Era.MODERN
        elif self._protocol == "modern":
            raise UpstreamUnreachable(
                f"{self.name} does not speak {MODERN.name}: it is legacy; let its era be found out"
            )
        else:
            self._era = Era.LEGACY


def _way_to(target: Target, headers: Mapping[str, str]) -> Way:
    name = name_of(target)
    if isinstance(target, Command):
        return SharedWay(name, lambda: StdioWire(target))
    if not target.is_http:
        return SharedWay(name, lambda: WebSocketWire(target.url, headers))
    # Only here: the others work without the extra that it needs.
    from bridge.upstreams.remote.web import HttpWay

    return HttpWay(target.url, headers)


def _checked(target: Target, headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ConfigurationError(f"the header {name!r} has a name or value that no HTTP header can have")
        if name.lower() in _FRAMING:
            raise ConfigurationError(f"the header {name} is not the same for every message: leave it to the bridge")
        if isinstance(target, Command):
            raise ConfigurationError(f"the command {target.command!r} takes no headers: give it environment variables")
        if name.lower() == "authorization" and "@" in urlsplit(target.url).netloc:
            raise ConfigurationError(f"{name_of(target)} has credentials in its URL and in a header: give one of them")
    return headers
