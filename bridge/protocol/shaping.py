"""One message as another revision would have it. Pure; the table of differences is in `revisions.py`."""

from collections.abc import Mapping
from typing import Any, Final

from bridge.protocol.inbound import META_SERVER_INFO
from bridge.protocol.messages import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Json,
)
from bridge.protocol.revisions import Revision

__all__ = [
    "is_wrapped",
    "modern_error_code",
    "modern_result",
    "shape_block",
    "shape_capabilities",
    "shape_definition",
    "shape_error_code",
    "shape_info",
    "shape_progress",
    "shape_result",
    "without_modern_fields",
]

_RESERVED: Final = range(-(2**15), -31999)
"""The codes that JSON-RPC keeps for itself and for what is built on it."""

_DEFINED: Final = frozenset(
    {PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR}
    | {HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION}
)
_MODERN_FIELDS: Final = frozenset({"resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"})


def shape_definition(kind: str, definition: Json, revision: Revision) -> Json:
    """A tool, prompt, resource or template as `revision` can hold it.

    A tool's output schema that is no object is wrapped as `{"result": …}` where structured content must be one.
    """
    fields = revision.tool_fields if kind == "tools" else revision.definition_fields
    shaped = {key: value for key, value in definition.items() if key in fields}
    if kind == "tools" and is_wrapped(shaped.get("outputSchema"), revision):
        shaped["outputSchema"] = _wrapped_schema(shaped["outputSchema"])
    if "annotations" in shaped and kind != "tools":
        shaped["annotations"] = _shape_annotations(shaped["annotations"], revision)
    if "arguments" in shaped and "title" not in fields:
        shaped["arguments"] = [_without(argument, "title") for argument in shaped["arguments"]]
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
    """Point references into the old root at where it is now; definitions stand where they stood."""
    if isinstance(value, dict):
        return {key: _moved_to(item) if key == "$ref" else _moved(item) for key, item in value.items()}
    return [_moved(item) for item in value] if isinstance(value, list) else value


def _moved_to(reference: Any) -> Any:
    if reference != "#" and not (isinstance(reference, str) and reference.startswith("#/")):
        return _moved(reference)
    return reference if reference.startswith(("#/$defs/", "#/definitions/")) else f"#/properties/result{reference[1:]}"


def shape_result(result: Json, revision: Revision, *, wrap: bool = False) -> Json:
    """The result of a tool, prompt or resource as `revision` can hold it.

    `wrap`: the tool was listed with a wrapped output schema.
    """
    shaped = result
    if "structuredContent" in result:
        content = result["structuredContent"]
        if not revision.structured_content:
            shaped = {key: value for key, value in result.items() if key != "structuredContent"}
        elif not revision.structured_scalars and (wrap or not isinstance(content, dict)):
            shaped = {**result, "structuredContent": {"result": content}}
    if revision.rich_content:
        return shaped
    if isinstance(shaped.get("content"), list):
        return {**shaped, "content": [shape_block(block, revision) for block in shaped["content"]]}
    if isinstance(shaped.get("messages"), list):
        messages = [{**item, "content": shape_block(item["content"], revision)} for item in shaped["messages"]]
        return {**shaped, "messages": messages}
    if isinstance(shaped.get("contents"), list):
        return {**shaped, "contents": [_without_meta(item, revision) for item in shaped["contents"]]}
    return shaped


def shape_block(block: Json, revision: Revision) -> Json:
    """A content block; a text in place of a kind that the revision does not have."""
    kind = block.get("type")
    if kind == "text" and len(block) == 2:
        return block  # nothing but its text
    if kind == "resource_link" and not revision.resource_links:
        name = block.get("title") or block.get("name") or "resource"
        return {"type": "text", "text": f"{name}: {block.get('uri')}"}
    if kind == "audio" and not revision.audio:
        return {"type": "text", "text": f"[audio, {block.get('mimeType')}: this client cannot play it]"}
    shaped = _without_meta(block, revision)
    if "annotations" in shaped:
        shaped = {**shaped, "annotations": _shape_annotations(shaped["annotations"], revision)}
    if isinstance(shaped.get("resource"), dict):
        shaped = {**shaped, "resource": _without_meta(shaped["resource"], revision)}
    return shaped if revision.icons else _without(shaped, "icons")


def _without_meta(value: Json, revision: Revision) -> Json:
    return value if revision.content_meta else _without(value, "_meta")


def _without(value: Json, name: str) -> Json:
    return {key: item for key, item in value.items() if key != name} if name in value else value


def _shape_annotations(annotations: Json, revision: Revision) -> Json:
    return annotations if revision.content_meta else _without(annotations, "lastModified")


def shape_error_code(method: str, code: int, data: Any) -> int:
    """The code of an error as legacy revisions have it: a resource that is not there is -32002 in all of them."""
    if method == "resources/read" and code == INVALID_PARAMS and isinstance(data, dict) and "uri" in data:
        return RESOURCE_NOT_FOUND
    return code


def modern_error_code(code: int) -> int:
    """The code of an error as 2026-07-28 has it: a code of the reserved range that it does not define becomes one
    that it does. Source: basic/index#error-codes."""
    if code in _DEFINED or code not in _RESERVED:
        return code
    return INVALID_PARAMS if code == RESOURCE_NOT_FOUND else INTERNAL_ERROR


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
    return params if revision.progress_message else _without(params, "message")
