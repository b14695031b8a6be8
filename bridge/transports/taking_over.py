"""Requests whose node is lost: the node that their client comes back to answers them.

What waited for an answer goes on waiting for it here. What ran may have partly run, and is not run again, unless it
says that this does no harm; its client is told.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

import anyio
import msgspec

from bridge.eras.ports import Legacy
from bridge.errors import StoreError
from bridge.node import LOOK_SECONDS, Node
from bridge.ownership import Owned, OwnedCall, Ownership
from bridge.session import ENDED, FINAL, Session
from bridge.sessions import Sessions
from bridge.transports.session_exchange import TakenOverExchange

__all__ = ["TakingOver"]

_log = logging.getLogger("bridge.http")
_OVER: Final = (FINAL, ENDED)


class TakingOver:
    """Takes over the requests whose streams are read here.

    Args:
        node: this process.
        sessions: where the streams are.
        ownership: whose they are.
        legacy: what answers.
        grace_seconds: how long a request goes on when its client has gone.
    """

    def __init__(
        self, node: Node, sessions: Sessions, ownership: Ownership, legacy: Legacy, grace_seconds: float
    ) -> None:
        self._node = node
        self._sessions = sessions
        self._ownership = ownership
        self._legacy = legacy
        self._grace_seconds = grace_seconds

    async def watch(self, session: Session, stream: str, http: Mapping[str, Any]) -> None:
        """Take over the request of a stream as soon as its node is lost, for as long as the stream is read.

        Args:
            session: whose stream it is.
            stream: its id.
            http: the ASGI scope of the request that reads it.
        """
        while self._ownership.keeps and not self._node.closing.is_set():
            try:
                owned = await self._ownership.take_over(session, stream)
                if owned is not None:
                    self._node.spawn(self._go_on, session, stream, owned, http)
                    return
            except StoreError as error:
                _log.warning("session %s: the store is away: %s", session.id, error)
            await anyio.sleep(LOOK_SECONDS)

    async def _go_on(self, session: Session, stream: str, owned: Owned, http: Mapping[str, Any]) -> None:
        call = owned.call
        was_sent, is_over, last = await self._sent(session, stream, call)
        if is_over:
            await owned.release()
            return
        if call.waiting is not None and not was_sent:
            # Its question has reached nobody: nothing has happened since it was to be asked.
            call = msgspec.structs.replace(call, waiting=None)
            repeatable = True
        else:
            repeatable = False
        exchange = TakenOverExchange(
            self._node,
            http,
            session=session,
            sessions=self._sessions,
            ownership=self._ownership,
            owned=owned,
            stream=stream,
            sequence=last,
            grace_seconds=self._grace_seconds,
        )
        session.running[call.identity] = exchange
        try:
            await exchange.serve(
                call.request,
                lambda: self._legacy.go_on(session, call, exchange, repeatable=repeatable),
            )
        finally:
            if session.running.get(call.identity) is exchange:
                del session.running[call.identity]

    async def _sent(self, session: Session, stream: str, call: OwnedCall) -> tuple[bool, bool, int]:
        """Whether the question that the call waits for went out, whether the stream is over, and its last number."""
        outbox = self._sessions.outbox(session, stream)
        sought = None if call.waiting is None else call.waiting.question_id.encode()
        was_sent = is_over = False
        while entries := await outbox.take():
            is_over = entries[-1].value[:1] in _OVER
            was_sent = was_sent or (sought is not None and any(sought in entry.value for entry in entries))
        return was_sent, is_over, outbox.position
