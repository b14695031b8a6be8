"""What is refused before a message is read: by host, origin, media type, size. Pure, but for reading the body."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from bridge.protocol.messages import MAX_BODY_BYTES

__all__ = ["Accepts", "Gate", "Headers", "Refusal", "accepts", "read_body"]

Headers: TypeAlias = Mapping[bytes, bytes]
"""HTTP headers, names in lower case."""

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_KNOWN: Final = 256


class Refusal(msgspec.Struct, frozen=True):
    """A request that is refused unread: the HTTP status, a text for people, and headers to add."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Accepts(msgspec.Struct, frozen=True):
    """What a client takes in reply."""

    json: bool
    events: bool


class Gate:
    """Checks `Host` and `Origin`. Source: basic/transports/streamable-http#security-endpoint.

    Args:
        hosts: values of `Host` that are served besides loopback names, with or without a port; `*` for any.
        origins: values of `Origin` likewise.
    """

    def __init__(self, hosts: tuple[str, ...], origins: tuple[str, ...]) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._good: set[tuple[bytes | None, bytes | None]] = set()

    def check(self, headers: Headers) -> Refusal | None:
        """Return why a request is refused, or None."""
        seen = (headers.get(b"host"), headers.get(b"origin"))
        if seen in self._good:
            return None
        refusal = self._check(*seen)
        if refusal is None and len(self._good) < _KNOWN:
            self._good.add(seen)
        return refusal

    def _check(self, host: bytes | None, origin: bytes | None) -> Refusal | None:
        if not self._is_host(host):
            name = "(none)" if host is None else host.decode("latin-1")
            return Refusal(421, f"Host {name} is not served here; to serve it, add it to allowed_hosts (--allow-host)")
        if origin is not None and not self._is_origin(origin.decode("latin-1").lower()):
            name = origin.decode("latin-1")
            return Refusal(
                403, f"Origin {name} is not allowed here; to allow it, add it to allowed_origins (--allow-origin)"
            )
        return None

    def _is_host(self, host: bytes | None) -> bool:
        if "*" in self._hosts:
            return True
        if host is None:
            return False
        name = host.decode("latin-1").lower()
        bare = _without_port(name)
        return bare in _LOOPBACK or name in self._hosts or bare in self._hosts

    def _is_origin(self, origin: str) -> bool:
        if "*" in self._origins or origin in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        bare = _without_port(parts.netloc)
        return bare in _LOOPBACK or parts.netloc in self._hosts or bare in self._hosts


def _without_port(host: str) -> str:
    head, colon, port = host.rpartition(":")
    return head if colon and port.isdigit() else host


def accepts(value: bytes | None) -> Accepts:
    """Read `Accept`; where it is missing, everything is taken."""
    if value is None or b"*/*" in value:
        return _BOTH
    lowered = value.lower()
    return Accepts(
        b"application/json" in lowered or b"application/*" in lowered,
        b"text/event-stream" in lowered or b"text/*" in lowered,
    )


_BOTH: Final = Accepts(True, True)


async def read_body(headers: Headers, receive: Any) -> bytes | Refusal | None:
    """Read a request's body; None when the client has gone meanwhile."""
    length = headers.get(b"content-length")
    if length is not None and len(length) > 5:
        if not length.isdigit():
            return Refusal(400, "Content-Length must be a number")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            return _TOO_LARGE
    event = await receive()
    if event["type"] == "http.disconnect":
        return None
    body: bytes = event.get("body", b"")
    if not event.get("more_body", False):
        return body if len(body) <= MAX_BODY_BYTES else _TOO_LARGE
    parts = [body]
    size = len(body)
    while event.get("more_body", False):
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            return _TOO_LARGE
    return b"".join(parts)


_TOO_LARGE: Final = Refusal(413, f"The body is larger than {MAX_BODY_BYTES} bytes")
