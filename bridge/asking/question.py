"""What is asked, and what came back."""

from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from bridge.protocol.messages import Json

__all__ = ["ACTIONS", "MAX_REASKS", "METHODS", "Answer", "Mode", "Question", "Reply", "Source", "Status"]

Status: TypeAlias = Literal["accept", "decline", "cancel"]
Source: TypeAlias = Literal["form", "chat", "page", "remembered"]
Mode: TypeAlias = Literal["form", "url", "sampling", "roots"]
Content = TypeVar("Content")

METHODS: Final[dict[Mode, str]] = {
    "form": "elicitation/create",
    "url": "elicitation/create",
    "sampling": "sampling/createMessage",
    "roots": "roots/list",
}
"""The request by which each mode asks. Source: basic/patterns/mrtr#inputrequests."""

MAX_REASKS: Final = 3
"""How often a question is asked again because its answer did not match."""

ACTIONS: Final = ("accept", "decline", "cancel")
"""What a user can do with a question. Source: client/elicitation#response-actions."""


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to the user of one call, or to the client itself (sampling, roots).

    Args:
        key: its name on the wire, unique within the call.
        path: where in the call it was asked; an answer that is recorded under another path is not its answer.
        message: the text for the user.
        schema: the JSON Schema of the form, as the answer is checked; None in the other modes.
        url: the page to open, in URL mode.
        params: the params of the request, in the modes `sampling` and `roots`.
        mode: what is asked for.
        elicitation_id: names a URL question until its page is done.
        reask: how many invalid answers are met by asking again, with the reasons.
        reasons: what was wrong with the answer before.
        relayed: the form's schema as a wrapped server wrote it, for clients that can take it so.
        secret: the fields of a relayed form that ask for a secret, which no model may see.
    """

    key: str
    path: str
    message: str = ""
    schema: Json | None = None
    url: str | None = None
    params: Json | None = None
    mode: Mode = "form"
    elicitation_id: str | None = None
    reask: int = 0
    reasons: tuple[str, ...] = ()
    relayed: Json | None = None
    secret: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The method of the request that asks it."""
        return METHODS[self.mode]

    @property
    def shown(self) -> str:
        """The text for the user: the message, and what was wrong with the answer before."""
        return "\n".join((self.message, "", *self.reasons)) if self.reasons else self.message

    def again(self, reasons: tuple[str, ...]) -> "Question":
        """The same question once more, with the reasons why its answer was none."""
        return msgspec.structs.replace(self, reasons=reasons, reask=self.reask - 1)


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user did with a question, as it is recorded: checked JSON, before it becomes an instance."""

    status: Status
    content: Any = None
    source: Source = "form"


@dataclass(frozen=True, slots=True)
class Answer(Generic[Content]):
    """The user's answer, as the author of a tool gets it.

    Args:
        status: `accept`, `decline` (the user said no) or `cancel` (the user closed the question).
        content: what was filled in, checked. It is there after `if answer.accepted`, which is what its type says;
            on a decline or cancel, and in URL mode, it is None.
        source: how it came: `form`, `chat` (a model passed it on), `page` or `remembered`.
    """

    status: Status
    content: Content
    source: Source

    @property
    def accepted(self) -> bool:
        """Whether the user said yes."""
        return self.status == "accept"
