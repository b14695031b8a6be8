"""Push: how a legacy client is asked that shows forms. The question goes down the stream of the call that asks.

The call's request waits; nothing of the tool does. The answer comes in another message, perhaps to another node, and
reaches the waiting call through its session's log. A client that turns out unable is asked through the chat.
"""

import logging
import secrets
import time
from typing import Final, cast

import anyio
import msgspec

from bridge.asking.checking import InvalidReply, check_reply
from bridge.asking.dialects import request_params
from bridge.asking.question import Question, Reply
from bridge.calls import Round, Route
from bridge.claims import Ending
from bridge.protocol.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    notification,
    request_message,
)
from bridge.sessions import Entry, Session, SessionRecord, Sessions
from bridge.upstreams.base import Finished
from bridge.upstreams.functions import error_result

__all__ = ["Push", "PushLimits"]

_log = logging.getLogger("bridge.push")
_CLEANUP_SECONDS: Final = 5.0


class PushLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a pushed question waits.

    Args:
        answer_seconds: for its answer.
        initialized_seconds: for `notifications/initialized`, before anything is asked.
        progress_seconds: between two reports that the call waits.
    """

    answer_seconds: float = 600.0
    initialized_seconds: float = 5.0
    progress_seconds: float = 15.0


class _Unable(msgspec.Struct, frozen=True):
    """This question cannot be asked; with a reason to remember, nor can any other in its mode."""

    reason: str | None = None


class _TimedOut(msgspec.Struct, frozen=True):
    """Nobody answered in time."""


class Push:
    """Asks over the session.

    Args:
        sessions: where answers come in.
        chat: the route for what cannot be asked so.
        limits: how long to wait.
    """

    def __init__(self, sessions: Sessions, chat: Route, limits: PushLimits) -> None:
        self._sessions = sessions
        self._chat = chat
        self._limits = limits

    async def ask(self, current: Round, questions: list[Question]) -> Ending | None:
        """See `Route`: waits for the answers, one question after the other, as old clients show one at a time."""
        session = cast(Session, current.client)
        if not current.exchange.can_stream:
            await self.demote(session, questions[0].mode, "no_stream")
            return await self._chat.ask(current, questions)
        if not await self._is_initialized(session):
            _log.info("session %s has not sent notifications/initialized; asked through the chat", session.id)
            return await self._chat.ask(current, questions)
        for position, question in enumerate(questions):
            answered = await self._ask_one(current, session, question)
            if isinstance(answered, Reply):
                current.call.journal.record(question, answered)
            elif isinstance(answered, InvalidReply):
                return Finished(error_result(answered.text, "INVALID_INPUT"))
            elif isinstance(answered, _Unable):
                await self.demote(session, question.mode, answered.reason)
                return await self._chat.ask(current, questions[position:])
            else:
                limit = f"{self._limits.answer_seconds:g} seconds"
                text = f"Nobody answered the question of {current.call.request.target} within {limit}."
                return Finished(error_result(text, "ELICITATION_TIMEOUT"))
        return None

    async def demote(self, session: Session, mode: str, reason: str | None) -> None:
        """Let a session see the fallback tool; with a reason, ask it in this mode no more."""

        def alter(record: SessionRecord) -> None:
            record.fallback = True
            if reason is not None:
                record.unable = {**record.unable, mode: reason}

        known = session.record.fallback
        await self._sessions.change(session, alter)
        _log.info("session %s cannot be asked in %s mode (%s): by chat from now on", session.id, mode, reason or "once")
        if not known:
            await self._sessions.notify(session, "notifications/tools/list_changed")

    async def _is_initialized(self, session: Session) -> bool:
        position, deadline = session.heard, time.monotonic() + self._limits.initialized_seconds
        while not session.record.initialized:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            entries, position = await self._sessions.hear(session, position, remaining)
            if entries:
                await self._sessions.refresh(session)
        return True

    async def _ask_one(
        self, current: Round, session: Session, question: Question
    ) -> Reply | InvalidReply | _Unable | _TimedOut:
        question_id = "ask-" + secrets.token_urlsafe(18)
        params = request_params(question, session.profile.revision)
        await self._sessions.expect_answer(session, question_id, self._limits.answer_seconds + _CLEANUP_SECONDS)
        position = session.heard
        try:
            await current.exchange.send(request_message(question_id, "elicitation/create", params))
            entry = await self._wait(current, session, question_id, position)
            if entry is None:
                reason = {"requestId": question_id, "reason": "nobody answered in time"}
                await current.exchange.send(notification("notifications/cancelled", reason))
                return _TimedOut()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLEANUP_SECONDS):
                await self._sessions.forget_answer(session, question_id)
        return _read(question, entry)

    async def _wait(self, current: Round, session: Session, question_id: str, position: int) -> Entry | None:
        """Wait for the answer, reporting meanwhile that the call waits; None when the time is over."""
        limits = self._limits
        deadline = time.monotonic() + limits.answer_seconds
        report_at = 0.0
        while (now := time.monotonic()) < deadline:
            if now >= report_at:
                await current.call.outlet.waiting()
                report_at = now + limits.progress_seconds
            entries, position = await self._sessions.hear(session, position, min(deadline, report_at) - now)
            for entry in entries:
                if entry.kind == "answer" and entry.name == question_id:
                    return entry
        return None


def _read(question: Question, entry: Entry) -> Reply | InvalidReply | _Unable:
    """Read an answer, or a client's error in its place. Source: client/elicitation#error-handling."""
    if entry.error is None:
        return check_reply(question, entry.result, "form")
    code = entry.error.get("code")
    if code in (METHOD_NOT_FOUND, INVALID_REQUEST):
        return _Unable(f"answered_with_error {code}")
    if code == INVALID_PARAMS:
        return _Unable()
    _log.info("the client answered a question with the error %r; taken for cancel", entry.error)
    return Reply("cancel")
