"""A `Wire` over Streamable HTTP as legacy servers speak it: a POST a message, replies as JSON or events, a session id.

Source: basic/transports#streamable-http of 2025-11-25.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

import anyio

from bridge.errors import BridgeError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json, RequestId, Response, encode
from bridge.upstreams.closing import Interruptible
from bridge.upstreams.remote.http import HttpClient, HttpReply
from bridge.upstreams.remote.limits import Complaints, hand_over
from bridge.upstreams.remote.posting import POSTED
from bridge.upstreams.remote.refusals import error_in, refusal
from bridge.upstreams.remote.resuming import ResumableStream, StandingStream
from bridge.upstreams.remote.tasks import Tasks
from bridge.upstreams.wires import Closed, Receive

__all__ = ["StreamableWire"]

_DELETE_SECONDS: Final = 2.0
_LISTEN_SECONDS: Final = 1.0
_log = logging.getLogger("bridge.upstream")


class StreamableWire:
    """A `Wire` to the MCP endpoint of a legacy server, for one session.

    Args:
        client: the connections to the server, which outlive the wire.
    """

    names_requests: bool = True

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._complaints = Complaints(client.name)
        self._requests = Interruptible()
        self._tasks = Tasks()
        self._turn = anyio.Lock()
        self._session: dict[str, str] = {}
        """The headers that make a request part of the session."""
        self._why_closed: str | None = "the wire was not opened"

    async def open(self, receive: Receive, closed: Closed) -> None:
        """See `Wire`. Nothing is sent: the first message is what reaches the server."""

        async def one_by_one(message: Any, identity: RequestId | None) -> None:
            async with self._turn:
                await receive(message, identity)

        self._receive: Receive = one_by_one
        self._closed = closed
        self._why_closed = None

    async def send(self, message: Json, http: Mapping[str, Any] | None = None) -> None:
        """See `Wire`: return with the reply of a request, or once the server has taken another message."""
        if self._why_closed is not None:
            raise UpstreamUnreachable(self._why_closed)
        with self._requests.under_way():
            reply = await self._client.request("POST", {**POSTED, **self._session}, encode(message))
            try:
                await self._take(message, reply)
            except BaseException:
                reply.close()
                raise
            # A stream of events is over by now, or another connection has taken its place.
            reply.retire()

    async def initialized(self, revision: str) -> None:
        """See `Wire`: name the revision from now on."""
        self._session["MCP-Protocol-Version"] = revision

    async def listen(self) -> None:
        """See `Wire`: wait for the answer to the GET, at most a second: some servers send its head with an event."""
        standing = StandingStream(self._client, self._session, self._take_standing, self._gone)
        self._tasks.start(standing.run(), f"stream of {self._client.name}")
        if not self._client.keeps_heads_back:
            with anyio.move_on_after(_LISTEN_SECONDS) as waited:
                await standing.answered.wait()
            self._client.keeps_heads_back = waited.cancelled_caught

    async def aclose(self) -> None:
        """See `Wire`: end what is under way, and the session at the server."""
        is_alive, self._why_closed = self._why_closed is None, self._why_closed or "the wire was closed"
        self._requests.interrupt("the wire was closed")
        with anyio.CancelScope(shield=True):
            await self._tasks.aclose()
            if is_alive and "Mcp-Session-Id" in self._session:
                with anyio.move_on_after(_DELETE_SECONDS):
                    await self._delete()

    async def _delete(self) -> None:
        try:
            reply = await self._client.request("DELETE", self._session)
            reply.retire()
        except BridgeError as error:
            _log.debug("the session at %s was not ended: %s", self._client.name, error)

    async def _take(self, message: Json, reply: HttpReply) -> None:
        identity = message.get("id") if "method" in message else None
        if reply.status >= 400:
            await self._refused(identity, reply)
            return
        if message.get("method") == "initialize" and (session := reply.header("Mcp-Session-Id")) is not None:
            self._session["Mcp-Session-Id"] = session
        if identity is None:
            return
        if reply.is_events:
            await ResumableStream(self._client, self._session, self._gone).read(reply, identity, self._take_data)
        elif not await self._take_data(await reply.body(), identity):
            raise UpstreamLost(f"{self._client.name} answered {reply.status} without the reply to the request")

    async def _refused(self, identity: RequestId | None, reply: HttpReply) -> None:
        if reply.status == 404 and "Mcp-Session-Id" in self._session:
            # Source: basic/transports#session-management: the session is gone, whatever the body says.
            why = f"{self._client.name} does not know the session any more (404)"
            self._gone(why)
            raise UpstreamUnreachable(why)
        error = None if identity is None else error_in(await reply.body(), reply.status, identity)
        if error is None or identity is None or reply.status in (401, 403):
            raise refusal(self._client.name, reply.status)
        await self._receive(error, identity)

    async def _take_data(self, data: bytes, identity: RequestId) -> bool:
        """Hand over what came with a request; return whether its reply was there."""
        messages = await hand_over(data, identity, self._receive, self._complaints)
        return any(isinstance(message, Response) and message.id == identity for message in messages)

    async def _take_standing(self, data: bytes) -> None:
        await hand_over(data, None, self._receive, self._complaints)

    def _gone(self, why: str) -> None:
        if self._why_closed is None:
            self._why_closed = why
            self._closed(why)
