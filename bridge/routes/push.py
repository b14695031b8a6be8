"""Push: how a legacy client is asked that shows forms. The question goes down the stream of the call that asks.

The call's request waits; nothing of the tool does. The answer comes in another message, perhaps to another node, and
reaches the waiting call through its session's log. A client that turns out unable is asked through the chat.
"""

import logging
import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias, cast

import anyio
import msgspec

from bridge.asking.checking import InvalidReply, check_reply
from bridge.asking.dialects import read_shown, request_params
from bridge.asking.form import digest
from bridge.asking.question import Question, Reply
from bridge.asking.routes import ClientRule
from bridge.calls import Round, Route, Stored, Waiting
from bridge.claims import Ending
from bridge.protocol.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Json,
    notification,
    request_message,
)
from bridge.protocol.revisions import Revision
from bridge.session import AskedNow, Entry, Session, SessionRecord
from bridge.sessions import Sessions
from bridge.stores.base import Store
from bridge.stores.reader import LogReader
from bridge.upstreams.base import CallRequest
from bridge.upstreams.endings import failed

__all__ = ["Push", "PushLimits"]

_log = logging.getLogger("bridge.push")
_CLEANUP_SECONDS: Final = 5.0


class PushLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a pushed question waits.

    Args:
        answer_seconds: for its answer.
        initialized_seconds: for `notifications/initialized`, before anything is asked.
        progress_seconds: between two reports that the call waits.
        soft_deadline_seconds: when nobody has answered by then, the call ends, while the form stays open; None: never.
        late_seconds: how long a late answer can be used by an equal call.
    """

    answer_seconds: float = 600.0
    initialized_seconds: float = 5.0
    progress_seconds: float = 15.0
    soft_deadline_seconds: float | None = None
    late_seconds: float = 600.0


class _Unable(msgspec.Struct, frozen=True):
    """This question cannot be asked; with a reason to remember, nor can any other in its mode."""

    reason: str | None = None


class _Late(msgspec.Struct, frozen=True):
    """Nobody answered in time."""

    seconds: float


class _Withdrawn(msgspec.Struct, frozen=True):
    """The call that asked, suspended meanwhile, does not want an answer any more."""


class _Parked(msgspec.Struct, frozen=True):
    """The question stays open after its call has ended."""

    until: float


_Answered: TypeAlias = Reply | InvalidReply | _Unable | _Withdrawn


class Push:
    """Asks over the session.

    Args:
        sessions: where answers come in.
        store: where a question is parked whose call has ended.
        chat: the route for what cannot be asked so.
        limits: how long to wait.
        rules: what the operator decided about some clients.
    """

    def __init__(
        self, sessions: Sessions, store: Store, chat: Route, limits: PushLimits, rules: Sequence[ClientRule] = ()
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._chat = chat
        self._limits = limits
        self._rules = rules
        self.parks = limits.soft_deadline_seconds is not None or any(rule.soft_deadline_seconds for rule in rules)
        """Whether a question may stay open after its call has ended."""

    async def ask(self, current: Round, questions: list[Question]) -> Ending | None:
        """See `Route`: waits for the answers, one question after the other, as old clients show one at a time."""
        session = cast(Session, current.client)
        if not current.exchange.can_stream:
            return await self._unable(current, session, questions, "no_stream")
        if not await self._is_initialized(session):
            _log.info("session %s has not sent notifications/initialized; asked through the chat", session.handle)
            return await self._unable(current, session, questions, None)
        for position, question in enumerate(questions):
            answered = await self._ask_one(current, session, question)
            if isinstance(answered, Reply):
                current.call.journal.record(question, answered)
            elif isinstance(answered, _Unable):
                return await self._unable(current, session, questions[position:], answered.reason)
            elif isinstance(answered, _Withdrawn):
                return None
            else:
                return _ended(current, question, answered)
        await _goes_on(current)
        return None

    async def parked(self, session: Session, request: CallRequest) -> Waiting | None:
        """Take the question that an equal call has left open, so that this call goes on with it."""
        if self._soft_deadline(session) is None:
            return None
        value = await self._store.take(_parked_key(session, request))
        return None if value is None else _parked_decoder.decode(value)

    async def go_on(self, current: Round, parked: Waiting) -> Ending | None:
        """Wait for the answer of a question that was pushed before; see `ask` for what is returned."""
        session = cast(Session, current.client)
        if current.exchange.keeper is not None:
            await current.exchange.keeper.waits(parked)
        inbox = self._sessions.inbox(session, parked.position)
        answered = await self._wait(current, session, parked.question, parked.question_id, inbox)
        if isinstance(answered, Reply):
            current.call.journal.record(parked.question, answered)
        if isinstance(answered, Reply | _Withdrawn):
            await _goes_on(current)
            return None
        if isinstance(answered, _Unable):
            return await self._unable(current, session, [parked.question], answered.reason)
        return _ended(current, parked.question, answered)

    async def _unable(
        self, current: Round, session: Session, questions: list[Question], reason: str | None
    ) -> Ending | None:
        """Ask through the chat what cannot be asked so; what the client itself is asked simply fails."""
        users = [question for question in questions if question.mode in ("form", "url")]
        if not users:
            for question in questions:
                current.call.journal.record(question, Reply("decline", reason or "not possible on this session"))
            return None
        await self.demote(session, users[0].mode, reason)
        return await self._chat.ask(current, users)

    async def demote(self, session: Session, mode: str, reason: str | None) -> None:
        """Ask a session in this mode no more, if there is a reason to remember."""

        def alter(record: SessionRecord) -> None:
            record.unable = {**record.unable, mode: str(reason)}

        if reason is not None:
            await self._sessions.change(session, alter)
        _log.info("session %s cannot be asked in %s mode (%s): by chat", session.handle, mode, reason or "once")

    async def _is_initialized(self, session: Session) -> bool:
        if session.record.initialized:
            return True
        inbox, deadline = self._sessions.inbox(session), time.monotonic() + self._limits.initialized_seconds
        while True:
            # A look first: another node may have changed it before this one began to hear of that.
            await self._sessions.refresh(session)
            remaining = deadline - time.monotonic()
            if session.record.initialized or remaining <= 0:
                return session.record.initialized
            await self._sessions.hear(inbox, remaining)

    async def _ask_one(self, current: Round, session: Session, question: Question) -> _Answered | _Late | _Parked:
        """Ask a question, and again with the reasons where an invalid answer allows it."""
        while True:
            answered = await self._ask_once(current, session, question)
            if not isinstance(answered, InvalidReply) or question.reask <= 0:
                return answered
            question = current.call.journal.refuse(question, answered.reasons)

    async def _ask_once(self, current: Round, session: Session, question: Question) -> _Answered | _Late | _Parked:
        question_id = "ask-" + secrets.token_urlsafe(18)
        revision = session.profile.revision
        if question.elicitation_id is not None and revision.url_ids:
            await self._sessions.expect_completion(session, question.elicitation_id, self._limits.answer_seconds)
        open_seconds = self._limits.answer_seconds + self._limits.late_seconds
        asked = AskedNow(time.time(), current.call.request.target, question.mode)
        await self._sessions.expect_answer(session, question_id, open_seconds, asked)
        inbox = self._sessions.inbox(session)
        await inbox.to_end()
        if current.exchange.keeper is not None:
            await current.exchange.keeper.waits(Waiting(_asking(current), question, question_id, inbox.position))
        params = request_params(question, revision)
        with anyio.move_on_after(self._limits.answer_seconds) as sending:
            await current.exchange.send(request_message(question_id, question.method, params))
        if sending.cancelled_caught:
            # The client takes nothing from its stream any more.
            await self._sessions.forget_answer(session, question_id)
            return _Late(self._limits.answer_seconds)
        return await self._wait(current, session, question, question_id, inbox)

    async def _wait(
        self, current: Round, session: Session, question: Question, question_id: str, inbox: LogReader
    ) -> _Answered | _Late | _Parked:
        """Wait for an answer, and leave nothing open that nobody waits for, unless it is parked."""
        parked, position = False, inbox.position
        current.exchange.on_closing = current.exchange.cancel
        try:
            entry = await self._wanted(current, session, question_id, inbox)
            if isinstance(entry, _Withdrawn):
                await self._withdraw(current, question_id, "nobody waits for the answer any more")
                return entry
            if not isinstance(entry, _Late):
                if entry.kind == "withdrawn":
                    await self._withdraw(current, question_id, "it was withdrawn")
                    return Reply("cancel")
                return _read(question, entry, session.profile.revision)
            soft = self._soft_deadline(session)
            if soft is not None and soft < self._limits.answer_seconds:
                parked = True
                return await self._park(current, session, question, question_id, position)
            await self._withdraw(current, question_id, "nobody answered in time")
            return entry
        finally:
            current.exchange.on_closing = None
            if current.hold is not None:
                current.hold.on_over = None
            keeper = current.exchange.keeper
            if not parked and not (keeper is not None and keeper.is_giving_up):
                with anyio.CancelScope(shield=True), anyio.move_on_after(_CLEANUP_SECONDS):
                    await self._sessions.forget_answer(session, question_id)

    async def _wanted(
        self, current: Round, session: Session, question_id: str, inbox: LogReader
    ) -> Entry | _Late | _Withdrawn:
        """Wait for the entry that answers, for as long as the call that is suspended at the question wants it."""
        with anyio.CancelScope() as asking:
            if current.hold is not None:
                current.hold.on_over = asking.cancel
                if current.hold.is_over:
                    asking.cancel()
            return await self._entry(current, session, question_id, inbox)
        return _Withdrawn()

    async def _withdraw(self, current: Round, question_id: str, reason: str) -> None:
        """Let the client take down what it shows."""
        message = notification("notifications/cancelled", {"requestId": question_id, "reason": reason})
        with anyio.move_on_after(_CLEANUP_SECONDS):
            await current.exchange.send(message)

    async def _entry(self, current: Round, session: Session, question_id: str, inbox: LogReader) -> Entry | _Late:
        """Wait for the entry that answers, reporting meanwhile that the call waits."""
        soft = self._soft_deadline(session)
        seconds = self._limits.answer_seconds if soft is None else min(soft, self._limits.answer_seconds)
        deadline, report_at = time.monotonic() + seconds, 0.0
        while (now := time.monotonic()) < deadline:
            if now >= report_at:
                await current.call.outlet.waiting()
                report_at = now + self._limits.progress_seconds
            for entry in await self._sessions.hear(inbox, min(deadline, report_at) - now):
                if entry.kind in ("answer", "withdrawn") and entry.name == question_id:
                    return entry
        return _Late(seconds)

    async def _park(
        self, current: Round, session: Session, question: Question, question_id: str, position: int
    ) -> _Parked:
        parked = Waiting(_asking(current), question, question_id, position)
        key = _parked_key(session, current.call.request)
        await self._store.put(key, msgspec.json.encode(parked), ttl_seconds=self._limits.late_seconds)
        current.waits_until = time.time() + self._limits.late_seconds
        return _Parked(current.waits_until)

    def _soft_deadline(self, session: Session) -> float | None:
        for rule in self._rules:
            if rule.soft_deadline_seconds is not None and rule.matches(session.profile):
                return rule.soft_deadline_seconds
        return self._limits.soft_deadline_seconds


_parked_decoder: Final = msgspec.json.Decoder(Waiting)


def _asking(current: Round) -> Stored:
    """What is known of a call that asks: its round begins with the question."""
    return Stored(current.call.named(), current.number - 1, current.call.journal)


async def _goes_on(current: Round) -> None:
    if current.exchange.keeper is not None:
        await current.exchange.keeper.goes_on(Stored(current.call.named(), current.number, current.call.journal))


def _parked_key(session: Session, request: CallRequest) -> str:
    return f"parked/{session.id}/{digest([request.method, request.target, request.arguments])}"


def _ended(current: Round, question: Question, answered: InvalidReply | _Late | _Parked) -> Ending:
    """How a call ends whose question has no answer that it can go on with."""
    request = current.call.request
    if isinstance(answered, InvalidReply):
        return failed(request, answered.text, "INVALID_INPUT")
    if isinstance(answered, _Late):
        text = f"Nobody answered within {answered.seconds:g} seconds, so the question was withdrawn: {question.message}"
        return failed(request, text, "ELICITATION_TIMEOUT")
    until = datetime.fromtimestamp(answered.until, UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = (
        f"Nobody has answered yet, and nothing was done. The form stays open until {until}: {question.message} "
        "Call the tool again with the same arguments to go on once it is answered."
    )
    return failed(request, text, "ELICITATION_TIMEOUT")


def _read(question: Question, entry: Entry, revision: Revision) -> _Answered:
    """Read an answer, or a client's error in its place. Source: client/elicitation#error-handling."""
    if entry.error is not None:
        return _refused(question, entry.error)
    raw = entry.result
    if question.schema is not None and isinstance(raw, dict) and "content" in raw:
        raw = {**raw, "content": read_shown(question.schema, raw["content"], revision)}
    return check_reply(question, raw, "form")


def _refused(question: Question, error: Json) -> _Answered:
    code = error.get("code")
    if question.mode in ("sampling", "roots"):
        return Reply("decline", error.get("message", code))
    if code in (METHOD_NOT_FOUND, INVALID_REQUEST):
        return _Unable(f"answered_with_error {code}")
    if code == INVALID_PARAMS:
        return _Unable()
    _log.info("the client answered a question with the error %r; taken for cancel", error)
    return Reply("cancel")
