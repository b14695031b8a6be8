"""Tool calls of a server of `mcp` 2.x without the SDK's runner, where nothing of what that does could be seen.

The runner reads the params three times, and writes and checks the result twice. A call that carries nothing but what
this bridge wrote needs one reading; a result that is nothing but text and structured content, as its handler made and
so checked it, one writing. Everything else goes the runner's way, and so does all where the SDK is not as known here.
"""

from functools import partial
from typing import Any, Final

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.mcpserver.tools import ToolManager
from mcp.server.request_state import RequestStateBoundary
from mcp.server.runner import ServerRunner
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    TextContent,
)
from pydantic_core import to_jsonable_python

from bridge.protocol.messages import Json
from bridge.protocol.revisions import MODERN
from bridge.upstreams.sdk.v2_exchange import Exchange

__all__ = ["CALL", "ToolCalls", "may_ask"]

CALL: Final = "tools/call"
_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_META: Final = frozenset(
    {
        PROTOCOL_VERSION_META_KEY,
        CLIENT_CAPABILITIES_META_KEY,
        CLIENT_INFO_META_KEY,
        LOG_LEVEL_META_KEY,
        "progressToken",
    }
)
"""What the bridge itself writes there."""

_RESULT_FIELDS: Final = {"meta", "content", "structured_content", "is_error", "result_type"}
_TEXT_FIELDS: Final = {"type", "text", "annotations", "meta"}
_IS_KNOWN: Final = (
    hasattr(ServerRunner, "_serialize")
    and set(CallToolResult.model_fields) == _RESULT_FIELDS
    and set(TextContent.model_fields) == _TEXT_FIELDS
)
"""Whether the SDK is as this module knows it."""


class ToolCalls:
    """Makes the calls of one server.

    Args:
        low: the low-level server.
        state: what its lifespan yielded.
    """

    def __init__(self, low: "LowLevelServer[Any]", state: Any) -> None:
        self._low = low
        self._state = state

    def takes(self, connection: Connection, params: Json) -> bool:
        """Whether a call can be made here: nothing of it is anybody's but the bridge's, and no code looks on.

        Args:
            connection: the connection of the call.
            params: its params, with the `_meta` of the drive.
        """
        low = self._low
        entry = low.get_request_handler(CALL)
        return (
            _IS_KNOWN
            and connection.protocol_version == MODERN.name
            and connection.initialize_accepted
            and _PARAMS.issuperset(params)
            and _META.issuperset(params["_meta"])
            and entry is not None
            and entry.params_type is CallToolRequestParams
            and CALL not in low.cache_hints
            and _is_unwatched(low)
        )

    async def make(self, connection: Connection, exchange: Exchange, params: Json) -> Json:
        """Call the handler; what that raises is raised.

        Returns:
            The result, perhaps without what the bridge does not hand on: its type, and who made it.
        """
        entry = self._low.get_request_handler(CALL)
        assert entry is not None
        read = CallToolRequestParams.model_validate(params, by_name=False)
        seen = exchange.message_metadata
        context: ServerRequestContext[Any, Any] = ServerRequestContext(
            session=ServerSession(exchange, connection, request_meta=read.meta),
            lifespan_context=self._state,
            protocol_version=connection.protocol_version,
            method=CALL,
            params=params,
            request_id=exchange.request_id,
            meta=read.meta,
            request=seen.request_context if isinstance(seen, ServerMessageMetadata) else None,
        )

        async def handled(context: ServerRequestContext[Any, Any]) -> HandlerResult:
            result = await entry.handler(context, read)
            if isinstance(result, ErrorData):
                raise MCPError.from_error_data(result)
            plain = _plain(result)
            if plain is not None:
                return plain
            return ServerRunner(self._low, connection, self._state)._serialize(CALL, MODERN.name, result)

        call: CallNext = handled
        for boundary in self._low.middleware:
            call = partial(boundary, call_next=call)
        result = await call(context)
        assert isinstance(result, dict)
        return result


def _is_unwatched(low: "LowLevelServer[Any]") -> bool:
    """Whether no middleware of anybody's sees the calls: that of the state of rounds asks and tells nothing."""
    return all(type(each) is RequestStateBoundary for each in low.middleware)


def may_ask(low: "LowLevelServer[Any]", outer: object, tool: str) -> bool:
    """Whether a tool might ask in the middle of a call. One that is given no context cannot.

    Args:
        low: the low-level server.
        outer: the `MCPServer` around it, if any.
        tool: its name.
    """
    entry, manager = low.get_request_handler(CALL), getattr(outer, "_tool_manager", None)
    if entry is None or not isinstance(manager, ToolManager) or not _is_unwatched(low):
        return True
    # An extension that intercepts calls puts itself in its place.
    if entry.handler != getattr(outer, "_handle_call_tool", None):
        return True
    found = manager.get_tool(tool)
    return found is None or found.context_kwarg is not None or bool(found.resolved_params)


def _plain(result: Any) -> Json | None:
    """A result of nothing but text and structured content, as it goes out; None for any other."""
    if (
        type(result) is not CallToolResult
        or result.meta is not None
        or result.result_type != "complete"
        or type(result.is_error) is not bool
    ):
        return None
    content: list[Json] = []
    for block in result.content:
        if type(block) is not TextContent or block.annotations is not None or block.meta is not None:
            return None
        if type(block.text) is not str:
            return None
        content.append({"type": "text", "text": block.text})
    plain: Json = {"content": content, "isError": result.is_error}
    if result.structured_content is not None:
        plain["structuredContent"] = to_jsonable_python(
            result.structured_content, by_alias=True, exclude_none=True, inf_nan_mode="null"
        )
    return plain
