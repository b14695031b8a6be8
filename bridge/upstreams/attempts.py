"""One request for a call, made again only where nothing of it has run; and how a call ends without its server."""

from collections.abc import Awaitable, Callable

from bridge.errors import RemoteError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json
from bridge.upstreams.base import CallRequest, Failed, Finished
from bridge.upstreams.endings import failed
from bridge.upstreams.links import Talk
from bridge.upstreams.reach import Reached

__all__ = ["attempt", "cancelled", "timed_out"]


async def attempt(
    request: CallRequest,
    server: str,
    reach: Callable[[], Awaitable[Reached]],
    params: Json,
    talk: Talk,
) -> Finished | Failed:
    """Make the request of a call.

    Args:
        request: the call.
        server: how to call the server in a text.
        reach: gives the way to the server; asked again where the request did not get through.
        params: the params of the request.
        talk: takes what the server says meanwhile.

    Returns:
        How it ended; where the server was away or cut off, with a text that says whether anything may have run.
    """
    is_second = False
    while True:
        try:
            reached = await reach()
            reached.users += 1
            try:
                return await reached.link.request(request.method, params, talk)
            finally:
                reached.users -= 1
        except UpstreamUnreachable as error:
            # Nothing of it has run: another link may do, as when the server was restarted.
            if is_second:
                return _unreachable(request, server, error)
            is_second = True
        except RemoteError as error:
            return _broken(request, server, error)


def _unreachable(request: CallRequest, server: str, error: UpstreamUnreachable) -> Finished | Failed:
    text = f"{server} could not be reached, and nothing of {request.target} has run there: {error}"
    return failed(request, text, "UPSTREAM_UNREACHABLE")


def _broken(request: CallRequest, server: str, error: RemoteError) -> Finished | Failed:
    if not isinstance(error, UpstreamLost):
        return failed(request, f"{server} broke a rule of the protocol: {error}")
    text = f"{server} was cut off while it ran {request.target}: {error}. It may have partly run, and it was not "
    return failed(request, text + "run again.", "INTERRUPTED")


def timed_out(request: CallRequest, server: str, seconds: float) -> Finished | Failed:
    """How a call ends that takes longer than it may."""
    text = f"{server} took longer than {seconds:g} seconds for {request.target}, which was cancelled there. "
    return failed(request, text + "It may have partly run.", "INTERRUPTED")


def cancelled(request: CallRequest, server: str) -> Finished | Failed:
    """How a call ends that was cancelled while somebody waited for it."""
    text = f"{request.target} was cancelled while it ran at {server}. It may have partly run."
    return failed(request, text, "INTERRUPTED")
