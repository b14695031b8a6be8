"""GET on a legacy session: the standalone stream, and the replay of a call's stream after `Last-Event-ID`.

A stream is read from its log, so that any node can serve it. Source: basic/transports#streamable-http of 2025-11-25.
"""

import logging
import re
import secrets
from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio

from bridge.errors import StoreError
from bridge.publishing import Change, Publisher
from bridge.session import ENDED, FINAL, STANDALONE, Entry, Session
from bridge.sessions import Sessions
from bridge.transports.exchange import COMMENT_SECONDS, EVENT_STREAM, RETRY_MS, Receive, Send, event

__all__ = ["SessionStream"]


_EVENT_NUMBER: Final = re.compile(r"[0-9]{1,15}")
_log = logging.getLogger("bridge.http")


class SessionStream:
    """One open GET request.

    Args:
        session: whose stream it is.
        sessions: where its events are.
        receive: the ASGI callable.
        send: the ASGI callable.
        publisher: where it hears of changes that concern every client.
        closing: set when the node shuts down.
        watch: looks after the request whose stream is read, while it is.
    """

    def __init__(
        self,
        session: Session,
        sessions: Sessions,
        receive: Receive,
        send: Send,
        publisher: Publisher,
        closing: anyio.Event,
        watch: Callable[[str], Coroutine[Any, Any, None]],
    ) -> None:
        self._session = session
        self._sessions = sessions
        self._receive = receive
        self._send = send
        self._publisher = publisher
        self._closing = closing
        self._watch = watch
        self._token = secrets.token_hex(8)
        self._done = False
        self._outbox = sessions.outbox(session, STANDALONE)

    async def serve(self, last_event_id: str | None) -> None:
        """Send events until the stream is over, the client has gone, or the node shuts down."""
        stream, position = await self._resolve(last_event_id)
        self._outbox = self._sessions.outbox(self._session, stream, position)
        # Each message goes on one stream only, so the newest standalone stream takes over.
        arrival = Entry("get", self._token) if stream == STANDALONE else Entry("attached", stream)
        arrived = await self._sessions.tell(self._session, arrival)
        await self._send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
        await self._write(self._opening(stream, position))
        stop = self._publisher.listen(self._tell) if stream == STANDALONE else None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_gone, tasks.cancel_scope)
                tasks.start_soon(self._until_closing, tasks.cancel_scope)
                tasks.start_soon(self._until_ended, stream, arrived, tasks.cancel_scope)
                if stream != STANDALONE:
                    tasks.start_soon(self._watch, stream)
                await self._follow(stream)
                tasks.cancel_scope.cancel()
        finally:
            if stop is not None:
                stop()
        with anyio.move_on_after(COMMENT_SECONDS, shield=True):
            await self._end(stream)

    async def _end(self, stream: str) -> None:
        """Say where the client can go on, unless there is nothing to go on with."""
        tail = b"id: %s:%d\nretry: %d\n\n" % (stream.encode(), self._outbox.position, RETRY_MS)
        await self._send({"type": "http.response.body", "body": b"" if self._done else tail})
        if stream != STANDALONE:
            try:
                await self._sessions.tell(self._session, Entry("detached", stream))
            except StoreError as error:
                _log.warning("session %s: a stream was left, and the store is away: %s", self._session.id, error)

    async def _resolve(self, last_event_id: str | None) -> tuple[str, int]:
        """The stream and the position that an event id names; the standalone stream where it names none of ours."""
        stream, _, number = (last_event_id or "").rpartition(":")
        if _EVENT_NUMBER.fullmatch(number) and len(stream) <= 32 and stream.isascii() and stream.isalnum():
            position = int(number)
            if stream == STANDALONE or position == 0:
                return stream, position
            before = self._sessions.outbox(self._session, stream, position - 1)
            if await before.take():
                return stream, position
        return STANDALONE, await self._sessions.cursor(self._session)

    def _opening(self, stream: str, position: int) -> bytes:
        if self._session.profile.revision.priming_events:
            return b": open\n\nid: %s:%d\ndata:\n\n" % (stream.encode(), position)
        return b": open\n\n"

    async def _write(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _follow(self, stream: str) -> None:
        """Send what is in the stream's log, and what comes there."""
        while True:
            try:
                entries = await self._outbox.next(COMMENT_SECONDS)
                if not entries:
                    await self._sessions.touch(self._session)
                    await self._write(b": still here\n\n")
            except StoreError as error:
                _log.warning("session %s: the store is away: %s", self._session.id, error)
                return
            for entry in entries:
                kind, data = entry.value[:1], entry.value[1:]
                if kind != ENDED:
                    await self._write(event(data, f"{stream}:{entry.seq}"))
                if kind in (FINAL, ENDED):
                    self._done = True
                    return
            if entries and stream == STANDALONE:
                await self._sessions.cursor(self._session, entries[-1].seq)

    async def _tell(self, change: Change) -> None:
        """Put a change that concerns this client on its stream, where replay finds it too."""
        if change.kind != "resource" or change.uri in self._session.record.subscriptions:
            await self._sessions.notify(self._session, change.message())

    async def _until_gone(self, scope: anyio.CancelScope) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._done = True
        scope.cancel()

    async def _until_closing(self, scope: anyio.CancelScope) -> None:
        await self._closing.wait()
        scope.cancel()

    async def _until_ended(self, stream: str, arrived: int, scope: anyio.CancelScope) -> None:
        """Until the session is over, or a newer standalone stream has taken this one's place."""
        inbox = self._sessions.inbox(self._session, arrived)
        while True:
            try:
                kinds = [entry.kind for entry in await self._sessions.hear(inbox, COMMENT_SECONDS)]
            except StoreError:
                return
            if "ended" in kinds or (stream == STANDALONE and "get" in kinds):
                self._done = True
                scope.cancel()
