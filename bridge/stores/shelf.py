"""A dict whose items vanish on time, with as little work as an access can do.

It knows names, sizes and times that it is told. It reads no clock, and must not know what its items are.
"""

import heapq
import math
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Item", "Shelf"]

HEAP_SLACK = 64  # stale heap entries beyond one per item that are kept before the heap is rebuilt


class Item:
    """What is kept: its bytes, and its times: when it is over, and when its heap entry comes up."""

    __slots__ = ("due", "expires", "size")

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.expires = self.due = math.inf


AnItem = TypeVar("AnItem", bound=Item)


class Shelf(Generic[AnItem]):
    """Items by name, which vanish on time.

    Each call is told the time, so that within one operation nothing that was found can vanish.
    An item has one live heap entry, at or before its expiry. Renewing the item leaves that entry alone,
    and it moves when it comes up: so a renewal costs no heap work.
    """

    __slots__ = ("_dropped", "_heap", "bytes", "items")

    def __init__(self, dropped: Callable[[str], None] | None = None) -> None:
        self.items: dict[str, AnItem] = {}
        self.bytes = 0
        self._dropped = dropped
        self._heap: list[tuple[float, str]] = []

    def find(self, name: str, now: float) -> AnItem | None:
        """Return the item if it is there and not over."""
        item = self.items.get(name)
        if item is not None and item.expires <= now:
            self.drop(name)
            return None
        return item

    def renew(self, name: str, item: AnItem, expires: float) -> None:
        """Let `item`, which is kept under `name`, live until `expires`."""
        item.expires = expires
        if expires < item.due:
            item.due = expires
            heapq.heappush(self._heap, (expires, name))
            if len(self._heap) > 2 * len(self.items) + HEAP_SLACK:
                self._rebuild_heap()

    def drop(self, name: str) -> None:
        """Forget the item under `name`."""
        self.bytes -= self.items.pop(name).size
        if self._dropped is not None:
            self._dropped(name)

    def sweep(self, now: float, limit: int | None = None) -> bool:
        """Drop what is over: at most `limit` heap entries, or all that are due; return whether that was all."""
        heap = self._heap
        for _ in range(len(heap) if limit is None else limit):
            if not heap or heap[0][0] > now:
                return True
            due, name = heapq.heappop(heap)
            item = self.items.get(name)
            if item is None or item.due != due:
                continue  # stale: the item was dropped or is due earlier
            if item.expires <= now:
                self.drop(name)
            elif (later := item.expires) < math.inf:
                item.due = later
                heapq.heappush(heap, (later, name))
            else:
                item.due = math.inf
        return not heap or heap[0][0] > now

    def _rebuild_heap(self) -> None:
        # Items that are taken long before their time leave their entries behind: an hour's worth of them
        # would outweigh the items. Rebuilding at twice the size costs each write a constant share.
        self._heap = [(item.due, name) for name, item in self.items.items() if item.due < math.inf]
        heapq.heapify(self._heap)
