"""Standing around the eras and the routes: who looks on is given each request with what answers it.

Where nobody looks on, nothing here is in the way of a call.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from bridge.asking.question import Question
from bridge.asking.routes import RouteName
from bridge.calls import Exchange, Round, Route
from bridge.claims import Ending
from bridge.eras.ports import Legacy, Modern
from bridge.ownership import OwnedCall
from bridge.protocol.clients import ClientProfile, Principal
from bridge.protocol.inbound import Accepted
from bridge.protocol.messages import Json, Notification, Request
from bridge.protocol.revisions import MODERN
from bridge.session import Session

__all__ = ["Answer", "Around", "Asked", "ObservedLegacy", "ObservedModern", "ObservedRoute", "chain"]


class Asked(msgspec.Struct, frozen=True):
    """A request that is being answered.

    Args:
        request: the request.
        revision: the name of the revision that it came under.
        exchange: the way back; None for `initialize`, which has none yet.
    """

    request: Request
    revision: str
    exchange: Exchange | None = None


Answer: TypeAlias = Callable[[], Awaitable[Json]]
"""Answers a request: gives the response message."""

Around: TypeAlias = Callable[[Asked, Answer], Awaitable[Json]]
"""Has a request answered, and looks on."""


def chain(outer: Around, inner: Around) -> Around:
    """Two of them, one around the other."""

    async def both(asked: Asked, answer: Answer) -> Json:
        return await outer(asked, lambda: inner(asked, answer))

    return both


class ObservedModern:
    """The modern era with somebody around it."""

    def __init__(self, era: Modern, around: Around) -> None:
        self._era = era
        self._around = around

    async def handle(
        self, accepted: Accepted, principal: Principal, exchange: Exchange, headers: Mapping[bytes, bytes] | None
    ) -> Json:
        """See `ModernEra`."""
        asked = Asked(accepted.request, MODERN.name, exchange)
        return await self._around(asked, lambda: self._era.handle(accepted, principal, exchange, headers))


class ObservedLegacy:
    """The legacy era with somebody around it.

    Args:
        era: the era.
        around: who looks on.
        opened: told who has opened a session.
    """

    def __init__(self, era: Legacy, around: Around, opened: Callable[[ClientProfile], object]) -> None:
        self._era = era
        self._around = around
        self._opened = opened

    async def initialize(self, request: Request, principal: Principal) -> tuple[Session, Json]:
        """See `LegacyEra`."""
        sessions: list[Session] = []

        async def answer() -> Json:
            session, reply = await self._era.initialize(request, principal)
            sessions.append(session)
            return reply

        reply = await self._around(Asked(request, str(request.params.get("protocolVersion"))), answer)
        self._opened(sessions[0].profile)
        return sessions[0], reply

    async def handle(self, session: Session, request: Request, exchange: Exchange) -> Json:
        """See `LegacyEra`."""
        asked = Asked(request, session.record.revision, exchange)
        return await self._around(asked, lambda: self._era.handle(session, request, exchange))

    async def go_on(self, session: Session, owned: OwnedCall, exchange: Exchange, *, repeatable: bool) -> Json:
        """See `LegacyEra`."""
        asked = Asked(owned.request, session.record.revision, exchange)
        return await self._around(asked, lambda: self._era.go_on(session, owned, exchange, repeatable=repeatable))

    async def notified(self, session: Session, message: Notification) -> None:
        """See `LegacyEra`."""
        await self._era.notified(session, message)


class ObservedRoute:
    """A route with somebody who is told of what is asked on it.

    Args:
        route: the route.
        name: its name.
        told: told by whose request how many questions are asked on which route.
    """

    def __init__(self, route: Route, name: RouteName, told: Callable[[Exchange, RouteName, int], object]) -> None:
        self._route = route
        self._name = name
        self._told = told

    async def ask(self, current: Round, questions: list[Question]) -> Ending | None:
        """See `Route`."""
        self._told(current.exchange, self._name, len(questions))
        return await self._route.ask(current, questions)
