"""What runs behind a server under test: every call, each of its runs, what it asked. It changes nothing of them."""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from bridge.asking.journal import Journal
from bridge.asking.question import Question
from bridge.protocol.clients import ClientProfile
from bridge.testing.answers import Asked
from bridge.upstreams.base import Call, CallRequest, Outcome, Stopped, Upstream

__all__ = ["Run", "Watched", "WatchedCall"]

MAX_CALLS: Final = 10_000
"""How many calls of one test are kept."""


class Run(msgspec.Struct, frozen=True):
    """One run of a call: from the top, or on from where it was suspended.

    Args:
        began: how many effects there were before.
        ended: how many there were after.
        outcome: how it ended.
    """

    began: int
    ended: int
    outcome: Outcome


class WatchedCall(msgspec.Struct):
    """One call, over all its runs.

    Args:
        request: what was called.
        profile: by what client.
        journal: its answers and steps so far.
        questions: what it asked, by path.
        runs: its runs so far.
    """

    request: CallRequest
    profile: ClientProfile
    journal: Journal
    questions: dict[str, Question] = msgspec.field(default_factory=dict)
    runs: list[Run] = msgspec.field(default_factory=list)


class Watched:
    """An upstream whose calls are noted.

    Args:
        upstream: what runs them.
        mark: how many effects there are by now.
    """

    def __init__(self, upstream: Upstream, mark: Callable[[], int]) -> None:
        self._upstream = upstream
        self._mark = mark
        self.calls: dict[str, WatchedCall] = {}
        """The calls by their id; the one that ran last stands last."""

    @classmethod
    def around(cls, upstream: Upstream, mark: Callable[[], int] = lambda: 0) -> tuple[Upstream, "Watched"]:
        """The upstream to serve in place of one, and what is noted of it."""
        watched = cls(upstream, mark)
        return cast(Upstream, watched), watched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._upstream, name)

    async def run(self, call: Call) -> Outcome:
        """See `Upstream`."""
        known = self.calls.pop(call.named(), None) or WatchedCall(call.request, call.client, call.journal)
        self.calls[call.id] = known
        if len(self.calls) > MAX_CALLS:
            del self.calls[next(iter(self.calls))]
        began = self._mark()
        outcome = await self._upstream.run(call)
        known.journal = call.journal
        known.runs.append(Run(began, self._mark(), outcome))
        if isinstance(outcome, Stopped):
            known.questions |= {question.path: question for question in outcome.questions}
        return outcome

    def find(self, asked: Asked) -> Question | None:
        """The question behind what a client was asked: its text tells, and where two are equal, their order."""
        shown = [question for call in self.calls.values() for question in call.questions.values()]
        same = [question for question in shown if _is_of(asked, question)]
        unanswered = [question for question in same if not self._is_answered(question)]
        return next(iter(unanswered or same), None)

    def _is_answered(self, question: Question) -> bool:
        return any(question.path in call.journal.replies for call in self.calls.values())


def _is_of(asked: Asked, question: Question) -> bool:
    if question.mode not in ("form", "url") or question.url != asked.url:
        return False
    return asked.message == question.message or asked.message.startswith(f"{question.message}\n\n")
