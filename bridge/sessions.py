"""Legacy sessions: records in the store, not tasks. Any node can serve any message of a session.

A session is a record under a key that holds its principal, so that another principal's session is just not there.
What comes in for a call that waits (an answer, a stream that was opened again, the end) goes into one log for each
session; what goes out on a stream goes into one log for each stream, so that it can be replayed. The node keeps
a bounded number of records decoded; other nodes' changes reach it through a log.
"""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

import anyio
import msgspec

from bridge.asking.form import digest
from bridge.errors import StoreError
from bridge.node import Node
from bridge.protocol.clients import Principal
from bridge.protocol.inbound import LOG_LEVELS
from bridge.protocol.messages import Json, RequestId, Response, encode, notification
from bridge.protocol.revisions import negotiate
from bridge.session import (
    DEFAULT_LOG_LEVEL,
    INTERIM,
    STANDALONE,
    AskedNow,
    Entry,
    Session,
    SessionLimits,
    SessionRecord,
    outgoing,
)
from bridge.stores.base import Store
from bridge.stores.identity import StoreIdentity
from bridge.stores.reader import LogReader

__all__ = ["Sessions", "TooManySessions", "complete_page"]

_TOUCH_SECONDS: Final = 60.0
_LOG_SECONDS: Final = 1800.0
_LOG_ENTRIES: Final = 1000
_CACHED: Final = 2048
_CHANGES: Final = "sessions"
_RETRY_SECONDS: Final = 1.0
_ENDED: Final = "ended"
_LOOK_SECONDS: Final = 5.0
"""How often a node looks by itself whether the store is still the one that it knows: one may come back empty."""

_log = logging.getLogger("bridge.sessions")


class TooManySessions(Exception):
    """`initialize` was refused because a limit is reached."""


class Sessions:
    """Opens, finds, changes and ends sessions.

    Args:
        node: the process, and its store.
        limits: how long, how many.
        clock: seconds, rising.
    """

    def __init__(self, node: Node, limits: SessionLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._node = node
        self._store = node.store
        self.identity = StoreIdentity(node.store)
        """The id of the store, looked at while the node runs."""
        self._limits = limits
        self._clock = clock
        self._cache: OrderedDict[str, Session] = OrderedDict()
        default = 7 * 86400.0 if self._store.durable else 1800.0
        self.idle_seconds = default if limits.idle_seconds is None else limits.idle_seconds
        self._touch_seconds = min(_TOUCH_SECONDS, self.idle_seconds / 3)
        self.on_opened: Callable[[Session], object] | None = None
        """Told of each session that this node has opened."""
        self.on_ended: Callable[[str], object] | None = None
        """Told the id of each session that has ended: here, at another node, or unseen by this one."""

    async def start(self) -> None:
        """Begin to hear of other nodes' changes."""
        if self._store.shared:
            self._node.spawn(self._follow_changes)

    async def open(self, params: Json, principal: Principal) -> Session:
        """Open a session for an `initialize`.

        Args:
            params: the params of the request: `protocolVersion`, `capabilities`, `clientInfo`.
            principal: who is behind it; nobody else finds the session.

        Raises:
            TooManySessions: a limit is reached.
        """
        family = _family(principal)
        if await self._store.count("session") >= self._limits.in_all:
            raise TooManySessions(f"this server serves at most {self._limits.in_all} sessions")
        if principal.name and await self._store.count(family) >= self._limits.per_principal:
            raise TooManySessions(f"one principal may have at most {self._limits.per_principal} sessions")
        record = SessionRecord(
            revision=negotiate(params.get("protocolVersion")).name, params=params, principal=principal
        )
        session_id = secrets.token_urlsafe(24)
        key = f"{family}/{session_id}"
        version = await self._store.put(key, encode(record), ttl_seconds=self.idle_seconds, if_version=0)
        assert version is not None
        session = self._keep(Session(session_id, key, record, version, self._clock()))
        if self.on_opened is not None:
            self.on_opened(session)
        return session

    async def find(self, session_id: str, principal: Principal) -> Session | None:
        """Return the session of that id if it is this principal's; None otherwise, whatever the reason."""
        key = f"{_family(principal)}/{session_id}"
        now = self._clock()
        session = self._cache.get(key)
        if session is not None and now - session.touched_at < self._touch_seconds:
            return session
        if session is None and not _plausible(session_id):
            return None
        return await self._load(session_id, key, now)

    async def _load(self, session_id: str, key: str, now: float) -> Session | None:
        stored = await self._store.get(key)
        if stored is None:
            self._cache.pop(key, None)
            return None
        record = _record_decoder.decode(stored.value)
        session = self._cache.get(key)
        if session is None:
            session = self._keep(Session(session_id, key, record, stored.version, now))
        else:
            session.load(record, stored.version)
        await self._touch(session, stored.value, now)
        return session

    async def at(self, key: str) -> Session | None:
        """Return the session that stands under a key in the store, whoever's it is: for operators alone."""
        session = self._cache.get(key)
        return session if session is not None else await self._load(key.rpartition("/")[2], key, self._clock())

    async def touch(self, session: Session) -> None:
        """Keep a session that has something under way from going idle."""
        now = self._clock()
        if now - session.touched_at >= self._touch_seconds:
            await self._load(session.id, session.key, now)

    async def _touch(self, session: Session, value: bytes, now: float) -> None:
        ttl = self._ttl(session.record)
        version = await self._store.put(session.key, value, ttl_seconds=ttl, if_version=session.version)
        if version is not None:
            session.version = version
            session.touched_at = now

    def _ttl(self, record: SessionRecord) -> float:
        """A session with a question open does not go idle before the question does."""
        return max(self.idle_seconds, record.open_until - time.time())

    async def keep_until(self, session: Session, moment: float) -> None:
        """Let a session live at least until then (seconds since the epoch): it has a question open."""
        if moment > max(time.time() + self.idle_seconds, session.record.open_until):
            await self.change(session, lambda record: setattr(record, "open_until", moment))

    async def change(self, session: Session, alter: Callable[[SessionRecord], None]) -> None:
        """Alter a session's record, against every other writer, and tell the other nodes."""
        while True:
            stored = await self._store.get(session.key)
            if stored is None:
                return
            record = _record_decoder.decode(stored.value)
            alter(record)
            version = await self._store.put(
                session.key, encode(record), ttl_seconds=self._ttl(record), if_version=stored.version
            )
            if version is not None:
                break
        session.load(record, version)
        session.touched_at = self._clock()
        await self._announce(session)
        await self._stir(session)

    async def _stir(self, session: Session) -> None:
        """Let what this node runs for a session look at its record again; most sessions get no log for it."""
        if session.running:
            await self.tell(session, Entry("changed"))

    async def end(self, session: Session) -> None:
        """End a session: its record goes, its calls are cancelled, here and on other nodes."""
        await self._store.take(session.key)
        await self.tell(session, Entry("ended"))
        self._gone(session)
        await self._announce(session, _ENDED)

    def _gone(self, session: Session) -> None:
        """A session has ended: nothing of it goes on here."""
        self._cache.pop(session.key, None)
        for running in list(session.running.values()):
            running.cancel()
        if self.on_ended is not None:
            self.on_ended(session.id)

    async def cancel(self, session: Session, identity: RequestId) -> None:
        """Cancel a request of a session, on whatever node it runs."""
        running = session.running.get(identity)
        if running is not None:
            running.cancel()
        elif self._store.shared:
            await self.tell(session, Entry("cancelled", encode(identity).decode()))

    async def tell(self, session: Session, entry: Entry) -> int:
        """Put something into the log of what comes in; return its position."""
        return await self._store.append(
            session.incoming, encode(entry), ttl_seconds=_LOG_SECONDS, max_entries=_LOG_ENTRIES
        )

    def inbox(self, session: Session, position: int = 0) -> LogReader:
        """A reader of what comes in for a session, from a position on."""
        return LogReader(self._store, session.incoming, position)

    def outbox(self, session: Session, stream: str, position: int = 0) -> LogReader:
        """A reader of what went out on a stream, from a position on."""
        return LogReader(self._store, session.outgoing(stream), position)

    async def hear(self, inbox: LogReader, timeout_seconds: float) -> list[Entry]:
        """Wait for what comes in; empty when the time is over."""
        return [_entry_decoder.decode(entry.value) for entry in await inbox.next(timeout_seconds)]

    async def expect_answer(self, session: Session, question_id: str, ttl_seconds: float, asked: "AskedNow") -> None:
        """Note that a question with this id is open."""
        await self._store.put(f"ask/{session.id}/{question_id}", encode(asked), ttl_seconds=ttl_seconds)

    async def forget_answer(self, session: Session, question_id: str) -> None:
        """The question is not open any more; a late answer is dropped."""
        await self._store.take(f"ask/{session.id}/{question_id}")

    async def answer(self, session: Session, response: Response) -> None:
        """Hand a client's answer to the call that asked. An answer to nothing that is open is dropped."""
        if not isinstance(response.id, str) or not _plausible(response.id):
            return
        result = None if response.result is msgspec.UNSET else response.result
        error = None if response.error is msgspec.UNSET else response.error
        entry = Entry("answer", response.id, result, error)
        try:
            encode(entry)
        except (ValueError, OverflowError):
            # A number of thousands of digits: not to be kept, and no answer to anything.
            entry = Entry("answer", response.id, {"action": "accept", "content": None})
        if await self._store.take(f"ask/{session.id}/{response.id}") is None:
            _log.info("an answer to no open question was dropped: %s", response.id)
            return
        await self.tell(session, entry)

    async def withdraw(self, session: Session, question_id: str) -> bool:
        """Take an open question back, as if its user had cancelled it; False where it is not open any more."""
        if await self._store.take(f"ask/{session.id}/{question_id}") is None:
            return False
        await self.tell(session, Entry("withdrawn", question_id))
        return True

    async def publish(self, session: Session, stream: str, message: bytes) -> int:
        """Keep an event of a stream for replay; return its sequence number."""
        return await self._store.append(
            session.outgoing(stream), message, ttl_seconds=_LOG_SECONDS, max_entries=_LOG_ENTRIES
        )

    async def notify(self, session: Session, message: Json) -> None:
        """Send a notification that belongs to no call: on the standalone stream."""
        await _publish_standalone(self._store, session.id, message)

    async def tell_session(self, session_id: str, message: Json) -> None:
        """Send what belongs to no call to a session by its id, whether this node has it decoded or not.

        A log message that the session does not want is dropped where that is known here.
        """
        known = next((session for session in self._cache.values() if session.id == session_id), None)
        if known is None or message["method"] != "notifications/message" or _wants(known.record, message):
            await _publish_standalone(self._store, session_id, message)

    async def expect_completion(self, session: Session, elicitation_id: str, ttl_seconds: float) -> None:
        """Note which session opened the page of a URL question."""
        key = f"page/{digest(elicitation_id)}"
        await self._store.put(key, session.id.encode(), ttl_seconds=ttl_seconds + _LOG_SECONDS)

    async def cursor(self, session: Session, position: int | None = None) -> int:
        """Read, or set, how far the standalone stream has been delivered."""
        key = f"cursor/{session.id}"
        if position is not None:
            await self._store.put(key, str(position).encode(), ttl_seconds=_LOG_SECONDS)
            return position
        stored = await self._store.get(key)
        return 0 if stored is None else int(stored.value)

    def known(self) -> Iterable[Session]:
        """The sessions that this node holds decoded."""
        return self._cache.values()

    def _keep(self, session: Session) -> Session:
        self._cache[session.key] = session
        while len(self._cache) > _CACHED:
            key, oldest = next(iter(self._cache.items()))
            if oldest.running:
                self._cache.move_to_end(key)
                break
            del self._cache[key]
        return session

    async def _announce(self, session: Session, change: str = "") -> None:
        if self._store.shared:
            value = f"{self._node.id} {session.key} {change}".encode()
            await self._store.append(_CHANGES, value, ttl_seconds=_LOG_SECONDS, max_entries=10_000)

    async def _follow_changes(self) -> None:
        """Reload what other nodes change, for as long as the node runs."""
        changes = LogReader(self._store, _CHANGES)
        while True:
            try:
                entries = await changes.next(_LOOK_SECONDS)
                if await self.identity.look() or changes.missed:
                    # Something was not heard, or all is gone: everything is looked up again.
                    for session in self._cache.values():
                        session.touched_at = float("-inf")
                for entry in entries:
                    node, key, change = entry.value.decode().split(" ")
                    if node != self._node.id and key in self._cache:
                        session = self._cache[key]
                        await self.refresh(session)
                        await self._stir(session)
                    elif node != self._node.id and change == _ENDED and self.on_ended is not None:
                        # Not decoded here any more, but perhaps still with a session at a wrapped server.
                        self.on_ended(key.rpartition("/")[2])
            except StoreError as error:
                _log.warning("changes by other nodes are not heard at the moment: %s", error)
                await anyio.sleep(_RETRY_SECONDS)

    async def refresh(self, session: Session) -> None:
        """Read again what is stored of a session; where it has ended, cancel what this node runs for it."""
        stored = await self._store.get(session.key)
        if stored is not None:
            session.load(_record_decoder.decode(stored.value), stored.version)
        else:
            self._gone(session)


async def _publish_standalone(store: Store, session_id: str, message: Json) -> None:
    """Put a message on the stream of what belongs to no call."""
    log = outgoing(session_id, STANDALONE)
    await store.append(log, INTERIM + encode(message), ttl_seconds=_LOG_SECONDS, max_entries=_LOG_ENTRIES)


def _wants(record: SessionRecord, message: Json) -> bool:
    """Whether a session wants a log message."""
    level, wanted = message.get("params", {}).get("level"), record.log_level or DEFAULT_LOG_LEVEL
    return level in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)


async def complete_page(store: Store, elicitation_id: str) -> bool:
    """Tell the client that opened the page of a URL question that it is done; False where none is known."""
    key = await store.take(f"page/{digest(elicitation_id)}")
    if key is None:
        return False
    message = notification("notifications/elicitation/complete", {"elicitationId": elicitation_id})
    await _publish_standalone(store, key.decode(), message)
    return True


_record_decoder: Final = msgspec.json.Decoder(SessionRecord)
_entry_decoder: Final = msgspec.json.Decoder(Entry)


def _family(principal: Principal) -> str:
    return f"session/{digest(principal.name)}" if principal.name else "session/anonymous"


def _plausible(identity: str) -> bool:
    """Whether a text can be an id of ours: a client's text must not become any key."""
    return 8 <= len(identity) <= 64 and identity.isascii() and identity.replace("-", "").replace("_", "").isalnum()
