"""The tools of a wrapped server, as they were last listed: which of them clients may see, and what is known of each."""

import logging
from typing import Final

from bridge.asking.fallback import FALLBACK_TOOL_NAME
from bridge.protocol.inbound import ParameterHeaders, parameter_headers
from bridge.protocol.messages import Json

__all__ = ["KnownTools"]

_MAX_KNOWN: Final = 10_000
_log = logging.getLogger("bridge.upstream")


class KnownTools:
    """What was learned of a server's tools from its lists.

    Args:
        server: how to call the server in a log.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._definitions: dict[str, Json] = {}
        self._headers: dict[str, ParameterHeaders] = {}
        self._hidden: set[str] = set()

    def visible(self, listed: list[Json]) -> list[Json]:
        """The tools of a list that clients of the bridge can use; what is known of them is renewed."""
        visible = [tool for tool in listed if isinstance(tool.get("name"), str) and not self._hide(tool)]
        if len(self._definitions) > _MAX_KNOWN:
            self._definitions.clear()
            self._headers.clear()
        for tool in visible:
            name = tool["name"]
            self._definitions[name] = tool
            self._hidden.discard(name)
            try:
                self._headers[name] = parameter_headers(tool.get("inputSchema", {}))
            except ValueError as error:
                _log.warning("%s: the tool %s: %s", self._server, name, error)
        return visible

    def _hide(self, tool: Json) -> bool:
        name, execution = tool["name"], tool.get("execution")
        reason = None
        if name == FALLBACK_TOOL_NAME:
            reason = "the bridge has a tool of that name"
        elif isinstance(execution, dict) and execution.get("taskSupport") == "required":
            reason = "it can be run as a task only, which the bridge does not hand on"
        if reason is not None and name not in self._hidden:
            self._hidden.add(name)
            _log.warning("the tool %s of %s is hidden: %s", name, self._server, reason)
        return reason is not None

    def definition(self, name: str) -> Json | None:
        """The definition of a tool, or None."""
        return self._definitions.get(name)

    def headers(self, name: str) -> ParameterHeaders:
        """The parameters of a tool that travel in HTTP headers too."""
        return self._headers.get(name, ())

    def is_hidden(self, name: str) -> bool:
        """Whether clients of the bridge cannot use a tool that its server has."""
        return name in self._hidden
