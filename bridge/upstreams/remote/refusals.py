"""What an HTTP status of 400 and above says of a request: a JSON-RPC error, not run, or nothing certain. Pure."""

from typing import Any, Final

import msgspec
from msgspec import UNSET

from bridge.errors import RemoteError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json, RequestId, Response

__all__ = ["error_in", "refusal"]

_MAY_HAVE_RUN: Final = frozenset({408, 409, 410, 499})
"""Statuses of the 400s that say nothing of whether the server began."""


class _ErrorBody(msgspec.Struct):
    error: Json
    id: Any = UNSET


_decoder: Final = msgspec.json.Decoder(_ErrorBody)


def error_in(body: bytes, status: int, identity: RequestId) -> Response | None:
    """Find the JSON-RPC error in the body of a refusal.

    Args:
        body: the body.
        status: the HTTP status.
        identity: the id of the request that was refused. In the 400s another one counts for it: where a server
            does not look at the body it has no id, or puts one of its own.

    Returns:
        The error as the reply to the request, or None.
    """
    try:
        found = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    same = type(found.id) is type(identity) and found.id == identity
    return Response(identity, error=found.error) if same or 400 <= status < 500 else None


def refusal(name: str, status: int) -> RemoteError:
    """What to raise for a status without a JSON-RPC error."""
    if status in (401, 403):
        return UpstreamUnreachable(
            f"{name} answered {status}: give the credentials that it wants, such as --header 'Authorization: Bearer …'"
        )
    if 400 <= status < 500 and status not in _MAY_HAVE_RUN:
        return UpstreamUnreachable(f"{name} answered {status}: it did not take the request")
    return UpstreamLost(f"{name} answered {status}: the request may have run")
