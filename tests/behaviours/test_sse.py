"""HTTP+SSE of 2024-11-05: sessions whose client posts in one place and hears in another."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from bridge import Bridge
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.protocol.clients import Principal
from bridge.server import Denied
from bridge.testing import AsgiHttp
from bridge.transports import sending, sse
from tests.behaviours.sse import SseClient, opened
from tests.behaviours.talking import META, SECONDS, hello, request, said
from tests.behaviours.works import Work, happens, make
from tests.conftest import FLEET_KEYS, Serve
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour

FORM: Any = {"elicitation": {}}
INVALID_REQUEST, METHOD_NOT_FOUND = -32600, -32601


@pytest.fixture
async def mcp(app: Any, tap: Tap) -> AsyncIterator[SseClient]:
    """A client whose stream is open and that has said nothing yet."""
    async with opened(app, tap) as client:
        yield client


async def lives(mcp: SseClient) -> None:
    """The session still answers."""
    assert (await mcp.call("add", a=2, b=3))["content"] == [{"type": "text", "text": "5"}]


# Sessions


@behaviour("TRN-1")
async def test_the_stream_first_says_where_to_post(mcp: SseClient) -> None:
    assert re.fullmatch(r"/messages\?sessionId=[\w-]{32}", mcp.endpoint)
    assert mcp.stream.headers["content-type"] == "text/event-stream"


@behaviour("TRN-1")
@pytest.mark.parametrize("mounted", ["", "/tools"], ids=["at the root", "mounted"])
async def test_the_endpoint_is_beside_the_stream(bridge: Bridge, tap: Tap, mounted: str) -> None:
    app = bridge.asgi()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "root_path": mounted}, receive, send)

    async with app.lifespan(), opened(outer, tap, path=f"{mounted}/sse") as mcp:
        assert mcp.endpoint.startswith(f"{mounted}/messages?")
        await mcp.initialize("2024-11-05")
        await lives(mcp)


@behaviour("TRN-1")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_legacy_revision_is_served(mcp: SseClient, revision: str) -> None:
    assert (await mcp.initialize(revision))["protocolVersion"] == revision
    await lives(mcp)


@behaviour("PSH-1", "PSH-3")
async def test_questions_go_down_the_stream_and_each_gets_its_own_answer(mcp: SseClient) -> None:
    await mcp.initialize(**FORM)
    await mcp.start("a", "ask", who="A?")
    await mcp.start("b", "ask", who="B?")
    asked = {question["params"]["message"]: question for question in [await mcp.question(), await mcp.question()]}
    await mcp.answer(asked["B?"], {"name": "Bo"})
    await mcp.send({"jsonrpc": "2.0", "id": asked["A?"]["id"], "result": {"action": "decline"}})
    assert said(await mcp.reply("a")) == "decline"
    assert said(await mcp.reply("b")) == "Bo"


@behaviour("CHT-3")
async def test_a_client_of_the_first_revision_is_asked_in_the_chat(mcp: SseClient) -> None:
    await mcp.initialize("2024-11-05")
    pending = (await mcp.call("ask"))["_meta"][PENDING]
    answer = {"elicitId": pending["elicitId"], "action": "accept", "content": {"name": "Ada"}}
    assert said(await mcp.ask("tools/call", {"name": FALLBACK_TOOL_NAME, "arguments": answer})) == "Ada"


async def test_logs_come_before_the_result_and_a_changed_list_beside_it(bridge: Bridge, mcp: SseClient) -> None:
    await mcp.initialize()
    await mcp.start("a", "flood", kilobytes=2)
    await mcp.reply("a")
    assert [message["method"] for message in mcp.heard] == ["notifications/message"] * 2
    await bridge.list_changed("tools")
    await mcp.notification("notifications/tools/list_changed")


async def test_two_clients_never_cross(app: Any, tap: Tap) -> None:
    async with opened(app, tap) as one, opened(app, tap) as other:
        await one.initialize(**FORM)
        await other.initialize(**FORM)
        await one.start(1, "ask", who="one?")
        await other.start(1, "ask", who="other?")
        question, foreign = await one.question(), await other.question()
        await one.answer(foreign, {"name": "stolen"})
        await other.answer(foreign, {"name": "Bo"})
        assert said(await other.reply(1)) == "Bo"
        await one.answer(question, {"name": "Ada"})
        assert said(await one.reply(1)) == "Ada"
        assert one.heard == other.heard == []


@behaviour("TRN-2")
async def test_it_serves_sessions_only(mcp: SseClient) -> None:
    refused = await mcp.ask("server/discover", {"_meta": META})
    # An error by which a client of both eras knows that this is no server of the newer one.
    assert refused["error"]["code"] == INVALID_REQUEST
    await mcp.initialize()
    assert (await mcp.ask("server/discover"))["error"]["code"] == METHOD_NOT_FOUND


@behaviour("LEG-6")
async def test_what_is_cancelled_ends_and_gets_nothing_more(mcp: SseClient, work: Work) -> None:
    await mcp.initialize()
    await mcp.start(0, "use")
    await happens(work.begun)
    await mcp.notify("notifications/cancelled", {"requestId": 0})
    await happens(work.over)
    assert work.trace == ["cancelled"]
    await lives(mcp)
    assert mcp.heard == []


@behaviour("LEG-4")
async def test_a_second_initialize_is_refused_and_changes_nothing(mcp: SseClient) -> None:
    await mcp.initialize("2025-06-18")
    assert (await mcp.ask("initialize", hello("2024-11-05")))["error"]["code"] == INVALID_REQUEST
    await lives(mcp)


@behaviour("LEG-8")
async def test_a_batch_is_served_on_the_one_revision_that_has_them(mcp: SseClient) -> None:
    await mcp.initialize("2025-03-26")
    await mcp.send([request(1, "ping"), request(2, "ping")])
    replies: Any = await mcp.next()
    assert [reply["id"] for reply in replies] == [1, 2]


async def test_100_calls_at_once(mcp: SseClient) -> None:
    await mcp.initialize()
    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(mcp.start, number, "echo", None)
    for number in range(100):
        await mcp.reply(number)


# What is wrong


@behaviour("TRN-4", "TRN-5")
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b'"' + b"x" * 4 * 1024 * 1024 + b'"', {}, 413),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {"host": "evil.example"}, 421),
        (b"{}", {"origin": "https://evil.example"}, 403),
    ],
    ids=["bad JSON", "too large", "media type", "host", "origin"],
)
async def test_what_is_posted_wrongly_is_refused_and_the_session_lives(
    mcp: SseClient, body: bytes, headers: dict[str, str], status: int
) -> None:
    await mcp.initialize()
    assert (await mcp.post(body, headers)).status == status
    await lives(mcp)


@behaviour("LEG-3")
async def test_a_session_that_is_not_there_is_unknown(app: Any, mcp: SseClient, tap: Tap) -> None:
    await mcp.initialize()
    known = mcp.endpoint
    for unknown in ("/messages", "/messages?sessionId=", "/messages?sessionId=" + "x" * 32, known[:-1] + "/"):
        mcp.endpoint = unknown
        reply = await mcp.post(request(9, "ping"))
        assert (reply.status, b"Session not found" in reply.raw) == (404, True)
    mcp.endpoint = known
    await lives(mcp)


@behaviour("TRN-3", "TRN-5")
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"host": "evil.example"}, 421),
        ("GET", {"accept": "application/json"}, 406),
        ("POST", {}, 405),
    ],
    ids=["host", "accept", "verb"],
)
async def test_a_stream_that_is_opened_wrongly_is_refused(
    app: Any, method: str, headers: dict[str, str], status: int
) -> None:
    async with anyio.create_task_group() as tasks:
        assert (await AsgiHttp(app, tasks, "/sse").request(method, headers)).status == status


@behaviour("AUT-1")
async def test_only_who_opened_the_stream_may_post(work: Work, serve: Serve, tap: Tap) -> None:
    def authenticate(scope: Any) -> Principal | Denied:
        token = dict(scope["headers"]).get(b"authorization")
        return Denied() if token is None else Principal("test", token.decode())

    app = await serve(make(work, authenticate=authenticate))
    async with opened(app, tap) as nobody:
        assert nobody.stream.status == 401
    async with opened(app, tap, headers={"authorization": "ada"}) as mcp:
        message = request(1, "initialize", hello())
        assert (await mcp.post(message)).status == 401
        assert (await mcp.post(message, {"authorization": "bob"})).status == 404
        assert (await mcp.post(message, {"authorization": "ada"})).status == 202
        await mcp.reply(1)


@behaviour("TRN-1")
async def test_a_transport_that_is_switched_off_is_not_there(work: Work, serve: Serve) -> None:
    app = await serve(make(work, transports=("http", "websocket")))
    async with anyio.create_task_group() as tasks:
        assert (await AsgiHttp(app, tasks, "/sse").request("GET", {})).status == 404


# How it ends, and other nodes


async def test_a_client_that_leaves_ends_its_session_and_cancels_its_calls(mcp: SseClient, work: Work) -> None:
    await mcp.initialize()
    await mcp.start("a", "use")
    await happens(work.begun)
    mcp.leave()
    await happens(work.over)
    assert work.trace == ["cancelled"]
    await mcp.stream.closed()
    assert (await mcp.post(request(2, "ping"))).status == 404


async def test_an_open_stream_is_kept_open(app: Any, tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "COMMENT_SECONDS", 0.01)
    async with opened(app, tap) as mcp:
        chunk = await mcp.stream._next()
        assert chunk == b": still here\n\n"


async def test_a_client_that_never_reads_again_is_given_up(
    app: Any, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "STALLED_SECONDS", 0.05)
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(sse, "_LAST_SECONDS", 0.01)
    sent: list[bytes] = []
    endpoint = anyio.Event()
    full = anyio.Event()

    async def send(event: Any) -> None:
        sent.append(event.get("body", b""))
        if sent[-1].startswith(b"event: endpoint"):
            endpoint.set()
        elif endpoint.is_set():
            full.set()
            await anyio.sleep_forever()

    async def serve(query: bytes, method: str, body: bytes, send: Any) -> None:
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        path = "/messages" if query else "/sse"
        scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": headers}
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            return messages.pop() if messages else await anyio.sleep_forever()

        await app(scope, receive, send)

    async def ignore(event: Any) -> None:
        assert event.get("status", 202) == 202

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, b"", "GET", b"", send)
            await endpoint.wait()
            query = sent[-1].partition(b"?")[2].strip()
            await serve(query, "POST", json.dumps(request(1, "initialize", hello())).encode(), ignore)
            await full.wait()


@behaviour("TRN-6")
async def test_at_shutdown_what_runs_may_finish_and_the_stream_says_when_to_come_back(
    bridge: Bridge, work: Work, tap: Tap
) -> None:
    app = bridge.asgi()
    async with app.lifespan(), opened(app, tap) as mcp:
        await mcp.initialize()
        await mcp.start("a", "use")
        await happens(work.begun)
        await app.drain()
        work.go.set()
        assert said(await mcp.reply("a")) == "done"
        assert await mcp.next() is None
        assert mcp.stream.raw.endswith(b"retry: 5000\n\n")


async def test_who_posts_more_than_is_taken_loses_the_stream(
    mcp: SseClient, monkeypatch: pytest.MonkeyPatch, work: Work
) -> None:
    await mcp.initialize()
    monkeypatch.setattr(sse, "MAX_POSTED", 2)
    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(mcp.post, request(number, "ping"))
        assert await ended(mcp)


async def ended(mcp: SseClient) -> bool:
    while await mcp.next() is not None:
        pass
    return True


@behaviour("TRN-1")
async def test_what_is_posted_to_another_node_reaches_the_stream(
    redis_url: str, work: Work, tap: Tap, serve: Serve, closing: AsyncExitStack
) -> None:
    here, there = (make(work, store=redis_url, keys=FLEET_KEYS) for _ in range(2))
    for bridge in (here, there):
        closing.push_async_callback(bridge.store.aclose)
    other = await serve(there)
    async with opened(await serve(here), tap) as mcp:
        mcp.app = other
        await mcp.initialize(**FORM)
        await mcp.start("a", "ask")
        await mcp.answer(await mcp.question(), {"name": "Ada"})
        assert said(await mcp.reply("a")) == "Ada"
