"""The ladder of checks on a modern request: what passes is `Accepted`, what fails is `Rejected`.

Wrong input is a value until the edge. One table maps error codes to HTTP statuses, for rejections and for errors
of a call alike. Source: basic/index#meta and basic/transports/streamable-http#server-validation of 2026-07-28.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from bridge.protocol.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Json,
    Request,
    RequestId,
)
from bridge.protocol.revisions import LEGACY, MODERN

__all__ = [
    "HTTP_STATUS",
    "LOG_LEVELS",
    "META_CAPABILITIES",
    "META_CLIENT_INFO",
    "META_LOG_LEVEL",
    "META_SERVER_INFO",
    "META_VERSION",
    "Accepted",
    "ParameterHeaders",
    "Rejected",
    "check_modern",
    "check_parameter_headers",
    "is_modern",
    "parameter_headers",
    "unsupported_version",
]

META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels in rising order. Source: server/utilities/logging."""

HTTP_STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The HTTP status of a modern reply that is an error of that code; 200 where none stands here."""

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LEGACY_HEADERS: Final = frozenset(name.encode() for name in LEGACY)
_UNSAFE: Final = re.compile(r"[^\x20-\x7e\t]")


class Accepted(msgspec.Struct, frozen=True):
    """A modern request that has passed every check, with what its `_meta` says of the client."""

    request: Request
    capabilities: Json
    info: Json
    log_level: str | None = None


class Rejected(msgspec.Struct, frozen=True):
    """A message that failed a check, as the error that answers it."""

    code: int
    message: str
    data: Any = None
    id: RequestId | UnsetType = UNSET

    @property
    def status(self) -> int:
        """The HTTP status that goes with the error."""
        return HTTP_STATUS.get(self.code, 200)


def is_modern(params: Json, version_header: bytes | None) -> bool:
    """Decide the era of a message, by its header and its `_meta` and never by its method."""
    meta = params.get("_meta")
    if isinstance(meta, dict) and (META_VERSION in meta or META_CAPABILITIES in meta):
        return True
    return version_header is not None and version_header not in _LEGACY_HEADERS


def check_modern(request: Request, headers: Mapping[bytes, bytes] | None) -> Accepted | Rejected:
    """Run a request through the ladder.

    Args:
        request: the request as decoded.
        headers: the HTTP headers, names in lower case; None where the transport has none (stdio, WebSocket).

    Returns:
        The accepted request, or the first check that failed.
    """
    meta = request.params.get("_meta")
    if not isinstance(meta, dict):
        meta = {}
    version = meta.get(META_VERSION)
    if headers is not None:
        mismatch = _version_mismatch(version, headers) or _name_mismatch(request, headers)
        if mismatch is not None:
            return Rejected(HEADER_MISMATCH, f"Header mismatch: {mismatch}", id=request.id)
    if not isinstance(version, str):
        return _missing(META_VERSION, "a string", request.id)
    if version != MODERN.name:
        return unsupported_version(version, request.id)
    capabilities = meta.get(META_CAPABILITIES)
    if not isinstance(capabilities, dict):
        return _missing(META_CAPABILITIES, "an object", request.id)
    info = meta.get(META_CLIENT_INFO, {})
    if not isinstance(info, dict):
        return _missing(META_CLIENT_INFO, "an object", request.id)
    level = meta.get(META_LOG_LEVEL)
    if level is not None and level not in LOG_LEVELS:
        expected = "one of " + ", ".join(LOG_LEVELS)
        return Rejected(INVALID_PARAMS, f"Invalid _meta: {META_LOG_LEVEL} must be {expected}", id=request.id)
    return Accepted(request, capabilities, info, level)


def unsupported_version(requested: str, identity: RequestId | UnsetType) -> Rejected:
    """The answer to a request under a revision that requests cannot be made under."""
    data = {"supported": [MODERN.name], "requested": requested}
    return Rejected(UNSUPPORTED_VERSION, "Unsupported protocol version", data, identity)


def _missing(key: str, expected: str, identity: RequestId) -> Rejected:
    return Rejected(INVALID_PARAMS, f"Invalid _meta: {key} is required and must be {expected}", id=identity)


def _version_mismatch(version: object, headers: Mapping[bytes, bytes]) -> str | None:
    header = headers.get(b"mcp-protocol-version")
    if header is None:
        return "MCP-Protocol-Version is required"
    if isinstance(version, str) and _header_text(header) != version:
        return f"MCP-Protocol-Version {header.decode('latin-1')!r} does not match _meta {version!r}"
    return None


def _name_mismatch(request: Request, headers: Mapping[bytes, bytes]) -> str | None:
    method = headers.get(b"mcp-method")
    if method is None:
        return "Mcp-Method is required"
    if _header_text(method) != request.method:
        return f"Mcp-Method {method.decode('latin-1')!r} does not match the body's {request.method!r}"
    field = _NAMED.get(request.method)
    if field is None:
        return None
    name = headers.get(b"mcp-name")
    if name is None:
        return f"Mcp-Name is required for {request.method}"
    value = request.params.get(field)
    if _header_text(name) != value:
        return f"Mcp-Name {name.decode('latin-1')!r} does not match the body's {value!r}"
    return None


@lru_cache(maxsize=1024)
def _header_text(value: bytes) -> str | None:
    """Read a header value, Base64 sentinel decoded; None where it holds what no such value may."""
    text = value.decode("latin-1").strip(" \t")
    if _UNSAFE.search(text):
        return None
    sentinel = _SENTINEL.fullmatch(text)
    if sentinel is None:
        return text
    try:
        return base64.b64decode(sentinel[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


ParameterHeaders: TypeAlias = tuple[tuple[tuple[str, ...], str], ...]
"""Paths of property names, each with the name in its `x-mcp-header`."""


def parameter_headers(schema: Json) -> ParameterHeaders:
    """Find the parameters of a tool that travel in headers too.

    Args:
        schema: the tool's `inputSchema`.

    Returns:
        Pairs of a path of property names and the name in its `x-mcp-header`.

    Raises:
        ValueError: an annotation that clients must refuse, with the rule it breaks.

    Source: basic/transports/streamable-http#schema-extension.
    """
    found = tuple(_annotated(schema, ()))
    names = [name.lower() for _, name in found]
    if len(set(names)) < len(names):
        raise ValueError("x-mcp-header names must differ, whatever their case")
    return found


def _annotated(schema: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in schema.get("properties", {}).items():
        if not isinstance(value, dict):
            continue
        here = (*path, key)
        if "x-mcp-header" in value:
            name, kind = value["x-mcp-header"], value.get("type")
            if not isinstance(name, str) or not _TOKEN.fullmatch(name):
                raise ValueError(f"x-mcp-header of {'.'.join(here)} must be a header name, not {name!r}")
            if kind not in ("string", "integer", "boolean"):
                raise ValueError(f"x-mcp-header of {'.'.join(here)} needs a string, integer or boolean")
            yield here, name
        yield from _annotated(value, here)


def check_parameter_headers(annotated: ParameterHeaders, arguments: Json, headers: Mapping[bytes, bytes]) -> str | None:
    """Compare `Mcp-Param-*` headers with the arguments; return what does not match, or None."""
    for path, name in annotated:
        value: object = arguments
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        header = headers.get(b"mcp-param-" + name.lower().encode())
        if value is None:
            if header is not None:
                return f"Mcp-Param-{name} has no argument {'.'.join(path)} to match"
        elif header is None:
            return f"Mcp-Param-{name} is required with the argument {'.'.join(path)}"
        elif not _same(_header_text(header), value):
            return f"Mcp-Param-{name} does not match the argument {'.'.join(path)}"
    return None


def _same(text: str | None, value: object) -> bool:
    if text is None:
        return False
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return text == value
