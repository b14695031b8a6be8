"""What a modern request carries besides its own params: `_meta`, and the headers that mirror its body. Pure.

Source: basic/index#meta and basic/transports/streamable-http#request-metadata of 2026-07-28.
"""

import base64
import re
from functools import lru_cache
from typing import Any, Final

from bridge.protocol.inbound import (
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_VERSION,
    ParameterHeaders,
)
from bridge.protocol.messages import Json, RequestId
from bridge.protocol.revisions import MODERN
from bridge.upstreams.links import Hello, Talk

__all__ = ["Envelope", "header_value", "request_headers"]

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_SAFE: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_SENTINEL: Final = re.compile(r"=\?base64\?.*\?=")


class Envelope:
    """Writes the `_meta` of requests.

    Args:
        hello: who they are made for.
    """

    def __init__(self, hello: Hello) -> None:
        self._own: Final[Json] = {
            META_VERSION: MODERN.name,
            META_CLIENT_INFO: hello.info,
            META_CAPABILITIES: hello.capabilities,
        }

    def params(self, params: Json, identity: RequestId, talk: Talk | None) -> Json:
        """Return the params with a `_meta` of this link's: unknown fields stay, what another hop put does not.

        Args:
            params: the params as the caller has them.
            identity: the id of the request, which is its progress token as well.
            talk: says whether progress and log messages are wanted.
        """
        given = params.get("_meta")
        meta: Json = {**given, **self._own} if isinstance(given, dict) else self._own.copy()
        if given:
            meta.pop("progressToken", None)
            meta.pop(META_LOG_LEVEL, None)
        if talk is not None:
            if talk.wants_progress:
                meta["progressToken"] = identity
            if (level := talk.log_level) is not None:
                meta[META_LOG_LEVEL] = level
        return {**params, "_meta": meta}


def request_headers(method: str, params: Json, annotated: ParameterHeaders) -> dict[str, str]:
    """The headers of one request.

    Args:
        method: its method.
        params: its params.
        annotated: the parameters of the tool that travel in headers too.
    """
    headers = {"MCP-Protocol-Version": MODERN.name, "Mcp-Method": header_value(method)}
    field = _NAMED.get(method)
    if field is not None and isinstance(name := params.get(field), str):
        headers["Mcp-Name"] = header_value(name)
    for path, name in annotated:
        value = _argument(params.get("arguments"), path)
        if (text := _text(value)) is not None:
            headers[f"Mcp-Param-{name}"] = header_value(text)
    return headers


@lru_cache(maxsize=1024)
def header_value(text: str) -> str:
    """A text as a header can hold it: as it is where that is safe, by the Base64 sentinel elsewhere.

    Source: basic/transports/streamable-http#value-encoding.
    """
    if _SAFE.fullmatch(text) and not _SENTINEL.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def _argument(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str | None:
    """An argument as text; None for what no header can mirror, which the server refuses or does not expect."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None
