"""Does a tool do once what it does before it asks? Each kind of client calls it, and what was done is counted.

A tool that asks runs again from the top for each answer. So what it does before a question, outside of a step, is done
for each run. To tell that from a tool which means to do a thing twice, the same call is then run a second time in one
go, with every answer there from the beginning: that run does everything as often as the author meant it.
"""

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from bridge.kinds import ClientKind
from bridge.protocol.messages import Json
from bridge.testing.histories import again, history_of
from bridge.testing.watching import WatchedCall
from bridge.upstreams.base import Stopped, Upstream

__all__ = ["EffectsTwice", "Findings", "PutBack", "arguments_for"]

PutBack = Callable[[], None | Awaitable[None]]
"""Puts back what a call has changed."""


class EffectsTwice(AssertionError):
    """A tool did more than it does in one go. The text says as which client, what, and in which run."""


class Finding(msgspec.Struct, frozen=True):
    """What one kind of client found.

    Args:
        kind: the kind.
        call: its call; None where the tool was not reached.
        done: what it did, all runs together.
        meant: what one uninterrupted run does; None where the call stopped nowhere.
    """

    kind: ClientKind
    call: WatchedCall | None
    done: list[str]
    meant: list[str] | None

    @property
    def is_twice(self) -> bool:
        """Whether more was done than was meant."""
        return self.meant is not None and len(self.done) > len(self.meant)

    @property
    def asked(self) -> bool:
        """Whether the call stopped at a question."""
        return self.call is not None and any(isinstance(run.outcome, Stopped) for run in self.call.runs)


class Findings:
    """What all kinds of client found about one tool.

    Args:
        tool: its name.
        snapshot: everything that was done so far.
        put_back: run before each call.
    """

    def __init__(self, tool: str, snapshot: Callable[[], list[str]], put_back: PutBack | None) -> None:
        self._tool = tool
        self._snapshot = snapshot
        self._put_back = put_back
        self.found: list[Finding] = []

    async def before(self) -> int:
        """Put things back for the next call, and return how much was done before it."""
        if self._put_back is not None and inspect.isawaitable(under_way := self._put_back()):
            await under_way
        return len(self._snapshot())

    async def add(self, kind: ClientKind, call: WatchedCall | None, since: int, upstream: Upstream) -> None:
        """Take in the call of one kind, and run it in one go for comparison.

        Args:
            kind: who called.
            call: its call, ended.
            since: how much was done before it.
            upstream: what runs it again.
        """
        done, meant = self._snapshot()[since:], None
        if call is not None and len(call.runs) > 1:
            began = await self.before()
            if not await again(upstream, history_of(call)):
                raise AssertionError(
                    f"{self._tool} asks otherwise when it is called a second time with the same arguments: pass "
                    "before=, a function that puts back what a call has changed"
                )
            meant = self._snapshot()[began:]
        self.found.append(Finding(kind, call, done, meant))

    def check(self) -> None:
        """Check what was found.

        Raises:
            EffectsTwice: something was done twice.
            AssertionError: nothing can be said, since nothing was asked, or nothing was seen.
        """
        if not any(finding.asked for finding in self.found):
            raise AssertionError(f"{self._tool} asked nothing, as no kind of client, so it never ran twice")
        if not any(finding.done for finding in self.found):
            raise AssertionError(
                f"{self._tool} did nothing that was seen: watch what it calls, mcp.effects.watch(module, name), or "
                "pass effects=, a log that grows or a function that counts"
            )
        twice = [finding for finding in self.found if finding.is_twice]
        if twice:
            raise EffectsTwice(self._report(twice))

    def _report(self, twice: list[Finding]) -> str:
        first = twice[0]
        assert first.meant is not None
        assert first.call is not None
        more = Counter(first.done) - Counter(first.meant)
        lines = [f"{self._tool} did more than once what it is to do once, as {first.kind.title}:"]
        lines += [
            f"  {effect}: {first.done.count(effect)} times, and {first.meant.count(effect)} in one go"
            for effect in more
        ]
        lines += list(self._runs(first, first.call))
        if len(twice) > 1:
            lines.append(f"Likewise as {', '.join(finding.kind.title for finding in twice[1:])}.")
        lines.append(
            "A tool runs again from the top for each answer. Ask first and act afterwards, or make what comes before "
            "the question a step: await ctx.step(name, function)."
        )
        return "\n".join(lines)

    def _runs(self, finding: Finding, call: WatchedCall) -> list[str]:
        begin = call.runs[0].began
        lines = []
        for number, run in enumerate(call.runs, 1):
            done = finding.done[run.began - begin : run.ended - begin]
            end = "ended"
            if isinstance(run.outcome, Stopped):
                end = "asked " + ", ".join(repr(question.message) for question in run.outcome.questions)
            lines.append(f"  run {number}: {', '.join([*done, end])}")
        return lines


def arguments_for(arguments: Json | Callable[[], Json] | None) -> Json:
    """The arguments of one call: as they are, or made anew for each."""
    return arguments() if callable(arguments) else arguments or {}
