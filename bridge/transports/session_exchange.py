"""A request on a legacy session: its events are kept for replay, and its client may come back to them.

It may come back to another node, when this one is lost or shuts down: so whose request it is, and what is needed to
go on with it, is noted once there is something to come back to. Source: basic/transports#resumability-and-redelivery.
"""

import logging
import secrets
from collections.abc import Awaitable, Mapping
from functools import cached_property
from typing import Any

import anyio
import anyio.lowlevel

from bridge.calls import Keeper, Stored, Waiting
from bridge.errors import StoreError
from bridge.node import Node
from bridge.ownership import Owned, Ownership, TakenOver
from bridge.protocol.messages import Json, Request, encode
from bridge.session import ENDED, FINAL, INTERIM, Session
from bridge.sessions import Sessions
from bridge.transports.exchange import COMMENT_SECONDS, RETRY_MS, Exchange, Receive, Send, event
from bridge.transports.gate import Accepts

__all__ = ["SessionExchange", "TakenOverExchange"]

_log = logging.getLogger("bridge.http")


class SessionExchange(Exchange):
    """A request on a legacy session: its events are kept for replay, and its client may come back to them.

    Args:
        session: whose request it is.
        sessions: where events are kept.
        ownership: where it is noted whose request it is.
        request: the request.
        grace_seconds: how long it goes on when its client has gone.
    """

    def __init__(
        self,
        node: Node,
        http: Mapping[str, Any],
        receive: Receive,
        send: Send,
        takes: Accepts,
        *,
        session: Session,
        sessions: Sessions,
        ownership: Ownership,
        request: Request,
        grace_seconds: float,
    ) -> None:
        super().__init__(node, http, receive, send, takes)
        self._session = session
        self._sessions = sessions
        self._ownership = ownership
        self._request = request
        self._owned: Owned | None = None
        self._is_taken_over = False
        self._grace_seconds = grace_seconds
        self._sequence = 0
        self._is_left = False
        self._ordered: anyio.Lock | None = None
        self._noting: anyio.Lock | None = None

    @cached_property
    def _stream(self) -> str:
        """The random id of its stream; most requests never need one."""
        return secrets.token_hex(8)

    async def send(self, message: Json) -> None:
        """Send a message before the reply; kept for replay also while the client is away."""
        if not self._takes.events or self._over:
            return
        if self._ordered is None:
            self._ordered = anyio.Lock()
        async with self._ordered:
            await self._note()
            await self._write(await self._kept(encode(message), INTERIM))

    def _status(self, reply: Json) -> int:
        """On a live session errors ride HTTP 200: many clients drop their transport on any other status."""
        return 200

    async def _kept(self, data: bytes, kind: bytes) -> bytes:
        self._sequence = await self._sessions.publish(self._session, self._stream, kind + data)
        return event(data, f"{self._stream}:{self._sequence}")

    async def _last_event(self, data: bytes) -> bytes:
        """The reply is kept where the stream can be resumed, and sent in any case."""
        if not (self._open and (self._sequence or self._is_left or self._session.profile.revision.priming_events)):
            return event(data)
        try:
            if self._owned is None:
                return await self._kept(data, FINAL)
            await self._owned.confirm()
            last = await self._kept(data, FINAL)
            await self._owned.release()
            return last
        except TakenOver:
            return event(data)
        except StoreError as error:
            _log.warning("session %s: a reply cannot be kept for replay: %s", self._session.id, error)
            return event(data)

    async def _abandon(self) -> None:
        try:
            if self.is_giving_up and self._owned is not None:
                await self._owned.give_up()
            elif self._open and not self._is_taken_over:
                await self._sessions.publish(self._session, self._stream, ENDED)
                if self._owned is not None:
                    await self._owned.release()
        except TakenOver:
            pass
        except StoreError as error:
            _log.warning("session %s: the end of a call cannot be kept: %s", self._session.id, error)
        await super()._abandon()

    # -- whose it is: see `Keeper` -------------------------------------------------------------------------------

    @property
    def keeper(self) -> Keeper | None:
        """See `calls.Exchange`."""
        return self if self._ownership.keeps else None

    @property
    def is_giving_up(self) -> bool:
        """See `Keeper`. What is suspended in this process cannot go on in another: its client learns that it ended."""
        waiting = None if self._owned is None else self._owned.call.waiting
        return self._node.closing.is_set() and waiting is not None and not waiting.stored.journal.held

    async def waits(self, waiting: Waiting) -> None:
        """See `Keeper`."""
        await self._note()
        assert self._owned is not None
        await self._still_ours(self._owned.waits(waiting))

    async def goes_on(self, stored: Stored) -> None:
        """See `Keeper`."""
        if self._owned is not None:
            await self._still_ours(self._owned.goes_on(stored))

    async def _note(self) -> None:
        """Note that the request is ours, before there is anything that its client could come back to."""
        if self._owned is not None or not self._ownership.keeps:
            return
        if self._noting is None:
            self._noting = anyio.Lock()
        async with self._noting:
            if self._owned is None:
                self._owned = await self._ownership.own(self._session, self._stream, self._request)

    async def _still_ours(self, write: Awaitable[None]) -> None:
        """End the request where another node has it: nothing of it may happen here any more."""
        try:
            await write
        except TakenOver:
            _log.warning("session %s: another node took over a call of this one", self._session.id)
            self._is_taken_over = True
            self.cancel()
            await anyio.lowlevel.checkpoint()

    async def _before_late_opening(self) -> None:
        if self._session.profile.revision.priming_events:
            try:
                await self._note()
            except StoreError as error:
                _log.warning("session %s: a call cannot be noted: %s", self._session.id, error)

    def _opening(self) -> bytes:
        if self._session.profile.revision.priming_events:
            return b": open\n\nid: %s:0\ndata:\n\n" % self._stream.encode()
        return b": open\n\n"

    async def _on_beat(self) -> None:
        try:
            await self._sessions.touch(self._session)
        except StoreError as error:
            _log.warning("session %s: the store is away: %s", self._session.id, error)

    async def _notice_cancelled(self) -> None:
        """Hear of a cancellation that came to another node; one of this node's finds the request itself."""
        inbox = self._sessions.inbox(self._session)
        while self._node.store.shared:
            try:
                entries = await self._sessions.hear(inbox, COMMENT_SECONDS)
            except StoreError:
                await anyio.sleep(COMMENT_SECONDS)
                continue
            if any(entry.kind == "cancelled" and entry.name == encode(self._request.id).decode() for entry in entries):
                self.cancel()
                return

    async def _on_closing(self) -> None:
        """Nothing can be answered any more on a stream that ends: what waits for a person does so elsewhere."""
        if self._open:
            await self._leave()
        if self.on_closing is not None:
            self._is_cut_off = not self.is_giving_up
            self.on_closing()

    async def leave(self) -> None:
        """End the stream, where a client of this revision knows to come back for the rest."""
        if self._takes.events and self._session.profile.revision.priming_events and not (self._gone or self._over):
            await self._leave()

    async def _leave(self) -> None:
        """End the stream so that the client comes back for the rest, here or at another node."""
        tail = b"id: %s:%d\nretry: %d\n\n" % (self._stream.encode(), self._sequence, RETRY_MS)
        await self._write(tail, last=True)
        self._gone = self._is_left = True

    async def _client_gone(self) -> None:
        """Disconnect is not cancellation: the call goes on for the grace time, and longer if the client is back."""
        attached, inbox = False, self._sessions.inbox(self._session)
        deadline = anyio.current_time() + self._grace_seconds
        while attached or anyio.current_time() < deadline:
            patience = COMMENT_SECONDS if attached else deadline - anyio.current_time()
            try:
                entries = await self._sessions.hear(inbox, patience)
            except StoreError:
                await anyio.sleep(min(1.0, max(patience, 0.0)))
                continue
            for entry in entries:
                if entry.kind in ("attached", "detached") and entry.name == self._stream:
                    attached = entry.kind == "attached"
                    deadline = anyio.current_time() + self._grace_seconds
        _log.info("session %s: a client did not come back to its call, which is cancelled", self._session.id)
        self._give_up()


class TakenOverExchange(SessionExchange):
    """A request that was made to another node: its client reads the stream's log, here or wherever it comes back.

    Args:
        owned: the request, taken over.
        stream: the stream of its reply.
        sequence: the number of the last event there.
    """

    def __init__(
        self,
        node: Node,
        http: Mapping[str, Any],
        *,
        session: Session,
        sessions: Sessions,
        ownership: Ownership,
        owned: Owned,
        stream: str,
        sequence: int,
        grace_seconds: float,
    ) -> None:
        super().__init__(
            node,
            http,
            _gone,
            _nowhere,
            Accepts(json=True, events=True),
            session=session,
            sessions=sessions,
            ownership=ownership,
            request=owned.call.request,
            grace_seconds=grace_seconds,
        )
        self._owned = owned
        self._stream = stream
        self._sequence = sequence
        self._open = self._gone = self._is_left = True


async def _gone() -> Any:
    """The request itself has no client here; whether one has come back is heard of through the session's log."""
    return {"type": "http.disconnect"}


async def _nowhere(message: Any) -> None:
    """Send nothing: what matters is in the stream's log."""
