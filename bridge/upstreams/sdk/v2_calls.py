"""Tool calls of a server of `mcp` 2.x without the SDK's runner, where nothing of what that does could be seen.

The runner reads the params three times, and writes and checks the result twice. A call that carries nothing but what
this bridge wrote needs one reading; a result that is nothing but text and structured content, as its handler made and
so checked it, one writing. Everything else goes the runner's way, and so does all where the SDK is not as known here.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.request_state import RequestStateBoundary
from mcp.server.runner import ServerRunner
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
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

__all__ = ["CALL", "IS_KNOWN", "Handler", "ToolCalls", "is_unwatched", "plain_result"]

Handler: TypeAlias = Callable[["ServerRequestContext[Any, Any]", Any], Awaitable[Any]]

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
IS_KNOWN: Final = (
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

    def handler(self, connection: Connection, params: Json) -> Handler | None:
        """What a call can be made with here: nothing of it is anybody's but the bridge's, and no code looks on.

        Args:
            connection: the connection of the call.
            params: its params, with the `_meta` of the drive.

        Returns:
            The server's handler, or None where the call has to go the runner's way.
        """
        low = self._low
        entry = low.get_request_handler(CALL)
        if (
            entry is None
            or not IS_KNOWN
            or entry.params_type is not CallToolRequestParams
            or connection.protocol_version != MODERN.name
            or not connection.initialize_accepted
            or not _PARAMS.issuperset(params)
            or not _META.issuperset(params["_meta"])
            or CALL in low.cache_hints
            or not is_unwatched(low)
        ):
            return None
        return entry.handler

    async def make(self, handler: Handler, connection: Connection, exchange: Exchange, params: Json) -> Json:
        """Call the handler; what that raises is raised.

        Returns:
            The result, perhaps without what the bridge does not hand on: its type, and who made it.
        """
        read = CallToolRequestParams.model_validate(params, by_name=False)
        meta, version = read.meta, connection.protocol_version
        context: ServerRequestContext[Any, Any] = ServerRequestContext(
            session=ServerSession(exchange, connection, request_meta=meta),
            lifespan_context=self._state,
            protocol_version=version,
            method=CALL,
            params=params,
            request_id=exchange.request_id,
            meta=meta,
            request=exchange.request,
        )
        result = await handler(context, read)
        plain = plain_result(result)
        if plain is not None:
            return plain
        if isinstance(result, ErrorData):
            raise MCPError.from_error_data(result)
        return await self._sealed(
            context, ServerRunner(self._low, connection, self._state)._serialize(CALL, version, result)
        )

    async def _sealed(self, context: "ServerRequestContext[Any, Any]", written: HandlerResult) -> Json:
        """A result as the boundary of states lets it out; no state came in, which it would have opened first."""

        async def handled(context: ServerRequestContext[Any, Any]) -> HandlerResult:
            return written

        call: CallNext = handled
        for boundary in self._low.middleware:
            call = partial(boundary, call_next=call)
        result = await call(context)
        assert isinstance(result, dict)
        return result


def is_unwatched(low: "LowLevelServer[Any]") -> bool:
    """Whether no middleware of anybody's sees the calls: that of the state of rounds asks and tells nothing."""
    for each in low.middleware:  # noqa: SIM110 - a generator for `all` takes as long as the rest of the look
        if type(each) is not RequestStateBoundary:
            return False
    return True


def plain_result(result: Any) -> Json | None:
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
