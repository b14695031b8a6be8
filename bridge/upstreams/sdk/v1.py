"""Servers of `mcp` 1.x in this process, unmodified: its `FastMCP` and low-level `Server`, and FastMCP 2 and 3.

They know sessions only, so that each has a `Wire`, and the session is spoken over it like over any other.
"""

import contextvars
import copy
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from bridge.errors import UpstreamUnreachable
from bridge.upstreams.sdk.living import Living
from bridge.upstreams.sdk.v1_wire import WireV1
from bridge.upstreams.wires import Wire

__all__ = ["InProcessV1"]


class InProcessV1:
    """A server object of `mcp` 1.x in this process: what gives out the wires of its sessions.

    Args:
        low: the low-level server.
        name: how to call it in a log.
        fastmcp: the server of FastMCP 2 or 3 that it is the inside of; its lifespan is entered once in any case.
        lifespan: whether its lifespan is entered for each session, as over HTTP, or once for all.
    """

    def __init__(
        self, low: Any, *, name: str, fastmcp: Any = None, lifespan: Literal["session", "once"] = "session"
    ) -> None:
        self.name = name
        self._low = low
        self._fastmcp = fastmcp
        self._lifespan = lifespan
        self._living: Living[Any] | None = None
        self._served: Any = None
        self._context = contextvars.Context()

    async def start(self) -> None:
        """See `Server`."""
        # Sessions outlive the requests that open them, and must not see the context of one.
        self._context = contextvars.copy_context()
        self._served = self._low
        manager = self._entered_once()
        if manager is None:
            return
        self._living = Living(lambda: manager, f"lifespan of {self.name}")
        try:
            state = await self._living.start()
        except Exception as error:
            self._served = None
            raise UpstreamUnreachable(f"the lifespan of {self.name} failed: {error!r}") from error
        if self._fastmcp is None:
            self._served = copy.copy(self._low)
            self._served.lifespan = _yielding(state)

    def wire(self) -> Wire:
        """One more session.

        Raises:
            UpstreamUnreachable: the server is not started.
        """
        if self._served is None:
            raise UpstreamUnreachable(f"{self.name} is not started")
        return WireV1(self._served, self.name, self._context.copy())

    async def aclose(self) -> None:
        """See `Server`."""
        self._served = None
        if self._living is not None:
            await self._living.aclose()
            self._living = None

    def _entered_once(self) -> AbstractAsyncContextManager[Any] | None:
        manager: AbstractAsyncContextManager[Any] | None = None
        if self._fastmcp is not None:
            manager = self._fastmcp._lifespan_manager()
        elif self._lifespan == "once":
            manager = self._low.lifespan(self._low)
        return manager


def _yielding(state: Any) -> Any:
    @asynccontextmanager
    async def lifespan(low: Any) -> AsyncIterator[Any]:
        yield state

    return lifespan
