"""Whose a legacy client's call is: which node runs it, and what another needs to go on with it.

A call is noted here once its client could come back for the rest of its stream. When its node is lost, the node that
its client comes back to takes the call over, by the version of its record: the loser learns of it with its next
write, and does nothing more. This module knows no transport.
"""

import logging
from typing import Final

import msgspec

from bridge.calls import Stored, Waiting
from bridge.node import Node
from bridge.protocol.messages import Json, Request, RequestId
from bridge.session import Session
from bridge.stores.base import Store

__all__ = ["Owned", "OwnedCall", "Ownership", "TakenOver"]

_KEPT_SECONDS: Final = 7200.0
"""How long a call is kept whose node said nothing more of it."""

_log = logging.getLogger("bridge.sessions")


class OwnedCall(msgspec.Struct, frozen=True):
    """What is stored of a call.

    Args:
        node: who runs it; empty where it was given up for whoever its client comes back to.
        identity: the id of its request.
        method: what was requested.
        params: likewise.
        stored: what was known of the call when it last went on; None where it never stopped at a question.
        waiting: the question whose answer it waits for, or None where it runs.
    """

    node: str
    identity: RequestId
    method: str
    params: Json
    stored: Stored | None = None
    waiting: Waiting | None = None

    @property
    def request(self) -> Request:
        """The request."""
        return Request(self.identity, self.method, self.params)


class TakenOver(Exception):
    """Another node has the call by now."""


class Owned:
    """A call of this node.

    Args:
        store: where it is noted.
        key: under which key.
        call: what is stored of it.
        version: the version of that.
    """

    def __init__(self, store: Store, key: str, call: OwnedCall, version: int) -> None:
        self._store = store
        self._key = key
        self._version = version
        self.call = call

    async def waits(self, waiting: Waiting) -> None:
        """The call waits for an answer. Raises TakenOver."""
        await self._write(msgspec.structs.replace(self.call, stored=waiting.stored, waiting=waiting))

    async def goes_on(self, stored: Stored) -> None:
        """The call runs again, with new answers. Raises TakenOver."""
        await self._write(msgspec.structs.replace(self.call, stored=stored, waiting=None))

    async def confirm(self) -> None:
        """The call ends here. Raises TakenOver."""
        await self._write(self.call)

    async def give_up(self) -> None:
        """Let any other node have the call. Raises TakenOver."""
        await self._write(msgspec.structs.replace(self.call, node=""))

    async def release(self) -> None:
        """The call is over."""
        await self._store.take(self._key)

    async def _write(self, call: OwnedCall) -> None:
        value = msgspec.json.encode(call)
        version = await self._store.put(self._key, value, ttl_seconds=_KEPT_SECONDS, if_version=self._version)
        if version is None:
            raise TakenOver
        self.call, self._version = call, version


class Ownership:
    """Notes calls, and takes over those whose node is lost.

    Args:
        node: this process, and its store.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._store = node.store
        self.keeps = node.store.shared or node.store.durable
        """Whether anybody could go on with a call of this process once that is gone."""

    async def own(self, session: Session, stream: str, request: Request) -> Owned:
        """Note a request of this node, by the stream of its reply. Raises TakenOver."""
        call = OwnedCall(self._node.id, request.id, request.method, request.params)
        owned = Owned(self._store, _key(session, stream), call, 0)
        await owned._write(call)
        return owned

    async def take_over(self, session: Session, stream: str) -> Owned | None:
        """Make a call this node's if its own is lost; None where it is not, or the call is over."""
        key = _key(session, stream)
        record = await self._store.get(key)
        if record is None:
            return None
        call = _decoder.decode(record.value)
        if call.node and await self._node.is_alive(call.node):
            return None
        owned = Owned(self._store, key, call, record.version)
        try:
            await owned._write(msgspec.structs.replace(call, node=self._node.id))
        except TakenOver:
            return None
        _log.warning("session %s: node %s is gone; its call goes on here", session.id, call.node or "that gave it up")
        return owned


_decoder: Final = msgspec.json.Decoder(OwnedCall)


def _key(session: Session, stream: str) -> str:
    return f"call:{session.id}:{stream}"  # of no family, as nobody lists or counts them
