"""Why a client is asked the way it is: each reason as one word, with what it means and which setting changes it.

The words come from `routes.choose`, from what was learned of a client (`push`), and from how a bridge is set up. They
stand in the log, at `/explain`, in `check` and in the documentation; here is the one place that says what they mean.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

__all__ = [
    "ANSWERED_WITH_ERROR",
    "ASKED_UNDECLARED",
    "CALL_FAILED",
    "DECLARED",
    "FALLBACK_OFF",
    "NO_FALLBACK_THERE",
    "NO_STREAM",
    "OPERATOR_RULE",
    "REASONS",
    "SWITCHED_OFF",
    "Reason",
    "reason_of",
    "undeclared",
]

DECLARED: Final = "client_declared_it"
OPERATOR_RULE: Final = "operator_rule"
NO_STREAM: Final = "no_stream"
ANSWERED_WITH_ERROR: Final = "answered_with_error"
"""Followed by the error's code, as in `answered_with_error -32601`."""

SWITCHED_OFF: Final = "elicitation_switched_off"
FALLBACK_OFF: Final = "fallback_switched_off"
CALL_FAILED: Final = "call_failed_before_a_question"
ASKED_UNDECLARED: Final = "asked_what_was_not_declared"
NO_FALLBACK_THERE: Final = "no_fallback_tool"


class Reason(msgspec.Struct, frozen=True):
    """What a reason means, and what to do about it.

    Args:
        meaning: one sentence for people.
        setting: what changes it, a setting of the client or of the bridge; empty where there is nothing to change.
    """

    meaning: str
    setting: str = ""


_BY_RULE: Final = 'client_rules=(ClientRule(name="its name", route=RouteName.CHAT),) asks it in the chat'

REASONS: Final[Mapping[str, Reason]] = MappingProxyType(
    {
        DECLARED: Reason("The client says that it can be asked so."),
        "client_did_not_declare_elicitation": Reason(
            "The client's capabilities have no elicitation, so it shows no form.",
            f'In the client: declare {{"elicitation": {{"form": {{}}}}}}. In the bridge: {_BY_RULE}',
        ),
        "client_did_not_declare_form": Reason(
            "The client declares elicitation by URL alone.",
            f'In the client: declare {{"elicitation": {{"form": {{}}}}}}. In the bridge: {_BY_RULE}',
        ),
        "client_did_not_declare_url": Reason(
            "The client shows forms, and does not say that it opens URLs.",
            f'In the client: declare {{"elicitation": {{"url": {{}}}}}}. In the bridge: {_BY_RULE}',
        ),
        "client_did_not_declare_sampling": Reason(
            "The client's capabilities have no sampling.", 'In the client: declare {"sampling": {}}'
        ),
        "client_did_not_declare_roots": Reason(
            "The client's capabilities have no roots.", 'In the client: declare {"roots": {}}'
        ),
        "revision_before_2025-06-18": Reason(
            "Forms came into the protocol with 2025-06-18, and the client speaks an older revision.",
            "Update the client; until then the chat is the only way to its user",
        ),
        "revision_before_2025-11-25": Reason(
            "Questions by URL came into the protocol with 2025-11-25, and the client speaks an older revision.",
            "Update the client; until then the chat is the only way to its user",
        ),
        NO_STREAM: Reason(
            "The client's Accept allows no event stream, and an older client is asked on nothing else.",
            "In the client: send Accept: application/json, text/event-stream",
        ),
        ANSWERED_WITH_ERROR: Reason(
            "The client declared forms and answered one with this error, so it is not sent another in its session.",
            "Mend the client, or stop declaring elicitation there; a new session begins anew",
        ),
        OPERATOR_RULE: Reason(
            "A rule of the operator decides about this client.", "client_rules: the first rule that matches counts"
        ),
        SWITCHED_OFF: Reason("The server was made without asking.", "Bridge(..., elicitation=True)"),
        FALLBACK_OFF: Reason(
            "The client shows no form, and asking through the chat is switched off.",
            'Bridge(..., fallback="result"), or --fallback result',
        ),
        NO_FALLBACK_THERE: Reason(
            "The client shows no form, and this server has no way to ask through the chat.",
            "Put the bridge before the server: python -m bridge serve TARGET",
        ),
        CALL_FAILED: Reason(
            "The call ended with an error before its user was asked anything.",
            "Read the error and the server's log. Where its tools ask only on sessions of the older revisions: "
            "--protocol legacy",
        ),
        ASKED_UNDECLARED: Reason(
            "The server sends a form to a client that did not say it shows any; such a client answers -32601.",
            "Put the bridge before the server: python -m bridge serve TARGET",
        ),
    }
)
"""What each reason means, by its word."""


def reason_of(word: str) -> Reason:
    """What a reason means; the code after `answered_with_error` is not part of its word."""
    return REASONS.get(word.partition(" ")[0], Reason(word))


def undeclared(mode: str, *, elicits: bool) -> str:
    """The word for a mode that the client's revision has and the client does not declare.

    Args:
        mode: `form`, `url`, `sampling` or `roots`.
        elicits: whether it declares elicitation in the other mode.
    """
    if mode in ("sampling", "roots"):
        return f"client_did_not_declare_{mode}"
    return f"client_did_not_declare_{mode if elicits else 'elicitation'}"
