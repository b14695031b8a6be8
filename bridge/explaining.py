"""What is going on: each live session, how its user is asked and why, and what it has open. Read from the store.

So any node tells the same, and a tool's own process need not be asked. It never tells what was asked or answered, the
arguments of a call, the id of a session or of a question (only handles made from them), or who is authenticated.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final, Literal

import msgspec

from bridge.asking.reasons import reason_of
from bridge.pending import count_open, open_calls
from bridge.protocol.messages import Json
from bridge.protocol.revisions import LEGACY
from bridge.server import Options
from bridge.session import AskedNow, SessionRecord, handle, profile_of
from bridge.stores.base import Store

__all__ = ["MAX_LOOKED_AT", "Explained", "Explainer", "OpenQuestion", "Ref", "RouteExplained", "SessionExplained"]

MAX_LOOKED_AT: Final = 1000
"""How many sessions are looked at for one answer."""

_MAX_QUESTIONS: Final = 64
_MODES: Final = ("form", "url", "sampling", "roots")
_MOST_FREQUENT: Final = 12
_TEXT: Final = 100


class RouteExplained(msgspec.Struct, frozen=True, kw_only=True):
    """How a question of one mode reaches the user of a client, and why; see `bridge.asking.reasons`."""

    mode: str
    route: str
    reason: str
    meaning: str
    setting: str


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for its answer.

    Args:
        handle: names it on pages.
        route: `push` or `chat`.
        mode: `form`, `url`, `sampling` or `roots`.
        tool: what asks: the name of a tool or prompt, or a resource's URI.
        age_seconds: since when it is open.
        held: whether a call of a wrapped server is suspended at it.
    """

    handle: str
    route: Literal["push", "chat"]
    mode: str
    tool: str
    age_seconds: float
    held: bool = False


class SessionExplained(msgspec.Struct, frozen=True, kw_only=True):
    """One live session.

    Args:
        handle: names it in the log and on pages.
        revision: what it speaks.
        client: the client's name and version, as it calls itself.
        capabilities: what it declared.
        initialized: whether the client has said that it is ready.
        routes: how its user is asked, for each mode.
        questions: what is open, the oldest first.
    """

    handle: str
    revision: str
    client: dict[str, str]
    capabilities: Json
    initialized: bool
    routes: list[RouteExplained]
    questions: list[OpenQuestion]

    def route(self, mode: str) -> RouteExplained:
        """How a question of that mode is asked."""
        return next(route for route in self.routes if route.mode == mode)


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The live sessions.

    Args:
        sessions: those that were wanted, first those that may have a question open.
        looked_at: how many were looked at for that.
        in_all: how many there are.
        open_questions: how many questions are open, in all of them.
        by_revision: how many of those that were looked at speak each revision.
        by_client: how many of those are of each client, by its name; the most frequent.
    """

    sessions: list[SessionExplained]
    looked_at: int
    in_all: int
    open_questions: int
    by_revision: dict[str, int]
    by_client: dict[str, int]


class Ref(msgspec.Struct, frozen=True):
    """Where a session stands in the store. Its id is in it: not for pages."""

    key: str
    record: SessionRecord

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.key.rpartition("/")[2]


class Explainer:
    """Looks at the sessions of a store.

    Args:
        store: where they stand.
        options: how the bridge is set up.
        clock: seconds since the epoch.
    """

    def __init__(self, store: Store, options: Options, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._ways = options.ways
        self._clock = clock

    async def explain(self, *, client: str = "", revision: str = "", limit: int = 100) -> Explained:
        """Explain live sessions.

        Args:
            client: part of the client's name, or empty for all.
            revision: the revision's name, or empty for all.
            limit: how many sessions are returned at most.
        """
        matching: list[Ref] = []
        revisions: Counter[str] = Counter()
        clients: Counter[str] = Counter()
        async for ref in self._refs():
            name = _text(ref.record.params.get("clientInfo"), "name")
            revisions[ref.record.revision] += 1
            clients[name] += 1
            if client.lower() in name.lower() and revision in ("", ref.record.revision):
                matching.append(ref)
        asking = await self._asking()
        matching.sort(key=lambda ref: ref.id not in asking)
        looked_at = revisions.total()
        by_chat = await count_open(self._store, self._clock(), MAX_LOOKED_AT)
        return Explained(
            sessions=[await self._session(ref) for ref in matching[:limit]],
            looked_at=looked_at,
            in_all=max(await self._store.count("session"), looked_at),
            open_questions=await self._store.count("ask") + by_chat,
            by_revision=dict(sorted(revisions.items(), reverse=True)),
            by_client=dict(clients.most_common(_MOST_FREQUENT)),
        )

    async def _asking(self) -> set[str]:
        """The ids of sessions that may have a question open."""
        keys = [key for family in ("ask", "open") for key in await self._store.scan(family, limit=MAX_LOOKED_AT)]
        return {key.split("/", 2)[1] for key in keys}

    async def find(self, wanted: str) -> Ref | None:
        """Find a session by its handle."""
        async for ref in self._refs():
            if handle(ref.id) == wanted:
                return ref
        return None

    async def find_question(self, ref: Ref, wanted: str) -> tuple[Literal["push", "chat"], str] | None:
        """Find an open question of a session by its handle: its route and its id."""
        for key in await self._store.scan(f"ask/{ref.id}", limit=_MAX_QUESTIONS):
            question_id = key.rpartition("/")[2]
            if handle(question_id) == wanted:
                return "push", question_id
        for call in await open_calls(self._store, ref.id, self._clock()):
            if handle(call.elicit_id) == wanted:
                return "chat", call.elicit_id
        return None

    async def _refs(self) -> AsyncIterator[Ref]:
        after, seen = "", 0
        while seen < MAX_LOOKED_AT and (keys := await self._store.scan("session", after=after, limit=100)):
            after, seen = keys[-1], seen + len(keys)
            for key in keys:
                stored = await self._store.get(key)
                if stored is not None:
                    record = _record_decoder.decode(stored.value)
                    if record.revision in LEGACY:
                        yield Ref(key, record)

    async def _session(self, ref: Ref) -> SessionExplained:
        profile, info = profile_of(ref.record), ref.record.params.get("clientInfo")
        routes = []
        for mode in _MODES:
            choice = self._ways.choose(profile, mode, ref.record.unable)
            about = reason_of(choice.reason)
            routes.append(
                RouteExplained(
                    mode=mode,
                    route=choice.route.value,
                    reason=choice.reason,
                    meaning=about.meaning,
                    setting=about.setting,
                )
            )
        return SessionExplained(
            handle=handle(ref.id),
            revision=ref.record.revision,
            client={"name": _text(info, "name"), "version": _text(info, "version")},
            capabilities=profile.capabilities,
            initialized=ref.record.initialized,
            routes=routes,
            questions=sorted(await self._questions(ref), key=lambda question: -question.age_seconds),
        )

    async def _questions(self, ref: Ref) -> list[OpenQuestion]:
        now = self._clock()
        found = []
        for key in await self._store.scan(f"ask/{ref.id}", limit=_MAX_QUESTIONS):
            stored = await self._store.get(key)
            if stored is not None:
                asked = _asked_decoder.decode(stored.value)
                question = OpenQuestion(
                    handle=handle(key.rpartition("/")[2]),
                    route="push",
                    mode=asked.mode,
                    tool=asked.target,
                    age_seconds=_age(now, asked.asked_at),
                )
                found.append(question)
        for call in await open_calls(self._store, ref.id, now):
            found += [
                OpenQuestion(
                    handle=handle(call.elicit_id),
                    route="chat",
                    mode=question.mode,
                    tool=call.request.target,
                    age_seconds=_age(now, call.asked_at),
                    held=bool(call.stored.journal.held),
                )
                for question in call.still_open()
            ]
        return found


def _age(now: float, since: float) -> float:
    """Seconds; two machines' clocks may differ."""
    return round(max(now - since, 0.0), 1)


def _text(info: object, name: str) -> str:
    """A field of a `clientInfo`, whatever the client put there."""
    return str(info.get(name, ""))[:_TEXT] if isinstance(info, dict) else ""


_record_decoder: Final = msgspec.json.Decoder(SessionRecord)
_asked_decoder: Final = msgspec.json.Decoder(AskedNow)
