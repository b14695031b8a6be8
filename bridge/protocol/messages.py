"""JSON-RPC messages, and the one door through which bytes become one.

`decode` turns every failure (size, depth, bad UTF-8, a lone surrogate, NaN) into one `ProtocolError`. The whole
message is decoded at once, so that of duplicate keys there is one reading, and what was checked is what is used.
"""

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from bridge.errors import ProtocolError

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "MAX_BODY_BYTES",
    "MAX_DEPTH",
    "METHOD_NOT_FOUND",
    "MISSING_CLIENT_CAPABILITY",
    "PARSE_ERROR",
    "RESOURCE_NOT_FOUND",
    "SESSION_NOT_FOUND",
    "UNSUPPORTED_VERSION",
    "URL_ELICITATION_REQUIRED",
    "Invalid",
    "Json",
    "Message",
    "Notification",
    "Request",
    "RequestId",
    "Response",
    "canonical",
    "decode",
    "encode",
    "error_message",
    "notification",
    "request_message",
    "result_message",
]

Json: TypeAlias = dict[str, Any]
"""A decoded JSON object."""

RequestId: TypeAlias = int | str
"""The id of a request. Its type is part of it: `1` and `"1"` are two ids, and `0` is one."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
SESSION_NOT_FOUND: Final = -32001
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 64


class Request(msgspec.Struct, frozen=True):
    """A message that wants an answer. `params` is an empty object where the message has none."""

    id: RequestId
    method: str
    params: Json


class Notification(msgspec.Struct, frozen=True):
    """A message that wants no answer."""

    method: str
    params: Json


class Response(msgspec.Struct, frozen=True):
    """An answer to a request of ours: a result, or an error with `code` and `message`."""

    id: RequestId
    result: Json | UnsetType = UNSET
    error: Json | UnsetType = UNSET


class Invalid(msgspec.Struct, frozen=True):
    """JSON that is no JSON-RPC message, with what is wrong with it, and its id where it has one."""

    reason: str
    id: RequestId | UnsetType = UNSET


Message: TypeAlias = Request | Notification | Response | Invalid

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


class _SoundRequest(Request, frozen=True):
    jsonrpc: Literal["2.0"]


_request_decoder: Final = msgspec.json.Decoder(_SoundRequest)
_decoder: Final = msgspec.json.Decoder()
_encoder: Final = msgspec.json.Encoder()
_canonical_encoder: Final = msgspec.json.Encoder(order="deterministic")

encode = _encoder.encode
"""One JSON value as bytes."""

canonical = _canonical_encoder.encode
"""One JSON value as the bytes that digests are made of: the order of keys does not matter."""


def decode(data: bytes, max_bytes: int = MAX_BODY_BYTES) -> Message | list[Message]:
    """Read one message, or a batch of them.

    Args:
        data: the bytes of one JSON value in UTF-8.
        max_bytes: how many there may be.

    Returns:
        The message, or a list of messages for a JSON array.

    Raises:
        ProtocolError: -32700, for what is no JSON, is too large or too deep.

    Source: basic/index#messages.
    """
    if len(data) > max_bytes:
        raise ProtocolError(PARSE_ERROR, f"Parse error: the message is larger than {max_bytes} bytes")
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _depth(data) > MAX_DEPTH:
        raise ProtocolError(PARSE_ERROR, f"Parse error: JSON nested deeper than {MAX_DEPTH} levels")
    try:
        # Nearly every message is a sound request, which needs no second look.
        return _request_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        value = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, f"Parse error: {error}") from None
    if isinstance(value, list):
        return [_message(item) for item in value]
    return _message(value)


def _depth(data: bytes) -> int:
    depth = deepest = 0
    for match in _TOKEN.finditer(data):
        first = data[match.start()]
        if first in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"}]":
            depth -= 1
    return deepest


def _message(value: object) -> Message:
    if not isinstance(value, dict):
        return Invalid("a message must be a JSON object")
    method, params = value.get("method", UNSET), value.get("params", UNSET)
    identity = value.get("id", UNSET)
    readable: RequestId | UnsetType = identity if type(identity) in (int, str) else UNSET
    if value.get("jsonrpc") != "2.0":
        return Invalid('"jsonrpc" must be "2.0"', readable)
    if identity is not UNSET and readable is UNSET:
        return Invalid('"id" must be a string or an integer')
    if method is UNSET:
        return _response(value, readable)
    if not isinstance(method, str):
        return Invalid('"method" must be a string', readable)
    if params is UNSET:
        params = {}
    elif not isinstance(params, dict):
        return Invalid('"params" must be an object', readable)
    if isinstance(readable, UnsetType):
        return Notification(method, params)
    return Request(readable, method, params)


def _response(value: Json, identity: RequestId | UnsetType) -> Message:
    result, error = value.get("result", UNSET), value.get("error", UNSET)
    if isinstance(identity, UnsetType):
        return Invalid('a message must have a "method", or an "id" and a "result" or an "error"')
    if (result is UNSET) == (error is UNSET):
        return Invalid('a response must have either a "result" or an "error"', identity)
    if not isinstance(result if error is UNSET else error, dict):
        return Invalid('a "result" or "error" must be an object', identity)
    return Response(identity, result, error)


def result_message(identity: RequestId, result: Json) -> Json:
    """The answer to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def error_message(identity: RequestId | UnsetType, code: int, message: str, data: object = None) -> Json:
    """The answer to a request that failed; without an id where that could not be read."""
    error: Json = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    if isinstance(identity, UnsetType):
        return {"jsonrpc": "2.0", "error": error}
    return {"jsonrpc": "2.0", "id": identity, "error": error}


def request_message(identity: RequestId, method: str, params: Json) -> Json:
    """A request of ours."""
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def notification(method: str, params: Json | None = None) -> Json:
    """A notification of ours."""
    if params is None:
        return {"jsonrpc": "2.0", "method": method}
    return {"jsonrpc": "2.0", "method": method, "params": params}
