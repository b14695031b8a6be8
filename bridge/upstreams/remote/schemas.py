"""Which parameters of which tool travel in headers too, as far as the server has listed its tools. Pure.

Source: basic/transports/streamable-http#schema-extension of 2026-07-28.
"""

import logging
from typing import Any, Final

from bridge.protocol.inbound import ParameterHeaders, parameter_headers
from bridge.protocol.messages import Json

__all__ = ["ToolHeaders"]

_MAX_TOOLS: Final = 10_000
_log = logging.getLogger("bridge.upstream")


class ToolHeaders:
    """What is known of the tools of one server.

    Args:
        name: the server's, for the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[str, ParameterHeaders] = {}

    def of(self, tool: str) -> ParameterHeaders | None:
        """The parameters of a tool that travel in headers; None for a tool that was never listed."""
        return self._known.get(tool)

    def learn(self, listed: Json) -> Json:
        """Read a result of `tools/list`; return it without the tools that a client must refuse."""
        tools = listed.get("tools")
        if not isinstance(tools, list):
            return listed
        kept = [tool for tool in tools if self._is_sound(tool)]
        return listed if len(kept) == len(tools) else {**listed, "tools": kept}

    def assume_none(self, tool: str) -> None:
        """A tool that the server does not list has none, until it is listed."""
        self._put(tool, ())

    def forget(self) -> None:
        """What is known is no longer true."""
        self._known.clear()

    def _is_sound(self, tool: Any) -> bool:
        try:
            self._put(tool["name"], parameter_headers(tool["inputSchema"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            name = tool.get("name") if isinstance(tool, dict) else tool
            _log.warning("%s lists the tool %r, which is left out: %s", self._name, name, error)
            return False
        return True

    def _put(self, tool: str, headers: ParameterHeaders) -> None:
        if len(self._known) >= _MAX_TOOLS:
            self._known.clear()
        self._known[tool] = headers
