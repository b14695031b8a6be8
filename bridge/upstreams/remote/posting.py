"""A `Carrier` over Streamable HTTP: a POST a request, whose connection carries what comes for it and nothing else.

Source: basic/transports/streamable-http of 2026-07-28.
"""

import logging
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec import UNSET

from bridge.errors import ProtocolError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import MAX_DEPTH, Json, Notification, RequestId, Response, decode, encode
from bridge.upstreams.closing import Interruptible
from bridge.upstreams.remote.carriers import Heard
from bridge.upstreams.remote.events import EventReader
from bridge.upstreams.remote.http import HttpClient, HttpReply
from bridge.upstreams.remote.limits import MAX_MESSAGE_BYTES
from bridge.upstreams.remote.refusals import error_in, refusal

__all__ = ["POSTED", "HttpCarrier", "read_reply"]

POSTED: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
"""What goes with every message that is POSTed."""

_log = logging.getLogger("bridge.upstream")


class HttpCarrier:
    """A `Carrier` that makes a POST of each request. To close its connection is to cancel it.

    Args:
        client: the connections to the server, which outlive the carrier.
    """

    has_headers: bool = True

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._requests = Interruptible()
        self.name: Final = client.name
        self.is_open = True

    async def carry(self, message: Json, headers: Mapping[str, str], heard: Heard | None) -> Response:
        """See `Carrier`."""
        if not self.is_open:
            raise UpstreamUnreachable(f"the link to {self.name} was closed")
        with self._requests.under_way():
            reply = await self._client.request("POST", {**POSTED, **headers}, encode(message))
            try:
                response = await read_reply(self.name, message["id"], reply, heard)
            except BaseException:
                reply.close()
                raise
            reply.retire()
            return response

    async def aclose(self) -> None:
        """See `Carrier`."""
        self.is_open = False
        self._requests.interrupt(f"the link to {self.name} was closed")


async def read_reply(name: str, identity: RequestId, reply: HttpReply, heard: Heard | None) -> Response:
    """Read what a POST was answered with, up to the JSON-RPC reply.

    Args:
        name: the server's, for errors.
        identity: the id of the request.
        reply: what the server answers.
        heard: takes the notifications that come before the reply; None drops them.

    Raises:
        UpstreamUnreachable: the server refused it unread.
        UpstreamLost: the reply will not come.
    """
    if reply.status >= 400:
        error = error_in(await reply.body(), reply.status, identity)
        if error is None or reply.status in (401, 403):
            raise refusal(name, reply.status)
        return error
    if reply.is_events:
        return await _streamed(name, identity, reply, heard)
    response = await _take(name, await reply.body(), identity, heard)
    if response is None:
        raise UpstreamLost(f"{name} answered {reply.status} ({reply.content_type}) without a reply")
    return response


async def _streamed(name: str, identity: RequestId, reply: HttpReply, heard: Heard | None) -> Response:
    events = EventReader(MAX_MESSAGE_BYTES)
    try:
        while piece := await reply.piece():
            for event in events.feed(piece):
                response = await _take(name, event.data, identity, heard)
                if response is not None:
                    return response
    except ProtocolError as error:
        raise UpstreamLost(f"{name}: {error.message}") from None
    # Source: #receiving-messages: streams of this revision cannot be resumed.
    raise UpstreamLost(f"{name}: the stream ended without the reply")


async def _take(name: str, data: bytes, identity: RequestId, heard: Heard | None) -> Response | None:
    """Take one message that came with a request; return it where it is the reply."""
    if (found := _plain_reply(data)) is not None and found.id == identity:
        return found
    try:
        message = decode(data, MAX_MESSAGE_BYTES)
    except ProtocolError as error:
        _log.warning("%s sent what is no message, skipped: %s", name, error.message)
        return None
    if isinstance(message, Response) and message.id == identity:
        return message
    if isinstance(message, Notification):
        if heard is not None:
            await heard(message)
    else:
        # Source: #receiving-messages: a server makes no requests.
        _log.warning("%s sent a message that does not belong to its request, skipped", name)
    return None


class _Plain(Response, frozen=True):
    jsonrpc: Literal["2.0"] = "2.0"


_decoder: Final = msgspec.json.Decoder(_Plain)


def _plain_reply(data: bytes) -> Response | None:
    """Read a reply as nearly every one is: one that needs no second look."""
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        return None
    try:
        found = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return None if (found.result is UNSET) == (found.error is UNSET) else found
