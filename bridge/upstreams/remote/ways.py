"""The port between a remote server and its transports, and the way to one over a connection that all requests share."""

from collections.abc import Callable
from typing import Protocol

from bridge.upstreams.links import Facts
from bridge.upstreams.remote.carriers import Carrier
from bridge.upstreams.remote.multiplexing import WireCarrier
from bridge.upstreams.remote.probe import Legacy, probe_wire
from bridge.upstreams.wires import Wire

__all__ = ["SharedWay", "Way"]


class Way(Protocol):
    """How one server is reached."""

    async def probe(self, *, sessions: bool = True) -> Facts | Legacy:
        """Find out what it is.

        Args:
            sessions: whether one of both eras is taken for legacy where it begins sessions over HTTP.

        Raises:
            UpstreamUnreachable: it cannot be reached, or is no MCP server.
        """
        ...

    async def assume_legacy(self) -> None:
        """It is said to be legacy: find out what else there is to know.

        Raises:
            UpstreamUnreachable: it cannot be reached, or is no MCP server.
        """
        ...

    def wire(self) -> Wire:
        """Make a wire to a legacy server."""
        ...

    async def carrier(self) -> Carrier:
        """Make an open carrier to a modern server.

        Raises:
            UpstreamUnreachable: it cannot be reached.
        """
        ...

    async def aclose(self) -> None:
        """End what wires and carriers share."""
        ...


class SharedWay:
    """A `Way` to a server at the other end of a wire, whatever its era: stdio or a WebSocket.

    Args:
        name: how to call the server in a log.
        make_wire: makes a wire to it.
    """

    def __init__(self, name: str, make_wire: Callable[[], Wire]) -> None:
        self._name = name
        self._make_wire = make_wire

    async def probe(self, *, sessions: bool = True) -> Facts | Legacy:
        """See `Way`. The connection is the probe's own and ends with it."""
        return await probe_wire(self._name, self._make_wire)

    async def assume_legacy(self) -> None:
        """See `Way`: there is nothing else."""

    def wire(self) -> Wire:
        """See `Way`."""
        return self._make_wire()

    async def carrier(self) -> Carrier:
        """See `Way`."""
        carrier = WireCarrier(self._make_wire(), self._name)
        await carrier.open()
        return carrier

    async def aclose(self) -> None:
        """See `Way`: nothing is shared."""
