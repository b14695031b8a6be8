"""Who waits at other nodes for a round that runs at one: it is cancelled once nobody waits for it any more.

A log for each round tells who has come to wait, and who has left. A node that is lost has left.
"""

import logging
from collections import Counter
from typing import Final

import anyio

from bridge.errors import StoreError
from bridge.node import LOOK_SECONDS, Node
from bridge.stores.reader import LogReader

__all__ = ["Wanted"]

_LOG_SECONDS: Final = 7200.0
_LOG_ENTRIES: Final = 1000
_TELL_SECONDS: Final = 5.0
_log = logging.getLogger("bridge.claims")


class Wanted:
    """Knows who waits for the rounds of other nodes.

    Args:
        node: this process, and its store.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._store = node.store

    async def come(self, round_id: str) -> None:
        """Somebody waits here for a round that runs elsewhere."""
        await self._say(round_id, "+")

    async def leave(self, round_id: str) -> None:
        """Somebody who waited does not any more, whatever the reason."""
        with anyio.move_on_after(_TELL_SECONDS, shield=True):
            try:
                await self._say(round_id, "-")
            except StoreError as error:
                _log.warning("round %s: nobody heard that a client left: %s", round_id, error)

    async def until_nobody(self, round_id: str) -> None:
        """Return once nobody waits at another node."""
        log, here = LogReader(self._store, _name(round_id)), Counter[str]()
        _count(here, [entry.value for entry in await log.take()])
        while here:
            _count(here, [entry.value for entry in await log.next(LOOK_SECONDS)])
            for node in list(here):
                if not await self._node.is_alive(node):
                    del here[node]

    async def _say(self, round_id: str, what: str) -> None:
        value = f"{what}{self._node.id}".encode()
        await self._store.append(_name(round_id), value, ttl_seconds=_LOG_SECONDS, max_entries=_LOG_ENTRIES)


def _name(round_id: str) -> str:
    return f"wanted/{round_id}"


def _count(here: Counter[str], said: list[bytes]) -> None:
    for line in said:
        what, node = line[:1], line[1:].decode()
        here[node] += 1 if what == b"+" else -1
        if here[node] <= 0:
            del here[node]
