"""The least that a server can be: it reads a request and answers it, and checks nothing. Over HTTP and over stdio.

It has one tool, `add`, for clients of either era. A call of a modern client takes the shortest way there is.
"""

import sys
from typing import Any, Final

import msgspec

from benchmarks.process import App

__all__ = ["bare", "bare_stdio"]

_MODERN: Final = "2026-07-28"
_LEGACY: Final = "2025-11-25"
_INFO: Final = {"name": "bare", "version": "1"}
_NUMBER: Final = {"type": "integer"}
_TOOL: Final = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {"type": "object", "properties": {"a": _NUMBER, "b": _NUMBER}, "required": ["a", "b"]},
}
_KEPT: Final = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public"}
_DISCOVERED: Final = {
    "supportedVersions": [_MODERN, _LEGACY],
    "capabilities": {"tools": {}},
    "_meta": {"io.modelcontextprotocol/serverInfo": _INFO},
    **_KEPT,
}
_INITIALIZED: Final = {"protocolVersion": _LEGACY, "capabilities": {"tools": {}}, "serverInfo": _INFO}
_METHOD_NOT_FOUND: Final = -32601


class _Arguments(msgspec.Struct):
    a: int
    b: int


class _Meta(msgspec.Struct):
    version: str = msgspec.field(name="io.modelcontextprotocol/protocolVersion")


class _Params(msgspec.Struct, rename={"meta": "_meta"}):
    name: str
    arguments: _Arguments
    meta: _Meta


class _Call(msgspec.Struct):
    jsonrpc: str
    id: int | str
    method: str
    params: _Params


_decode_call: Final = msgspec.json.Decoder(_Call).decode
_encode: Final = msgspec.json.Encoder().encode


def bare() -> App:
    """The practical limit over HTTP: one read, one msgspec decode, one encode, one reply, and no check of anything."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] == "POST":
            status, body = _answer((await receive())["body"])
        else:
            status, body = 405, b""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def bare_stdio() -> None:
    """Serve over stdin and stdout until they end."""
    for line in sys.stdin.buffer:
        _, reply = _answer(line)
        if reply:
            sys.stdout.buffer.write(reply + b"\n")
            sys.stdout.buffer.flush()


def _answer(data: bytes) -> tuple[int, bytes]:
    """The HTTP status and the reply to one message; no bytes for a notification."""
    try:
        call = _decode_call(data)
    except msgspec.ValidationError:
        return _answer_other(msgspec.json.decode(data))
    total = call.params.arguments.a + call.params.arguments.b
    result = {"content": [{"type": "text", "text": str(total)}], "structuredContent": total, "resultType": "complete"}
    return 200, _encode({"jsonrpc": "2.0", "id": call.id, "result": result})


def _answer_other(message: dict[str, Any]) -> tuple[int, bytes]:
    """Likewise, for all but the calls of a modern client."""
    if "id" not in message:
        return 202, b""
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    result = _result(message["method"], message.get("params") or {})
    if result is None:
        return 404, _encode({**reply, "error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}})
    return 200, _encode({**reply, "result": result})


def _result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "server/discover":
            return _DISCOVERED
        case "initialize":
            return _INITIALIZED
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_TOOL], **_KEPT}
        case "tools/call":
            total = params["arguments"]["a"] + params["arguments"]["b"]
            return {"content": [{"type": "text", "text": str(total)}], "structuredContent": {"result": total}}
    return None
