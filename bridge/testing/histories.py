"""Histories: what one call was asked, answered and stepped through, kept in a file and run again by a later version.

A call that waits for its user outlives a deploy. What it has answered so far counts for the new version only if that
asks the same questions, in the same words, and takes the same steps: see `bridge.asking.journal`. A replay shows it
before.
"""

from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import msgspec

from bridge.asking.journal import Journal
from bridge.asking.question import Mode, Question, Reply
from bridge.asking.routes import RouteName, choose
from bridge.errors import Suspended
from bridge.protocol.clients import ClientProfile
from bridge.protocol.messages import Json
from bridge.protocol.revisions import REVISIONS
from bridge.testing.answers import CallResult
from bridge.testing.serving import bridge_of, serving
from bridge.testing.watching import WatchedCall
from bridge.upstreams.base import Call, CallRequest, Deaf, Failed, Finished, Outcome, Stopped, Upstream, Visitor

__all__ = ["History", "HistoryChanged", "Recorded", "Step", "again", "history_of", "read_history", "replay"]

FORMAT: Final = 1


class Recorded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that was answered.

    Args:
        key: its key on the wire.
        path: where in the call it was asked; see `bridge.asking.journal`.
        message: its text.
        mode: what was asked for.
        schema: the form.
        url: the page.
        params: what was asked of the client itself.
        reply: the answer.
    """

    key: str
    path: str
    message: str = ""
    mode: Mode = "form"
    schema: Json | None = None
    url: str | None = None
    params: Json | None = None
    reply: Reply


class Step(msgspec.Struct, frozen=True):
    """A step that was taken, and its result."""

    name: str
    result: Any


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One call, from its arguments to its end.

    Args:
        format: of the file.
        revision: what the client spoke.
        capabilities: what it declared.
        info: what it called itself.
        request: what it called.
        questions: what was asked and answered, in the order of the answers.
        steps: what was done once, in order.
        result: what it ended with; None for a JSON-RPC error.
    """

    format: int = FORMAT
    revision: str
    capabilities: Json
    info: Json
    request: CallRequest
    questions: list[Recorded]
    steps: list[Step]
    result: Json | None

    def save(self, path: Path) -> None:
        """Write it, as JSON for people to read."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")

    @property
    def profile(self) -> ClientProfile:
        """The client that called."""
        return ClientProfile(REVISIONS[self.revision], self.capabilities, self.info)


class HistoryChanged(AssertionError):
    """A call does not go again as it went.

    Args:
        target: the tool, prompt or resource that was called.
        differences: one text for each.
    """

    def __init__(self, target: str, differences: list[str]) -> None:
        lines = "\n".join(f"- {difference}" for difference in differences)
        super().__init__(
            f"{target} does not run as its history says, so calls that wait for their user would lose answers:\n"
            f"{lines}\nIf that is meant, let such calls end before this is deployed, and save the history again "
            "(--mcp-update)."
        )
        self.differences = differences


def history_of(call: WatchedCall) -> History:
    """The history of a call that was watched."""
    questions = [
        _recorded(call.questions[path], reply) for path, reply in call.journal.replies.items() if path in call.questions
    ]
    outcome = call.runs[-1].outcome if call.runs else None
    return History(
        revision=call.profile.revision.name,
        capabilities=call.profile.capabilities,
        info=call.profile.info,
        request=call.request,
        questions=questions,
        steps=[Step(name, result) for name, result in call.journal.steps.items()],
        result=outcome.result if isinstance(outcome, Finished) else None,
    )


def read_history(path: str | Path) -> History:
    """Read a saved history.

    Raises:
        ValueError: the file is none, or of a format that this version does not know.
    """
    try:
        history = msgspec.json.decode(Path(path).read_bytes(), type=History)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path} is no saved history: {error}") from None
    if history.format != FORMAT:
        raise ValueError(f"{path} has the format {history.format}, and this version reads {FORMAT}: save it again")
    return history


async def replay(target: Any, path: str | Path) -> CallResult:
    """Run a saved call anew, with its recorded answers and the recorded results of its steps.

    A recorded step is not run. Code outside of steps is, as it would be for a call that goes on after a deploy: replay
    with the same fakes as in other tests. A step that was not recorded is reported and not run.

    Args:
        target: a `Bridge`, or what `Bridge.wrap` takes.
        path: the file; see `Tester.save_history`.

    Returns:
        What the call ends with.

    Raises:
        HistoryChanged: a question or step is another one, is new, or is gone; or the call fails now.
        ValueError: the file is no saved history.
    """
    history = read_history(path)
    async with serving(bridge_of(target)) as app:
        outcome, differences = await _played(app.upstream, history)
    if differences:
        raise HistoryChanged(history.request.target, differences)
    assert isinstance(outcome, Finished)
    return CallResult(outcome.result)


async def again(upstream: Upstream, history: History) -> bool:
    """Run a call once from its top to its end with all its answers, its steps taken anew; return whether it asked the
    same."""
    journal = _journal(history)
    journal.replies = met = _Met(journal.replies)
    outcome = await upstream.run(_call(history, journal))
    if isinstance(outcome, Stopped) and outcome.hold is not None:
        await outcome.hold.cancel()
    return not isinstance(outcome, Stopped) and met.keys() == met.met


async def _played(upstream: Upstream, history: History) -> tuple[Outcome, list[str]]:
    journal = _journal(history)
    journal.replies = met = _Met(journal.replies)
    journal.steps = steps = _Taken({step.name: step.result for step in history.steps})
    outcome = await upstream.run(_call(history, journal))
    if isinstance(outcome, Stopped) and outcome.hold is not None:
        await outcome.hold.cancel()
    return outcome, [*_differences(history, met, steps, outcome)]


def _differences(history: History, met: "_Met", steps: "_Taken", outcome: Outcome) -> Iterator[str]:
    unmet = [question for question in history.questions if question.path not in met.met]
    if isinstance(outcome, Stopped):
        for question in outcome.questions:
            yield _asks_otherwise(question, unmet, None if outcome.invalid is None else outcome.invalid.text)
    else:
        for recorded in unmet:
            yield f"the question {recorded.key!r}, {recorded.message!r}, is not asked any more"
    for name in steps.new:
        yield f"the step {name!r} is new: a call that has gone past it would take it now"
    if not isinstance(outcome, Stopped) and not steps.new:
        for name in steps.keys() - steps.met:
            yield f"the step {name!r} is not taken any more"
        if isinstance(outcome, Failed):
            yield f"it fails: {outcome.code} {outcome.message}"
        elif outcome.result.get("isError") is True and (history.result or {}).get("isError") is not True:
            yield f"it fails: {CallResult(outcome.result).text()}"


def _asks_otherwise(question: Question, unmet: list[Recorded], invalid: str | None) -> str:
    if invalid is not None:
        return f"the recorded answer to {question.key!r}, {question.message!r}, is none any more: {invalid}"
    before = next((recorded for recorded in unmet if recorded.key == question.key), unmet[0] if unmet else None)
    if before is None:
        return f"the question {question.key!r}, {question.message!r}, is new"
    now = _recorded(question, before.reply)
    diff = unified_diff(_lines(before), _lines(now), "as recorded", "as it is asked now", lineterm="", n=2)
    if _lines(before) == _lines(now):
        return f"the question {question.key!r}, {question.message!r}, comes after other questions than before"
    return f"the question {before.key!r} is another one:\n" + "\n".join(f"    {line}" for line in diff)


def _lines(question: Recorded) -> list[str]:
    shown = msgspec.structs.replace(question, path="", reply=Reply("cancel"))
    plain = {key: value for key, value in msgspec.to_builtins(shown).items() if key not in ("path", "reply")}
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode().splitlines()


def _recorded(question: Question, reply: Reply) -> Recorded:
    return Recorded(
        key=question.key,
        path=question.path,
        message=question.message,
        mode=question.mode,
        schema=question.schema,
        url=question.url,
        params=question.params,
        reply=reply,
    )


def _journal(history: History) -> Journal:
    return Journal(
        asked={question.path: question.key for question in history.questions},
        replies={question.path: question.reply for question in history.questions},
    )


def _call(history: History, journal: Journal) -> Call:
    profile = history.profile
    return Call("", history.request, Visitor(profile), journal, Deaf(), lambda: _route(profile))


def _route(profile: ClientProfile) -> RouteName:
    return choose(profile, "form").route


class _Met(dict[str, Reply]):
    """Recorded answers that note which of them a run has come to."""

    def __init__(self, replies: dict[str, Reply]) -> None:
        super().__init__(replies)
        self.met: set[str] = set()

    def get(self, path: str, default: Any = None) -> Any:
        if path in self:
            self.met.add(path)
        return super().get(path, default)


class _Taken(dict[str, Any]):
    """Recorded steps that note which of them a run takes, and stop it at one that is not recorded."""

    def __init__(self, steps: dict[str, Any]) -> None:
        super().__init__(steps)
        self.met: set[str] = set()
        self.new: list[str] = []

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            self.met.add(str(name))
            return True
        self.new.append(str(name))
        raise Suspended(f"the step {name!r} is not recorded")
