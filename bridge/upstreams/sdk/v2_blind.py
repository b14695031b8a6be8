"""Tools of an `MCPServer` that are given no context: they see nothing of their request, and have nothing to ask with.

Such a call needs no connection, session and context of the SDK, which take longer than the tool: it is a call of the
server's own `call_tool`, wrapped as its handler wraps it. Where anything stands between the two, it is none of these.
"""

import inspect
import logging
from types import FunctionType
from typing import Any, Final

from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult, TextContent

from bridge.protocol.messages import Json
from bridge.upstreams.sdk.v2_calls import CALL, IS_KNOWN, is_unwatched

__all__ = ["BlindCalls"]

_PARAMS: Final = frozenset({"name", "arguments"})
_NO_ARGUMENTS: Final[Json] = {}
_log = logging.getLogger("bridge.upstream")


def _is_as_written(server: MCPServer) -> bool:
    """Whether the SDK's own code stands between its handler and a tool, and not what an instrumentation put there."""
    between = ((MCPServer, "_handle_call_tool"), (MCPServer, "call_tool"), (ToolManager, "call_tool"), (Tool, "run"))
    for kind, name in between:
        method = vars(kind).get(name)
        if type(method) is not FunctionType or method.__code__.co_filename != inspect.getfile(kind):
            return False
    return vars(server).keys().isdisjoint(name for _, name in between)


class BlindCalls:
    """Makes the calls of one server's tools that are given no context.

    Args:
        low: the low-level server.
        outer: the `MCPServer` around it; for anything else, also of a class made from it, no tool is blind.
    """

    def __init__(self, low: "LowLevelServer[Any]", outer: object) -> None:
        self._low = low
        self._outer = outer if type(outer) is MCPServer and IS_KNOWN and _is_as_written(outer) else None
        if self._outer is not None:
            self._handler = self._outer._handle_call_tool
            self._nobody: Context[Any] = Context(mcp_server=self._outer)
            """What no tool sees."""

    def has(self, name: str) -> bool:
        """Whether a tool is one of these, as the server is now."""
        outer, entry = self._outer, self._low.get_request_handler(CALL)
        if outer is None or entry is None or not is_unwatched(self._low) or CALL in self._low.cache_hints:
            return False
        # An extension that intercepts calls puts itself in the handler's place.
        if entry.handler != self._handler or entry.params_type is not CallToolRequestParams:
            return False
        manager = outer._tool_manager
        found = manager.get_tool(name) if type(manager) is ToolManager else None
        return type(found) is Tool and found.context_kwarg is None and not found.resolved_params

    def takes(self, params: Json) -> bool:
        """Whether a call can be made here: it is of such a tool, and all that it says is for the tool."""
        name = params.get("name")
        return (
            _PARAMS.issuperset(params)
            and type(name) is str
            and isinstance(params.get("arguments", _NO_ARGUMENTS), dict)
            and self.has(name)
        )

    async def make(self, params: Json) -> Any:
        """Call the tool.

        Returns:
            The result, as a model of the SDK; one that says what went wrong where the tool failed.

        Raises:
            MCPError: the call ends with that error.
        """
        assert self._outer is not None
        name = params["name"]
        try:
            return await self._outer.call_tool(name, params.get("arguments") or {}, self._nobody)
        except MCPError:
            raise
        except Exception as error:
            # The handler's own words for both: those of a crash, which are its own affair, are not in it.
            if type(error) is ToolError:
                _log.info("the tool %r failed: %r", name, str(error))
            else:
                _log.error("the tool %r failed unexpectedly", name, exc_info=error)
            return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
