"""Pending calls: what is kept of calls that wait for an answer from a chat, so that they can go on.

Of a session's calls, records are kept under the session, so that another session's id names nothing. One more record
for each session lists what is open there, bounds it, and finds an equal call that is asking already. The
calls of clients without a session are in `sealed_pending`.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol, cast

import msgspec

from bridge.asking.form import digest
from bridge.asking.question import Question, Reply
from bridge.calls import Client, Stored
from bridge.session import Session
from bridge.stores.base import Store
from bridge.upstreams.base import CallRequest

__all__ = [
    "CALL_DECODER",
    "MAX_PENDING",
    "Pending",
    "PendingCall",
    "SessionPending",
    "TooManyPending",
    "count_open",
    "open_calls",
    "waiting_seconds",
]

MAX_PENDING: Final = 16
"""How many calls of one session may wait for a chat answer."""

_KEPT_SECONDS: Final = 600.0


class PendingCall(msgspec.Struct, kw_only=True):
    """A call that waits for an answer from a chat.

    Args:
        elicit_id: names it: at least 128 random bits, or the sealed call itself.
        request: what was called, with its arguments.
        stored: what is known so far; `number` is the round, from 1.
        questions: what is asked.
        asked_at: seconds since the epoch.
        expires_at: seconds since the epoch.
        attempts: how many invalid answers have come.
        answered: whether it waits no more, and is kept for who sends the same answer again.
    """

    elicit_id: str
    request: CallRequest
    stored: Stored
    questions: list[Question]
    asked_at: float
    expires_at: float
    attempts: int = 0
    answered: bool = False

    @property
    def round_id(self) -> str:
        """Names the round."""
        return f"{self.stored.call_id}.{self.stored.number}"

    def still_open(self) -> list[Question]:
        """The questions that have no answer yet."""
        return [question for question in self.questions if question.path not in self.stored.journal.replies]


class TooManyPending(Exception):
    """The session has as many open questions as it may."""

    def __init__(self, oldest: str) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class Pending(Protocol):
    """Where pending calls are kept."""

    async def add(self, client: Client, request: CallRequest, stored: Stored, questions: list[Question]) -> PendingCall:
        """Keep a call that has stopped. Raises TooManyPending."""
        ...

    async def find(self, client: Client, elicit_id: str) -> PendingCall | None:
        """Return this client's pending call of that id, answered ones for a while too, or None."""
        ...

    async def record(self, client: Client, call: PendingCall, replies: Mapping[str, Reply]) -> PendingCall | None:
        """Keep some answers, by path; None where another answer to one of them came before."""
        ...

    async def count_attempt(self, client: Client, call: PendingCall) -> int:
        """Count an invalid answer; return how many there were."""
        ...

    async def close(self, client: Client, call: PendingCall, *, forget: bool = False) -> None:
        """The call does not wait any more."""
        ...

    async def reopen(self, client: Client, call: PendingCall) -> None:
        """The answer did not do after all: the call waits again."""
        ...

    async def delivered(self, client: Client, elicit_id: str) -> None:
        """The client has the question: an equal call from now on is the same call."""
        ...

    async def equal(self, client: Client, request: CallRequest) -> PendingCall | None:
        """Find an equal call that is asking already and whose question the client has."""
        ...


class _Open(msgspec.Struct, array_like=True):
    """One line of a session's list. `call` is the digest by which an equal call is found, once delivered."""

    call: str
    asked_at: float
    expires_at: float
    delivered: bool = False


class SessionPending:
    """The pending calls of sessions, as records.

    Args:
        store: where they stand.
        ttl_seconds: how long one waits; None: 1 h in a store that dies with the process, else 24 h.
        held_seconds: how long one waits that is suspended in a process.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        store: Store,
        ttl_seconds: float | None = None,
        held_seconds: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._held_seconds = held_seconds
        self._clock = clock
        default = 86400.0 if store.durable else 3600.0
        self.ttl_seconds = default if ttl_seconds is None else ttl_seconds

    async def add(self, client: Client, request: CallRequest, stored: Stored, questions: list[Question]) -> PendingCall:
        """See `Pending`."""
        now, ttl = self._clock(), waiting_seconds(stored, self.ttl_seconds, self._held_seconds)
        call = PendingCall(
            elicit_id=secrets.token_urlsafe(18),
            request=request,
            stored=stored,
            questions=questions,
            asked_at=now,
            expires_at=now + ttl,
        )
        await self._enter(_session(client), call, bounded=True)
        await self._write(_session(client), call, ttl)
        return call

    async def find(self, client: Client, elicit_id: str) -> PendingCall | None:
        """See `Pending`."""
        if not 16 <= len(elicit_id) <= 64 or not elicit_id.isascii():
            return None
        stored = await self._store.get(_key(_session(client), elicit_id))
        if stored is None:
            return None
        call = CALL_DECODER.decode(stored.value)
        return call if call.expires_at > self._clock() else None

    async def record(self, client: Client, call: PendingCall, replies: Mapping[str, Reply]) -> PendingCall | None:
        """See `Pending`: against every other answer that comes meanwhile."""
        session = _session(client)
        while True:
            stored = await self._store.get(_key(session, call.elicit_id))
            if stored is None:
                return None
            current = CALL_DECODER.decode(stored.value)
            known = current.stored.journal.replies
            if any(known.get(path, reply) != reply for path, reply in replies.items()):
                return None
            if all(path in known for path in replies):
                return current
            known.update(replies)
            if await self._rewrite(session, current, stored.version):
                return current

    async def count_attempt(self, client: Client, call: PendingCall) -> int:
        """See `Pending`."""
        session = _session(client)
        while True:
            stored = await self._store.get(_key(session, call.elicit_id))
            if stored is None:
                return call.attempts + 1
            current = CALL_DECODER.decode(stored.value)
            current.attempts += 1
            if await self._rewrite(session, current, stored.version):
                return current.attempts

    async def close(self, client: Client, call: PendingCall, *, forget: bool = False) -> None:
        """See `Pending`: its record stays a while for who sends the same answer again."""
        session = _session(client)
        await self._alter(session, lambda listed: listed.pop(call.elicit_id, None))
        if forget:
            await self._store.take(_key(session, call.elicit_id))
            return
        call.answered = True
        await self._write(session, call, _KEPT_SECONDS)

    async def reopen(self, client: Client, call: PendingCall) -> None:
        """See `Pending`."""
        session = _session(client)
        call.answered = False
        await self._enter(session, call, bounded=False)
        await self.delivered(client, call.elicit_id)
        await self._write(session, call, max(call.expires_at - self._clock(), 1.0))

    async def delivered(self, client: Client, elicit_id: str) -> None:
        """See `Pending`."""

        def mark(listed: dict[str, _Open]) -> None:
            if elicit_id in listed:
                listed[elicit_id].delivered = True

        await self._alter(_session(client), mark)

    async def equal(self, client: Client, request: CallRequest) -> PendingCall | None:
        """See `Pending`."""
        stored = await self._store.get(_list_key(_session(client)))
        if stored is None:
            return None
        wanted, now = _call_digest(request), self._clock()
        for elicit_id, opened in _list_decoder.decode(stored.value).items():
            if opened.call == wanted and opened.delivered and opened.expires_at > now:
                return await self.find(client, elicit_id)
        return None

    async def _enter(self, session: Session, call: PendingCall, *, bounded: bool) -> None:
        def enter(listed: dict[str, _Open]) -> None:
            if bounded and len(listed) >= MAX_PENDING:
                raise TooManyPending(min(listed, key=lambda elicit_id: listed[elicit_id].asked_at))
            listed[call.elicit_id] = _Open(_call_digest(call.request), call.asked_at, call.expires_at)

        await self._alter(session, enter)

    async def _rewrite(self, session: Session, call: PendingCall, version: int) -> bool:
        remaining = max(call.expires_at - self._clock(), 1.0)
        value = msgspec.json.encode(call)
        key = _key(session, call.elicit_id)
        return await self._store.put(key, value, ttl_seconds=remaining, if_version=version) is not None

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


async def open_calls(store: Store, session_id: str, now: float) -> list[PendingCall]:
    """The calls of a session that wait for a chat answer, for who looks at it from outside."""
    listed = await store.get(f"open/{session_id}")
    found: list[PendingCall] = []
    for elicit_id, opened in ({} if listed is None else _list_decoder.decode(listed.value)).items():
        stored = await store.get(f"pending/{session_id}/{elicit_id}") if opened.expires_at > now else None
        if stored is not None:
            found.append(CALL_DECODER.decode(stored.value))
    return found


async def count_open(store: Store, now: float, limit: int) -> int:
    """How many calls wait for a chat answer, in the sessions of a store; of `limit` sessions at most."""
    found = 0
    for key in await store.scan("open", limit=limit):
        listed = await store.get(key)
        if listed is not None:
            found += sum(opened.expires_at > now for opened in _list_decoder.decode(listed.value).values())
    return found


CALL_DECODER: Final = msgspec.json.Decoder(PendingCall)
"""Reads a pending call."""

_list_decoder: Final = msgspec.json.Decoder(dict[str, _Open])


def waiting_seconds(stored: Stored, ttl_seconds: float, held_seconds: float) -> float:
    """How long a call waits: what is suspended in a process does not for longer than it may be there."""
    return min(ttl_seconds, held_seconds) if stored.journal.held else ttl_seconds


def _session(client: Client) -> Session:
    return cast(Session, client)


def _key(session: Session, elicit_id: str) -> str:
    return f"pending/{session.id}/{elicit_id}"


def _list_key(session: Session) -> str:
    return f"open/{session.id}"


def _call_digest(request: CallRequest) -> str:
    return digest([request.method, request.target, request.arguments])
