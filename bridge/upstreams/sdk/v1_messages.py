"""Messages between the bridge and the SDK `mcp` 1.x.

The SDK is reached without its types: a type checker that knows `mcp` 2.x does not know this generation.
"""

from importlib import import_module
from typing import Any, Final

from bridge.protocol.messages import (
    Invalid,
    Json,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
)

__all__ = ["from_sdk", "related_id", "to_sdk"]

_types: Final = import_module("mcp.types")
_sessions: Final = import_module("mcp.shared.message")
_server: Final = import_module("mcp.server.lowlevel.server")


def to_sdk(message: Json, request: object = None) -> Any:
    """A JSON-RPC object as the SDK's `SessionMessage`.

    Args:
        message: a request, a notification or an answer.
        request: what tools shall find as the HTTP request.
    """
    if "method" in message:
        kind = _types.JSONRPCRequest if "id" in message else _types.JSONRPCNotification
    else:
        kind = _types.JSONRPCResponse if "result" in message else _types.JSONRPCError
    metadata = None if request is None else _sessions.ServerMessageMetadata(request_context=request)
    return _sessions.SessionMessage(_types.JSONRPCMessage(kind.model_validate(message)), metadata)


def from_sdk(sent: Any) -> Message:
    """The SDK's `SessionMessage` as a message."""
    root = sent.message.root
    if isinstance(root, _types.JSONRPCResponse):
        return Response(root.id, root.result)
    if isinstance(root, _types.JSONRPCError):
        return Response(root.id, error=root.error.model_dump(by_alias=True, mode="json", exclude_none=True))
    if isinstance(root, _types.JSONRPCRequest):
        return Request(root.id, root.method, root.params or {})
    if isinstance(root, _types.JSONRPCNotification):
        return Notification(root.method, root.params or {})
    return Invalid(f"a {type(root).__name__} of mcp 1.x")


def related_id(sent: Any) -> RequestId | None:
    """The request of ours that a message of the server belongs to, or None where nothing says so.

    What the author passed comes first. Without it, whose handler it is that sends, in this task or one above it.
    """
    related = getattr(sent.metadata, "related_request_id", None)
    if related is not None:
        # `ctx.elicit` passes the text of the id.
        return int(related) if isinstance(related, str) and related.isdecimal() else related
    context = _server.request_ctx.get(None)
    return None if context is None else context.request_id
