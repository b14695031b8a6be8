"""Servers of `mcp` 2.x in this process, unmodified: `MCPServer`, the low-level `Server`, and FastMCP 4.

They are driven without streams. `MCPServer` and `Server` are driven in the modern era: a request can be asked through
all the same, so that both `ctx.elicit` in a tool and a returned `InputRequiredResult` work. FastMCP 4 refuses the first
in the modern era, and is driven in the legacy one unless told otherwise.
"""

import copy
from typing import Any, Literal

from mcp.server.lowlevel import Server as LowLevelServer
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, get_tracer_provider

from bridge.errors import UpstreamUnreachable
from bridge.upstreams.links import Hello, News
from bridge.upstreams.sdk.living import Living
from bridge.upstreams.sdk.v2_blind import BlindCalls
from bridge.upstreams.sdk.v2_calls import CALL
from bridge.upstreams.sdk.v2_drives import Drive, LegacyDrive, ModernDrive, Running
from bridge.upstreams.sdk.v2_exchange import Exchange
from bridge.upstreams.sdk.v2_link import LinkV2
from bridge.upstreams.sdk.v2_listening import LISTEN, Listening

__all__ = ["InProcessV2"]


class InProcessV2:
    """A server object of `mcp` 2.x in this process, all of `Server` but who shares a link. It has one lifespan.

    Args:
        low: the low-level server.
        name: how to call it in a log.
        protocol: the era to drive it in.
        outer: the `MCPServer` around the low-level server, where it is one.
    """

    def __init__(
        self, low: "LowLevelServer[Any]", *, name: str, protocol: Literal["modern", "legacy"], outer: object = None
    ) -> None:
        self.name = name
        self.protocol = protocol
        self._low = low
        self._outer = outer
        self._living: Living[Any] | None = None
        self._running: Running | None = None
        self._blind: BlindCalls | None = None
        self._listening: Listening | None = None

    async def start(self) -> None:
        """See `Server`."""
        self._living = Living(lambda: self._low.lifespan(self._low), f"lifespan of {self.name}")
        try:
            low = _without_idle_spans(self._low)
            self._running = Running(low, await self._living.start())
        except Exception as error:
            raise UpstreamUnreachable(f"the lifespan of {self.name} failed: {error!r}") from error
        if self.protocol == "modern":
            self._blind = BlindCalls(low, self._outer)
        if self._listens():
            self._listening = Listening(self._running)
            await self._listening.start()

    async def connect(self, hello: Hello, news: News) -> LinkV2:
        """See `Server`."""
        if self._running is None:
            raise UpstreamUnreachable(f"{self.name} is not started")
        make = ModernDrive if self.protocol == "modern" else LegacyDrive
        drive: Drive = make(self._running, hello)
        exchange = Exchange(0, None, news)
        try:
            facts = await drive.meet(exchange)
        except Exception as error:
            raise UpstreamUnreachable(f"{self.name} refuses a client: {error!r}") from error
        finally:
            exchange.end()
        return LinkV2(self._running, drive, facts, news, blind=self._blind, listening=self._listening)

    def asks_midway(self, method: str, target: str) -> bool:
        """See `Server`: a tool to which its server gives no context has nothing to ask with."""
        return self._blind is None or method != CALL or not self._blind.has(target)

    async def aclose(self) -> None:
        """See `Server`."""
        self._running = self._blind = None
        if self._listening is not None:
            await self._listening.aclose()
            self._listening = None
        if self._living is not None:
            await self._living.aclose()
            self._living = None

    def _listens(self) -> bool:
        """Whether changes have to be listened to: a handler of `resources/subscribe` keeps to the legacy way."""
        handler = self._low.get_request_handler
        return self.protocol == "modern" and handler(LISTEN) is not None and handler("resources/subscribe") is None


def _without_idle_spans(low: "LowLevelServer[Any]") -> "LowLevelServer[Any]":
    """The server without the SDK's spans where nothing would record them: they take a tenth of a call's time."""
    if not isinstance(get_tracer_provider(), ProxyTracerProvider | NoOpTracerProvider):
        return low
    same = copy.copy(low)
    same.middleware = [each for each in low.middleware if type(each).__module__ != "mcp.server._otel"]
    return same
