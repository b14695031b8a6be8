"""What functions return, as results: content blocks, tool results, prompt messages, resource contents."""

import base64
from typing import Any, Final

import msgspec

from bridge.protocol.messages import Json, encode

__all__ = [
    "CODE_KEY",
    "ToolResult",
    "audio",
    "embedded",
    "error_result",
    "image",
    "link",
    "prompt_result",
    "resource_result",
    "text",
    "tool_result",
]

CODE_KEY: Final = "mcp-session-bridge/code"
"""Where the code of an error stands in a result's `_meta`."""


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result made by hand, where a plain value does not do.

    Args:
        content: content blocks: see `text`, `image`, `audio`, `link`, `embedded`.
        structured: the structured content, valid against the tool's output schema where it has one.
        is_error: whether the tool failed.
        meta: the result's `_meta`.
    """

    content: list[Json]
    structured: Any = msgspec.UNSET
    is_error: bool = False
    meta: Json | None = None


def text(content: str) -> Json:
    """A text block. Source: server/tools#text-content."""
    return {"type": "text", "text": content}


def image(data: bytes, mime_type: str) -> Json:
    """An image block. Source: server/tools#image-content."""
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": mime_type}


def audio(data: bytes, mime_type: str) -> Json:
    """An audio block; a text that names it, for clients of 2024-11-05. Source: server/tools#audio-content."""
    return {"type": "audio", "data": base64.b64encode(data).decode(), "mimeType": mime_type}


def link(uri: str, name: str, **about: Any) -> Json:
    """A link to a resource; a text with its URI, for clients before 2025-06-18. Source: server/tools#resource-links."""
    return {"type": "resource_link", "uri": uri, "name": name, **about}


def embedded(uri: str, content: str | bytes, mime_type: str | None = None) -> Json:
    """A resource inside a result. Source: server/tools#embedded-resources."""
    return {"type": "resource", "resource": _contents(uri, content, mime_type)}


def error_result(message: str, code: str | None = None) -> Json:
    """A result that tells the model what went wrong. A code stands in `_meta` and at the head of the text."""
    if code is None:
        return {"content": [text(message)], "isError": True}
    return {"content": [text(f"{code}: {message}")], "isError": True, "_meta": {CODE_KEY: code}}


def tool_result(value: Any, structured: Any) -> Json:
    """The result of a tool that returned `value`; `structured` is its JSON under the output schema, or UNSET."""
    if isinstance(value, ToolResult):
        return _by_hand(value)
    if structured is msgspec.UNSET:
        return {"content": [] if value is None else [text(value if isinstance(value, str) else _json(value))]}
    shown = structured if isinstance(structured, str) else _json(structured)
    return {"content": [text(shown)], "structuredContent": structured}


def _by_hand(value: ToolResult) -> Json:
    result: Json = {"content": value.content}
    if value.structured is not msgspec.UNSET:
        result["structuredContent"] = value.structured
    if value.is_error:
        result["isError"] = True
    if value.meta is not None:
        result["_meta"] = value.meta
    return result


def prompt_result(value: Any, description: str | None) -> Json:
    """The result of a prompt that returned a text, a message, or a list of those."""
    items = value if isinstance(value, list) else [value]
    messages = [_message(item) for item in items]
    return {"messages": messages} if description is None else {"description": description, "messages": messages}


def _message(item: Any) -> Json:
    if isinstance(item, str):
        return {"role": "user", "content": text(item)}
    if isinstance(item, dict) and "role" in item:
        return item
    if isinstance(item, dict) and "type" in item:
        return {"role": "user", "content": item}
    raise TypeError(f"a prompt returns texts, content blocks or messages with a role, not {item!r}")


def resource_result(value: Any, uri: str, mime_type: str | None) -> Json:
    """The result of a resource that returned a text, bytes, or JSON."""
    return {"contents": [_contents(uri, value, mime_type)]}


def _contents(uri: str, value: Any, mime_type: str | None) -> Json:
    contents: Json = {"uri": uri}
    if isinstance(value, bytes):
        contents["mimeType"] = mime_type or "application/octet-stream"
        return {**contents, "blob": base64.b64encode(value).decode()}
    is_text = isinstance(value, str)
    contents["mimeType"] = mime_type or ("text/plain" if is_text else "application/json")
    return {**contents, "text": value if is_text else _json(value)}


def _json(value: Any) -> str:
    return encode(value).decode()
