"""Streams of events from a legacy server over Streamable HTTP, and how one goes on when its connection breaks.

Source: basic/transports#resumability-and-redelivery of 2025-11-25.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import anyio

from bridge.errors import ProtocolError, RemoteError, UpstreamLost
from bridge.protocol.messages import RequestId
from bridge.upstreams.remote.backoff import Backoff
from bridge.upstreams.remote.events import EventReader
from bridge.upstreams.remote.http import HttpClient, HttpReply
from bridge.upstreams.remote.limits import MAX_MESSAGE_BYTES

__all__ = ["ResumableStream", "StandingStream"]

_MAX_RESUMES: Final = 8
_PASSING: Final = frozenset({408, 409, 425, 429})
"""Statuses of the 400s that a later try may not meet; 409 is the former connection, not yet known to be gone."""

_log = logging.getLogger("bridge.upstream")

Gone: TypeAlias = Callable[[str], None]


class ResumableStream:
    """The stream that a request was answered with.

    Args:
        client: the connections to the server.
        session: the headers of the session.
        gone: told when the session turns out to be over.
    """

    def __init__(self, client: HttpClient, session: Mapping[str, str], gone: Gone) -> None:
        self._client = client
        self._session = session
        self._gone = gone
        self._events = EventReader(MAX_MESSAGE_BYTES)

    async def read(
        self, reply: HttpReply, identity: RequestId, take: Callable[[bytes, RequestId], Awaitable[bool]]
    ) -> None:
        """Read until the reply of the request has come, over as many connections as that takes.

        Args:
            reply: the first connection; it is closed, like those after it.
            identity: the id of the request.
            take: takes the data of each event, and returns whether the reply was there.

        Raises:
            UpstreamLost: it cannot be resumed any more.
        """
        backoff = Backoff()
        while True:
            at = self._events.last_id
            try:
                if await self._read(reply, identity, take):
                    reply.retire()
                    return
                why = "the stream ended without the reply"
            except UpstreamLost as lost:
                why = str(lost)
            except BaseException:
                reply.close()
                raise
            reply.close()
            if self._events.last_id != at:
                backoff.succeeded()
            reply = await self._resume(backoff, why)

    async def _read(
        self, reply: HttpReply, identity: RequestId, take: Callable[[bytes, RequestId], Awaitable[bool]]
    ) -> bool:
        try:
            while piece := await reply.piece():
                for event in self._events.feed(piece):
                    if event.kind == "message" and await take(event.data, identity):
                        return True
        except ProtocolError as error:
            self._events.last_id = ""
            raise UpstreamLost(error.message) from None
        return False

    async def _resume(self, backoff: Backoff, why: str) -> HttpReply:
        if not self._events.last_id:
            raise UpstreamLost(f"{self._client.name}: {why}, and it gave no event id to go on from")
        self._events.reconnect()
        while backoff.failures < _MAX_RESUMES:
            await backoff.wait(self._events.retry_seconds)
            backoff.began()
            try:
                reply = await _get(self._client, self._session, self._events.last_id)
            except RemoteError as error:
                why = str(error)
                continue
            if reply.status == 200 and reply.is_events:
                return reply
            reply.close()
            why = f"its stream cannot be resumed ({reply.status})"
            if reply.status == 404 and "Mcp-Session-Id" in self._session:
                self._gone(f"{self._client.name} does not know the session any more (404)")
            if reply.status < 500 and reply.status not in _PASSING:
                break
        raise UpstreamLost(f"{self._client.name}: {why}")


class StandingStream:
    """The stream of what belongs to no request, for as long as its session is there.

    Args:
        client: the connections to the server.
        session: the headers of the session.
        take: takes the data of each event.
        gone: told when the session turns out to be over.
    """

    def __init__(
        self, client: HttpClient, session: Mapping[str, str], take: Callable[[bytes], Awaitable[None]], gone: Gone
    ) -> None:
        self._client = client
        self._session = session
        self._take = take
        self._gone = gone
        self._events = EventReader(MAX_MESSAGE_BYTES)
        self._was_there = False
        self.answered = anyio.Event()
        """Set once the server has answered the first GET, whatever it said, or turned out not to."""

    async def run(self) -> None:
        """Keep it open, until the server says that there is none."""
        backoff = Backoff()
        while True:
            at = self._events.last_id
            backoff.began()
            try:
                if not await self._connect():
                    return
            except RemoteError as error:
                _log.debug("the stream of %s broke: %s", self._client.name, error)
            if self._events.last_id != at:
                backoff.succeeded()
            self._events.reconnect()
            await backoff.wait(self._events.retry_seconds)

    async def _connect(self) -> bool:
        """Read one connection to its end; return whether another one may be tried."""
        try:
            reply = await _get(self._client, self._session, self._events.last_id)
        finally:
            self.answered.set()
        try:
            if reply.status == 200 and reply.is_events:
                self._was_there = True
                while piece := await reply.piece():
                    for event in self._events.feed(piece):
                        if event.kind == "message":
                            await self._take(event.data)
                return True
            if reply.status == 404 and self._was_there and "Mcp-Session-Id" in self._session:
                self._gone(f"{self._client.name} does not know the session any more (404)")
            return (reply.status >= 500 and reply.status != 501) or reply.status in _PASSING
        finally:
            reply.close()


async def _get(client: HttpClient, session: Mapping[str, str], last_id: str) -> HttpReply:
    headers = {"Accept": "text/event-stream", **session}
    if last_id:
        headers["Last-Event-ID"] = last_id
    return await client.request("GET", headers)
