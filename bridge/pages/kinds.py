"""The kinds of client that the playground plays, and the words in which it explains how each is asked."""

from typing import Any, Final

import msgspec

from bridge.asking.routes import ClientRule, choose
from bridge.kinds import kind_named
from bridge.protocol.clients import ANONYMOUS, ClientProfile, Principal
from bridge.protocol.messages import Json
from bridge.protocol.revisions import MODERN, REVISIONS, Revision, negotiate

__all__ = ["CARDS", "CLIENT_NAME", "REASONS", "WAYS", "Card", "explained", "revision_facts"]

CLIENT_NAME: Final = "playground"
"""What the page calls itself in `clientInfo`."""


class Card(msgspec.Struct, frozen=True):
    """A kind of client, as the page shows it.

    Args:
        id: its name in the page's links and tests.
        title: what it is, for people.
        about: what such a client is like, in a few words.
        revision: the revision that it asks for.
        capabilities: what it declares.
        transport: what it speaks over.
    """

    id: str
    title: str
    about: str
    revision: str
    capabilities: Json
    transport: str


def _card(name: str, title: str, about: str, transport: str = "http") -> Card:
    kind = kind_named(name)
    return Card(name, title, about, kind.revision, kind.capabilities, transport)


CARDS: Final = (
    _card("modern-forms", "Modern, with forms", "Each request stands alone"),
    _card("modern", "Modern, no forms", "A script, or a job at night"),
    _card("2025-11-25-forms-urls", "Session, forms and links", "The newest that opens a session"),
    _card("2025-06-18-forms", "Session, forms", "Forms of a simpler kind"),
    _card("2025-06-18-chat", "Session, chat only", "A chat window around a model"),
    _card("2025-03-26", "Session, before forms", "Its protocol has no questions"),
    _card("2024-11-05", "Session, the oldest", "HTTP+SSE: two endpoints", "sse"),
)
"""Every kind, in the words of the page."""

WAYS: Final[dict[str, dict[str, str]]] = {
    "rounds": {
        "title": "Asked in the result",
        "short": "in the result",
        "text": "The call ends with the question. The client shows it and sends the same call again, with the answer.",
    },
    "push": {
        "title": "Asked in mid-call",
        "short": "in mid-call",
        "text": "The question comes down the stream of the open call. The client shows a form, and the call goes on.",
    },
    "chat": {
        "title": "Asked through the chat",
        "short": "through the chat",
        "text": "The call ends with a text for the model, which asks in the chat and passes the answer on with "
        "sendElicitationResult, a tool that only such clients see.",
    },
    "refuse": {
        "title": "Not asked, so not done",
        "short": "refused",
        "text": "Nobody could be asked, so a tool that asks ends with an error that names what is missing.",
    },
}
"""The routes, in words."""

REASONS: Final = {
    "client_declared_it": "it declares elicitation",
    "client_did_not_declare_elicitation": "it does not declare elicitation",
    "client_did_not_declare_form": "it declares no forms",
    "client_did_not_declare_url": "it does not declare that it opens links",
    "revision_before_2025-06-18": "its revision has no elicitation",
    "revision_before_2025-11-25": "its revision has no questions by link",
    "operator_rule": "the operator decided so",
}
"""Why a route was taken, in words."""


def explained(
    requested: str, capabilities: Json, info: Json, rules: tuple[ClientRule, ...], principal: Principal = ANONYMOUS
) -> Json:
    """How a client would be asked, and why.

    Args:
        requested: the revision that it asks for.
        capabilities: what it declares.
        info: its `clientInfo`.
        rules: what the operator decided.
        principal: who is behind it.

    Returns:
        `revision` and `era` as agreed on, and for `form` and `url` the route and its reason.
    """
    revision = MODERN if requested == MODERN.name else negotiate(requested)
    profile = ClientProfile(revision, capabilities, info, principal)
    chosen = {mode: choose(profile, mode, rules=rules) for mode in ("form", "url")}
    routes = {mode: {"route": choice.route.value, "reason": choice.reason} for mode, choice in chosen.items()}
    return {"revision": revision.name, "era": revision.era.value, **routes}


def revision_facts() -> list[dict[str, Any]]:
    """What the page has to know of each revision, newest first."""
    return [_facts(revision) for revision in reversed(REVISIONS.values())]


def _facts(revision: Revision) -> dict[str, Any]:
    return {
        "name": revision.name,
        "era": revision.era.value,
        "structured": revision.structured_content,
        "scalars": revision.structured_scalars,
        "richForms": revision.rich_forms,
        "namesItself": revision.form_elicitation,
    }
