"""Changes that concern every client: a list is another one, a resource has new contents.

One place where they are published, on whatever node; each node hands them to the streams that it has open.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import anyio
import msgspec

from bridge.errors import StoreError
from bridge.node import Node
from bridge.protocol.messages import Json, notification
from bridge.stores.reader import LogReader

__all__ = ["Change", "Listener", "Publisher"]

_LOG: Final = "changes"
_LOG_SECONDS: Final = 600.0
_LOG_ENTRIES: Final = 1000
_RETRY_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 30.0
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
            changes = LogReader(self._store, _LOG)
            await changes.to_end()
            self._node.spawn(self._follow, changes)

    @property
    def closing(self) -> anyio.Event:
        """Set when the node begins to shut down: nothing more is to be told."""
        return self._node.closing

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
            except StoreError as error:
                _log.warning("a stream was not told of a change: %s", error)

    async def _follow(self, changes: LogReader) -> None:
        while True:
            try:
                for entry in await changes.next(_LOOK_SECONDS):
                    await self._distribute(_decoder.decode(entry.value))
            except StoreError as error:
                _log.warning("changes are not heard at the moment: %s", error)
                await anyio.sleep(_RETRY_SECONDS)


_decoder: Final = msgspec.json.Decoder(Change)
