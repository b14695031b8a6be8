"""Changes that concern every client: a list is another one, a resource has new contents.

One place where they are published, on whatever node; each node hands them to the streams that it has open.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import anyio
import msgspec

from bridge.errors import StoreUnavailable
from bridge.node import Node
from bridge.protocol.messages import Json, notification

__all__ = ["Change", "Listener", "Publisher"]

_LOG: Final = "changes"
_LOG_SECONDS: Final = 600.0
_LOG_ENTRIES: Final = 1000
_RETRY_SECONDS: Final = 1.0
_log = logging.getLogger("bridge.publishing")


class Change(msgspec.Struct, frozen=True):
    """What changed: the list of a kind, or the resource at a URI."""

    kind: Literal["tools", "prompts", "resources", "resource"]
    uri: str | None = None

    def message(self) -> Json:
        """The notification that tells of it."""
        if self.kind == "resource":
            return notification("notifications/resources/updated", {"uri": self.uri})
        return notification(f"notifications/{self.kind}/list_changed")


Listener = Callable[[Change], Awaitable[None]]


class Publisher:
    """Publishes changes to the streams of every node.

    Args:
        node: the process, and its store.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._store = node.store
        self._listeners: set[Listener] = set()

    async def start(self) -> None:
        """Begin to hear of changes that other nodes publish."""
        if self._store.shared:
            position = await self._end()
            self._node.spawn(self._follow, position)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hand every change to `listener` from now on, until what is returned is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def publish(self, change: Change) -> None:
        """Tell every node's streams of a change."""
        if not self._store.shared:
            await self._distribute(change)
            return
        value = msgspec.json.encode(change)
        await self._store.append(_LOG, value, ttl_seconds=_LOG_SECONDS, max_entries=_LOG_ENTRIES)

    async def _distribute(self, change: Change) -> None:
        for listener in list(self._listeners):
            try:
                await listener(change)
            except StoreUnavailable as error:
                _log.warning("a stream was not told of a change: %s", error)

    async def _end(self) -> int:
        position = 0
        while entries := (await self._store.read(_LOG, after=position, limit=_LOG_ENTRIES)).entries:
            position = entries[-1].seq
        return position

    async def _follow(self, position: int) -> None:
        while True:
            try:
                page = await self._store.read(_LOG, after=position)
                for entry in page.entries:
                    await self._distribute(_decoder.decode(entry.value))
                    position = entry.seq
                if not page.entries:
                    # A log that was over begins anew.
                    position = min(position, page.first_seq - 1)
                    await self._store.wait({_LOG: position}, 30.0)
            except StoreUnavailable as error:
                _log.warning("changes are not heard at the moment: %s", error)
                await anyio.sleep(_RETRY_SECONDS)


_decoder: Final = msgspec.json.Decoder(Change)
