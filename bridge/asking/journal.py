"""What a call knows so far: answers and recorded steps, replayed by where they were asked and never by position.

A question's *path* is a digest of the questions asked before it in the same task, of its own message and schema,
of its explicit key, and of how often just that has been asked there. A recorded answer is found by its path. So it
is used only if every question before it in its task is the one that was recorded; after a changed question
nothing recorded matches any more, which is how those answers are dropped. Steps are found by name and stay.
"""

from typing import Any, Final

import msgspec

from bridge.asking.form import digest
from bridge.asking.question import Mode, Question, Reply
from bridge.errors import QuestionError
from bridge.protocol.messages import Json

__all__ = ["MAX_JOURNAL_BYTES", "ROOT", "Asked", "Journal", "Replay"]

ROOT: Final = ""
"""The path before the first question of a task."""

_PREFIX: Final[dict[Mode, str]] = {
    "form": "elicitation",
    "url": "elicitation",
    "sampling": "sampling",
    "roots": "roots",
}

MAX_JOURNAL_BYTES: Final = 256 * 1024
"""How much the answers and steps of one call may hold, encoded."""


class Journal(msgspec.Struct, omit_defaults=True):
    """The answers and steps of one call, in the order in which they came.

    Args:
        asked: the key of each path, in the order of first asking.
        replies: the recorded answer of each path that has one.
        steps: the recorded result of each step, by name.
        refused: how often a question was asked again because its answer did not match, by path.
        held: the process in which the call is suspended at its questions; empty where it is run again instead.
        upstream: what a wrapped server that keeps no state wants back with the answers.
    """

    asked: dict[str, str] = {}
    replies: dict[str, Reply] = {}
    steps: dict[str, Any] = {}
    refused: dict[str, int] = {}
    held: str = ""
    upstream: "UpstreamState | None" = None

    def record(self, question: Question, reply: Reply) -> None:
        """Keep the answer to a question."""
        self.replies[question.path] = reply

    def refuse(self, question: Question, reasons: tuple[str, ...]) -> Question:
        """The question once more, because its answer was none; counted, whatever was wrong."""
        self.refused[question.path] = self.refused.get(question.path, 0) + 1
        return question.again(reasons)

    def size(self) -> int:
        """How many bytes the journal takes, encoded."""
        return len(msgspec.msgpack.encode(self))


class UpstreamState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a modern server behind the bridge wants back with the answers to its questions.

    Args:
        state: its `requestState`, or None.
        requests: its `inputRequests`; empty where it wants no answers back.
        paths: the path of each of its questions, by its key.
        number: how often it has asked.
    """

    state: str | None
    requests: Json
    paths: dict[str, str]
    number: int


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an author asks, before it has a key and a path. The digest is of all but the message."""

    digest: str
    mode: Mode = "form"
    message: str = ""
    schema: Json | None = None
    url: str | None = None
    params: Json | None = None
    elicitation_id: str | None = None
    reask: int = 0
    relayed: Json | None = None
    secret: tuple[str, ...] = ()

    def question(self, key: str, path: str, reask: int) -> Question:
        """The question, with its key, its path, and how often it may still be asked again."""
        return Question(
            key=key,
            path=path,
            message=self.message,
            schema=self.schema,
            url=self.url,
            params=self.params,
            mode=self.mode,
            elicitation_id=self.elicitation_id,
            reask=reask,
            relayed=self.relayed,
            secret=self.secret,
        )


class Replay:
    """One run of a call against its journal: gives out what is recorded, notes what is not.

    Args:
        journal: what is known of the call.
        equals: whether equal questions may be open at once: they may where each has its own way back.
    """

    def __init__(self, journal: Journal, *, equals: bool = False) -> None:
        self.journal = journal
        self._equals = equals
        self.open: dict[str, Question] = {}
        """The questions of this run that have no answer, by key."""
        self.stepped = False
        """Whether this run has recorded a step that its journal did not have."""
        self.given: set[str] = set()
        """The paths of the answers that this run was given and went past."""
        self.met: set[str] = set()
        """The paths of the questions of this run."""
        self.broken: QuestionError | None = None
        """The rule that a question broke: it counts, even where another task's question stopped the run before."""
        self._times: dict[str, int] = {}
        self._keys: set[str] = set()
        self._open_digests: set[str] = set()
        self._steps: set[str] = set()

    def ask(self, after: str, asked: Asked, key: str | None) -> tuple[str, Question, Reply | None]:
        """Ask one question.

        Args:
            after: the path of the question before it in its task, or `ROOT`.
            asked: what is asked.
            key: the author's key, or None.

        Returns:
            The path to hand on as `after`, the question, and its recorded reply or None.

        Raises:
            QuestionError: one key for two questions, or two equal questions open at once.
        """
        question_digest = digest([asked.message, asked.digest])
        place = f"{after}/{key or ''}/{question_digest}"
        times = self._times.get(place, 0)
        if key is None and question_digest in self._open_digests and not self._equals:
            self.broken = QuestionError(f"two equal questions are open at once ({asked.message!r}); give each a key=")
            raise self.broken
        if key is not None and key in self._keys:
            self.broken = QuestionError(f"the key {key!r} names two questions of one call; give each its own key=")
            raise self.broken
        self._times[place] = times + 1
        path = digest([place, times])
        self.met.add(path)
        wire_key = self._key(path, key, asked.mode)
        self._keys.add(wire_key)
        question = asked.question(wire_key, path, max(0, asked.reask - self.journal.refused.get(path, 0)))
        reply = self.journal.replies.get(path)
        if reply is None:
            self.open[wire_key] = question
            self._open_digests.add(question_digest)
        return path, question, reply

    def _key(self, path: str, key: str | None, mode: Mode) -> str:
        known = self.journal.asked.get(path)
        if known is not None:
            return known
        taken = {name: path for path, name in self.journal.asked.items()}
        if key is None:
            number = len(taken) + 1
            while f"{_PREFIX[mode]}-{number}" in taken:
                number += 1
            wire_key = f"{_PREFIX[mode]}-{number}"
        else:
            wire_key = key
            # A keyed question whose text has changed since the last run: its old path gives the key up.
            self.journal.asked.pop(taken.get(key, ""), None)
        self.journal.asked[path] = wire_key
        return wire_key

    def refuse(self, question: Question, reasons: tuple[str, ...]) -> bool:
        """Forget an answer that broke a rule which its form could not show; return whether it is asked again."""
        self.journal.replies.pop(question.path, None)
        self.open[question.key] = self.journal.refuse(question, reasons) if question.reask > 0 else question
        return question.reask > 0

    def enter_step(self, name: str) -> None:
        """Note that a step is taken.

        Raises:
            QuestionError: one name for two steps of a run.
        """
        if name in self._steps:
            raise QuestionError(f"the step {name!r} is taken twice in one call; give each its own name")
        self._steps.add(name)

    def record_step(self, name: str, result: Any) -> None:
        """Keep a step's JSON result."""
        self.stepped = True
        self.journal.steps[name] = result
