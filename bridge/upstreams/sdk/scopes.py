"""The client's HTTP request, as servers of the SDKs look at it."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import HTTPConnection, Request

__all__ = ["connection_of"]


def connection_of(http: Mapping[str, Any] | None) -> HTTPConnection | None:
    """What a server's `ctx.request_context.request` is.

    Args:
        http: the ASGI scope of the client's request, or None where there is none.

    Returns:
        Starlette's request, whose body is not there any more; for a WebSocket, what has only its headers and the like.
    """
    if http is None:
        return None
    scope = http if isinstance(http, dict) else dict(http)
    return Request(scope) if scope.get("type") == "http" else HTTPConnection(scope)
