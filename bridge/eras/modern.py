"""What a modern client (2026-07-28) may send, and what it gets. Every request stands alone."""

import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from bridge.asking.fallback import FALLBACK_TOOL_NAME, read_call
from bridge.asking.routes import RouteName, choose, sees_fallback
from bridge.asking.seal import Broken
from bridge.calls import Calls, Exchange, Stored
from bridge.claims import Ending, InputRequired, Released
from bridge.eras.catalog import CALLS, LISTS, Catalog, read_request
from bridge.eras.listening import LISTEN, Listening, announced
from bridge.eras.outlet import CallOutlet, progress_token
from bridge.protocol.clients import ClientProfile, Principal
from bridge.protocol.inbound import Accepted, check_parameter_headers
from bridge.protocol.messages import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    Json,
    error_message,
    result_message,
)
from bridge.protocol.revisions import LEGACY, MODERN
from bridge.protocol.shaping import modern_error_code, modern_result, shape_info
from bridge.routes.chat import Chat
from bridge.routes.rounds import BROKEN, Rounds
from bridge.server import Options, ServerInfo
from bridge.upstreams.base import CallRequest, Failed, Finished, Upstream, Visitor
from bridge.upstreams.endings import failed
from bridge.upstreams.results import error_result

__all__ = ["ModernEra"]

_ANSWERED: Final = (
    "This round of the call was already answered, with other answers or too long ago. Nothing was done again. "
    "Call the tool anew, without requestState, to start over."
)
_log = logging.getLogger("bridge.modern")


class _Visitor(Visitor, frozen=True):
    """Who made a modern request; nothing is learned of it."""

    unable: Mapping[str, str] = {}


class _Asker(msgspec.Struct, frozen=True):
    """A request, by whom, and the way back."""

    accepted: Accepted
    visitor: _Visitor
    exchange: Exchange
    headers: Mapping[bytes, bytes] | None

    params: Json

    def outlet(self) -> CallOutlet:
        return CallOutlet(self.exchange, MODERN, progress_token(self.params), self.accepted.log_level)


class ModernEra:
    """Answers the requests of modern clients.

    Args:
        server: what the server says of itself.
        upstream: what is wrapped.
        calls: the loop, with the routes of this era.
        rounds: how questions and answers travel.
        chat: what the fallback tool answers, for clients that the operator put on chat.
        listening: serves the streams of changes.
        options: how the bridge is set up.
    """

    def __init__(
        self,
        server: ServerInfo,
        upstream: Upstream,
        calls: Calls,
        rounds: Rounds,
        chat: Chat,
        listening: Listening,
        options: Options,
    ) -> None:
        self._server = server
        self._info = shape_info(server.info, MODERN)
        self._upstream = upstream
        self._calls = calls
        self._rounds = rounds
        self._chat = chat
        self._listening = listening
        self._options = options
        self._catalog = Catalog(upstream, options.page_size)
        self._ttl_ms = int(options.list_ttl_seconds * 1000)

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
        visitor = _Visitor(ClientProfile(MODERN, accepted.capabilities, accepted.info, principal))
        asker = _Asker(accepted, visitor, exchange, headers, request.params)
        if request.method in CALLS:
            ending = await self._call(asker, request.method)
        else:
            ending = await self._answer(asker)
        if isinstance(ending, Failed):
            code = modern_error_code(ending.code)
            return error_message(request.id, code, ending.message, ending.data)
        kind = "input_required" if isinstance(ending, InputRequired) else "complete"
        return result_message(request.id, modern_result(ending.result, self._info, kind=kind))

    async def _answer(self, asker: _Asker) -> Ending:
        method = asker.accepted.request.method
        if method in LISTS:
            return await self._list(asker, method)
        if method == "server/discover":
            return self._discover()
        if method == LISTEN:
            return await self._listening.serve(asker.accepted.request, asker.visitor, asker.exchange)
        if method == "completion/complete" and "completions" in self._upstream.capabilities:
            return await self._upstream.complete(asker.params, asker.visitor)
        return Failed(METHOD_NOT_FOUND, f"Method not found: {method}")

    def _discover(self) -> Ending:
        result: Json = {
            "supportedVersions": [MODERN.name, *reversed(LEGACY)],
            "capabilities": announced(self._upstream.capabilities),
            "ttlMs": self._ttl_ms,
            "cacheScope": "public",
        }
        if self._server.instructions is not None:
            result["instructions"] = self._server.instructions
        return Finished(result)

    async def _list(self, asker: _Asker, method: str) -> Ending:
        by_chat = self._is_by_chat(asker.visitor)
        page = await self._catalog.page(LISTS[method], asker.params, asker.visitor, fallback=by_chat)
        if isinstance(page, Failed):
            return page
        scope = "private" if by_chat or self._options.authenticate is not None else "public"
        return Finished({**page.result, "ttlMs": self._ttl_ms, "cacheScope": scope})

    async def _call(self, asker: _Asker, method: str) -> Ending:
        request = read_request(method, asker.params)
        if isinstance(request, Failed):
            return request
        if asker.headers is not None and method == "tools/call":
            annotated = self._upstream.parameter_headers(request.target)
            if annotated and (mismatch := check_parameter_headers(annotated, request.arguments, asker.headers)):
                return Failed(HEADER_MISMATCH, f"Header mismatch: {mismatch}")
        if request.target == FALLBACK_TOOL_NAME and self._is_by_chat(asker.visitor):
            return await self._pass_on(asker, request)
        token = asker.params.get("requestState")
        if token is None:
            given = asker.params.get("inputResponses")
            current = self._calls.begin(request, asker.visitor, asker.outlet(), asker.exchange)
            if isinstance(given, dict):
                current.call.input_responses = given
            ending = await self._calls.run(current)
        elif isinstance(token, str):
            ending = await self._retry(request, asker, token)
        else:
            return BROKEN
        if isinstance(ending, Released):
            return failed(request, ending.reason, "INVALID_INPUT")
        if method == "resources/read" and isinstance(ending, Finished):
            # Made with answers that are no part of the cache key: not to be kept. Source: utilities/caching#cache-key.
            retried = token is not None or "inputResponses" in asker.params
            cached = {"ttlMs": int(self._options.read_ttl_seconds * 1000), "cacheScope": "private"}
            return Finished({**cached, **ending.result, **({"ttlMs": 0, "cacheScope": "private"} if retried else {})})
        return ending

    async def _retry(self, request: CallRequest, asker: _Asker, token: str) -> Ending | Released:
        responses = asker.params.get("inputResponses")
        read = self._rounds.read(asker.visitor, request, token, responses)
        if isinstance(read, Broken):
            _log.warning("a requestState for %s does not hold: %s", request.target, read.reason)
            return BROKEN
        if isinstance(read, Finished | Failed | InputRequired):
            return read
        state = read.state
        stored = Stored(state.call_id, state.number, state.journal)
        given = responses if isinstance(responses, dict) else None
        return await self._calls.resume(
            self._calls.begin(request, asker.visitor, asker.outlet(), asker.exchange, stored, given, state.questions),
            round_id=state.round_id,
            answers=read.answers,
            ttl_seconds=read.ttl_seconds,
            unknown=failed(request, _ANSWERED),
        )

    async def _pass_on(self, asker: _Asker, request: CallRequest) -> Ending:
        """Take the answer of a client that the operator put on chat."""
        given = read_call(request.arguments)
        if isinstance(given, str):
            return Finished(error_result(given, "INVALID_INPUT"))
        _, ending = await self._chat.answer(asker.visitor, given, asker.outlet(), asker.exchange, self._calls)
        return ending

    def _is_by_chat(self, visitor: _Visitor) -> bool:
        rules = self._options.client_rules
        if not (rules and self._options.elicitation and self._options.fallback != "off"):
            return False
        return sees_fallback(visitor.profile, rules=rules) and (
            choose(visitor.profile, "form", rules=rules).route is RouteName.CHAT
        )
