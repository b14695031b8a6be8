"""What clients of either era are told while the process ends."""

from typing import Final

from bridge.protocol.messages import INTERNAL_ERROR, Json, Request, error_message

__all__ = ["SHUTTING_DOWN", "cut_off"]

SHUTTING_DOWN: Final = "The server is shutting down and did not run this request; send it again"
"""To a request that has come too late."""


def cut_off(request: Request) -> Json:
    """The reply to a request that ran for longer than a shutdown waits."""
    text = f"{request.method} was cancelled: the server is shutting down. It may have partly run"
    return error_message(request.id, INTERNAL_ERROR, text)
