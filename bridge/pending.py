"""Pending calls: the stored records of calls that wait for an answer from a chat.

A record holds all that is needed to go on: the call with its arguments, its journal, its open questions. It stands
under its session, so that another session's id names nothing. One more record for each session lists what is open
there, bounds it, and finds an equal call that is asking already.
"""

import secrets
import time
from collections.abc import Callable
from typing import Final

import msgspec

from bridge.asking.form import digest
from bridge.asking.journal import Journal
from bridge.asking.question import Question
from bridge.sessions import Session
from bridge.stores.base import Store
from bridge.upstreams.base import CallRequest

__all__ = ["MAX_PENDING", "Pending", "PendingCall", "TooManyPending"]

MAX_PENDING: Final = 16
"""How many calls of one session may wait for a chat answer."""

_KEPT_SECONDS: Final = 600.0


class PendingCall(msgspec.Struct, kw_only=True):
    """A call that waits for an answer from a chat.

    Args:
        elicit_id: at least 128 random bits.
        request: what was called, with its arguments.
        journal: what is known so far.
        questions: what is asked.
        round: which round of the call this is, from 1.
        asked_at: seconds since the epoch.
        expires_at: seconds since the epoch.
        attempts: how many invalid answers have come.
        answered: whether it waits no more, and is kept for who sends the same answer again.
    """

    elicit_id: str
    request: CallRequest
    journal: Journal
    questions: list[Question]
    round: int
    asked_at: float
    expires_at: float
    attempts: int = 0
    answered: bool = False


class TooManyPending(Exception):
    """The session has as many open questions as it may."""

    def __init__(self, oldest: str) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class _Open(msgspec.Struct, array_like=True):
    """One line of a session's list. `call` is the digest by which an equal call is found, once delivered."""

    call: str
    asked_at: float
    expires_at: float
    delivered: bool = False


class Pending:
    """The pending calls of all sessions.

    Args:
        store: where they stand.
        ttl_seconds: how long one waits; None: 1 h in a store that dies with the process, else 24 h.
        clock: seconds since the epoch.
    """

    def __init__(self, store: Store, ttl_seconds: float | None = None, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        default = 86400.0 if store.durable else 3600.0
        self.ttl_seconds = default if ttl_seconds is None else ttl_seconds

    async def add(
        self, session: Session, request: CallRequest, journal: Journal, questions: list[Question], number: int
    ) -> PendingCall:
        """Store a call that has stopped.

        Raises:
            TooManyPending: the session has as many as it may.
        """
        now = self._clock()
        call = PendingCall(
            elicit_id=secrets.token_urlsafe(18),
            request=request,
            journal=journal,
            questions=questions,
            round=number,
            asked_at=now,
            expires_at=now + self.ttl_seconds,
        )
        await self._enter(session, call, bounded=True)
        await self._write(session, call, self.ttl_seconds)
        return call

    async def _enter(self, session: Session, call: PendingCall, *, bounded: bool) -> None:
        def enter(listed: dict[str, _Open]) -> None:
            if bounded and len(listed) >= MAX_PENDING:
                raise TooManyPending(min(listed, key=lambda elicit_id: listed[elicit_id].asked_at))
            listed[call.elicit_id] = _Open(_call_digest(call.request), call.asked_at, call.expires_at)

        await self._alter(session, enter)

    async def delivered(self, session: Session, elicit_id: str) -> None:
        """The client has the question: an equal call from now on is the same call."""

        def mark(listed: dict[str, _Open]) -> None:
            if elicit_id in listed:
                listed[elicit_id].delivered = True

        await self._alter(session, mark)

    async def equal(self, session: Session, request: CallRequest) -> PendingCall | None:
        """Find an equal call that is asking already and whose question the client has."""
        stored = await self._store.get(_list_key(session))
        if stored is None:
            return None
        wanted, now = _call_digest(request), self._clock()
        for elicit_id, opened in _list_decoder.decode(stored.value).items():
            if opened.call == wanted and opened.delivered and opened.expires_at > now:
                return await self.find(session, elicit_id)
        return None

    async def find(self, session: Session, elicit_id: str) -> PendingCall | None:
        """Return the session's pending call of that id, answered ones for a while too, or None."""
        if not 16 <= len(elicit_id) <= 64 or not elicit_id.isascii():
            return None
        stored = await self._store.get(_key(session, elicit_id))
        if stored is None:
            return None
        call = _call_decoder.decode(stored.value)
        return call if call.expires_at > self._clock() else None

    async def count_attempt(self, session: Session, call: PendingCall) -> int:
        """Count an invalid answer; return how many there were."""
        while True:
            stored = await self._store.get(_key(session, call.elicit_id))
            if stored is None:
                return call.attempts + 1
            current = _call_decoder.decode(stored.value)
            current.attempts += 1
            remaining = max(current.expires_at - self._clock(), 0.001)
            value = msgspec.json.encode(current)
            key = _key(session, call.elicit_id)
            if await self._store.put(key, value, ttl_seconds=remaining, if_version=stored.version) is not None:
                return current.attempts

    async def close(self, session: Session, call: PendingCall, *, forget: bool = False) -> None:
        """The call does not wait any more. Its record stays a while for who sends the same answer again."""
        await self._alter(session, lambda listed: listed.pop(call.elicit_id, None))
        if forget:
            await self._store.take(_key(session, call.elicit_id))
            return
        call.answered = True
        await self._write(session, call, _KEPT_SECONDS)

    async def reopen(self, session: Session, call: PendingCall, question: Question) -> None:
        """The answer did not do after all: the call waits again."""
        call.answered = False
        call.journal.replies.pop(question.path, None)
        await self._enter(session, call, bounded=False)
        await self.delivered(session, call.elicit_id)
        await self._write(session, call, max(call.expires_at - self._clock(), 1.0))

    async def _write(self, session: Session, call: PendingCall, ttl_seconds: float) -> None:
        await self._store.put(_key(session, call.elicit_id), msgspec.json.encode(call), ttl_seconds=ttl_seconds)

    async def _alter(self, session: Session, alter: Callable[[dict[str, _Open]], object]) -> None:
        key = _list_key(session)
        while True:
            stored = await self._store.get(key)
            listed = {} if stored is None else _list_decoder.decode(stored.value)
            now = self._clock()
            for expired in [name for name, opened in listed.items() if opened.expires_at <= now]:
                del listed[expired]
            alter(listed)
            version = 0 if stored is None else stored.version
            value = msgspec.json.encode(listed)
            if await self._store.put(key, value, ttl_seconds=self.ttl_seconds, if_version=version) is not None:
                return


_call_decoder: Final = msgspec.json.Decoder(PendingCall)
_list_decoder: Final = msgspec.json.Decoder(dict[str, _Open])


def _key(session: Session, elicit_id: str) -> str:
    return f"pending/{session.id}/{elicit_id}"


def _list_key(session: Session) -> str:
    return f"open/{session.id}"


def _call_digest(request: CallRequest) -> str:
    return digest([request.method, request.target, request.arguments])
