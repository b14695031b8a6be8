"""Which way a question takes to the user of one client. One function; nothing else asks what a client can do."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from bridge.protocol.clients import ClientProfile
from bridge.protocol.revisions import Era

__all__ = ["Choice", "RouteName", "choose", "sees_fallback"]


class RouteName(Enum):
    """The four ways: in the next request, over the session, through the chat, or not at all."""

    ROUNDS = "rounds"
    PUSH = "push"
    CHAT = "chat"
    REFUSE = "refuse"


class Choice(msgspec.Struct, frozen=True):
    """A route, and the reason for it in one word."""

    route: RouteName
    reason: str


_NOTHING_LEARNED: Final[Mapping[str, str]] = {}


def choose(profile: ClientProfile, mode: str, unable: Mapping[str, str] = _NOTHING_LEARNED) -> Choice:
    """Choose the route of a question.

    Args:
        profile: the client.
        mode: `form` or `url`.
        unable: for each mode in which this client turned out not to be askable, why.

    Returns:
        The route and its reason.
    """
    declared = profile.declares(mode)
    if profile.revision.era is Era.MODERN:
        if declared:
            return Choice(RouteName.ROUNDS, "client_declared_elicitation")
        return Choice(RouteName.REFUSE, "client_did_not_declare_elicitation")
    if mode in unable:
        return Choice(RouteName.CHAT, unable[mode])
    if declared:
        return Choice(RouteName.PUSH, "client_declared_elicitation")
    if not profile.revision.form_elicitation:
        return Choice(RouteName.CHAT, "revision_before_2025-06-18")
    return Choice(RouteName.CHAT, "client_did_not_declare_elicitation")


def sees_fallback(profile: ClientProfile, unable: Mapping[str, str] = _NOTHING_LEARNED) -> bool:
    """Whether the client's list of tools has the fallback tool: it cannot be asked in a form, or turned out so."""
    if profile.revision.era is Era.MODERN:
        return False
    return bool(unable) or choose(profile, "form", unable).route is RouteName.CHAT
