"""The port to a transport of a legacy server: it carries whole messages both ways and knows nothing of what they say.

`session.py` is the protocol on top of it: ids, `initialize`, requests under way, whose question it is.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from bridge.protocol.messages import Json, Message, RequestId

__all__ = ["Closed", "Receive", "Wire"]

Receive: TypeAlias = Callable[[Message, RequestId | None], Awaitable[None]]
"""Takes a message that came in, and the id of the request of ours with which it came: the one whose stream carried it,
or None where the transport does not tell. Messages are handed over one by one, in their order; this returns fast."""

Closed: TypeAlias = Callable[[str], None]
"""Told once when nothing more can come in, with the reason in a few words, such as `the command exited with 1`."""


class Wire(Protocol):
    """One connection to a legacy server, for one session."""

    @property
    def names_requests(self) -> bool:
        """Whether a server's request comes with the request of ours that it belongs to (see `Receive`).

        True in this process and for streams of Streamable HTTP; False on stdio, WebSocket and HTTP+SSE.
        """
        ...

    async def open(self, receive: Receive, closed: Closed) -> None:
        """Connect, and hand over what comes in from now on.

        Raises:
            UpstreamUnreachable: it cannot be reached. The text says why in one line.
        """
        ...

    async def send(self, message: Json, http: Mapping[str, Any] | None = None) -> None:
        """Send a message: a request, a notification or an answer, as a JSON-RPC object.

        Returns at the latest when a request's reply has been handed over; on most transports, once it is written.
        Cancelled, it stops to wait for that; it does not tell the server.

        Args:
            message: the message.
            http: the ASGI scope of the client's request, for a server in this process.

        Raises:
            UpstreamUnreachable: it did not go out, or the server refused it unread, as with a 404 for its session.
            UpstreamLost: it may have gone out, and no reply will come.
        """
        ...

    async def initialized(self, revision: str) -> None:
        """The session speaks this revision from now on: headers that name it are due."""
        ...

    async def listen(self) -> None:
        """Open the stream of what belongs to no request, where the transport has one; the server has been told that
        the session is initialized.

        Returns once the stream stands, or the server has none, or has not said so in a bounded time. What a server
        sends on a stream that does not stand yet is lost, and with it what a call asks that way.
        """
        ...

    async def aclose(self) -> None:
        """End the connection in bounded time, and whatever was started for it; `closed` need not be told."""
        ...
