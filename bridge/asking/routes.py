"""Which way a question takes to the user of one client. One function; nothing else asks what a client can do."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from bridge.asking.reasons import DECLARED, FALLBACK_OFF, OPERATOR_RULE, SWITCHED_OFF, undeclared
from bridge.protocol.clients import ClientProfile
from bridge.protocol.revisions import Era

__all__ = ["Choice", "ClientRule", "RouteName", "Ways", "choose", "sees_fallback"]


class RouteName(Enum):
    """The four ways: in the next request, over the session, through the chat, or not at all."""

    ROUNDS = "rounds"
    PUSH = "push"
    CHAT = "chat"
    REFUSE = "refuse"


class Choice(msgspec.Struct, frozen=True):
    """A route, and the reason for it in one word; see `reasons`."""

    route: RouteName
    reason: str


_NOTHING_LEARNED: Final[Mapping[str, str]] = {}


class ClientRule(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides about some clients. Fields that are None match every client; the first match counts.

    Args:
        name: the client's name in its `clientInfo`.
        version: its version there.
        principal: the subject who is authenticated behind it.
        route: the route that questions to users take (`chat`, or `refuse`).
        soft_deadline_seconds: when nobody has answered a pushed question by then, its call ends; the form stays open.
    """

    name: str | None = None
    version: str | None = None
    principal: str | None = None
    route: RouteName | None = None
    soft_deadline_seconds: float | None = None

    def matches(self, profile: ClientProfile) -> bool:
        """Whether the rule is about this client."""
        facts = (
            (self.name, profile.info.get("name")),
            (self.version, profile.info.get("version")),
            (self.principal, profile.principal.subject),
        )
        return all(wanted is None or wanted == found for wanted, found in facts)


def choose(
    profile: ClientProfile,
    mode: str,
    unable: Mapping[str, str] = _NOTHING_LEARNED,
    rules: Sequence[ClientRule] = (),
) -> Choice:
    """Choose the route of a question.

    Args:
        profile: the client.
        mode: `form`, `url`, `sampling` or `roots`.
        unable: for each mode in which this client turned out not to be askable, why.
        rules: what the operator decided.

    Returns:
        The route and its reason.
    """
    to_user = mode in ("form", "url")
    rule = next((rule for rule in rules if rule.route is not None and rule.matches(profile)), None) if to_user else None
    if rule is not None and rule.route is not None:
        return Choice(rule.route, OPERATOR_RULE)
    if to_user and mode in unable and profile.revision.era is Era.LEGACY:
        return Choice(RouteName.CHAT, unable[mode])
    if profile.declares(mode):
        return Choice(RouteName.ROUNDS if profile.revision.era is Era.MODERN else RouteName.PUSH, DECLARED)
    by_chat = to_user and profile.revision.era is Era.LEGACY
    return Choice(RouteName.CHAT if by_chat else RouteName.REFUSE, _why_not(profile, mode))


def _why_not(profile: ClientProfile, mode: str) -> str:
    """Why a client does not say that it can be asked in a mode."""
    if mode in ("form", "url") and not profile.revision.form_elicitation:
        return "revision_before_2025-06-18"
    elicits = isinstance(profile.capabilities.get("elicitation"), dict)
    if mode == "url" and elicits and not profile.revision.url_elicitation:
        return "revision_before_2025-11-25"
    return undeclared(mode, elicits=elicits)


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator has set up of asking, as a whole: which route a question really takes, and why.

    Args:
        elicitation: whether tools may ask.
        fallback: whether clients that show no form may be asked through the chat.
        rules: what is decided about some clients.
    """

    elicitation: bool = True
    fallback: bool = True
    rules: Sequence[ClientRule] = ()

    def choose(self, profile: ClientProfile, mode: str, unable: Mapping[str, str] = _NOTHING_LEARNED) -> Choice:
        """Choose as `choose` does; a way that is switched off is a refusal, and that is its reason."""
        if mode in ("form", "url") and not self.elicitation:
            return Choice(RouteName.REFUSE, SWITCHED_OFF)
        choice = choose(profile, mode, unable, self.rules)
        if choice.route is RouteName.CHAT and not self.fallback:
            return Choice(RouteName.REFUSE, FALLBACK_OFF)
        return choice


def sees_fallback(
    profile: ClientProfile, unable: Mapping[str, str] = _NOTHING_LEARNED, rules: Sequence[ClientRule] = ()
) -> bool:
    """Whether the client's list of tools has the fallback tool: it cannot be asked in a form, or turned out so."""
    return bool(unable) or choose(profile, "form", unable, rules).route is RouteName.CHAT
