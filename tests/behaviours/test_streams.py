"""Streams of legacy sessions: what comes on which, what is replayed, how they stay open and end."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge import Bridge, Context
from bridge.application import Application
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.errors import StoreUnavailable
from bridge.protocol.clients import ANONYMOUS
from bridge.protocol.messages import notification
from bridge.session import SessionLimits
from bridge.stores import MemoryStore, Store
from bridge.testing import Client, HttpReply, accept, connect
from bridge.transports import exchange, streams
from tests.conftest import Serve
from tests.wiretap import Tap, tap_asgi

behaviour = pytest.mark.behaviour
shared = pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)

SECONDS = 10
REFUSED = {"code": -32601, "message": "no forms"}
COMMENT = b": still here\n\n"
LIST_CHANGED = "notifications/tools/list_changed"


class Name(BaseModel):
    name: str


class Stream:
    """A reply, message by message."""

    def __init__(self, reply: HttpReply) -> None:
        self.reply = reply
        self._messages = reply.messages()

    async def next(self, seconds: float = SECONDS) -> Any:
        with anyio.fail_after(seconds):
            return await anext(self._messages)

    async def rest(self, seconds: float = SECONDS) -> list[Any]:
        with anyio.fail_after(seconds):
            return [message async for message in self._messages]


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
            self.over.set()

    async def ended(self) -> list[str]:
        with anyio.fail_after(SECONDS):
            await self.over.wait()
        return self.trace


class Wire:
    """An app, with all that it sends kept: to wait for what is no message."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._more = anyio.Event()
        self.sent = b""
        self.starts: list[int] = []
        self.faults: list[BaseException] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        starts = 0

        async def heard(event: Any) -> None:
            nonlocal starts
            if event["type"] == "http.response.start":
                starts += 1
                self.starts.append(starts)
            self.sent += event.get("body", b"")
            self._more.set()
            await send(event)

        try:
            await self._app(scope, receive, heard)
        except Exception as fault:
            self.faults.append(fault)

    async def saw(self, part: bytes, times: int = 1, seconds: float = SECONDS) -> None:
        """Wait until `part` has been sent so often from now on."""
        before = self.sent.count(part)
        with anyio.fail_after(seconds):
            while self.sent.count(part) < before + times:
                self._more = anyio.Event()
                await self._more.wait()


class Flaky:
    """A store that is away while it is told so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._gone if self.away and callable(found) else found

    async def _gone(self, *args: Any, **kwargs: Any) -> Any:
        raise StoreUnavailable("the store is away")


async def post_call(
    mcp: Client, tool: str, arguments: Any = None, *, identity: Any = 900, headers: Any = None
) -> Stream:
    """Call a tool; return its reply once that has begun."""
    params = {"name": tool, "arguments": arguments or {}}
    message = {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}
    with anyio.fail_after(SECONDS):
        return Stream(await mcp.raw.post(message, headers))


async def respond(mcp: Client, identity: Any, result: Any = None, *, error: Any = None) -> None:
    """Answer a request of the server's."""
    body = {"result": result} if error is None else {"error": error}
    reply = await mcp.raw.post({"jsonrpc": "2.0", "id": identity, **body})
    await reply.closed()
    assert reply.status == 202


async def resume(mcp: Client, last_event_id: str | None) -> Stream:
    """Open a stream where another one was cut."""
    with anyio.fail_after(SECONDS):
        reply = await mcp.raw.get(last_event_id)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream"
    return Stream(reply)


async def ended_session(mcp: Client, stream: Stream) -> list[Any]:
    """End the session; return what was left on its standalone stream."""
    assert (await mcp.raw.delete()).status == 204
    return await stream.rest()


def last_id(stream: Stream) -> str:
    assert stream.reply.last_event_id is not None
    return stream.reply.last_event_id


def text(message: Any) -> str:
    return "\n".join(block["text"] for block in message["result"]["content"])


def asking(store: Any = None, work: Work | None = None, **options: Any) -> Bridge:
    """A bridge with a tool that says something, works, and asks."""
    bridge = Bridge("streams", elicitation=True, store=store, **options)

    @bridge.tool
    async def ask(ctx: Context, who: str = "x") -> str:
        await ctx.step("begin", lambda: ctx.info("begun"))
        if work is not None:
            await work()
        answer = await ctx.elicit(f"{who}?", Name)
        await ctx.info(f"answered {answer.status}")
        return answer.content.name if answer.content else answer.status

    return bridge


async def demote(mcp: Client) -> None:
    """Make the server send the one thing that belongs to no call: that the list of tools has changed."""
    call = await post_call(mcp, "ask")
    message = await call.next()
    while message.get("method") != "elicitation/create":
        message = await call.next()
    await respond(mcp, message["id"], error=REFUSED)
    assert PENDING in (await call.rest())[-1]["result"]["_meta"]


@asynccontextmanager
async def node(bridge: Bridge, tap: Tap) -> AsyncIterator[tuple[Application, Any]]:
    """The app itself, and the same app behind the wire tap."""
    app = bridge.asgi()
    async with app.lifespan():
        yield app, tap_asgi(app, tap)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams open at once and comments come often."""
    monkeypatch.setattr(exchange, "LATE_SECONDS", 0.0)
    monkeypatch.setattr(exchange, "COMMENT_SECONDS", 0.02)
    monkeypatch.setattr(streams, "COMMENT_SECONDS", 0.02)


# LEG-7: the standalone stream


@behaviour("LEG-7")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_the_standalone_stream_delivers_what_belongs_to_no_call(
    serve: Serve, store: Store, revision: str
) -> None:
    async with connect(await serve(asking(store)), revision=revision) as mcp:
        standalone = await resume(mcp, None)
        await demote(mcp)
        assert (await standalone.next())["method"] == LIST_CHANGED
        assert re.fullmatch(r"[A-Za-z0-9]+:\d+", last_id(standalone))
        assert await ended_session(mcp, standalone) == []


@behaviour("LEG-7")
async def test_what_came_while_no_stream_was_open_comes_with_the_next_and_only_once(serve: Serve, store: Store) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        await demote(mcp)
        first = await resume(mcp, None)
        assert (await first.next())["method"] == LIST_CHANGED
        position = last_id(first)
        first.reply.disconnect()
        for last in (None, position):
            again = await resume(mcp, last)
            again.reply.disconnect()
            assert await again.rest() == []
        stream, _, number = position.rpartition(":")
        missed = await resume(mcp, f"{stream}:{int(number) - 1}")
        assert (await missed.next())["method"] == LIST_CHANGED
        assert await ended_session(mcp, missed) == []


@behaviour("LEG-7")
async def test_the_newest_standalone_stream_takes_over(serve: Serve, store: Store) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        old = await resume(mcp, None)
        new = await resume(mcp, None)
        assert await old.rest() == []
        await demote(mcp)
        assert (await new.next())["method"] == LIST_CHANGED


@behaviour("LEG-7")
@shared
async def test_the_standalone_stream_of_one_node_delivers_what_another_sends(serve: Serve, store: Store) -> None:
    bridge = asking(store)
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        standalone = await resume(mcp, None)
        await demote(other)
        assert (await standalone.next())["method"] == LIST_CHANGED
        assert FALLBACK_TOOL_NAME in [tool["name"] for tool in await mcp.tools.list()]


@behaviour("LEG-7")
@pytest.mark.parametrize(
    "last", ["", "x", ":", "get:", "get:-1", "get:x", ":1", "get:\xb2", "../x:1", "a" * 400 + ":1", "\xff:\xff"]
)
async def test_an_event_id_that_names_nothing_opens_the_standalone_stream(
    serve: Serve, store: Store, last: str
) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        stream = await resume(mcp, last)
        await demote(mcp)
        assert (await stream.next())["method"] == LIST_CHANGED
        assert await ended_session(mcp, stream) == []


@behaviour("LEG-7")
@pytest.mark.parametrize("number", ["9" * 5000])
@pytest.mark.parametrize("name", ["get", "abcdef"])
async def test_an_event_id_with_a_huge_number_breaks_nothing(
    serve: Serve, store: Store, name: str, number: str
) -> None:
    wire = Wire(await serve(asking(store)))
    async with connect(wire, revision="2025-06-18") as mcp:
        reply = await mcp.raw.get(f"{name}:{number}")
        assert (reply.status, wire.faults) == (200, [])
        assert await ended_session(mcp, Stream(reply)) == []
        assert wire.faults == []


@behaviour("LEG-7")
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["get", "abcdef"])
async def test_an_event_id_with_a_number_beyond_64_bits_breaks_nothing(serve: Serve, store: Store, name: str) -> None:
    wire = Wire(await serve(asking(store)))
    async with connect(wire, revision="2025-06-18") as mcp:
        reply = await mcp.raw.get(f"{name}:{2**64}")
        assert (reply.status, wire.faults) == (200, [])
        assert await ended_session(mcp, Stream(reply)) == []
        assert wire.faults == []


@behaviour("LEG-7")
async def test_a_standalone_stream_goes_on_after_a_long_silence(serve: Serve) -> None:
    now = [1_000_000.0]
    bridge = asking(MemoryStore(clock=lambda: now[0]), sessions=SessionLimits(idle_seconds=86400.0))
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        standalone = await resume(mcp, None)
        await demote(mcp)
        assert (await standalone.next())["method"] == LIST_CHANGED
        now[0] += 3600
        await Publisher(bridge).list_changed(mcp)
        with anyio.fail_after(2):
            assert (await standalone.next())["method"] == LIST_CHANGED


class Publisher:
    """Sends to a session what belongs to no call, from a node of its own."""

    def __init__(self, bridge: Bridge) -> None:
        self._app = bridge.asgi()

    async def list_changed(self, mcp: Client) -> None:
        assert mcp.session_id is not None
        session = await self._app.sessions.find(mcp.session_id, ANONYMOUS)
        assert session is not None
        await self._app.sessions.notify(session, notification(LIST_CHANGED))


# LEG-7: the replay of a call's stream


@behaviour("LEG-7", "LEG-11")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_question_that_was_not_received_is_asked_on_the_resumed_stream(
    serve: Serve, store: Store, revision: str
) -> None:
    work = Work()
    async with connect(await serve(asking(store, work)), revision=revision) as mcp:
        cut = await post_call(mcp, "ask", identity=4)
        assert (await cut.next())["method"] == "notifications/message"
        cut.reply.disconnect()
        resumed = await resume(mcp, last_id(cut))
        work.go.set()
        question = await resumed.next(2)
        assert question["method"] == "elicitation/create"
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        log, result = await resumed.rest()
        assert log["params"]["data"] == "answered accept"
        assert (result["id"], text(result)) == (4, "Ada")
        ids = [event_id for event_id, _ in cut.reply.events + resumed.reply.events]
        name = ids[0].rpartition(":")[0] if ids[0] else ""
        numbers = [int(event_id.removeprefix(f"{name}:")) for event_id in ids if event_id]
        assert numbers == sorted(set(numbers)), "nothing twice, in order"


@behaviour("LEG-7", "LEG-11")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_question_that_was_received_is_not_asked_again_and_its_result_comes(
    serve: Serve, store: Store, revision: str
) -> None:
    async with connect(await serve(asking(store)), revision=revision) as mcp:
        cut = await post_call(mcp, "ask", identity=4)
        assert (await cut.next())["method"] == "notifications/message"
        question = await cut.next()
        cut.reply.disconnect()
        resumed = await resume(mcp, last_id(cut))
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        log, result = await resumed.rest(2)
        assert log["params"]["data"] == "answered accept"
        assert (result["id"], text(result)) == (4, "Ada")


@behaviour("LEG-7", "LEG-11")
async def test_a_result_that_came_while_the_client_was_away_is_replayed(serve: Serve, store: Store) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        cut = await post_call(mcp, "ask", identity="r")
        assert (await cut.next())["method"] == "notifications/message"
        position = last_id(cut)
        question = await cut.next()
        cut.reply.disconnect()
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        resumed = await resume(mcp, position)
        replayed = await resumed.rest()
        assert [message.get("method") for message in replayed] == ["elicitation/create", "notifications/message", None]
        assert replayed[0] == question
        assert (replayed[-1]["id"], text(replayed[-1])) == ("r", "Ada")


@behaviour("LEG-7", "LEG-11", "PSH-1")
@shared
async def test_a_call_is_resumed_and_answered_at_another_node(serve: Serve, store: Store) -> None:
    work = Work()
    bridge = asking(store, work)
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-11-25") as mcp, connect(there, revision="2025-11-25") as other:
        other.session_id = mcp.session_id
        cut = await post_call(mcp, "ask", identity=4)
        await cut.next()
        cut.reply.disconnect()
        resumed = await resume(other, last_id(cut))
        work.go.set()
        question = await resumed.next(2)
        assert question["method"] == "elicitation/create"
        await respond(other, question["id"], accept({"name": "Ada"}))
        assert text((await resumed.rest())[-1]) == "Ada"


@behaviour("LEG-7")
async def test_a_stream_of_another_session_is_not_replayed(serve: Serve, store: Store) -> None:
    app = await serve(asking(store))
    async with connect(app, revision="2025-06-18") as mcp, connect(app, revision="2025-06-18") as other:
        call = await post_call(mcp, "ask")
        await call.next()
        name = last_id(call).rpartition(":")[0]
        foreign = await resume(other, f"{name}:0")
        question = await call.next()
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        await call.rest()
        foreign.reply.disconnect()
        assert await foreign.rest() == []


@behaviour("LEG-7", "LEG-4")
async def test_a_resumed_stream_ends_with_its_session(serve: Serve, store: Store) -> None:
    work = Work()
    async with connect(await serve(asking(store, work)), revision="2025-11-25") as mcp:
        cut = await post_call(mcp, "ask")
        await cut.next()
        cut.reply.disconnect()
        resumed = await resume(mcp, f"{last_id(cut).rpartition(':')[0]}:0")
        assert (await resumed.next())["method"] == "notifications/message"
        assert (await mcp.raw.delete()).status == 204
        assert await resumed.rest(2) == []


@behaviour("LEG-7")
async def test_a_resumed_stream_ends_when_its_call_is_cancelled(serve: Serve) -> None:
    work = Work()
    async with connect(await serve(asking(None, work)), revision="2025-11-25") as mcp:
        cut = await post_call(mcp, "ask", identity=6)
        await cut.next()
        cut.reply.disconnect()
        resumed = await resume(mcp, f"{last_id(cut).rpartition(':')[0]}:0")
        await resumed.next()
        await mcp.notify("notifications/cancelled", {"requestId": 6})
        assert await work.ended() == ["cancelled"]
        assert await resumed.rest(2) == []


# LEG-7: comments


@behaviour("LEG-7")
@pytest.mark.usefixtures("quick")
async def test_comments_keep_every_open_stream_open(serve: Serve, store: Store) -> None:
    work = Work()
    wire = Wire(await serve(asking(store, work)))
    async with connect(wire, revision="2025-06-18") as mcp:
        standalone = await resume(mcp, None)
        await wire.saw(COMMENT, 3)
        standalone.reply.disconnect()
        assert await standalone.rest() == []
        call = await post_call(mcp, "ask")
        await wire.saw(COMMENT, 3)
        work.go.set()
        while (question := await call.next()).get("method") != "elicitation/create":
            pass
        await wire.saw(COMMENT, 3)
        call.reply.disconnect()
        resumed = await resume(mcp, f"{last_id(call).rpartition(':')[0]}:0")
        await wire.saw(COMMENT, 3)
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        assert text((await resumed.rest())[-1]) == "Ada"


@behaviour("LEG-7")
async def test_comments_come_every_15_seconds() -> None:
    assert exchange.COMMENT_SECONDS == 15.0
    assert streams.COMMENT_SECONDS == 15.0


@behaviour("LEG-7")
@pytest.mark.usefixtures("quick")
async def test_a_call_that_sends_nothing_gets_its_stream_and_comments(serve: Serve) -> None:
    bridge, work = Bridge("streams"), Work()

    @bridge.tool
    async def silent() -> str:
        await work()
        return "done"

    wire = Wire(await serve(bridge))
    async with connect(wire, revision="2025-11-25") as mcp:
        call = await post_call(mcp, "silent")
        assert call.reply.headers["content-type"] == "text/event-stream"
        await wire.saw(COMMENT, 2)
        work.go.set()
        assert text(await call.next()) == "done"
        assert re.fullmatch(r"[A-Za-z0-9]+:\d+", last_id(call))


@behaviour("LEG-7", "LEG-3")
@pytest.mark.usefixtures("quick")
async def test_comments_go_on_after_the_store_was_away_for_a_moment(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.sessions._TOUCH_SECONDS", 0.0)
    store, work = Flaky(MemoryStore()), Work()
    wire = Wire(await serve(asking(store, work)))
    async with connect(wire, revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        await wire.saw(COMMENT, 2)
        store.away = True
        with anyio.move_on_after(0.3):
            await wire.saw(COMMENT, 4)
        store.away = False
        await wire.saw(COMMENT, 2, seconds=2)
        work.go.set()
        while (question := await call.next()).get("method") != "elicitation/create":
            pass
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        assert text((await call.rest())[-1]) == "Ada"


# LEG-7: shutdown, and a store that is away


@behaviour("LEG-7", "TRN-6")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_on_shutdown_streams_end_with_retry_and_an_id(tap: Tap, store: Store, revision: str) -> None:
    async with node(asking(store), tap) as (app, http), connect(http, revision=revision) as mcp:
        standalone = await resume(mcp, None)
        call = await post_call(mcp, "ask")
        await call.next()
        question = await call.next()
        assert question["method"] == "elicitation/create"
        position = last_id(call)
        resumed = await resume(mcp, f"{position.rpartition(':')[0]}:0")
        await resumed.next()
        await resumed.next()
        await app.drain()
        for stream in (standalone, call, resumed):
            assert await stream.rest() == []
            assert stream.reply.retry == "5000"
            assert re.fullmatch(r"[A-Za-z0-9]+:\d+", last_id(stream))
        assert last_id(call) == last_id(resumed) == position


@behaviour("LEG-7", "TRN-6")
@pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)
async def test_a_call_on_a_node_that_drains_is_resumed_at_another(tap: Tap, store: Store) -> None:
    work = Work()
    bridge = asking(store, work)
    async with (
        node(bridge, tap) as (app, here),
        node(bridge, tap) as (_, there),
        connect(here, revision="2025-11-25") as mcp,
        connect(there, revision="2025-11-25") as other,
    ):
        other.session_id = mcp.session_id
        call = await post_call(mcp, "ask")
        await call.next()
        await app.drain()
        assert await call.rest() == []
        resumed = await resume(other, last_id(call))
        work.go.set()
        question = await resumed.next(2)
        await respond(other, question["id"], accept({"name": "Ada"}))
        assert text((await resumed.rest())[-1]) == "Ada"


@behaviour("LEG-7", "LEG-3")
@pytest.mark.usefixtures("quick")
async def test_a_standalone_stream_whose_store_goes_away_ends_cleanly(serve: Serve) -> None:
    store = Flaky(MemoryStore())
    wire = Wire(await serve(asking(store)))
    async with connect(wire, revision="2025-06-18") as mcp:
        standalone = await resume(mcp, None)
        await wire.saw(COMMENT)
        store.away = True
        assert await standalone.rest() == []
        assert wire.faults == []
        assert standalone.reply.retry is not None
        assert standalone.reply.last_event_id is not None


@behaviour("LEG-3", "LEG-13", "MOD-9")
async def test_a_store_that_goes_away_after_the_stream_has_opened_starts_no_second_reply(serve: Serve) -> None:
    store, work = Flaky(MemoryStore()), Work()
    wire = Wire(await serve(asking(store, work)))
    async with connect(wire, revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        assert (await call.next())["method"] == "notifications/message"
        store.away = True
        work.go.set()
        await call.rest()
        assert (max(wire.starts), wire.faults) == (1, [])
        assert call.reply.status == 200


@behaviour("LEG-3")
async def test_a_modern_round_whose_store_is_away_is_refused_in_one_reply_and_can_be_sent_again(serve: Serve) -> None:
    store = Flaky(MemoryStore())
    wire = Wire(await serve(asking(store)))
    async with connect(wire) as mcp:
        params: Any = {"name": "ask", "arguments": {}}
        asked = await mcp.request("tools/call", params)
        responses = {key: accept({"name": "Ada"}) for key in asked["inputRequests"]}
        retry = {**params, "requestState": asked["requestState"], "inputResponses": responses}
        store.away = True
        reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": retry}))
        await reply.closed()
        assert (max(wire.starts), wire.faults) == (1, [])
        assert reply.status == 503
        assert "retry-after" in reply.headers
        store.away = False
        assert text({"result": await mcp.request("tools/call", retry)}) == "Ada"


# LEG-11


@behaviour("LEG-11")
async def test_within_the_grace_time_a_call_goes_on_without_its_client(serve: Serve, store: Store) -> None:
    work = Work()
    async with connect(await serve(asking(store, work)), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        await call.next()
        call.reply.disconnect()
        for _ in range(3):
            await mcp.request("ping", {})
        work.go.set()
        assert await work.ended() == ["went on"]


@behaviour("LEG-11")
@pytest.mark.usefixtures("quick")
async def test_after_the_grace_time_a_call_is_cancelled(serve: Serve, store: Store) -> None:
    work = Work()
    async with connect(await serve(asking(store, work, grace_seconds=0.1)), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        await call.next()
        call.reply.disconnect()
        assert await work.ended() == ["cancelled"]
        await mcp.request("ping", {})


@behaviour("LEG-11")
@pytest.mark.usefixtures("quick")
async def test_after_the_grace_time_an_open_question_is_given_up(serve: Serve, store: Store) -> None:
    bridge = Bridge("streams", elicitation=True, store=store, grace_seconds=0.1)
    gone = anyio.Event()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Who?", Name)).status

    inner = await serve(bridge)

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        await inner(scope, receive, send)
        if (b"x-watched", b"1") in scope["headers"]:
            gone.set()

    async with connect(watched, revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask", identity=3, headers={"x-watched": "1"})
        question = await call.next()
        call.reply.disconnect()
        with anyio.fail_after(SECONDS):
            await gone.wait()
        await respond(mcp, question["id"], accept({"name": "late"}))
        reused = await post_call(mcp, "ask", identity=3)
        assert (await reused.next())["method"] == "elicitation/create", "its id is free again"


@behaviour("LEG-11")
@pytest.mark.usefixtures("quick")
async def test_a_call_whose_client_came_back_outlives_the_grace_time(serve: Serve, store: Store) -> None:
    work = Work()
    wire = Wire(await serve(asking(store, work, grace_seconds=0.3)))
    async with connect(wire, revision="2025-11-25") as mcp:
        cut = await post_call(mcp, "ask")
        await cut.next()
        cut.reply.disconnect()
        resumed = await resume(mcp, f"{last_id(cut).rpartition(':')[0]}:0")
        await resumed.next()
        await wire.saw(COMMENT, 40)
        assert not work.over.is_set()
        resumed.reply.disconnect()
        assert await work.ended() == ["cancelled"], "and it is cancelled once the client has gone for good"


@behaviour("LEG-11", "LEG-7")
@pytest.mark.usefixtures("quick")
async def test_a_client_that_resumed_before_its_old_stream_was_seen_gone_is_not_given_up(serve: Serve) -> None:
    wire = Wire(await serve(asking(grace_seconds=0.3)))
    async with connect(wire, revision="2025-11-25") as mcp:
        old = await post_call(mcp, "ask")
        await old.next()
        question = await old.next()
        resumed = await resume(mcp, f"{last_id(old).rpartition(':')[0]}:0")
        assert (await resumed.next())["method"] == "notifications/message"
        assert (await resumed.next())["id"] == question["id"]
        await wire.saw(COMMENT, 10)
        old.reply.disconnect()
        await wire.saw(COMMENT, 40)
        await respond(mcp, question["id"], accept({"name": "Ada"}))
        assert text((await resumed.rest(2))[-1]) == "Ada"


@behaviour("LEG-11")
@pytest.mark.usefixtures("quick")
async def test_a_pending_chat_call_outlives_the_grace_time(serve: Serve, store: Store) -> None:
    work = Work()
    bridge = asking(store, grace_seconds=0.1)

    @bridge.tool
    async def wait_for_ever(ctx: Context) -> str:
        await ctx.info("begun")
        await work()
        return "never"

    async with connect(await serve(bridge), revision="2025-06-18", capabilities={}) as mcp:
        asked = await post_call(mcp, "ask", identity=1)
        pending = (await asked.rest())[-1]["result"]["_meta"][PENDING]
        asked.reply.disconnect()
        other = await post_call(mcp, "wait_for_ever", identity=2)
        await other.next()
        other.reply.disconnect()
        assert await work.ended() == ["cancelled"], "the grace time is over"
        arguments = {"elicitId": pending["elicitId"], **accept({"name": "Ada"})}
        assert text((await (await post_call(mcp, FALLBACK_TOOL_NAME, arguments)).rest())[-1]) == "Ada"


# LEG-7: a call that lets its connection go


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@behaviour("LEG-7", "LEG-11")
async def test_a_tool_may_close_the_stream_of_its_call_where_the_client_comes_back(serve: Serve, revision: str) -> None:
    bridge, work = Bridge("streams"), Work()

    @bridge.tool
    async def long(ctx: Context) -> str:
        await ctx.close_stream()
        await work()
        return "done"

    async with connect(await serve(bridge), revision=revision) as mcp:
        if revision != "2025-11-25":
            work.go.set()
            assert (await mcp.tools.call("long")).text() == "done"
            return
        call = await post_call(mcp, "long")
        assert await call.rest() == []
        assert work.trace == []
        back = await resume(mcp, last_id(call))
        work.go.set()
        assert text(await back.next()) == "done"
        assert await back.rest() == []
