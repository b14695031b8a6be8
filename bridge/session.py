"""One legacy session: what is stored of it, what comes in for it, and how a node holds it. Does no I/O."""

from typing import Any, Final, Protocol

import msgspec

from bridge.asking.form import digest
from bridge.protocol.clients import ClientProfile, Principal
from bridge.protocol.messages import Json, RequestId
from bridge.protocol.revisions import LEGACY

__all__ = [
    "DEFAULT_LOG_LEVEL",
    "ENDED",
    "FINAL",
    "INTERIM",
    "STANDALONE",
    "AskedNow",
    "Entry",
    "Running",
    "Session",
    "SessionLimits",
    "SessionRecord",
    "handle",
    "outgoing",
    "profile_of",
]

INTERIM: Final = b"\x00"
"""Marks, in a stream's log, a message before the reply."""

FINAL: Final = b"\x01"
"""Marks the reply, which ends the stream."""

ENDED: Final = b"\x02"
"""Marks that the stream ends without a reply."""

STANDALONE: Final = "get"
"""The stream on which goes what belongs to no call."""

DEFAULT_LOG_LEVEL: Final = "info"
"""The level of a session that never set one."""


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long sessions live and how many there may be.

    Args:
        idle_seconds: after its last message; None: 30 min in a store that dies with the process, else 7 days.
        in_all: how many sessions there may be.
        per_principal: how many one authenticated principal may have.
    """

    idle_seconds: float | None = None
    in_all: int = 100_000
    per_principal: int = 10_000


class SessionRecord(msgspec.Struct, kw_only=True):
    """What is stored of a session.

    Args:
        revision: the negotiated revision's name.
        params: all of `initialize`'s params, unknown fields too.
        principal: who opened it.
        initialized: whether `notifications/initialized` has come.
        log_level: what `logging/setLevel` said.
        subscriptions: the resources that the client subscribed to.
        unable: for each mode in which the client turned out not to be askable, why.
        fallback: whether the fallback tool is listed although the client declares forms.
        widened: whether tools were listed since then, with output schemas that allow the pending form.
        open_until: until when a question is open, in seconds since the epoch.
    """

    revision: str
    params: Json
    principal: Principal
    initialized: bool = False
    log_level: str | None = None
    subscriptions: list[str] = []
    unable: dict[str, str] = {}
    fallback: bool = False
    widened: bool = False
    open_until: float = 0.0


class Entry(msgspec.Struct, array_like=True):
    """One thing that came in for a session.

    `kind` is `answer`, `withdrawn` (a question, by its id), `cancelled` (a request, by its id in JSON), `resolved` (a
    call that waits on chat), `attached`, `detached`, `get`, `changed` or `ended`.
    """

    kind: str
    name: str = ""
    result: Any = None
    error: Any = None


class AskedNow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a pushed question while it is open: since when, of which tool, in which mode. Not its text."""

    asked_at: float
    target: str
    mode: str


class Running(Protocol):
    """A request of a session that this node has under way."""

    def cancel(self) -> None:
        """End it: its session is over, or its client cancelled it."""
        ...


class Session:
    """A session as this node holds it."""

    __slots__ = ("by_chat", "id", "key", "profile", "record", "running", "touched_at", "version")

    def __init__(self, session_id: str, key: str, record: SessionRecord, version: int, now: float) -> None:
        self.id = session_id
        self.key = key
        self.running: dict[RequestId, Running] = {}
        self.touched_at = now
        self.load(record, version)

    def load(self, record: SessionRecord, version: int) -> None:
        """Take over what is stored."""
        self.record = record
        self.version = version
        self.by_chat: bool | None = None
        """Whether it sees the fallback tool, once that was found out for what is stored now."""
        self.profile = profile_of(record)

    @property
    def handle(self) -> str:
        """Names the session in logs and on pages, where its id would let a reader take it over."""
        return handle(self.id)

    @property
    def log_level(self) -> str | None:
        """What `logging/setLevel` said."""
        return self.record.log_level

    @property
    def subscriptions(self) -> list[str]:
        """The resources that the client subscribed to."""
        return self.record.subscriptions

    @property
    def unable(self) -> dict[str, str]:
        """For each mode in which the client turned out not to be askable, why."""
        return self.record.unable

    @property
    def incoming(self) -> str:
        """The log of what comes in for calls that wait."""
        return f"in/{self.id}"

    def outgoing(self, stream: str) -> str:
        """The log of what went out on one stream."""
        return outgoing(self.id, stream)


def outgoing(session_id: str, stream: str) -> str:
    """The log of what went out on one stream of a session."""
    return f"out/{session_id}/{stream}"


def profile_of(record: SessionRecord) -> ClientProfile:
    """The client of a session, as it described itself."""
    capabilities, info = record.params.get("capabilities"), record.params.get("clientInfo")
    return ClientProfile(
        LEGACY[record.revision],
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        record.principal,
    )


def handle(identity: str) -> str:
    """A short name for something whose id is nobody else's business: from it the id cannot be found."""
    return digest(identity)[:12]
