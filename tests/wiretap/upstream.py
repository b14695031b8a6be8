"""The tap on the other side: what leaves for a server that is wrapped is what a client of its revision may say."""

from collections.abc import Mapping
from typing import Any

from bridge.protocol.messages import Json, Message, Request, RequestId, Response
from bridge.protocol.revisions import LATEST_LEGACY, MODERN
from bridge.upstreams.remote.carriers import Carrier, Heard
from bridge.upstreams.wires import Closed, Receive, Wire

from .tap import Tap

__all__ = ["TappedCarrier", "TappedWire"]


class TappedWire:
    """A wire to a legacy server whose messages are judged as they leave.

    Args:
        wire: the wire.
        tap: judges.
    """

    def __init__(self, wire: Wire, tap: Tap) -> None:
        self._wire = wire
        self._tap = tap
        self._revision = LATEST_LEGACY.name
        self._asked: dict[RequestId, str] = {}

    @property
    def names_requests(self) -> bool:
        return self._wire.names_requests

    async def open(self, receive: Receive, closed: Closed) -> None:
        async def hear(message: Message, related: RequestId | None) -> None:
            if isinstance(message, Request):
                self._asked[message.id] = message.method
            await receive(message, related)

        await self._wire.open(hear, closed)

    async def send(self, message: Json, http: Mapping[str, Any] | None = None) -> None:
        method = None if "method" in message else self._asked.pop(message["id"])
        self._tap.check(message, revision=self._revision, method=method, direction="client")
        await self._wire.send(message, http)

    async def initialized(self, revision: str) -> None:
        self._revision = revision
        await self._wire.initialized(revision)

    async def listen(self) -> None:
        await self._wire.listen()

    async def aclose(self) -> None:
        await self._wire.aclose()


class TappedCarrier:
    """A carrier to a modern server whose requests are judged as they leave.

    Args:
        carrier: the carrier.
        tap: judges.
    """

    def __init__(self, carrier: Carrier, tap: Tap) -> None:
        self._carrier = carrier
        self._tap = tap

    @property
    def name(self) -> str:
        return self._carrier.name

    @property
    def has_headers(self) -> bool:
        return self._carrier.has_headers

    @property
    def is_open(self) -> bool:
        return self._carrier.is_open

    async def carry(self, message: Json, headers: Mapping[str, str], heard: Heard | None) -> Response:
        self._tap.check(message, revision=MODERN.name, method=None, direction="client")
        return await self._carrier.carry(message, headers, heard)

    async def aclose(self) -> None:
        await self._carrier.aclose()
