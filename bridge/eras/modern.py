"""What a modern client (2026-07-28) may send, and what it gets. Every request stands alone."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from bridge.asking.seal import Broken
from bridge.calls import Calls, Exchange
from bridge.claims import Ending, InputRequired, Released
from bridge.eras.outlet import CallOutlet, progress_token
from bridge.protocol.clients import ClientProfile, Principal
from bridge.protocol.inbound import Accepted, check_parameter_headers, parameter_headers
from bridge.protocol.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Json,
    error_message,
    result_message,
)
from bridge.protocol.revisions import LEGACY, MODERN
from bridge.protocol.shaping import modern_result, shape_info, shape_tool
from bridge.routes.rounds import BROKEN, Rounds
from bridge.server import Options, ServerInfo
from bridge.upstreams.base import CallRequest, Failed, Finished, Upstream
from bridge.upstreams.functions import error_result

__all__ = ["ModernEra"]

_ANSWERED: Final = (
    "This round of the call was already answered, with other answers or too long ago. Nothing was done again. "
    "Call the tool anew, without requestState, to start over."
)
_log = logging.getLogger("bridge.modern")


class _Visitor(msgspec.Struct, frozen=True):
    """Who made a modern request; nothing is known of it beyond the request."""

    profile: ClientProfile
    unable: Mapping[str, str] = {}


class ModernEra:
    """Answers the requests of modern clients.

    Args:
        server: what the server says of itself.
        upstream: what is wrapped.
        calls: the loop, with the routes of this era.
        rounds: how questions and answers travel.
        options: how the bridge is set up.
    """

    def __init__(self, server: ServerInfo, upstream: Upstream, calls: Calls, rounds: Rounds, options: Options) -> None:
        self._server = server
        self._info = shape_info(server.info, MODERN)
        self._upstream = upstream
        self._calls = calls
        self._rounds = rounds
        self._ttl_ms = int(options.list_ttl_seconds * 1000)
        self._methods: dict[str, Callable[..., Awaitable[Ending]]] = {
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }
        self._headers: dict[str, tuple[Json, tuple[tuple[tuple[str, ...], str], ...]]] = {}

    async def handle(
        self, accepted: Accepted, principal: Principal, exchange: Exchange, headers: Mapping[bytes, bytes] | None
    ) -> Json:
        """Answer a request.

        Args:
            accepted: the request, with what it says of its client.
            principal: who is behind it.
            exchange: the way back.
            headers: its HTTP headers, or None where the transport has none.

        Returns:
            The response message, a result or an error.
        """
        request = accepted.request
        method = self._methods.get(request.method)
        if method is None:
            return error_message(request.id, METHOD_NOT_FOUND, f"Method not found: {request.method}")
        ending = await method(accepted, principal, exchange, headers)
        if isinstance(ending, Failed):
            return error_message(request.id, ending.code, ending.message, ending.data)
        kind = "input_required" if isinstance(ending, InputRequired) else "complete"
        return result_message(request.id, modern_result(ending.result, self._info, kind=kind))

    async def _discover(self, *_: object) -> Ending:
        result: Json = {
            "supportedVersions": [MODERN.name, *reversed(LEGACY)],
            "capabilities": {name: {} for name in self._upstream.capabilities},
            "ttlMs": self._ttl_ms,
            "cacheScope": "public",
        }
        if self._server.instructions is not None:
            result["instructions"] = self._server.instructions
        return Finished(result)

    async def _list_tools(self, accepted: Accepted, *_: object) -> Ending:
        if accepted.request.params.get("cursor") is not None:
            return Failed(INVALID_PARAMS, "Invalid cursor: this list has one page")
        tools = [shape_tool(tool, MODERN) for tool in await self._upstream.tools()]
        return Finished({"tools": tools, "ttlMs": self._ttl_ms, "cacheScope": "public"})

    async def _call_tool(
        self, accepted: Accepted, principal: Principal, exchange: Exchange, headers: Mapping[bytes, bytes] | None
    ) -> Ending:
        params = accepted.request.params
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return Failed(INVALID_PARAMS, "tools/call needs a name (a string) and arguments (an object)")
        if headers is not None and (mismatch := await self._mismatch(name, arguments, headers)) is not None:
            return Failed(HEADER_MISMATCH, f"Header mismatch: {mismatch}")
        visitor = _Visitor(ClientProfile(MODERN, accepted.capabilities, accepted.info, principal))
        outlet = CallOutlet(exchange, MODERN, progress_token(params), accepted.log_level)
        request = CallRequest("tools/call", name, arguments)
        token = params.get("requestState")
        if token is None:
            ending = await self._calls.run(self._calls.begin(request, visitor, outlet, exchange))
        elif isinstance(token, str):
            ending = await self._retry(request, visitor, outlet, exchange, token, params.get("inputResponses"))
        else:
            return BROKEN
        if isinstance(ending, Released):
            return Finished(error_result(ending.reason, "INVALID_INPUT"))
        return ending

    async def _retry(
        self,
        request: CallRequest,
        visitor: _Visitor,
        outlet: CallOutlet,
        exchange: Exchange,
        token: str,
        responses: object,
    ) -> Ending | Released:
        read = self._rounds.read(visitor, request, token, responses)
        if isinstance(read, Broken):
            _log.warning("a requestState for %s does not hold: %s", request.target, read.reason)
            return BROKEN
        if isinstance(read, Finished | Failed | InputRequired):
            return read
        state = read.state
        current = self._calls.begin(request, visitor, outlet, exchange, state.journal)
        current.number, current.call_id = state.number, state.call_id
        return await self._calls.resume(
            current,
            round_id=state.round_id,
            answers=read.answers,
            ttl_seconds=read.ttl_seconds,
            unknown=Finished(error_result(_ANSWERED)),
        )

    async def _mismatch(self, name: str, arguments: Json, headers: Mapping[bytes, bytes]) -> str | None:
        """What is wrong with the `Mcp-Param-*` headers of a call, or None."""
        definition = await self._upstream.tool(name)
        if definition is None:
            return None
        known = self._headers.get(name)
        schema = definition["inputSchema"]
        if known is None or known[0] is not schema:
            known = self._headers[name] = (schema, parameter_headers(schema))
        return check_parameter_headers(known[1], arguments, headers) if known[1] else None
