"""The way to a server at an http(s) URL, over one pool of connections."""

from collections.abc import Mapping

from bridge.upstreams.links import Facts
from bridge.upstreams.remote.carriers import Carrier
from bridge.upstreams.remote.http import HttpClient
from bridge.upstreams.remote.posting import HttpCarrier
from bridge.upstreams.remote.probe import Legacy
from bridge.upstreams.remote.probe_http import MakeWire, probe_http, probe_legacy
from bridge.upstreams.remote.streamable import StreamableWire
from bridge.upstreams.wires import Wire

__all__ = ["HttpWay"]


class HttpWay:
    """A `Way` over HTTP.

    Args:
        url: the server's.
        headers: what goes with each request.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers
        self._opened: HttpClient | None = None
        self._make_wire: MakeWire = StreamableWire

    async def probe(self, *, sessions: bool = True) -> Facts | Legacy:
        """See `Way`."""
        outcome = await probe_http(self._client, sessions=sessions)
        if isinstance(outcome, Facts):
            return outcome
        self._make_wire = outcome
        return Legacy()

    async def assume_legacy(self) -> None:
        """See `Way`: Streamable HTTP, or HTTP+SSE."""
        self._make_wire = await probe_legacy(self._client)

    def wire(self) -> Wire:
        """See `Way`."""
        return self._make_wire(self._client)

    async def carrier(self) -> Carrier:
        """See `Way`."""
        return HttpCarrier(self._client)

    async def aclose(self) -> None:
        """See `Way`: close every connection."""
        client, self._opened = self._opened, None
        if client is not None:
            await client.aclose()

    @property
    def _client(self) -> HttpClient:
        """The connections, which belong to the event loop that first needs them."""
        if self._opened is None:
            self._opened = HttpClient(self._url, self._headers)
        return self._opened
