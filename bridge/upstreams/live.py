"""One call at a wrapped server, under way in a task of its own, perhaps suspended at its questions.

Who made the request drives it (`advance`): hands on what the server says meanwhile, and learns how it ended or what
it asks. Suspended it has no driver; the next round, or the fallback tool, brings one. It knows no route.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import anyio
import msgspec

from bridge.asking.journal import ROOT, Replay
from bridge.asking.question import MAX_REASKS, Question, Reply
from bridge.protocol.messages import INTERNAL_ERROR, Json
from bridge.upstreams.attempts import attempt, cancelled, timed_out
from bridge.upstreams.base import Call, Failed, Finished, Outcome, Outlet, Stopped
from bridge.upstreams.endings import DISABLED, failed
from bridge.upstreams.holds import Holds
from bridge.upstreams.reach import Links, Reached
from bridge.upstreams.relaying import Relayed, relay

__all__ = ["Live"]

_MAX_REPORTS: Final = 1000
_CANCEL_SECONDS: Final = 10.0
_QUIET_SECONDS: Final = 0.02
"""How long after a question nothing may come before the call stops there."""
_GATHER_SECONDS: Final = 0.2
"""How long questions are gathered at most."""
_log = logging.getLogger("bridge.upstream")

Report: TypeAlias = Callable[[Outlet], Awaitable[None]]
"""Something that the server says meanwhile, told to whoever drives the call by then."""


class _Open(msgspec.Struct):
    """A question that waits for its answer."""

    question: Question
    answered: anyio.Event
    reply: Reply | None = None


class Live:
    """A call under way: the `Talk` of its request, and the `Hold` of its suspension.

    Args:
        call: the call, as its first driver has it.
        server: how to call the server in a text.
        links: the ways to the server.
        params: the params of the request.
        holds: where it is found while it is suspended.
        hold: whether it stays suspended at a question; else it is given up there, and run again with the answer.
        seconds: how long it may take, the time not counted while a person is asked.
        keys: the names of its questions, in the order in which it asks; ours for what it asks beyond.
        scope: what its task runs in.
    """

    def __init__(
        self,
        call: Call,
        server: str,
        links: Links,
        params: Json,
        holds: "Holds[Live]",
        *,
        hold: bool,
        seconds: float,
        scope: anyio.CancelScope,
        keys: Sequence[str] = (),
    ) -> None:
        self._call = call
        self._server = server
        self._links = links
        self._params = params
        self._holds = holds
        self._hold = hold
        self._seconds = seconds
        self._keys = iter(keys)
        self._replay = Replay(call.journal, equals=True)
        self._after = ROOT
        self.link_name = ""
        """Names the session with the server."""
        self._gathers = False
        """Whether the questions of several tasks of the call reach us while it waits: elsewhere it has no turn then."""
        self._open: dict[str, _Open] = {}
        self._reports: deque[Report] = deque(maxlen=_MAX_REPORTS)
        self._outcome: Finished | Failed | None = None
        self._stirred: asyncio.Event | None = None
        self._scope = scope
        self._now = asyncio.get_running_loop().time
        self._deadline = math.inf
        self._remaining = seconds
        self._why: Finished | Failed | None = None
        """How it ends when it is given up here; None: it was cancelled."""
        self._is_over = False
        self._over: anyio.Event | None = None
        self.on_over: Callable[[], None] | None = None
        """See `Hold`."""

    # -- the task ------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Make the request and see it to its end: the body of its task."""
        try:
            with self._scope:
                self._deadline = self._now() + self._seconds
                self._outcome = await attempt(self._call.request, self._server, self._reach, self._params, self)
        except Exception as error:
            _log.exception("a call of %s at %s failed", self._call.request.target, self._server)
            self._outcome = Failed(INTERNAL_ERROR, f"{type(error).__name__}; its details are in the server's log")
        finally:
            self._outcome = self._outcome or self._why or cancelled(self._call.request, self._server)
            self._is_over = True
            if self._over is not None:
                self._over.set()
            self._stir()
            if self.on_over is not None:
                self.on_over()

    async def _reach(self) -> Reached:
        caller = self._call.caller
        reached = self._links.at_hand(caller) or await self._links.get(caller)
        self.link_name, self._gathers = reached.name, reached.link.names_requests
        if self.log_level is not None and not caller.id:
            await reached.want_log(self.log_level)
        return reached

    def end_if_late(self, now: float) -> None:
        """End the call where it has taken longer than it may."""
        if now >= self._deadline:
            self._why = timed_out(self._call.request, self._server, self._seconds)
            self.give_up()

    def give_up(self) -> None:
        """End the call; its server is told."""
        self._scope.cancel()

    # -- what the link is given: see `Talk` ----------------------------------------------------------------------

    @property
    def wants_progress(self) -> bool:
        """See `Talk`."""
        return self._call.outlet.wants_progress

    @property
    def log_level(self) -> str | None:
        """See `Talk`."""
        return self._call.outlet.log_level

    @property
    def is_waiting(self) -> bool:
        """See `Talk`."""
        return bool(self._open)

    @property
    def http(self) -> Mapping[str, Any] | None:
        """See `Talk`."""
        return self._call.http

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Talk`."""
        self._report(lambda outlet: outlet.progress(progress, total, message))

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """See `Talk`."""
        self._report(lambda outlet: outlet.log(level, data, logger))

    async def ask(self, method: str, params: Json) -> Finished | Failed:
        """See `Talk`."""
        rules = self._call.rules
        if not rules.elicitation and method == "elicitation/create":
            self._why = failed(self._call.request, DISABLED, "ELICITATION_DISABLED")
            self.give_up()
            await anyio.sleep_forever()
        reask = MAX_REASKS if rules.on_invalid == "reask" else 0
        relayed = relay(method, params, link=self.link_name, reask=reask, not_secret=rules.not_secret)
        if isinstance(relayed, Failed):
            _log.warning("%s asks what cannot be asked: %s", self._server, relayed.message)
            return relayed
        self._warn(relayed)
        path, question, reply = self._replay.ask(self._after, relayed.asked, next(self._keys, None))
        self._after = path
        return relayed.back(await self._answer(path, question) if reply is None else reply)

    def _warn(self, relayed: Relayed) -> None:
        for name in (*relayed.asked.secret, *relayed.described_secret):
            _log.warning("%s asks for what sounds like a secret, in the field %r: it is relayed", self._server, name)

    async def _answer(self, path: str, question: Question) -> Reply:
        """Wait for the answer to a question; the time of the call stands still meanwhile."""
        opened = self._open[path] = _Open(question, anyio.Event())
        self._pause()
        self._stir()
        try:
            await opened.answered.wait()
        finally:
            withdrawn = opened.reply is None
            self._open.pop(path, None)
            self._replay.open.pop(question.key, None)
            self._unpause()
            if withdrawn and not self._open and self.on_over is not None:
                self.on_over()
        assert opened.reply is not None
        return opened.reply

    def _pause(self) -> None:
        if self._deadline != math.inf:
            self._remaining, self._deadline = self._deadline - self._now(), math.inf

    def _unpause(self) -> None:
        if not self._open:
            self._deadline = self._now() + self._remaining

    def _report(self, report: Report) -> None:
        if len(self._reports) == _MAX_REPORTS:
            _log.warning("%s reports faster than its client takes it: the oldest report is dropped", self._server)
        self._reports.append(report)
        self._stir()

    def _stir(self) -> None:
        if self._stirred is not None:
            self._stirred.set()

    @property
    def call(self) -> Call:
        """The call, as its driver has it, or its last one had it."""
        return self._call

    # -- what the driver does ------------------------------------------------------------------------------------

    async def advance(self, call: Call) -> Outcome:
        """Go on with the answers in the call's journal, until the call ends or has stopped at questions."""
        # What was asked while nobody drove it keeps its key.
        call.journal.asked = {**call.journal.asked, **self._replay.journal.asked}
        self._call = call
        self._replay.journal = call.journal
        self.on_over = None
        self._hand_in(call.journal.replies)
        gathers_until = math.inf
        while True:
            while self._reports:
                await self._hand_out(self._reports.popleft())
            if self._outcome is not None:
                call.journal.held = ""
                return self._outcome
            if not self._open:
                gathers_until = math.inf
                await self._stirs_within(math.inf)
                continue
            # What the server asks at once goes out together; a moment is enough to tell.
            now = self._now()
            gathers_until = min(gathers_until, now + _GATHER_SECONDS)
            patience = min(_QUIET_SECONDS, gathers_until - now) if self._gathers else 0.0
            if not (patience and await self._stirs_within(patience)):
                return await self._stopped()

    async def _stirs_within(self, seconds: float) -> bool:
        """Wait until something happens; return whether it did in time."""
        stirred = self._stirred = asyncio.Event()
        if seconds == math.inf:
            await stirred.wait()
            return True
        with anyio.move_on_after(seconds):
            await stirred.wait()
        return stirred.is_set()

    def _hand_in(self, replies: Mapping[str, Reply]) -> None:
        for path in [path for path in self._open if path in replies]:
            opened = self._open.pop(path)
            opened.reply = replies[path]
            opened.answered.set()

    async def _hand_out(self, report: Report) -> None:
        try:
            await report(self._call.outlet)
        except ValueError as error:
            _log.warning("%s sent a report that is none: %s", self._server, error)

    async def _stopped(self) -> Stopped | Finished | Failed:
        questions = [opened.question for opened in self._open.values()]
        if not self._hold:
            await self.cancel()
            return Stopped(questions)
        if not self._holds.admit(self._call.named(), self):
            await self.cancel()
            text = (
                f"{self._call.request.target} asks its user, and too many calls wait for an answer already. It was "
                "cancelled before it got one; try again later."
            )
            return failed(self._call.request, text, "ELICITATION_NOT_SUPPORTED")
        self._call.journal.held = self._holds.node_id
        return Stopped(questions, hold=self)

    # -- what the loop does with a suspended call: see `Hold` ------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """See `Hold`."""
        return self._is_over or not self._open

    def keep(self, until: float) -> None:
        """See `Hold`."""
        self.on_over = None
        self._holds.keep(self._call.id, until)

    async def cancel(self) -> None:
        """See `Hold`; also where it is not suspended. Waits, for a while, until its server has been told."""
        self._holds.forget(self._call.id, self)
        self.on_over = None
        self._scope.cancel()
        if self._is_over:
            return
        self._over = self._over or anyio.Event()
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
            await self._over.wait()
