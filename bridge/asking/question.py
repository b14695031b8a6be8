"""What is asked, and what came back."""

from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from bridge.protocol.messages import Json

__all__ = ["ACTIONS", "Answer", "Question", "Reply", "Source", "Status"]

Status: TypeAlias = Literal["accept", "decline", "cancel"]
Source: TypeAlias = Literal["form", "chat", "page", "remembered"]
Content = TypeVar("Content")

ACTIONS: Final = ("accept", "decline", "cancel")
"""What a user can do with a question. Source: client/elicitation#response-actions."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the user of one call.

    Args:
        key: its name on the wire, unique within the call.
        path: where in the call it was asked; an answer that is recorded under another path is not its answer.
        message: the text for the user.
        schema: the JSON Schema of the form, as the answer is checked; None in URL mode.
        url: the page to open; None in form mode.
    """

    key: str
    path: str
    message: str
    schema: Json | None = None
    url: str | None = None

    @property
    def mode(self) -> str:
        """`form` or `url`."""
        return "form" if self.url is None else "url"


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
        content: what was filled in, checked; None unless accepted, and always None in URL mode.
        source: how it came: `form`, `chat` (a model passed it on), `page` or `remembered`.
    """

    status: Status
    content: Content | None
    source: Source

    @property
    def accepted(self) -> bool:
        """Whether the user said yes."""
        return self.status == "accept"
