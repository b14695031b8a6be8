"""Chat: how a client is asked that cannot show a form. The model asks, and passes the answer on.

The call ends with a result that tells the model what to ask, and waits as a record; or, where the operator wants it so,
the question goes out as a log message and the call waits. `sendElicitationResult` brings the answer; the stored
call runs again with it, and its result is the result of that tool.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal, cast

import msgspec

from bridge.asking.checking import InvalidReply, check_reply, lenient_object
from bridge.asking.fallback import PENDING, FallbackCall, pending_form, pending_text, split_id, unknown_text
from bridge.asking.form import digest
from bridge.asking.question import Question, Reply
from bridge.asking.routes import ClientRule, RouteName, choose
from bridge.calls import Calls, Client, Exchange, Round, Stored
from bridge.claims import Claims, Ending, Released
from bridge.pending import Pending, PendingCall, TooManyPending
from bridge.protocol.inbound import LOG_LEVELS
from bridge.protocol.messages import INTERNAL_ERROR, Json, notification
from bridge.session import Entry, Session, SessionRecord
from bridge.sessions import Sessions
from bridge.upstreams.base import CallRequest, Failed, Finished, Outlet, Upstream
from bridge.upstreams.endings import failed
from bridge.upstreams.results import error_result, text

__all__ = ["MAX_ATTEMPTS", "Chat", "ChatRules", "NoChat", "is_listed_without_room"]

MAX_ATTEMPTS: Final = 10
"""How many invalid answers a pending call takes."""

_CLAIM_MARGIN_SECONDS: Final = 600.0
_REPORT_SECONDS: Final = 15.0
_REPEATED: Final = "An equal call was already waiting for this answer, so nothing new was started."
_RECORDED: Final = "Recorded. The rest is still open."


class ChatRules(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides about asking through a chat.

    Args:
        consent: whether an answer that a model passes on may let a tool act that changes something.
        wait_seconds: how long a call waits itself, its question sent as a log message; 0: it ends at once.
    """

    consent: Literal["allow", "deny"] = "allow"
    wait_seconds: float = 0.0


class Chat:
    """Asks through the model.

    Args:
        pending: where calls wait.
        upstream: whose definitions say what a tool does, and whether a pending form fits into its results.
        claims: where the ending of an answered call is found.
        sessions: how a waiting call hears of its answer; None where clients have no session.
        rules: what the operator decided.
        client_rules: what is decided about some clients.
    """

    def __init__(
        self,
        pending: Pending,
        upstream: Upstream,
        claims: Claims,
        sessions: Sessions | None,
        rules: ChatRules,
        client_rules: Sequence[ClientRule] = (),
    ) -> None:
        self._pending = pending
        self._upstream = upstream
        self._claims = claims
        self._sessions = sessions
        self._rules = rules
        self._client_rules = client_rules

    async def ask(self, current: Round, questions: list[Question]) -> Ending:
        """See `Route`: the request ends with what the model is to ask."""
        client, call = current.client, current.call
        if call.request.method != "tools/call":
            reason = f"{call.request.target} asks its user, and this client can be asked only while it calls a tool"
            return Failed(INTERNAL_ERROR, reason)
        definition = await self._upstream.tool(call.request.target)
        if self._rules.consent == "deny" and _changes_something(definition):
            return Finished(error_result(_denied(call.request.target), "ELICITATION_NOT_SUPPORTED"))
        if any(question.secret for question in questions):
            return Finished(error_result(_secret(call.request.target, questions), "ELICITATION_NOT_SUPPORTED"))
        stored = Stored(call.named(), current.number, call.journal)
        try:
            waiting = await self._pending.add(client, call.request, stored, questions)
        except TooManyPending as full:
            reason = (
                "Too many questions are open in this session. Answer or cancel one of them first with "
                f"sendElicitationResult; the oldest has the elicitId {full.oldest}."
            )
            return Finished(error_result(reason, "ELICITATION_NOT_SUPPORTED"))
        current.waits_until = waiting.expires_at
        if self._sessions is not None:
            session = cast(Session, client)
            await self._reveal(self._sessions, session)
            await self._sessions.keep_until(session, waiting.expires_at)
            if self._can_wait(current, session):
                ending = await self._wait(current, session, waiting)
                if ending is not None:
                    return ending
        current.exchange.on_delivered = partial(self._pending.delivered, client, waiting.elicit_id)
        return Finished(_asking_result(client, waiting, definition))

    async def _reveal(self, sessions: Sessions, session: Session) -> None:
        """Let a session that was to be asked otherwise see the fallback tool, and say so."""
        otherwise = choose(session.profile, "form", rules=self._client_rules).route is not RouteName.CHAT
        if otherwise and not session.record.fallback:
            await sessions.change(session, _mark_fallback)
            await sessions.notify(session, notification("notifications/tools/list_changed"))

    def _can_wait(self, current: Round, session: Session) -> bool:
        level = session.record.log_level or "info"
        heard = LOG_LEVELS.index(level) <= LOG_LEVELS.index("warning")
        return self._rules.wait_seconds > 0 and heard and current.exchange.can_stream

    async def _wait(self, current: Round, session: Session, waiting: PendingCall) -> Ending | None:
        """Send the question as a log message and wait for its answer; None when it does not come in time."""
        assert self._sessions is not None
        form = pending_form(waiting.elicit_id, waiting.still_open(), _until(waiting))
        data = {"type": "elicitation_fallback", **form}
        inbox = self._sessions.inbox(session)
        await inbox.to_end()
        message = {"level": "warning", "logger": "elicitation", "data": data}
        await current.exchange.send(notification("notifications/message", message))
        deadline, report_at = time.monotonic() + self._rules.wait_seconds, 0.0
        while (now := time.monotonic()) < deadline:
            if now >= report_at:
                await current.call.outlet.waiting()
                report_at = now + _REPORT_SECONDS
            entries = await self._sessions.hear(inbox, min(deadline, report_at) - now)
            if any(entry.kind == "resolved" and entry.name == waiting.round_id for entry in entries):
                return await self._claims.ending(waiting.round_id)
        return None

    async def repeated(self, client: Client, request: CallRequest) -> Finished | None:
        """The result of a call that is equal to one whose question the client already has, or None."""
        if self._upstream.policy(request.target).duplicates == "separate":
            return None
        waiting = await self._pending.equal(client, request)
        if waiting is None:
            return None
        result = _asking_result(client, waiting, await self._upstream.tool(request.target))
        result["content"].append(text(_REPEATED))
        return Finished(result)

    async def answer(
        self, client: Client, given: FallbackCall, outlet: Outlet, exchange: Exchange, calls: Calls
    ) -> tuple[str, Ending]:
        """Hand an answer to the call that waits for it, and run that on.

        Args:
            client: who called the fallback tool.
            given: what its arguments say.
            outlet: where the call's progress and logs go now.
            exchange: the call of the fallback tool.
            calls: what runs calls.

        Returns:
            The name of the tool that asked (empty where nothing waits), and how this request ends.
        """
        unknown = Finished(error_result(unknown_text(given.elicit_id)))
        elicit_id, which = split_id(given.elicit_id)
        waiting = await self._pending.find(client, elicit_id)
        if waiting is None or (which is not None and which >= len(waiting.questions)):
            return "", unknown
        target = waiting.request.target
        replies = _read(waiting, which, given)
        if isinstance(replies, InvalidReply):
            return target, unknown if waiting.answered else await self._invalid(client, waiting, replies.text)
        recorded = await self._pending.record(client, waiting, replies)
        if recorded is None:
            return target, unknown
        if recorded.still_open():
            result = _asking_result(client, recorded, await self._upstream.tool(target))
            result["content"].insert(0, text(_RECORDED))
            return target, Finished(result)
        return target, await self._go_on(client, recorded, outlet, exchange, calls, unknown)

    async def _go_on(
        self,
        client: Client,
        waiting: PendingCall,
        outlet: Outlet,
        exchange: Exchange,
        calls: Calls,
        unknown: Finished,
    ) -> Ending:
        """Run a call on whose questions are all answered."""
        journal, closed = waiting.stored.journal, False

        async def close() -> None:
            nonlocal closed
            closed = True
            await self._pending.close(client, waiting)

        replies = [journal.replies[question.path] for question in waiting.questions]
        ending = await calls.resume(
            calls.begin(waiting.request, client, outlet, exchange, waiting.stored, answered=waiting.questions),
            round_id=waiting.round_id,
            answers=digest([[reply.status, reply.content] for reply in replies]),
            ttl_seconds=waiting.expires_at - waiting.asked_at + _CLAIM_MARGIN_SECONDS,
            unknown=unknown,
            claimed=close,
        )
        if not closed:
            # Answered elsewhere, or cut off before: nothing of it waits any more.
            await close()
        if isinstance(ending, Released):
            for path in ending.paths:
                journal.replies.pop(path, None)
            await self._pending.reopen(client, waiting)
            return await self._invalid(client, waiting, ending.reason)
        if self._sessions is not None and self._rules.wait_seconds > 0:
            await self._sessions.tell(cast(Session, client), Entry("resolved", waiting.round_id))
        return ending

    async def _invalid(self, client: Client, waiting: PendingCall, reason: str) -> Finished:
        """Say what is wrong with an answer. The call goes on waiting, unless that was one too many."""
        attempts = await self._pending.count_attempt(client, waiting)
        if attempts < MAX_ATTEMPTS:
            again = f"The question {waiting.elicit_id} is still open: ask the user again and send a corrected answer."
            return Finished(error_result(f"{reason}\n{again}", "INVALID_INPUT"))
        await self._pending.close(client, waiting, forget=True)
        closed = f"That was the {MAX_ATTEMPTS}th answer that does not fit, so the question was closed."
        return Finished(error_result(f"{reason}\n{closed}", "INVALID_INPUT"))


class NoChat:
    """In place of `Chat` where the fallback is off: the call fails and says why."""

    async def ask(self, current: Round, questions: list[Question]) -> Finished | Failed:
        """See `Route`: the request ends with an error."""
        stream = "" if current.exchange.can_stream else " (its Accept allows no stream to ask on)"
        reason = (
            f"{current.call.request.target} asks its user, and this client cannot be asked in {questions[0].mode} "
            f'mode{stream}. Use a client that can, or make the server with fallback="result".'
        )
        return failed(current.call.request, reason, "ELICITATION_NOT_SUPPORTED")


def _read(waiting: PendingCall, which: int | None, given: FallbackCall) -> Mapping[str, Reply] | InvalidReply:
    """Read an answer to one question, or one to all that are open: then content has one property for each key."""
    asked = waiting.questions if which is None else [waiting.questions[which]]
    if len(asked) == 1:
        reply = check_reply(asked[0], {"action": given.action, "content": given.content}, "chat")
        return reply if isinstance(reply, InvalidReply) else {asked[0].path: reply}
    if given.action != "accept":
        action = cast(Literal["decline", "cancel"], given.action)
        return {question.path: Reply(action, None, "chat") for question in waiting.still_open() or asked}
    content = lenient_object(given.content)
    replies: dict[str, Reply] = {}
    for question in asked:
        if question.key not in content:
            continue
        reply = check_reply(question, {"action": "accept", "content": content[question.key]}, "chat")
        if isinstance(reply, InvalidReply):
            return InvalidReply(tuple(f"{question.key}.{reason}" for reason in reply.reasons))
        replies[question.path] = reply
    keys = ", ".join(question.key for question in asked)
    return replies or InvalidReply((f"content: one property for each of {keys}",))


def is_listed_without_room(client: Client) -> bool:
    """Whether tools were listed to this client with output schemas that the pending form does not fit."""
    return isinstance(client, Session) and client.record.fallback and not client.record.widened


def _asking_result(client: Client, waiting: PendingCall, definition: Json | None) -> Json:
    questions = waiting.still_open()
    ids = [waiting.questions.index(question) for question in questions] if len(waiting.questions) > 1 else []
    form = pending_form(waiting.elicit_id, questions, _until(waiting), ids)
    result: Json = {
        "content": [text(pending_text(waiting.elicit_id, questions, _until(waiting), ids))],
        "_meta": {PENDING: form},
    }
    if definition is None or "outputSchema" not in definition or not client.profile.revision.structured_content:
        return result
    if is_listed_without_room(client):
        return {**result, "isError": True}
    return {**result, "structuredContent": {PENDING: form}}


def _mark_fallback(record: SessionRecord) -> None:
    record.fallback = True


def _until(waiting: PendingCall) -> str:
    return datetime.fromtimestamp(waiting.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _changes_something(definition: Json | None) -> bool:
    annotations = {} if definition is None else definition.get("annotations", {})
    return annotations.get("readOnlyHint") is not True and annotations.get("destructiveHint") is not False


def _denied(tool: str) -> str:
    return (
        f'{tool} needs its user\'s consent, and here a model may not pass consent on (chat_consent is "deny"). '
        'Use a client that shows forms, or make the server with chat_consent="allow".'
    )


def _secret(tool: str, questions: list[Question]) -> str:
    fields = ", ".join(repr(name) for question in questions for name in question.secret)
    return (
        f"{tool} asks its user for what sounds like a secret ({fields}), which no model may see. Use a client that "
        "shows forms; where it is none, say not_secret=(…)."
    )
