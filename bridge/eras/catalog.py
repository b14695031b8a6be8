"""Lists, page by page, and calls read from their params: what both eras do alike."""

import base64
import binascii
from typing import Final

from bridge.asking.fallback import FALLBACK_TOOL, widened_output_schema
from bridge.protocol.messages import INVALID_PARAMS, Json
from bridge.protocol.shaping import shape_definition
from bridge.upstreams.base import Caller, CallRequest, Failed, Finished, Kind, Upstream

__all__ = ["CALLS", "LISTS", "Catalog", "read_request"]

LISTS: Final[dict[str, Kind]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The methods that list, and what they list."""

CALLS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods that may ask, and the param that says what is called. Source: basic/patterns/mrtr#supported-requests."""


class Catalog:
    """The lists of an upstream, in pages.

    Args:
        upstream: what is listed.
        page_size: how many entries a page has.
    """

    def __init__(self, upstream: Upstream, page_size: int) -> None:
        self._upstream = upstream
        self._page_size = page_size

    async def page(self, kind: Kind, params: Json, caller: Caller, *, fallback: bool = False) -> Finished | Failed:
        """One page of a list, as the caller's revision has it.

        Args:
            kind: what is listed.
            params: the request's params, perhaps with a cursor.
            caller: who asks.
            fallback: whether the fallback tool is listed, and room made for pending forms.

        Source: server/utilities/pagination.
        """
        listed, revision = await self._upstream.list(kind, caller), caller.profile.revision
        if isinstance(listed, Failed):
            return listed
        shaped = [shape_definition(kind, entry, revision) for entry in listed]
        if kind == "tools" and fallback:
            for tool in shaped:
                if "outputSchema" in tool:
                    tool["outputSchema"] = widened_output_schema(tool["outputSchema"])
            shaped.append(shape_definition(kind, FALLBACK_TOOL, revision))
        start = _start(params.get("cursor"))
        if start is None or start > len(shaped):
            return Failed(INVALID_PARAMS, "Invalid cursor: start again without one")
        end = start + self._page_size
        result: Json = {kind: shaped[start:end]}
        if end < len(shaped):
            result["nextCursor"] = base64.urlsafe_b64encode(str(end).encode()).decode()
        return Finished(result)


def _start(cursor: object) -> int | None:
    """Where a page begins; None for a cursor that is none of ours."""
    if cursor is None:
        return 0
    if not isinstance(cursor, str) or len(cursor) > 32:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii")
    except (binascii.Error, UnicodeError):
        return None
    return int(text) if text.isdigit() else None


def read_request(method: str, params: Json) -> CallRequest | Failed:
    """Read what a call names, and its arguments."""
    field = CALLS[method]
    target, arguments = params.get(field), params.get("arguments")
    arguments = {} if arguments is None else arguments
    if not isinstance(target, str) or not isinstance(arguments, dict):
        return Failed(
            INVALID_PARAMS, f"{method} needs a {field} (a string), and arguments (an object) where it has any"
        )
    return CallRequest(method, target, arguments, _foreign(params.get("_meta")))


_NOTHING: Final[Json] = {}


def _foreign(meta: object) -> Json:
    """What of a request's `_meta` is between the client and the server behind the bridge."""
    if not isinstance(meta, dict):
        return _NOTHING
    return {key: meta[key] for key in meta if key != "progressToken" and not key.startswith(_RESERVED)}


_RESERVED: Final = "io.modelcontextprotocol/"
