"""A `Carrier` over a wire that all requests share: stdio, or a WebSocket.

Source: basic/transports/stdio of 2026-07-28.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Final

import anyio

from bridge.errors import RemoteError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json, Message, Notification, RequestId, Response, notification
from bridge.upstreams.remote.carriers import Heard
from bridge.upstreams.wires import Wire

__all__ = ["SUBSCRIPTION_ID", "WireCarrier"]

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_TELL_SECONDS: Final = 2.0
_MAX_QUEUED: Final = 1000
"""How many notifications of one request may wait for whoever takes them; older ones are dropped."""

_log = logging.getLogger("bridge.upstream")


class _UnderWay:
    """One request, whose own task takes what comes for it: one that is slow to do so keeps no other waiting."""

    __slots__ = ("logs", "news", "outcome", "stirred")

    def __init__(self, *, logs: bool) -> None:
        self.logs = logs
        self.news: deque[Notification] = deque(maxlen=_MAX_QUEUED)
        self.outcome: Response | RemoteError | None = None
        self.stirred = asyncio.Event()

    def end(self, outcome: Response | RemoteError) -> None:
        self.outcome = self.outcome or outcome
        self.stirred.set()

    def hear(self, heard: Notification) -> None:
        self.news.append(heard)
        self.stirred.set()

    async def reply(self, heard: Heard | None) -> Response:
        while True:
            while self.news:
                news = self.news.popleft()
                if heard is not None:
                    await heard(news)
            if isinstance(self.outcome, RemoteError):
                raise self.outcome
            if self.outcome is not None:
                return self.outcome
            self.stirred.clear()
            await self.stirred.wait()


class WireCarrier:
    """A `Carrier` that tells replies apart by their ids.

    Args:
        wire: what carries messages; it ends with the carrier.
        name: how to call the server in a log.
    """

    has_headers: bool = False

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire = wire
        self.name: Final = name
        self._under_way: dict[RequestId, _UnderWay] = {}
        self._why_closed: str | None = f"the link to {name} is not open"

    @property
    def is_open(self) -> bool:
        """See `Carrier`."""
        return self._why_closed is None

    async def open(self) -> None:
        """Open the wire.

        Raises:
            UpstreamUnreachable: that failed.
        """
        self._why_closed = None
        await self._wire.open(self._received, self._closed)

    async def carry(self, message: Json, headers: Mapping[str, str], heard: Heard | None) -> Response:
        """See `Carrier`."""
        if self._why_closed is not None:
            raise UpstreamUnreachable(f"{self.name}: {self._why_closed}")
        identity: RequestId = message["id"]
        meta = message["params"].get("_meta", {})
        under_way = self._under_way[identity] = _UnderWay(logs="io.modelcontextprotocol/logLevel" in meta)
        try:
            await self._wire.send(message)
            return await under_way.reply(heard)
        except RemoteError:
            raise
        except BaseException:
            if under_way.outcome is None:
                await self._tell_cancelled(identity)
            raise
        finally:
            del self._under_way[identity]

    async def aclose(self) -> None:
        """See `Carrier`."""
        under_way, was_open = list(self._under_way), self.is_open
        self._closed("the link was closed")
        with anyio.CancelScope(shield=True):
            if was_open:
                for identity in under_way:
                    await self._tell_cancelled(identity)
            await self._wire.aclose()

    async def _tell_cancelled(self, identity: RequestId) -> None:
        with anyio.move_on_after(_TELL_SECONDS, shield=True):
            try:
                await self._wire.send(notification("notifications/cancelled", {"requestId": identity}))
            except RemoteError as error:
                _log.debug("%s was not told of a cancellation: %s", self.name, error)

    def _closed(self, why: str) -> None:
        self._why_closed = self._why_closed or why
        for under_way in self._under_way.values():
            under_way.end(UpstreamLost(f"{self.name}: {why}"))

    async def _received(self, message: Message, _: RequestId | None) -> None:
        if isinstance(message, Response):
            if (asked := self._under_way.get(message.id)) is not None:
                asked.end(message)
        elif isinstance(message, Notification):
            whose = self._whose(message)
            if whose is not None:
                whose.hear(message)
        else:
            _log.warning("%s sent a message that no modern server sends, skipped", self.name)

    def _whose(self, message: Notification) -> _UnderWay | None:
        """The request that a notification belongs to."""
        if message.method == "notifications/progress":
            return self._found(message.params.get("progressToken"))
        if message.method == "notifications/message":
            # Nothing in it says whose it is. A log may hold what is another caller's, so it is not guessed.
            wanting = [under_way for under_way in self._under_way.values() if under_way.logs]
            return wanting[0] if len(wanting) == 1 else None
        meta = message.params.get("_meta")
        return self._found(meta.get(SUBSCRIPTION_ID)) if isinstance(meta, dict) else None

    def _found(self, identity: object) -> _UnderWay | None:
        return self._under_way.get(identity) if isinstance(identity, int | str) else None
