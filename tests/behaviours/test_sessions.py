"""Sessions of legacy clients: how they begin, what they keep, when they end."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge import Bridge, Context, Principal
from bridge.application import Application
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.errors import StoreUnavailable
from bridge.node import Node
from bridge.protocol.clients import ANONYMOUS
from bridge.protocol.revisions import LEGACY
from bridge.session import SessionLimits, SessionRecord
from bridge.sessions import Sessions
from bridge.stores import MemoryStore, Store
from bridge.stores.sqlite import SqliteStore
from bridge.testing import Client, HttpReply, accept, connect
from bridge.transports import exchange, streams
from bridge.upstreams.base import Finished
from tests.conftest import Serve
from tests.wiretap import Tap, tap_asgi

behaviour = pytest.mark.behaviour
shared = pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)

SECONDS = 10
UNKNOWN = "A" * 32
MODERN_FIELDS = {"resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"}


class Name(BaseModel):
    name: str


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Work:
    """What a tool does that a test begins, watches and ends."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.go = anyio.Event()
        self.over = anyio.Event()
        self.trace: list[str] = []

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await self.go.wait()
            self.trace.append("went on")
        except anyio.get_cancelled_exc_class():
            self.trace.append("cancelled")
            raise
        finally:
            self.trace.append("finally")
            self.over.set()

    async def ended(self) -> list[str]:
        with anyio.fail_after(SECONDS):
            await self.over.wait()
        return self.trace


class Flaky:
    """A store that is away while it is told so, and that tells of what is written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False
        self.written = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._gone if self.away and callable(found) else found

    async def put(self, key: str, value: bytes, **options: Any) -> int | None:
        if self.away:
            await self._gone()
        if key.startswith("session/"):
            self.written.set()
        return await self._store.put(key, value, **options)

    async def _gone(self, *args: Any, **kwargs: Any) -> Any:
        raise StoreUnavailable("the store is away")


def serving(work: Work | None = None, store: Any = None, **options: Any) -> Bridge:
    bridge = Bridge("sessions", elicitation=True, store=store, **options)

    @bridge.tool
    async def use(ctx: Context) -> str:
        await ctx.info("begun")
        if work is not None:
            await work()
        return "done"

    @bridge.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return answer.content.name if answer.content else answer.status

    @bridge.tool
    async def name() -> Name:
        return Name(name="Ada")

    return bridge


def once(app: Any) -> Any:
    """The app, which must begin each reply once, as every ASGI server demands."""

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        starts: list[int] = []

        async def seen(event: Any) -> None:
            if event["type"] == "http.response.start":
                starts.append(event["status"])
                assert len(starts) == 1, f"one reply began with {starts}"
            await send(event)

        await app(scope, receive, seen)

    return checked


@asynccontextmanager
async def node(
    bridge: Bridge, tap: Tap, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> AsyncIterator[tuple[Application, Any]]:
    """The app itself and the same app behind the wire tap, its sessions on a clock of the test's."""
    app = bridge.asgi()
    monkeypatch.setattr(app.sessions, "_clock", clock)
    async with app.lifespan():
        yield app, tap_asgi(app, tap)


async def initialize(mcp: Client, params: Any, headers: Any = None) -> HttpReply:
    """Send one more `initialize`, by default as a client that has no session."""
    message = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}
    return await mcp.raw.post(message, {"mcp-session-id": "", "mcp-protocol-version": "", **(headers or {})})


def hello(revision: Any = "2025-06-18", **more: Any) -> Any:
    return {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}, **more}


async def ping(mcp: Client, **headers: str) -> int:
    """Whether the session lives: the HTTP status."""
    with anyio.fail_after(SECONDS):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        reply = await mcp.raw.post({"jsonrpc": "2.0", "id": "ping", "method": "ping"}, named)
        await reply.closed()
    return reply.status


async def post_call(mcp: Client, tool: str, *, identity: Any = 900, headers: Any = None) -> HttpReply:
    message = {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
    with anyio.fail_after(SECONDS):
        return await mcp.raw.post(message, headers)


# LEG-1


@behaviour("LEG-1")
@pytest.mark.parametrize("revision", LEGACY)
async def test_a_known_revision_is_kept(serve: Serve, revision: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        assert mcp.initialize_result["protocolVersion"] == revision
        assert mcp.initialize_result["serverInfo"]["name"] == "sessions"
        assert (await mcp.tools.call("use")).text() == "done"


@behaviour("LEG-1")
@pytest.mark.parametrize("revision", ["2026-07-28", "2099-01-01", "2024-10-07", "1.0", "", 7, None, ["2025-06-18"]])
async def test_any_other_revision_gets_the_newest_legacy_one(serve: Serve, revision: Any) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        reply = await initialize(mcp, hello(revision))
        assert reply.status == 200
        assert (await reply.json())["result"]["protocolVersion"] == "2025-11-25"
        assert await ping(mcp, mcp_session_id=reply.headers["mcp-session-id"], mcp_protocol_version="2025-11-25") == 200


@behaviour("LEG-1")
async def test_no_revision_at_all_gets_the_newest_legacy_one(serve: Serve) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        assert (await (await initialize(mcp, {})).json())["result"]["protocolVersion"] == "2025-11-25"


@behaviour("LEG-1")
async def test_session_ids_have_128_random_bits(serve: Serve, store: Store) -> None:
    async with connect(await serve(serving(store=store)), revision="2025-06-18") as mcp:
        ids = [(await initialize(mcp, hello())).headers["mcp-session-id"] for _ in range(64)]
        assert len(set(ids)) == 64
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{22,}", one) for one in ids), "at least 22 characters of 6 bits"
        for place in range(22):
            assert len({one[place] for one in ids}) > 8, "random in every place"


# LEG-2

EVERYTHING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "elicitation": {"form": {}, "x-own": [1]},
        "roots": {"listChanged": True},
        "sampling": {},
        "experimental": {"a/b": {"deep": [{"er": None}, 1.5, -0.0, "\u00e9\u4e2d\U0001f600\u0000"]}},
        "unknown": {"kept": True},
    },
    "clientInfo": {"name": "full", "version": "1", "title": "T", "icons": [{"src": "data:,"}], "more": 2**70},
    "_meta": {"progressToken": "p", "x": {"y": []}},
    "somethingElse": [[], {}, "", 0, False, None],
}


@behaviour("LEG-2")
async def test_the_record_keeps_all_that_initialize_said(serve: Serve, store: Store) -> None:
    async with connect(await serve(serving(store=store)), revision="2025-11-25") as mcp:
        reply = await initialize(mcp, EVERYTHING)
        assert reply.status == 200
        session_id = reply.headers["mcp-session-id"]
        loaded = await Sessions(Node(store), SessionLimits()).find(session_id, ANONYMOUS)
        assert loaded is not None
        assert loaded.record.params == EVERYTHING
        assert loaded.record.principal == ANONYMOUS
        assert loaded.record.revision == "2025-11-25"
        assert loaded.profile.capabilities == EVERYTHING["capabilities"]
        assert loaded.profile.info == EVERYTHING["clientInfo"]


@behaviour("LEG-2")
async def test_a_record_saved_and_loaded_is_equal(store: Store) -> None:
    who = Principal("https://issuer", "ada")
    one, two = Sessions(Node(store), SessionLimits()), Sessions(Node(store), SessionLimits())
    session = await one.open(EVERYTHING, who)
    learned = SessionRecord(
        revision="2025-11-25",
        params=EVERYTHING,
        principal=who,
        initialized=True,
        log_level="debug",
        subscriptions=["file:///a", "file:///\u00e9"],
        unable={"form": "no_stream", "url": "declined"},
        fallback=True,
        widened=True,
        open_until=4_000_000_000.25,
    )

    def alter(record: SessionRecord) -> None:
        for name in SessionRecord.__struct_fields__:
            setattr(record, name, getattr(learned, name))

    await one.change(session, alter)
    loaded = await two.find(session.id, who)
    assert loaded is not None
    assert loaded.record == session.record == learned
    assert await two.find(session.id, ANONYMOUS) is None


@behaviour("LEG-2", "PSH-4")
@shared
async def test_what_was_learned_about_a_client_is_known_at_every_node(serve: Serve, store: Store) -> None:
    bridge = serving(store=store)
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        assert await ping(other) == 200, "the other node holds it decoded"
        reply = await post_call(mcp, "ask")
        question = await anext(reply.messages())
        error = {"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}}
        await (await mcp.raw.post(error)).closed()
        await reply.closed()
        third = await serve(bridge)
        async with connect(third, revision="2025-06-18") as fresh:
            fresh.session_id = mcp.session_id
            assert FALLBACK_TOOL_NAME in [tool["name"] for tool in await fresh.tools.list()]


@behaviour("LEG-2")
@shared
async def test_a_session_outlives_its_process(tap: Tap, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = serving(store=store)
    async with node(bridge, tap, monkeypatch, Clock()) as (_, http), connect(http, revision="2025-06-18") as mcp:
        session_id = mcp.session_id
    async with node(bridge, tap, monkeypatch, Clock()) as (_, http), connect(http, revision="2025-06-18") as mcp:
        mcp.session_id = session_id
        mcp.on_elicitation(lambda asked: accept({"name": "Ada"}))
        assert (await mcp.tools.call("ask")).text() == "Ada"


# LEG-3


@behaviour("LEG-3")
@pytest.mark.parametrize("identity", [0, 7, "0", "x", -3])
@pytest.mark.parametrize("unknown", [UNKNOWN, "x", "../../x", "a/b", "\xff", "A" * 5000, "session/anonymous"])
async def test_an_unknown_session_is_not_found(serve: Serve, identity: Any, unknown: str) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        for method, params in (("tools/call", {"name": "use", "arguments": {}}), ("ping", {}), ("no/such", {})):
            message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
            reply = await mcp.raw.post(message, {"mcp-session-id": unknown})
            assert (reply.status, reply.headers["content-type"]) == (404, "application/json")
            body = await reply.json()
            assert body == {
                "jsonrpc": "2.0",
                "id": identity,
                "error": {"code": -32001, "message": "Session not found"},
            }
            assert type(body["id"]) is type(identity)


@behaviour("LEG-3")
async def test_a_notification_or_answer_of_an_unknown_session_is_not_found(serve: Serve) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": "ask-1", "result": {"action": "cancel"}},
        ):
            reply = await mcp.raw.post(message, {"mcp-session-id": UNKNOWN})
            assert reply.status == 404
            assert (await reply.json())["error"] == {"code": -32001, "message": "Session not found"}


@behaviour("LEG-3")
async def test_a_message_without_a_session_is_a_bad_request(serve: Serve) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        for message in (
            {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 3, "result": {}},
        ):
            reply = await mcp.raw.post(message, {"mcp-session-id": ""})
            assert reply.status == 400
            body = await reply.json()
            assert body["error"]["code"] == -32600
            assert "Mcp-Session-Id" in body["error"]["message"]
            assert body.get("id") == message.get("id")


@behaviour("LEG-3", "TRN-5")
async def test_get_and_delete_need_a_session_that_is_there(serve: Serve, store: Store) -> None:
    async with connect(await serve(serving(store=store)), revision="2025-06-18") as mcp:
        own, mcp.session_id = mcp.session_id, None
        for reply in (await mcp.raw.get(), await mcp.raw.delete()):
            assert reply.status == 405
            assert "POST" in reply.headers["allow"]
        mcp.session_id = UNKNOWN
        for reply in (await mcp.raw.get(), await mcp.raw.delete()):
            assert reply.status == 404
            assert (await reply.json())["error"] == {"code": -32001, "message": "Session not found"}
        mcp.session_id = own
        assert await ping(mcp) == 200


@behaviour("LEG-3")
async def test_a_store_that_is_away_is_never_a_session_that_is_not_there(serve: Serve) -> None:
    store = Flaky(MemoryStore())
    bridge = serving(store=store)
    here, there = once(await serve(bridge)), once(await serve(bridge))
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        store.away = True
        notified = await other.raw.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for reply in (
            await other.raw.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
            notified,
            await other.raw.post({"jsonrpc": "2.0", "id": "ask-1", "result": {}}),
            await other.raw.get(),
            await other.raw.delete(),
            await initialize(other, hello()),
        ):
            assert reply.status == 503
            assert int(reply.headers["retry-after"]) > 0
            assert "store is away" in (await reply.json())["error"]["message"]
        store.away = False
        assert await ping(other) == 200
        other.on_elicitation(lambda asked: accept({"name": "Ada"}))
        assert (await other.tools.call("ask")).text() == "Ada"


@behaviour("LEG-3")
async def test_a_session_that_a_node_has_decoded_needs_no_store_for_a_plain_request(serve: Serve) -> None:
    store = Flaky(MemoryStore())
    async with connect(once(await serve(serving(store=store))), revision="2025-06-18") as mcp:
        store.away = True
        assert await ping(mcp) == 200
        reply = await post_call(mcp, "ask")
        assert reply.status == 503
        assert "retry-after" in reply.headers
        store.away = False
        mcp.on_elicitation(lambda asked: accept({"name": "Ada"}))
        assert (await mcp.tools.call("ask")).text() == "Ada"


# LEG-4


@behaviour("LEG-4")
async def test_initialize_with_an_old_session_id_starts_a_new_session(serve: Serve, store: Store) -> None:
    async with connect(await serve(serving(store=store)), revision="2025-06-18") as mcp:
        ended = mcp.session_id
        assert (await mcp.raw.delete()).status == 204
        for old in (UNKNOWN, ended):
            assert old is not None
            reply = await initialize(mcp, hello(), {"mcp-session-id": old, "mcp-protocol-version": "2025-06-18"})
            assert reply.status == 200
            new = reply.headers["mcp-session-id"]
            assert new not in (old, ended)
            assert await ping(mcp, mcp_session_id=new) == 200


@behaviour("LEG-4")
async def test_initialize_with_a_living_session_id_starts_another_one(serve: Serve, store: Store) -> None:
    async with connect(await serve(serving(store=store)), revision="2025-06-18") as mcp:
        assert mcp.session_id is not None
        reply = await initialize(mcp, hello(), {"mcp-session-id": mcp.session_id})
        assert (await reply.json())["result"]["protocolVersion"] == "2025-06-18"
        assert reply.headers["mcp-session-id"] != mcp.session_id


@behaviour("LEG-4")
async def test_delete_ends_a_session_and_cancels_its_calls(serve: Serve, store: Store) -> None:
    one, two = Work(), Work()
    bridge = serving(one, store)

    @bridge.tool
    async def use_too(ctx: Context) -> str:
        await ctx.info("begun")
        await two()
        return "done"

    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        calls = [await post_call(mcp, "use", identity=1), await post_call(mcp, "use_too", identity="1")]
        standalone = await mcp.raw.get()
        for work in (one, two):
            with anyio.fail_after(SECONDS):
                await work.begun.wait()
        reply = await mcp.raw.delete()
        await reply.closed()
        assert (reply.status, reply.raw) == (204, b"")
        for work in (one, two):
            assert await work.ended() == ["cancelled", "finally"]
        with anyio.fail_after(SECONDS):
            for open_reply in (*calls, standalone):
                await open_reply.closed()
        assert [event["method"] for call in calls for _, event in call.events] == ["notifications/message"] * 2
        assert await ping(mcp) == 404
        assert (await mcp.raw.get()).status == 404
        assert (await mcp.raw.delete()).status == 404


@behaviour("LEG-4")
@shared
async def test_delete_at_another_node_cancels_the_calls_of_the_session(serve: Serve, store: Store) -> None:
    work = Work()
    bridge = serving(work, store)
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        call = await post_call(mcp, "use")
        with anyio.fail_after(SECONDS):
            await work.begun.wait()
        assert (await other.raw.delete()).status == 204
        assert await work.ended() == ["cancelled", "finally"]
        with anyio.fail_after(SECONDS):
            await call.closed()
        assert await ping(mcp) == 404
        assert await ping(other) == 404


@behaviour("LEG-4")
@shared
async def test_delete_at_another_node_ends_a_call_that_asks(serve: Serve, store: Store) -> None:
    bridge = serving(None, store)
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        call = await post_call(mcp, "ask")
        question = await anext(call.messages())
        assert question["method"] == "elicitation/create"
        assert (await other.raw.delete()).status == 204
        with anyio.fail_after(SECONDS):
            await call.closed()
        assert len(call.events) == 1, "the question, and nothing after it"


@behaviour("LEG-4")
async def test_delete_at_another_node_is_heard_after_a_long_silence(serve: Serve, tmp_path: Path) -> None:
    work, clock = Work(), Clock()
    store = SqliteStore(tmp_path / "state.db", clock=clock)
    bridge = serving(work, store, sessions=SessionLimits(idle_seconds=86400.0))
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        clock.now += 3600
        await post_call(mcp, "use")
        with anyio.fail_after(SECONDS):
            await work.begun.wait()
        assert (await other.raw.delete()).status == 204
        with anyio.fail_after(2):
            await work.over.wait()
        assert work.trace == ["cancelled", "finally"]


@behaviour("LEG-6", "LEG-4")
@shared
async def test_cancelled_at_another_node_cancels_the_call(serve: Serve, store: Store) -> None:
    work = Work()
    bridge = serving(work, store)
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        await post_call(mcp, "use", identity=5)
        with anyio.fail_after(SECONDS):
            await work.begun.wait()
        await other.notify("notifications/cancelled", {"requestId": 5})
        with anyio.fail_after(2):
            await work.over.wait()
        assert work.trace == ["cancelled", "finally"]


@behaviour("LEG-4", "LEG-13")
@pytest.mark.parametrize("how", ["delete", "cancelled"])
async def test_a_cancelled_call_that_has_sent_nothing_still_gets_an_http_reply(serve: Serve, how: str) -> None:
    work, replies = Work(), []
    bridge = Bridge("sessions")

    @bridge.tool
    async def silent() -> str:
        await work()
        return "done"

    async with connect(await serve(bridge), revision="2025-06-18") as mcp, anyio.create_task_group() as tasks:

        async def call() -> None:
            replies.append(await post_call(mcp, "silent", identity=5))

        tasks.start_soon(call)
        with anyio.fail_after(SECONDS):
            await work.begun.wait()
        if how == "delete":
            await mcp.raw.delete()
        else:
            await mcp.notify("notifications/cancelled", {"requestId": 5})
        assert await work.ended() == ["cancelled", "finally"]
    assert 200 <= replies[0].status < 300, "any other status ends many a client's transport"


@behaviour("LEG-6")
async def test_cancelled_names_its_request_by_id_and_type(serve: Serve) -> None:
    work = Work()
    async with connect(await serve(serving(work)), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "use", identity=1)
        with anyio.fail_after(SECONDS):
            await work.begun.wait()
        for other in ("1", 2, True, 1.0, None):
            await mcp.notify("notifications/cancelled", {"requestId": other})
        await mcp.notify("notifications/cancelled", {})
        work.go.set()
        await call.closed()
    assert work.trace == ["went on", "finally"]


# LEG-5


@behaviour("LEG-5")
@pytest.mark.parametrize("revision", LEGACY)
async def test_no_modern_field_leaves_on_a_session(
    serve: Serve, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = serving()

    async def modern(call: Any) -> Finished:
        content = [{"type": "text", "text": "done"}]
        fields = {
            "resultType": "complete",
            "inputRequests": {},
            "requestState": "s",
            "ttlMs": 1,
            "cacheScope": "public",
        }
        assert set(fields) == MODERN_FIELDS
        return Finished({"content": content, "structuredContent": {"ttlMs": 5}, "_meta": {"ttlMs": 6}, **fields})

    monkeypatch.setattr(bridge.functions, "run", modern)
    async with connect(await serve(bridge), revision=revision) as mcp:
        results = [mcp.initialize_result, await mcp.request("tools/list", {}), await mcp.request("ping", {})]
        result = await mcp.request("tools/call", {"name": "use", "arguments": {}})
        for found in (*results, result):
            assert not MODERN_FIELDS & set(found)
        if LEGACY[revision].structured_content:
            assert result["structuredContent"] == {"ttlMs": 5}, "only the top is ours"


# LEG-12


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams open at once and comments come often."""
    monkeypatch.setattr(exchange, "LATE_SECONDS", 0.0)
    monkeypatch.setattr(exchange, "COMMENT_SECONDS", 0.02)
    monkeypatch.setattr(streams, "COMMENT_SECONDS", 0.02)


@behaviour("LEG-12")
async def test_an_idle_session_expires(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    bridge = serving(store=MemoryStore(clock=clock), sessions=SessionLimits(idle_seconds=600.0))
    async with node(bridge, tap, monkeypatch, clock) as (_, http), connect(http, revision="2025-06-18") as mcp:
        for _ in range(5):
            clock.now += 500
            assert await ping(mcp) == 200
        clock.now += 601
        assert await ping(mcp) == 404
        assert (await mcp.raw.delete()).status == 404


@behaviour("LEG-12")
async def test_sessions_expire_after_30_minutes_in_memory_and_7_days_elsewhere(store: Store) -> None:
    sessions = Sessions(Node(store), SessionLimits())
    assert sessions.idle_seconds == (7 * 86400 if store.durable else 1800)


@behaviour("LEG-12")
async def test_a_short_idle_time_is_kept_to(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    bridge = serving(store=MemoryStore(clock=clock), sessions=SessionLimits(idle_seconds=30.0))
    async with node(bridge, tap, monkeypatch, clock) as (_, http), connect(http, revision="2025-06-18") as mcp:
        clock.now += 31
        assert await ping(mcp) == 404


@behaviour("LEG-12")
@pytest.mark.parametrize(("idle", "pause"), [(30.0, 20), (100.0, 59)])
async def test_a_session_in_use_does_not_expire_however_short_its_idle_time(
    tap: Tap, monkeypatch: pytest.MonkeyPatch, idle: float, pause: int
) -> None:
    clock = Clock()
    bridge = serving(store=MemoryStore(clock=clock), sessions=SessionLimits(idle_seconds=idle))
    async with node(bridge, tap, monkeypatch, clock) as (_, http), connect(http, revision="2025-06-18") as mcp:
        for _ in range(10):
            clock.now += pause
            assert await ping(mcp) == 200


@behaviour("LEG-12")
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("value", ["application/json, text/event-stream", "application/json"])
async def test_a_session_with_a_call_in_flight_does_not_expire(
    tap: Tap, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    clock, work = Clock(), Work()
    store = Flaky(MemoryStore(clock=clock))
    bridge = serving(work, store, sessions=SessionLimits(idle_seconds=600.0))
    async with (
        node(bridge, tap, monkeypatch, clock) as (_, http),
        connect(http, revision="2025-06-18", headers={"accept": value}) as mcp,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(mcp.tools.call, "use")
        with anyio.fail_after(SECONDS):
            await work.begun.wait()
        for _ in range(3):
            clock.now += 500
            store.written = anyio.Event()
            with anyio.move_on_after(2):
                await store.written.wait()
        status = await ping(mcp)
        work.go.set()
        assert status == 200


@behaviour("LEG-12")
@pytest.mark.usefixtures("quick")
async def test_a_session_with_an_open_stream_does_not_expire(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    store = Flaky(MemoryStore(clock=clock))
    bridge = serving(store=store, sessions=SessionLimits(idle_seconds=600.0))
    async with node(bridge, tap, monkeypatch, clock) as (_, http), connect(http, revision="2025-06-18") as mcp:
        stream = await mcp.raw.get()
        for _ in range(3):
            clock.now += 500
            store.written = anyio.Event()
            with anyio.fail_after(SECONDS):
                await store.written.wait()
        assert await ping(mcp) == 200
        stream.disconnect()
        await stream.closed()
        clock.now += 601
        assert await ping(mcp) == 404


@behaviour("LEG-12")
async def test_a_session_with_an_open_question_does_not_expire(tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    bridge = serving(store=MemoryStore(clock=clock), sessions=SessionLimits(idle_seconds=600.0), pending_seconds=3600.0)
    async with (
        node(bridge, tap, monkeypatch, clock) as (_, http),
        connect(http, revision="2025-06-18", capabilities={}) as mcp,
    ):
        result = await mcp.request("tools/call", {"name": "ask", "arguments": {}})
        arguments = {"elicitId": result["_meta"][PENDING]["elicitId"], **accept({"name": "Ada"})}
        clock.now += 3000
        answered = await mcp.request("tools/call", {"name": FALLBACK_TOOL_NAME, "arguments": arguments})
        assert answered["content"][0]["text"] == "Ada"


@behaviour("LEG-12")
async def test_the_number_of_sessions_is_limited_in_all(serve: Serve, store: Store) -> None:
    bridge = serving(store=store, sessions=SessionLimits(in_all=3))
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        replies = [await initialize(mcp, hello()) for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 503]
        assert int(replies[2].headers["retry-after"]) > 0
        assert "mcp-session-id" not in replies[2].headers
        body = await replies[2].json()
        assert body["id"] == "init"
        assert "at most 3 sessions" in body["error"]["message"]
        assert await ping(mcp) == 200, "who has a session keeps it"
        await (await mcp.raw.delete()).closed()
        assert (await initialize(mcp, hello())).status == 200


@behaviour("LEG-12", "AUT-1")
async def test_the_number_of_sessions_is_limited_per_principal(serve: Serve, store: Store) -> None:
    def who(scope: Any) -> Principal | None:
        name = dict(scope["headers"]).get(b"x-user")
        return None if name is None else Principal("https://issuer", name.decode())

    bridge = serving(store=store, sessions=SessionLimits(per_principal=2), authenticate=who)
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        statuses = [(await initialize(mcp, hello(), {"x-user": name})).status for name in ("ada", "ada", "ada", "bob")]
        assert statuses == [200, 200, 503, 200]
        assert [(await initialize(mcp, hello())).status for _ in range(4)] == [200] * 4


# LEG-13


@behaviour("LEG-13")
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"method": "no/such"}, -32601),
        ({"method": "server/discover"}, -32601),
        ({"method": "tools/call", "params": {}}, -32602),
        ({"method": "tools/call", "params": {"name": "no-such-tool"}}, -32602),
        ({"method": "tools/call", "params": {"name": "use", "arguments": [1]}}, -32602),
        ({"method": "tools/list", "params": {"cursor": "x"}}, -32602),
        ({"method": "tools/list", "params": [1]}, -32600),
        ({"method": "ping", "jsonrpc": "1.0"}, -32600),
        ({"method": 5}, -32600),
    ],
)
async def test_errors_on_a_living_session_ride_http_200(serve: Serve, message: Any, code: int) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        for identity in (0, "a"):
            reply = await mcp.raw.post({"jsonrpc": "2.0", "id": identity, **message})
            assert reply.status == 200
            body = await reply.json()
            assert (body["id"], body["error"]["code"]) == (identity, code)
        assert await ping(mcp) == 200


@behaviour("LEG-13")
async def test_a_tool_that_fails_rides_http_200(serve: Serve) -> None:
    bridge = Bridge("sessions")

    @bridge.tool
    async def fail() -> str:
        raise RuntimeError("no")

    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        reply = await post_call(mcp, "fail")
        assert reply.status == 200
        assert (await reply.json())["result"]["isError"] is True


@behaviour("LEG-13")
@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/initialized"},
        {"method": "notifications/initialized", "params": {"_meta": {"x": 1}}},
        {"method": "notifications/no-such"},
        {"method": "notifications/roots/list_changed"},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"method": "notifications/cancelled", "params": {"requestId": 77}},
        {"method": "notifications/cancelled"},
        {"id": "ask-1", "result": {}},
        {"id": 1, "error": {"code": 1, "message": "x"}},
    ],
)
async def test_notifications_and_answers_get_202_and_nothing_else(serve: Serve, message: Any) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        reply = await mcp.raw.post({"jsonrpc": "2.0", **message})
        await reply.closed()
        assert (reply.status, reply.raw) == (202, b"")


@behaviour("LEG-13")
@pytest.mark.parametrize("identity", [{}, [1], {"a": []}])
async def test_a_cancelled_that_names_no_id_gets_202(serve: Serve, identity: Any) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}}
        reply = await mcp.raw.post(message)
        assert reply.status == 202
        assert await ping(mcp) == 200


@behaviour("LEG-13")
@pytest.mark.parametrize("version", ["2099-01-01", "1.0", "x", "\xff"])
async def test_an_unsupported_version_on_a_session_is_a_bad_request(serve: Serve, version: str) -> None:
    async with connect(await serve(serving()), revision="2025-06-18", headers={"x": "y"}) as mcp:
        assert await ping(mcp, mcp_protocol_version=version) == 400
        for message in ({"method": "notifications/initialized"}, {"id": "ask-1", "result": {}}):
            reply = await mcp.raw.post({"jsonrpc": "2.0", **message}, {"mcp-protocol-version": version})
            assert reply.status == 400
        mcp._extra_headers["mcp-protocol-version"] = version
        assert (await mcp.raw.get()).status == 400
        assert (await mcp.raw.delete()).status == 400
        del mcp._extra_headers["mcp-protocol-version"]
        assert await ping(mcp) == 200


@behaviour("LEG-13")
@pytest.mark.parametrize("revision", LEGACY)
async def test_without_a_version_the_session_s_is_taken(serve: Serve, revision: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        reply = await mcp.raw.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"mcp-protocol-version": ""})
        tool = (await reply.json())["result"]["tools"][-1]
        assert ("outputSchema" in tool) == LEGACY[revision].structured_content
        assert await ping(mcp, mcp_protocol_version=revision) == 200


@behaviour("LEG-9", "LEG-13")
async def test_an_id_in_use_is_refused_and_its_call_is_untouched(serve: Serve) -> None:
    work = Work()
    async with connect(await serve(serving(work)), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "use", identity=1)
        again = await post_call(mcp, "use", identity=1)
        assert again.status == 200
        assert (await again.json())["error"]["code"] == -32600
        assert await ping(mcp) == 200
        work.go.set()
        await call.closed()
        assert call.events[-1][1]["result"]["content"][0]["text"] == "done"
    assert work.trace == ["went on", "finally"]
