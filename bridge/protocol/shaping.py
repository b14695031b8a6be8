"""One message as another revision would have it. Pure; the table of differences is in `revisions.py`."""

from collections.abc import Mapping
from typing import Any, Final

from bridge.protocol.inbound import META_SERVER_INFO
from bridge.protocol.messages import Json
from bridge.protocol.revisions import Revision

__all__ = [
    "is_wrapped",
    "modern_result",
    "shape_capabilities",
    "shape_info",
    "shape_progress",
    "shape_result",
    "shape_tool",
    "without_modern_fields",
]

_MODERN_FIELDS: Final = frozenset({"resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"})


def shape_tool(tool: Json, revision: Revision) -> Json:
    """A tool's definition as `revision` can hold it.

    An output schema that is no object is wrapped as `{"result": …}` where structured content must be an object.
    """
    shaped = {key: value for key, value in tool.items() if key in revision.tool_fields}
    if is_wrapped(shaped.get("outputSchema"), revision):
        shaped["outputSchema"] = _wrapped_schema(shaped["outputSchema"])
    return shaped


def is_wrapped(schema: Json | None, revision: Revision) -> bool:
    """Whether results under that output schema are wrapped in an object for `revision`."""
    return schema is not None and not revision.structured_scalars and schema.get("type") != "object"


def _wrapped_schema(schema: Json) -> Json:
    """The schema of `{"result": value}`; definitions move to the new root, so that references resolve."""
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "definitions", "$schema")}
    wrapped: Json = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    for key in ("$schema", "$defs", "definitions"):
        if key in schema:
            wrapped[key] = schema[key]
    moved: Json = _moved(wrapped)
    return moved


def _moved(value: Any) -> Any:
    """Point references to the old root (`#`) at where it is now."""
    if isinstance(value, dict):
        return {
            key: "#/properties/result" if key == "$ref" and item == "#" else _moved(item) for key, item in value.items()
        }
    return [_moved(item) for item in value] if isinstance(value, list) else value


def shape_result(result: Json, revision: Revision, *, wrap: bool = False) -> Json:
    """A tool's result as `revision` can hold it. `wrap`: its listed output schema was wrapped."""
    if "structuredContent" not in result:
        return result
    content = result["structuredContent"]
    if not revision.structured_content:
        return {key: value for key, value in result.items() if key != "structuredContent"}
    if not revision.structured_scalars and (wrap or not isinstance(content, dict)):
        return {**result, "structuredContent": {"result": content}}
    return result


def without_modern_fields(result: Json) -> Json:
    """A result without what only modern results have at their top."""
    if _MODERN_FIELDS.isdisjoint(result):
        return result
    return {key: value for key, value in result.items() if key not in _MODERN_FIELDS}


def modern_result(result: Json, server_info: Json, *, kind: str = "complete") -> Json:
    """A result as 2026-07-28 has it: with its type, and with who made it.

    Source: basic/index#responses and basic/index#meta.
    """
    meta = result.get("_meta")
    named = {META_SERVER_INFO: server_info} if meta is None else {**meta, META_SERVER_INFO: server_info}
    return {**result, "resultType": kind, "_meta": named}


def shape_info(info: Mapping[str, Any], revision: Revision) -> Json:
    """An implementation's description of itself as `revision` can hold it."""
    return {key: value for key, value in info.items() if key in revision.info_fields}


def shape_capabilities(capabilities: Mapping[str, Any], revision: Revision) -> Json:
    """A server's capabilities as `revision` can hold them."""
    return {key: value for key, value in capabilities.items() if key in revision.server_capabilities}


def shape_progress(params: Json, revision: Revision) -> Json:
    """The params of a progress notification as `revision` can hold them."""
    if revision.progress_message or "message" not in params:
        return params
    return {key: value for key, value in params.items() if key != "message"}
