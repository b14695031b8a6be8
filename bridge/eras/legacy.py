"""What a legacy client may send on its session, and what it gets."""

from collections.abc import Awaitable, Callable

import msgspec

from bridge.asking.fallback import FALLBACK_TOOL, FALLBACK_TOOL_NAME, PENDING, read_call, widened_output_schema
from bridge.asking.routes import sees_fallback
from bridge.calls import Calls, Exchange
from bridge.claims import Ending, InputRequired, Released
from bridge.eras.outlet import CallOutlet, progress_token
from bridge.protocol.clients import Principal
from bridge.protocol.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Json,
    Notification,
    Request,
    error_message,
    result_message,
)
from bridge.protocol.revisions import Revision
from bridge.protocol.shaping import (
    is_wrapped,
    shape_capabilities,
    shape_info,
    shape_result,
    shape_tool,
    without_modern_fields,
)
from bridge.routes.chat import Chat
from bridge.server import Options, ServerInfo
from bridge.sessions import Session, SessionRecord, Sessions
from bridge.upstreams.base import CallRequest, Failed, Finished, Upstream
from bridge.upstreams.functions import error_result

__all__ = ["LegacyEra"]

_DEFAULT_LOG_LEVEL = "info"


class LegacyEra:
    """Answers the messages of legacy clients.

    Args:
        server: what the server says of itself.
        upstream: what is wrapped.
        calls: the loop, with the routes of this era.
        chat: what the fallback tool answers.
        sessions: where sessions are opened and changed.
        options: how the bridge is set up.
    """

    def __init__(
        self,
        server: ServerInfo,
        upstream: Upstream,
        calls: Calls,
        chat: Chat,
        sessions: Sessions,
        options: Options,
    ) -> None:
        self._server = server
        self._upstream = upstream
        self._calls = calls
        self._chat = chat
        self._sessions = sessions
        self._asks_by_chat = options.elicitation and options.fallback != "off"
        self._methods: dict[str, Callable[[Session, Request, Exchange], Awaitable[Ending]]] = {
            "ping": self._ping,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }

    async def initialize(self, request: Request, principal: Principal) -> tuple[Session, Json]:
        """Open a session; return it with the response.

        Raises:
            TooManySessions: a limit is reached.
        """
        session = await self._sessions.open(request.params, principal)
        revision = session.profile.revision
        result: Json = {
            "protocolVersion": revision.name,
            "capabilities": shape_capabilities(self._upstream.capabilities, revision),
            "serverInfo": shape_info(self._server.info, revision),
        }
        if self._server.instructions is not None:
            result["instructions"] = self._server.instructions
        return session, result_message(request.id, result)

    async def handle(self, session: Session, request: Request, exchange: Exchange) -> Json:
        """Answer a request on a session: the response message, a result or an error."""
        if request.method == "initialize":
            return error_message(request.id, INVALID_REQUEST, "This session is initialized already")
        method = self._methods.get(request.method)
        if method is None:
            return error_message(request.id, METHOD_NOT_FOUND, f"Method not found: {request.method}")
        ending = await method(session, request, exchange)
        if isinstance(ending, Failed):
            return error_message(request.id, ending.code, ending.message, ending.data)
        if isinstance(ending, InputRequired):
            # No route of this era ends so; were it to, nothing modern may leave on a session.
            return error_message(request.id, INTERNAL_ERROR, "This client cannot be asked in rounds")
        return result_message(request.id, without_modern_fields(ending.result))

    async def notified(self, session: Session, message: Notification) -> None:
        """Take a client's notification. What is not known is dropped."""
        if message.method == "notifications/initialized" and not session.record.initialized:
            await self._sessions.change(session, _mark_initialized)
        elif message.method == "notifications/cancelled":
            running = session.running.get(message.params.get("requestId", msgspec.UNSET))
            if running is not None:
                running.cancel()

    async def _ping(self, session: Session, request: Request, exchange: Exchange) -> Ending:
        return Finished({})

    async def _list_tools(self, session: Session, request: Request, exchange: Exchange) -> Ending:
        if request.params.get("cursor") is not None:
            return Failed(INVALID_PARAMS, "Invalid cursor: this list has one page")
        revision = session.profile.revision
        tools = [shape_tool(tool, revision) for tool in await self._upstream.tools()]
        if not self._sees_fallback(session):
            return Finished({"tools": tools})
        for tool in tools:
            if "outputSchema" in tool:
                tool["outputSchema"] = widened_output_schema(tool["outputSchema"])
        if session.record.fallback and not session.record.widened:
            await self._sessions.change(session, _mark_widened)
        return Finished({"tools": [*tools, shape_tool(FALLBACK_TOOL, revision)]})

    async def _call_tool(self, session: Session, request: Request, exchange: Exchange) -> Ending:
        params = request.params
        name, arguments = params.get("name"), params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return Failed(INVALID_PARAMS, "tools/call needs a name (a string) and arguments (an object)")
        level = session.record.log_level or _DEFAULT_LOG_LEVEL
        outlet = CallOutlet(exchange, session.profile.revision, progress_token(params), level)
        called = CallRequest("tools/call", name, arguments)
        if self._sees_fallback(session):
            if name == FALLBACK_TOOL_NAME:
                return await self._answer(session, arguments, outlet, exchange)
            repeated = await self._chat.repeated(session, called)
            if repeated is not None:
                return repeated
        ending = await self._calls.run(self._calls.begin(called, session, outlet, exchange))
        return await self._shaped(ending, name, session.profile.revision)

    async def _answer(self, session: Session, arguments: Json, outlet: CallOutlet, exchange: Exchange) -> Ending:
        given = read_call(arguments)
        if isinstance(given, str):
            return Finished(error_result(given, "INVALID_INPUT"))
        target, ending = await self._chat.answer(session, given, outlet, exchange, self._calls)
        return await self._shaped(ending, target, session.profile.revision)

    async def _shaped(self, ending: Ending | Released, target: str, revision: Revision) -> Ending:
        if isinstance(ending, Released):
            return Finished(error_result(ending.reason, "INVALID_INPUT"))
        if not isinstance(ending, Finished) or "structuredContent" not in ending.result:
            return ending
        definition = await self._upstream.tool(target)
        pending = PENDING in ending.result.get("_meta", ())
        wrap = not pending and definition is not None and is_wrapped(definition.get("outputSchema"), revision)
        return Finished(shape_result(ending.result, revision, wrap=wrap))

    def _sees_fallback(self, session: Session) -> bool:
        if not self._asks_by_chat:
            return False
        return session.record.fallback or sees_fallback(session.profile, session.unable)


def _mark_initialized(record: SessionRecord) -> None:
    record.initialized = True


def _mark_widened(record: SessionRecord) -> None:
    record.widened = True
