"""Chat: how a legacy client is asked that cannot show a form. The model asks, and passes the answer on.

The call ends with a result that tells the model what to ask, and waits as a record. `sendElicitationResult` brings
the answer; the stored call runs again with it, and its result is the result of that tool.
"""

from datetime import UTC, datetime
from functools import partial
from typing import Final, cast

from bridge.asking.checking import InvalidReply, check_reply
from bridge.asking.fallback import PENDING, FallbackCall, pending_form, pending_text, unknown_text
from bridge.asking.form import digest
from bridge.asking.question import Question
from bridge.calls import Calls, Exchange, Round
from bridge.claims import Ending, Released
from bridge.pending import Pending, PendingCall, TooManyPending
from bridge.protocol.messages import INTERNAL_ERROR, Json
from bridge.sessions import Session, Sessions
from bridge.upstreams.base import CallRequest, Failed, Finished, Outlet, Upstream
from bridge.upstreams.functions import error_result

__all__ = ["MAX_ATTEMPTS", "Chat", "NoChat"]

MAX_ATTEMPTS: Final = 10
"""How many invalid answers a pending call takes."""

_CLAIM_MARGIN_SECONDS: Final = 600.0
_REPEATED: Final = "An equal call was already waiting for this answer, so nothing new was started."


class Chat:
    """Asks through the model.

    Args:
        sessions: who can be asked.
        pending: where calls wait.
        upstream: whose output schemas tell whether a pending form fits into structured content.
    """

    def __init__(self, sessions: Sessions, pending: Pending, upstream: Upstream) -> None:
        self._sessions = sessions
        self._pending = pending
        self._upstream = upstream

    async def ask(self, current: Round, questions: list[Question]) -> Finished | Failed:
        """See `Route`: the request ends with what the model is to ask. Of several questions, one at a time."""
        session = cast(Session, current.client)
        call = current.call
        if call.request.method != "tools/call":
            text = f"{call.request.target} asks its user, and this client can be asked only while it calls a tool"
            return Failed(INTERNAL_ERROR, text)
        try:
            waiting = await self._pending.add(session, call.request, call.journal, questions[:1], current.number)
        except TooManyPending as full:
            text = (
                "Too many questions are open in this session. Answer or cancel one of them first with "
                f"sendElicitationResult; the oldest has the elicitId {full.oldest}."
            )
            return Finished(error_result(text, "ELICITATION_NOT_SUPPORTED"))
        await self._sessions.keep_until(session, waiting.expires_at)
        current.exchange.on_delivered = partial(self._pending.delivered, session, waiting.elicit_id)
        return Finished(await self._asking_result(session, waiting))

    async def repeated(self, session: Session, request: CallRequest) -> Finished | None:
        """The result of a call that is equal to one whose question the client already has, or None."""
        waiting = await self._pending.equal(session, request)
        if waiting is None:
            return None
        result = await self._asking_result(session, waiting)
        result["content"].append({"type": "text", "text": _REPEATED})
        return Finished(result)

    async def answer(
        self, session: Session, given: FallbackCall, outlet: Outlet, exchange: Exchange, calls: Calls
    ) -> tuple[str, Ending]:
        """Hand an answer to the call that waits for it, and run that on.

        Args:
            session: whose fallback tool was called.
            given: what its arguments say.
            outlet: where the call's progress and logs go now.
            exchange: the call of the fallback tool.
            calls: what runs calls.

        Returns:
            The name of the tool that asked (empty where nothing waits), and how this request ends.
        """
        unknown = Finished(error_result(unknown_text(given.elicit_id)))
        waiting = await self._pending.find(session, given.elicit_id)
        if waiting is None:
            return "", unknown
        target, question = waiting.request.target, waiting.questions[0]
        reply = check_reply(question, {"action": given.action, "content": given.content}, "chat")
        if isinstance(reply, InvalidReply):
            return target, unknown if waiting.answered else await self._invalid(session, waiting, reply.text)
        waiting.journal.record(question, reply)
        current = calls.begin(waiting.request, session, outlet, exchange, waiting.journal)
        current.number = waiting.round
        ending = await calls.resume(
            current,
            round_id=waiting.elicit_id,
            answers=digest([reply.status, reply.content]),
            ttl_seconds=waiting.expires_at - waiting.asked_at + _CLAIM_MARGIN_SECONDS,
            unknown=unknown,
            claimed=partial(self._pending.close, session, waiting),
        )
        if isinstance(ending, Released):
            await self._pending.reopen(session, waiting, question)
            return target, await self._invalid(session, waiting, ending.reason)
        return target, ending

    async def _invalid(self, session: Session, waiting: PendingCall, reason: str) -> Finished:
        """Say what is wrong with an answer. The call goes on waiting, unless that was one too many."""
        attempts = await self._pending.count_attempt(session, waiting)
        if attempts < MAX_ATTEMPTS:
            again = f"The question {waiting.elicit_id} is still open: ask the user again and send a corrected answer."
            return Finished(error_result(f"{reason}\n{again}", "INVALID_INPUT"))
        await self._pending.close(session, waiting, forget=True)
        text = f"{reason}\nThat was the {MAX_ATTEMPTS}th answer that does not fit, so the question was closed."
        return Finished(error_result(text, "INVALID_INPUT"))

    async def _asking_result(self, session: Session, waiting: PendingCall) -> Json:
        until = datetime.fromtimestamp(waiting.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        form = pending_form(waiting.elicit_id, waiting.questions, until)
        text = pending_text(waiting.elicit_id, waiting.questions, until)
        result: Json = {"content": [{"type": "text", "text": text}], "_meta": {PENDING: form}}
        definition = await self._upstream.tool(waiting.request.target)
        if definition is None or "outputSchema" not in definition or not session.profile.revision.structured_content:
            return result
        if session.record.fallback and not session.record.widened:
            # It was listed with an output schema that this form does not fit.
            return {**result, "isError": True}
        return {**result, "structuredContent": {PENDING: form}}


class NoChat:
    """In place of `Chat` where the fallback is off: the call fails and says why."""

    async def ask(self, current: Round, questions: list[Question]) -> Finished:
        """See `Route`: the request ends with an error result."""
        mode = questions[0].mode
        text = (
            f"{current.call.request.target} asks its user, and this client cannot be asked in {mode} mode. "
            'Use a client that can, or make the server with fallback="result".'
        )
        return Finished(error_result(text, "ELICITATION_NOT_SUPPORTED"))
