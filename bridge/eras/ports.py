"""What a transport wants of the eras: so that something can stand around them that looks on."""

from collections.abc import Mapping
from typing import Protocol

from bridge.calls import Exchange
from bridge.ownership import OwnedCall
from bridge.protocol.clients import Principal
from bridge.protocol.inbound import Accepted
from bridge.protocol.messages import Json, Notification, Request
from bridge.session import Session

__all__ = ["Legacy", "Modern"]


class Modern(Protocol):
    """Answers modern requests; see `ModernEra`."""

    async def handle(
        self, accepted: Accepted, principal: Principal, exchange: Exchange, headers: Mapping[bytes, bytes] | None
    ) -> Json:
        """Answer a request: the response message."""
        ...


class Legacy(Protocol):
    """Answers what comes on sessions; see `LegacyEra`."""

    async def initialize(self, request: Request, principal: Principal) -> tuple[Session, Json]:
        """Open a session; return it with the response."""
        ...

    async def handle(self, session: Session, request: Request, exchange: Exchange) -> Json:
        """Answer a request: the response message."""
        ...

    async def go_on(self, session: Session, owned: OwnedCall, exchange: Exchange, *, repeatable: bool) -> Json:
        """Answer a request whose node is lost: the response message."""
        ...

    async def notified(self, session: Session, message: Notification) -> None:
        """Take a notification."""
        ...
