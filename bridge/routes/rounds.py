"""Rounds and refuse: how a modern client is asked. The question is the result, the answer comes with the retry.

All that the next round needs travels in the sealed `requestState`. Nothing of a client's answer is believed but what
our own sealed state says was asked. Source: basic/patterns/mrtr.
"""

import secrets
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from bridge.asking.checking import InvalidReply, check_reply
from bridge.asking.dialects import request_params
from bridge.asking.form import digest
from bridge.asking.journal import Journal
from bridge.asking.question import Question, Reply
from bridge.asking.seal import BROKEN_SEAL, Broken, Claims, Seal
from bridge.calls import Client, Round
from bridge.claims import Ending, InputRequired
from bridge.protocol.clients import required_capability
from bridge.protocol.messages import INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, Json, encode
from bridge.protocol.revisions import MODERN
from bridge.stores.identity import StoreIdentity
from bridge.upstreams.base import CallRequest, Failed, Finished
from bridge.upstreams.endings import failed

__all__ = ["BROKEN", "AnsweredRound", "Refuse", "RefuseOnSession", "RoundState", "Rounds"]

_CLAIM_MARGIN_SECONDS: Final = 600.0


class RoundState(msgspec.Struct, array_like=True):
    """What travels, sealed, from one round to the next.

    Args:
        call_id: names the call over all its rounds.
        number: the round, from 1.
        expires_at: until when the round can be answered, in seconds since the epoch; asking again does not move it.
        questions: all questions of this round. The journal holds the answers that have come.
        journal: what is known so far.
    """

    call_id: str
    number: int
    expires_at: float
    questions: list[Question]
    journal: Journal

    @property
    def round_id(self) -> str:
        """Names the round, whichever of its copies comes back."""
        return f"{self.call_id}.{self.number}"


class AnsweredRound(msgspec.Struct, frozen=True):
    """A round that has every answer it needs.

    Args:
        state: the round, its journal holding the answers.
        answers: the digest of the answers.
        ttl_seconds: for how long the round could be presented again, and somewhat more.
    """

    state: RoundState
    answers: str
    ttl_seconds: float


class Rounds:
    """Asks in the result, and reads the answers of the retry.

    Args:
        seal: what `requestState` is sealed with.
        identity: the id of the store that claims stand in.
        audience: the server's name.
        ttl_seconds: how long a round can be answered.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        seal: Seal,
        identity: StoreIdentity,
        audience: str,
        ttl_seconds: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seal = seal
        self._identity = identity
        self._audience = audience
        self._ttl_seconds = ttl_seconds
        self._clock = clock

    async def ask(self, current: Round, questions: list[Question]) -> InputRequired:
        """See `Route`: the request ends with the questions."""
        expires_at = self._clock() + self._ttl_seconds
        current.waits_until = expires_at
        state = RoundState(current.call.named(), current.number, expires_at, questions, current.call.journal)
        return self._required(current.client, current.call.request, state, questions)

    def read(
        self, client: Client, request: CallRequest, token: str, responses: object
    ) -> AnsweredRound | Ending | Broken:
        """Read the retry of a call.

        Args:
            client: who sent it.
            request: the call.
            token: its `requestState`.
            responses: its `inputResponses`, untrusted.

        Returns:
            The answered round; or how the request ends where an answer is missing (it is asked for again), malformed
            or invalid (the round can be answered again); or why the state does not hold.
        """
        now = self._clock()
        payload = self._seal.open(token, self._claims(client, request, 0.0), now)
        if isinstance(payload, Broken):
            return payload
        state = _state_decoder.decode(payload)
        given = {} if responses is None else responses
        if not isinstance(given, dict):
            return Failed(INVALID_PARAMS, "inputResponses must be an object")
        missing: list[Question] = []
        for position, question in enumerate(state.questions):
            if question.key in given:
                reply = check_reply(question, given[question.key], "form")
                if isinstance(reply, Reply):
                    state.journal.record(question, reply)
                elif question.reask > 0 and _is_response(given[question.key]):
                    state.questions[position] = state.journal.refuse(question, reply.reasons)
                    missing.append(state.questions[position])
                else:
                    return _refused(request, question, given[question.key], reply)
            elif question.path not in state.journal.replies:
                missing.append(question)
        if missing:
            return self._required(client, request, state, missing)
        answers = digest([_plain(state.journal.replies[question.path]) for question in state.questions])
        return AnsweredRound(state, answers, state.expires_at - now + _CLAIM_MARGIN_SECONDS)

    def _required(
        self, client: Client, request: CallRequest, state: RoundState, questions: list[Question]
    ) -> InputRequired:
        claims = self._claims(client, request, state.expires_at)
        token = self._seal.seal(claims, msgspec.msgpack.encode(state), secrets.token_bytes(12))
        requests: Json = {question.key: _asked(question) for question in questions}
        return InputRequired({"inputRequests": requests, "requestState": token})

    def _claims(self, client: Client, request: CallRequest, expires_at: float) -> Claims:
        return Claims(
            self._identity.value,
            self._audience,
            client.profile.principal.name,
            request.method,
            request.target,
            digest(request.arguments),
            expires_at,
        )


class Refuse:
    """Refuses: the client does not declare what the question needs."""

    async def ask(self, current: Round, questions: list[Question]) -> Failed:
        """See `Route`: the request ends with an error that names the capability. Source: basic/index#meta."""
        needed: Json = {}
        for question in questions:
            for name, detail in required_capability(question.mode).items():
                needed[name] = {**needed.get(name, {}), **detail}
        text = f"{current.call.request.target} needs what this client does not declare: {encode(needed).decode()}"
        return Failed(MISSING_CLIENT_CAPABILITY, text, {"requiredCapabilities": needed})


class RefuseOnSession:
    """Refuses on a legacy session, which has no error for it: the call fails and names the capability."""

    async def ask(self, current: Round, questions: list[Question]) -> Finished | Failed:
        """See `Route`: the request ends with an error."""
        needed = ", ".join(encode(required_capability(question.mode)).decode() for question in questions)
        text = f"{current.call.request.target} needs what this client does not declare: {needed}"
        return failed(current.call.request, text, "ELICITATION_NOT_SUPPORTED")


_state_decoder: Final = msgspec.msgpack.Decoder(RoundState)

BROKEN: Final = Failed(INVALID_PARAMS, BROKEN_SEAL)
"""How a request ends whose `requestState` does not hold."""


def _asked(question: Question) -> Json:
    """A question as an input request: one without params has none."""
    params = request_params(question, MODERN)
    return {"method": question.method, "params": params} if params else {"method": question.method}


def _is_response(raw: object) -> bool:
    return isinstance(raw, dict) and "action" in raw


def _refused(request: CallRequest, question: Question, raw: object, invalid: InvalidReply) -> Ending:
    if question.mode in ("sampling", "roots"):
        return Failed(
            INVALID_PARAMS, f"inputResponses.{question.key} is no answer to {question.method}: {invalid.text}"
        )
    if not _is_response(raw):
        return Failed(INVALID_PARAMS, f"inputResponses.{question.key} must be an object with an action")
    return failed(request, invalid.text, "INVALID_INPUT")


def _plain(reply: Reply) -> list[Any]:
    return [reply.status, reply.content]
