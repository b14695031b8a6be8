"""GET on a legacy session: the standalone stream, and the replay of a call's stream after `Last-Event-ID`.

A stream is read from its log, so that any node can serve it. Source: basic/transports#streamable-http of 2025-11-25.
"""

import secrets

import anyio

from bridge.publishing import Change, Publisher
from bridge.sessions import STANDALONE, Entry, Session, Sessions
from bridge.transports.exchange import COMMENT_SECONDS, EVENT_STREAM, FINAL, RETRY_MS, Receive, Send, event

__all__ = ["SessionStream"]


class SessionStream:
    """One open GET request.

    Args:
        session: whose stream it is.
        sessions: where its events are.
        receive: the ASGI callable.
        send: the ASGI callable.
        publisher: where it hears of changes that concern every client.
        closing: set when the node shuts down.
    """

    def __init__(
        self,
        session: Session,
        sessions: Sessions,
        receive: Receive,
        send: Send,
        publisher: Publisher,
        closing: anyio.Event,
    ) -> None:
        self._session = session
        self._sessions = sessions
        self._receive = receive
        self._send = send
        self._publisher = publisher
        self._closing = closing
        self._token = secrets.token_hex(8)
        self._done = False
        self._position = 0

    async def serve(self, last_event_id: str | None) -> None:
        """Send events until the stream is over, the client has gone, or the node shuts down."""
        stream, position = await self._resolve(last_event_id)
        # Each message goes on one stream only, so the newest standalone stream takes over.
        arrival = Entry("get", self._token) if stream == STANDALONE else Entry("attached", stream)
        arrived = await self._sessions.tell(self._session, arrival)
        await self._send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
        await self._send({"type": "http.response.body", "body": self._opening(stream, position), "more_body": True})
        stop = self._publisher.listen(self._tell) if stream == STANDALONE else None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_gone, tasks.cancel_scope)
            tasks.start_soon(self._until_closing, tasks.cancel_scope)
            if stream == STANDALONE:
                tasks.start_soon(self._until_superseded, arrived, tasks.cancel_scope)
            await self._follow(stream, position)
            tasks.cancel_scope.cancel()
        if stop is not None:
            stop()
        with anyio.CancelScope(shield=True), anyio.move_on_after(COMMENT_SECONDS):
            if stream != STANDALONE:
                await self._sessions.tell(self._session, Entry("detached", stream))
            tail = b"id: %s:%d\nretry: %d\n\n" % (stream.encode(), self._position, RETRY_MS)
            await self._send({"type": "http.response.body", "body": b"" if self._done else tail})

    async def _resolve(self, last_event_id: str | None) -> tuple[str, int]:
        """The stream and the position that an event id names; the standalone stream where it names none of ours."""
        stream, _, number = (last_event_id or "").rpartition(":")
        if stream and number.isascii() and number.isdigit() and len(stream) <= 32 and stream.isalnum():
            if stream == STANDALONE:
                return stream, int(number)
            page = await self._sessions.replay(self._session, stream, int(number))
            if page.entries or page.first_seq > 1 or number == "0":
                return stream, int(number)
        return STANDALONE, await self._sessions.cursor(self._session)

    def _opening(self, stream: str, position: int) -> bytes:
        if self._session.profile.revision.priming_events:
            return b": open\n\nid: %s:%d\ndata:\n\n" % (stream.encode(), position)
        return b": open\n\n"

    async def _follow(self, stream: str, position: int) -> None:
        log = self._session.outgoing(stream)
        self._position = position
        while True:
            page = await self._sessions.replay(self._session, stream, position)
            for entry in page.entries:
                kind, data = (entry.value[:1], entry.value[1:]) if stream != STANDALONE else (b"", entry.value)
                body = event(data, f"{stream}:{entry.seq}")
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
                position = self._position = entry.seq
                if stream == STANDALONE:
                    await self._sessions.cursor(self._session, position)
                elif kind == FINAL:
                    self._done = True
                    return
            if not page.entries and not await self._sessions.wait({log: position}, COMMENT_SECONDS):
                await self._sessions.touch(self._session)
                await self._send({"type": "http.response.body", "body": b": still here\n\n", "more_body": True})

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

    async def _until_superseded(self, position: int, scope: anyio.CancelScope) -> None:
        while True:
            entries, position = await self._sessions.hear(self._session, position, COMMENT_SECONDS)
            kinds = [(entry.kind, entry.name) for entry in entries]
            if any(kind == "get" for kind, _ in kinds) or ("ended", "") in kinds:
                self._done = True
                scope.cancel()
