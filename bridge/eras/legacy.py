"""What a legacy client may send on its session, and what it gets."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, cast

from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING, FallbackCall, read_call
from bridge.asking.routes import sees_fallback
from bridge.calls import Calls, Exchange, interrupted
from bridge.claims import Ending, InputRequired, Released
from bridge.eras.catalog import CALLS, LISTS, Catalog, read_request
from bridge.eras.outlet import CallOutlet, Unheard, progress_token
from bridge.errors import ProtocolError
from bridge.ownership import OwnedCall
from bridge.protocol.clients import Principal
from bridge.protocol.inbound import LOG_LEVELS
from bridge.protocol.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    Json,
    Notification,
    Request,
    RequestId,
    encode,
    error_message,
    result_message,
)
from bridge.protocol.revisions import Revision
from bridge.protocol.shaping import (
    is_wrapped,
    shape_capabilities,
    shape_error_code,
    shape_info,
    shape_result,
    without_modern_fields,
)
from bridge.routes.chat import Chat
from bridge.routes.push import Push
from bridge.server import Options, ServerInfo
from bridge.session import DEFAULT_LOG_LEVEL, Session, SessionRecord
from bridge.sessions import Sessions
from bridge.upstreams.base import CallRequest, Failed, Finished, Upstream
from bridge.upstreams.endings import failed
from bridge.upstreams.results import error_result

__all__ = ["LegacyEra"]

_MAX_SUBSCRIPTIONS: Final = 1000
_MAX_INITIALIZE_BYTES: Final = 64 * 1024
_log = logging.getLogger("bridge.sessions")


class LegacyEra:
    """Answers the messages of legacy clients.

    Args:
        server: what the server says of itself.
        upstream: what is wrapped.
        calls: the loop, with the routes of this era.
        chat: what the fallback tool answers.
        push: where a question may wait whose call has ended.
        sessions: where sessions are opened and changed.
        options: how the bridge is set up.
    """

    def __init__(
        self,
        server: ServerInfo,
        upstream: Upstream,
        calls: Calls,
        chat: Chat,
        push: Push,
        sessions: Sessions,
        options: Options,
    ) -> None:
        self._server = server
        self._upstream = upstream
        self._calls = calls
        self._chat = chat
        self._push = push
        self._sessions = sessions
        self._rules = options.client_rules
        self._ways = options.ways
        self._asks_by_chat = options.elicitation and options.fallback != "off"
        self._catalog = Catalog(upstream, options.page_size)
        self._methods: dict[str, Callable[[Session, Request], Awaitable[Ending]]] = {
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "completion/complete": self._complete,
            **dict.fromkeys(LISTS, self._list),
        }

    async def initialize(self, request: Request, principal: Principal) -> tuple[Session, Json]:
        """Open a session; return it with the response.

        Raises:
            TooManySessions: a limit is reached.
            ProtocolError: params that are too large to be kept.
        """
        if len(encode(request.params)) > _MAX_INITIALIZE_BYTES:
            text = f"The params of initialize are larger than {_MAX_INITIALIZE_BYTES} bytes"
            raise ProtocolError(INVALID_PARAMS, text)
        session = await self._sessions.open(request.params, principal)
        self._log_route(session)
        revision = session.profile.revision
        result: Json = {
            "protocolVersion": revision.name,
            "capabilities": shape_capabilities(self._upstream.capabilities, revision),
            "serverInfo": shape_info(self._server.info, revision),
        }
        if self._server.instructions is not None:
            result["instructions"] = self._server.instructions
        return session, result_message(request.id, result)

    def _log_route(self, session: Session) -> None:
        """Say once for each session how its user is asked, and why; what is learned later is said where it is."""
        if _log.isEnabledFor(logging.INFO):
            choice, name = self._ways.choose(session.profile, "form"), str(session.profile.info.get("name", ""))[:64]
            revision, route = session.profile.revision.name, choice.route.value
            _log.info("session %s: %r, %s: asked by %s (%s)", session.handle, name, revision, route, choice.reason)

    async def handle(self, session: Session, request: Request, exchange: Exchange) -> Json:
        """Answer a request on a session: the response message, a result or an error."""
        return _reply(request, await self._answer(session, request, exchange))

    async def go_on(self, session: Session, owned: OwnedCall, exchange: Exchange, *, repeatable: bool) -> Json:
        """Answer a request whose node is lost: the response message, a result or an error.

        Args:
            session: whose request it is.
            owned: the request, and what is known of its call.
            exchange: the way back.
            repeatable: whether it is known that nothing has happened since it last went on.
        """
        request, waiting = owned.request, owned.waiting
        called = read_request(request.method, request.params) if request.method in CALLS else None
        if not isinstance(called, CallRequest) or called.target == FALLBACK_TOOL_NAME:
            # It only read, or is answered from the claim of its round.
            return await self.handle(session, request, exchange)
        level = session.record.log_level or DEFAULT_LOG_LEVEL
        outlet = CallOutlet(exchange, session.profile.revision, progress_token(request.params), level)
        current = self._calls.begin(called, session, outlet, exchange, owned.stored)
        ending: Ending | Released | None = None
        if waiting is not None and not current.call.journal.held:
            ending = await self._push.go_on(current, waiting)
        elif not (repeatable or current.call.journal.held or await self._calls.is_repeatable(called)):
            ending = interrupted(called)
        if ending is None:
            ending = await self._calls.run(current)
        return _reply(request, await self._ended(session, called, ending))

    async def _ended(self, session: Session, called: CallRequest, ending: Ending | Released) -> Ending:
        if isinstance(ending, Released):
            return failed(called, ending.reason, "INVALID_INPUT")
        return await self._shaped(ending, called.target, session.profile.revision)

    async def withdraw(self, session: Session, elicit_id: str) -> None:
        """Answer a question that waits for a chat answer as if the user had cancelled it: its call goes on with that.

        Nobody waits for the result; a model that answers later learns that the question is not open any more.
        """
        given = FallbackCall(elicit_id, "cancel", None)
        exchange = Unheard()
        outlet = CallOutlet(exchange, session.profile.revision, None, None)
        await self._chat.answer(session, given, outlet, exchange, self._calls)

    async def notified(self, session: Session, message: Notification) -> None:
        """Take a client's notification. What is not known is dropped."""
        if message.method == "notifications/initialized" and not session.record.initialized:
            await self._sessions.change(session, _mark_initialized)
        elif message.method == "notifications/cancelled":
            identity = message.params.get("requestId")
            if type(identity) in (int, str):
                await self._sessions.cancel(session, cast(RequestId, identity))
        elif message.method == "notifications/roots/list_changed":
            await self._upstream.relay(message.method, {}, session)

    async def _answer(self, session: Session, request: Request, exchange: Exchange) -> Ending:
        if request.method in CALLS:
            return await self._call(session, request, exchange)
        if request.method == "initialize":
            return Failed(INVALID_REQUEST, "This session is initialized already")
        method = self._methods.get(request.method)
        if method is None:
            return Failed(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        return await method(session, request)

    async def _ping(self, session: Session, request: Request) -> Ending:
        return Finished({})

    async def _set_level(self, session: Session, request: Request) -> Ending:
        level = request.params.get("level")
        if level not in LOG_LEVELS:
            return Failed(INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")

        def alter(record: SessionRecord) -> None:
            record.log_level = level

        await self._sessions.change(session, alter)
        return await self._upstream.relay(request.method, {"level": level}, session)

    async def _subscribe(self, session: Session, request: Request) -> Ending:
        uri = request.params.get("uri")
        if not isinstance(uri, str):
            return Failed(INVALID_PARAMS, "resources/subscribe needs a uri (a string)")
        if uri in session.record.subscriptions:
            return Finished({})
        if len(session.record.subscriptions) >= _MAX_SUBSCRIPTIONS:
            return Failed(INVALID_PARAMS, f"A session may subscribe to at most {_MAX_SUBSCRIPTIONS} resources")
        relayed = await self._upstream.relay(request.method, {"uri": uri}, session)
        if isinstance(relayed, Finished):
            await self._sessions.change(session, lambda record: record.subscriptions.append(uri))
        return relayed

    async def _unsubscribe(self, session: Session, request: Request) -> Ending:
        uri = request.params.get("uri")
        if uri in session.record.subscriptions:

            def alter(record: SessionRecord) -> None:
                record.subscriptions = [kept for kept in record.subscriptions if kept != uri]

            await self._sessions.change(session, alter)
            return await self._upstream.relay(request.method, {"uri": uri}, session)
        return Finished({})

    async def _complete(self, session: Session, request: Request) -> Ending:
        if "completions" not in self._upstream.capabilities:
            return Failed(METHOD_NOT_FOUND, "Method not found: completion/complete")
        return await self._upstream.complete(request.params, session)

    async def _list(self, session: Session, request: Request) -> Ending:
        fallback = self._sees_fallback(session)
        kind = LISTS[request.method]
        page = await self._catalog.page(kind, request.params, session, fallback=fallback)
        if kind == "tools" and fallback and session.record.fallback and not session.record.widened:
            await self._sessions.change(session, _mark_widened)
        return page

    async def _call(self, session: Session, request: Request, exchange: Exchange) -> Ending:
        called = read_request(request.method, request.params)
        if isinstance(called, Failed):
            return called
        level = session.record.log_level or DEFAULT_LOG_LEVEL
        outlet = CallOutlet(exchange, session.profile.revision, progress_token(request.params), level)
        if request.method == "tools/call" and self._sees_fallback(session):
            if called.target == FALLBACK_TOOL_NAME:
                return await self._pass_on(session, called, outlet, exchange)
            repeated = await self._chat.repeated(session, called)
            if repeated is not None:
                return repeated
        return await self._ended(session, called, await self._run(session, called, outlet, exchange))

    async def _run(
        self, session: Session, called: CallRequest, outlet: CallOutlet, exchange: Exchange
    ) -> Ending | Released:
        parked = await self._push.parked(session, called) if self._push.parks else None
        if parked is None:
            return await self._calls.run(self._calls.begin(called, session, outlet, exchange))
        current = self._calls.begin(called, session, outlet, exchange, parked.stored)
        ended = await self._push.go_on(current, parked)
        return await self._calls.run(current) if ended is None else ended

    async def _pass_on(self, session: Session, called: CallRequest, outlet: CallOutlet, exchange: Exchange) -> Ending:
        given = read_call(called.arguments)
        if isinstance(given, str):
            return Finished(error_result(given, "INVALID_INPUT"))
        target, ending = await self._chat.answer(session, given, outlet, exchange, self._calls)
        return await self._shaped(ending, target, session.profile.revision)

    async def _shaped(self, ending: Ending, target: str, revision: Revision) -> Ending:
        if not isinstance(ending, Finished):
            return ending
        wrap = False
        if "structuredContent" in ending.result and PENDING not in ending.result.get("_meta", ()):
            definition = await self._upstream.tool(target)
            wrap = definition is not None and is_wrapped(definition.get("outputSchema"), revision)
        return Finished(shape_result(ending.result, revision, wrap=wrap))

    def _sees_fallback(self, session: Session) -> bool:
        if session.by_chat is None:
            seen = session.record.fallback or sees_fallback(session.profile, session.unable, self._rules)
            session.by_chat = self._asks_by_chat and seen
        return session.by_chat


def _mark_initialized(record: SessionRecord) -> None:
    record.initialized = True


def _mark_widened(record: SessionRecord) -> None:
    record.widened = True


def _reply(request: Request, ending: Ending) -> Json:
    """The response message for how a request ended."""
    if isinstance(ending, Failed) and ending.code == MISSING_CLIENT_CAPABILITY and request.method == "tools/call":
        # The server behind the bridge said so; no revision of this era has that error.
        ending = Finished(error_result(ending.message, "ELICITATION_NOT_SUPPORTED"))
    if isinstance(ending, Failed):
        code = shape_error_code(request.method, ending.code, ending.data)
        return error_message(request.id, code, ending.message, ending.data)
    if isinstance(ending, InputRequired):
        # No route of this era ends so; were it to, nothing modern may leave on a session.
        return error_message(request.id, INTERNAL_ERROR, "This client cannot be asked in rounds")
    return result_message(request.id, without_modern_fields(ending.result))
