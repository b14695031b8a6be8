"""Which era is the server at an http(s) URL of, and by which transport is a legacy one reached?

Source: basic/transports/streamable-http#backward-compatibility of 2026-07-28.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import anyio

from bridge.errors import RemoteError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json, Message, RequestId, Response, encode
from bridge.protocol.revisions import LEGACY
from bridge.upstreams.links import Facts
from bridge.upstreams.remote.envelope import request_headers
from bridge.upstreams.remote.http import HttpClient, HttpReply
from bridge.upstreams.remote.posting import POSTED, read_reply
from bridge.upstreams.remote.probe import (
    PROBE_SECONDS,
    contradicts_itself,
    discover_message,
    found,
    initialize_message,
)
from bridge.upstreams.remote.refusals import error_in, refusal
from bridge.upstreams.remote.sse import SseWire
from bridge.upstreams.remote.streamable import StreamableWire
from bridge.upstreams.wires import Wire

__all__ = ["MakeWire", "probe_http", "probe_legacy"]

_NOT_POSTED_TO: Final = frozenset({400, 404, 405})
"""What a server of HTTP+SSE may answer to a POST at the URL of its stream."""

_DELETE_SECONDS: Final = 2.0
_SESSION_SECONDS: Final = 5.0
"""How long a modern server may take to say whether it begins sessions too."""

MakeWire: TypeAlias = Callable[[HttpClient], Wire]


async def probe_http(client: HttpClient, *, sessions: bool = True) -> Facts | MakeWire:
    """Probe a server of either era. One of both is taken for legacy where it begins sessions, since it asks in them.

    Returns:
        What a modern server says of itself, or what makes wires to a legacy one.

    Args:
        client: the connections to it.
        sessions: whether sessions are preferred where it serves both eras.

    Raises:
        UpstreamUnreachable: it cannot be reached, or is no MCP server.
    """
    message = discover_message()
    headers = request_headers("server/discover", message["params"], ())
    response = await _posted(client, message, headers)
    if response is not None and contradicts_itself(response):
        # Asked once more with a revision of its list, which is the same one. Source: basic/versioning.
        response = await _posted(client, message, headers)
    if response is not None and isinstance(facts := found(client.name, response), Facts):
        return StreamableWire if sessions and await _begins_sessions(client) else facts
    # A JSON-RPC error to a POST is what no server of HTTP+SSE answers.
    return StreamableWire if response is not None else await probe_legacy(client)


async def _begins_sessions(client: HttpClient) -> bool:
    """Whether a modern server answers `initialize` with a session of its own, which is ended at once.

    In a session its tools may ask in their body, which they cannot in a modern call. Without an id there is no session
    by which an answer could come back, so its tools ask by what they return. No tool runs to find that out, and the
    list of versions does not tell: the SDKs that serve both eras name 2026-07-28 alone in it.
    """
    message = initialize_message(1)
    with anyio.move_on_after(_SESSION_SECONDS):
        try:
            reply = await client.request("POST", POSTED, encode(message))
            try:
                if (session := reply.header("Mcp-Session-Id")) is None or reply.status >= 400:
                    return False
                response = await _read(client, message, reply)
            finally:
                reply.close()
        except RemoteError:
            return False
        return bool(session) and response is not None and _is_initialized(response)
    return False


def _is_initialized(response: Response) -> bool:
    result = response.result
    return isinstance(result, dict) and result.get("protocolVersion") in LEGACY


async def probe_legacy(client: HttpClient) -> MakeWire:
    """Find out by which transport a legacy server is reached.

    Raises:
        UpstreamUnreachable: it cannot be reached, or is no MCP server.
    """
    response = await _posted(client, initialize_message(1), {})
    if response is None:
        return await _probe_sse(client)
    if isinstance(response.error, dict):
        raise UpstreamUnreachable(f"{client.name} refused initialize: {response.error.get('message')}")
    return StreamableWire


async def _posted(client: HttpClient, message: Json, headers: Mapping[str, str]) -> Response | None:
    """POST a request; return its reply, or None where no MCP server listens for a POST."""
    try:
        with anyio.fail_after(PROBE_SECONDS):
            reply = await client.request("POST", {**POSTED, **headers}, encode(message))
            try:
                return await _read(client, message, reply)
            finally:
                reply.close()
    except TimeoutError:
        why = f"{client.name} did not answer {message['method']} within {PROBE_SECONDS:g} seconds"
        raise UpstreamUnreachable(why) from None
    except UpstreamLost as lost:
        raise UpstreamUnreachable(f"{client.name} did not answer {message['method']}: {lost}") from None


async def _read(client: HttpClient, message: Json, reply: HttpReply) -> Response | None:
    if reply.status in (401, 403) or reply.status >= 500:
        # These say nothing of the era: a gateway, or a server that is ill.
        raise UpstreamUnreachable(str(refusal(client.name, reply.status)))
    if reply.status >= 400:
        error = error_in(await reply.body(), reply.status, message["id"])
        if error is None and message["method"] == "initialize" and reply.status not in _NOT_POSTED_TO:
            raise UpstreamUnreachable(f"{client.name} answered initialize with {reply.status}: it is no MCP server")
        return error
    response = await read_reply(client.name, message["id"], reply, None)
    if (session := reply.header("Mcp-Session-Id")) is not None:
        await _delete(client, session)
    return response


async def _delete(client: HttpClient, session: str) -> None:
    """End the session that only the probe has begun."""
    with anyio.move_on_after(_DELETE_SECONDS):
        try:
            (await client.request("DELETE", {"Mcp-Session-Id": session})).close()
        except RemoteError:
            return


async def _probe_sse(client: HttpClient) -> MakeWire:
    wire = SseWire(client)
    try:
        await wire.open(_ignore, _ignore_end)
    except UpstreamUnreachable as error:
        raise UpstreamUnreachable(
            f"{client.name} is no MCP server: it took neither a POST of initialize nor a GET of its events ({error});"
            " is that the URL of its MCP endpoint?"
        ) from None
    finally:
        await wire.aclose()
    return SseWire


async def _ignore(message: Message, identity: RequestId | None) -> None:
    """What comes while it is only looked at."""


def _ignore_end(why: str) -> None:
    """The end of what was only looked at."""
