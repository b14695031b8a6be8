"""The port under a modern link: what carries one request and brings back its reply."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

from bridge.protocol.messages import Json, Notification, Response

__all__ = ["Carrier", "Heard"]

Heard: TypeAlias = Callable[[Notification], Awaitable[None]]
"""Takes the notifications that come with one request, one by one."""


class Carrier(Protocol):
    """What carries requests to a modern server."""

    @property
    def name(self) -> str:
        """How to call the server in a log."""
        ...

    @property
    def has_headers(self) -> bool:
        """Whether what the body says is said in headers too."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether requests can be carried; once False, it stays so."""
        ...

    async def carry(self, message: Json, headers: Mapping[str, str], heard: Heard | None) -> Response:
        """Carry a request, and return its reply. Cancelled, it tells the server so.

        Args:
            message: the request.
            headers: the headers that mirror it.
            heard: takes the notifications that come with it; None drops them.

        Raises:
            UpstreamUnreachable: the server did not take it.
            UpstreamLost: it may have taken it, and no reply will come.
        """
        ...

    async def aclose(self) -> None:
        """Cancel at the server what is under way, and end the connection, in bounded time."""
        ...
