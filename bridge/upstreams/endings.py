"""How a call ends that cannot go on: as the method that was called can say it."""

from typing import Final

from bridge.protocol.messages import INTERNAL_ERROR, INVALID_PARAMS
from bridge.upstreams.base import CallRequest, Failed, Finished
from bridge.upstreams.results import error_result

__all__ = ["DISABLED", "failed"]

DISABLED: Final = (
    "Elicitation is disabled in server configuration. To enable it, make the server with Bridge(..., elicitation=True)."
)

_INVALID: Final = "INVALID_INPUT"


def failed(request: CallRequest, message: str, code: str | None = None) -> Finished | Failed:
    """End a call that cannot go on: a tool's with a result that its model reads, any other with an error.

    Args:
        request: the call.
        message: what was wrong, what was expected, what to do.
        code: one of `docs/errors.md`, or None.
    """
    if request.method == "tools/call":
        return Finished(error_result(message, code))
    data = None if code is None else {"code": code}
    return Failed(INVALID_PARAMS if code == _INVALID else INTERNAL_ERROR, message, data)
