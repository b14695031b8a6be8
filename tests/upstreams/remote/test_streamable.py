"""Streamable HTTP as legacy servers speak it: replies, streams that break, sessions that end."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import notification, request_message, result_message
from bridge.upstreams.remote.http import HttpClient
from bridge.upstreams.remote.streamable import StreamableWire
from tests.upstreams.remote.faulty import Answer, Exchange, FaultyServer, faulty_server
from tests.upstreams.remote.peers import serving
from tests.upstreams.remote.session import SECONDS, Session, session

behaviour = pytest.mark.behaviour

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
PROGRESS = notification("notifications/progress", {"progressToken": 1, "progress": 1})


@asynccontextmanager
async def client_of(url: str, **headers: str) -> AsyncIterator[Session]:
    client = HttpClient(url, headers)
    try:
        async with session(StreamableWire(client)) as made:
            yield made
    finally:
        await client.aclose()


@asynccontextmanager
async def talking_to(answer: Answer) -> AsyncIterator[tuple[Session, FaultyServer]]:
    """A session that is initialized at a server that answers all that comes later as it is told."""

    async def basics(exchange: Exchange) -> None:
        method = exchange.message.get("method") if exchange.method == "POST" else None
        if method == "initialize":
            await exchange.result(HELLO, mcp_session_id="sid-1")
        elif method == "notifications/initialized":
            await exchange.answer(202)
        elif exchange.method == "GET" and "last-event-id" not in exchange.headers:
            await exchange.answer(405)
        elif exchange.method == "DELETE":
            await exchange.answer(204)
        else:
            await answer(exchange)

    async with faulty_server(basics) as server, client_of(server.url, Authorization="Bearer own") as client:
        await client.initialize()
        yield client, server


@pytest.fixture(scope="module")
def sdk_url() -> Iterator[str]:
    with serving("mcp1", "streamable") as url:
        yield url


@pytest.mark.peers
@behaviour("UPS-2")
async def test_a_server_of_mcp_1_is_served_from_hello_to_goodbye(sdk_url: str) -> None:
    async with client_of(sdk_url) as client:
        assert (await client.initialize())["serverInfo"]["name"] == "peer"
        assert (await client.call("add", a=2, b=3))["structuredContent"] == {"result": 5}
        await client.call("count", to=3)


@pytest.mark.peers
@behaviour("UPS-5")
async def test_a_question_comes_with_the_request_that_asks(sdk_url: str) -> None:
    async with client_of(sdk_url) as client:
        await client.initialize(elicitation={})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                client.call,
                "close",
            )
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            for identity in (11, 12):
                call = {"name": "close", "arguments": {"ticket": f"T-{identity}"}}
                tasks.start_soon(client.wire.send, request_message(identity, "tools/call", call))
            asked = {}
            while len(asked) < 2:
                message, identity = await client.until(
                    lambda m: getattr(m, "method", "") == "elicitation/create" and m.id not in asked.values()
                )
                asked[identity] = message.id  # type: ignore[union-attr]
                assert message.params["message"] == f"Close T-{identity}?"  # type: ignore[union-attr]
            for question in asked.values():
                await client.wire.send(result_message(question, {"action": "accept", "content": {"yes": True}}))
        for identity in (11, 12):
            reply = await client.reply(identity)
            assert "accept" in str(reply.result)


@pytest.mark.peers
@behaviour("UPS-7")
async def test_a_session_that_the_server_forgot_closes_the_wire(sdk_url: str) -> None:
    async with client_of(sdk_url) as client:
        await client.initialize()
        async with client_of(sdk_url) as other:
            await other.initialize()
            other.wire._session.update(client.wire._session)  # type: ignore[attr-defined]
        with pytest.raises(UpstreamUnreachable, match="does not know the session any more"):
            await client.call("add", a=1, b=1)
        assert "404" in await client.closed()


@behaviour("UPS-14")
async def test_headers_of_the_session_the_revision_and_the_operator_go_with_every_request() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.result({"ok": True})

    async with talking_to(answer) as (client, server):
        assert await client.request("tools/list") == {"ok": True}
    hello, ready, *_ = server.asked("POST")
    assert "mcp-session-id" not in hello.headers
    assert "mcp-protocol-version" not in hello.headers
    for exchange in (ready, *server.asked("GET"), *server.asked("DELETE"), server.asked("POST")[-1]):
        assert exchange.headers["mcp-session-id"] == "sid-1"
        assert exchange.headers["mcp-protocol-version"] == "2025-11-25"
        assert exchange.headers["authorization"] == "Bearer own"
    assert hello.headers["accept"] == "application/json, text/event-stream"
    assert len(server.asked("DELETE")) == 1


async def test_messages_of_a_stream_come_with_its_request_and_in_order() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.chunk(b": a comment\r\n\r\n")
        for _ in range(3):
            await exchange.event(PROGRESS, kind="message")
        await exchange.event(result_message(exchange.message["id"], {"n": 2**80}))
        await exchange.end()

    async with talking_to(answer) as (client, _):
        assert await client.request("tools/call") == {"n": 2**80}
        assert [identity for _, identity in client.heard] == [1, 2, 2, 2, 2]


async def test_a_stream_without_its_reply_is_resumed_after_the_time_that_the_server_asked_for() -> None:
    began = 0.0

    async def answer(exchange: Exchange) -> None:
        nonlocal began
        if exchange.method == "POST":
            await exchange.stream()
            await exchange.event(id="e-1", retry="300")
            await exchange.event(PROGRESS, id="e-2")
            await exchange.write(b'20\r\nid: e-3\ndata: {"half')
            exchange.cut()
            began = anyio.current_time()
        elif exchange.headers["last-event-id"] == "e-2":
            assert anyio.current_time() - began > 0.28
            await exchange.stream()
            await exchange.event(PROGRESS, id="e-4")
            await exchange.end()
        else:
            assert exchange.headers["last-event-id"] == "e-4"
            await exchange.stream()
            await exchange.event(result_message(2, {"ok": True}), id="e-5")
            await exchange.end()

    async with talking_to(answer) as (client, server):
        assert await client.request("tools/call") == {"ok": True}
        assert [identity for _, identity in client.heard] == [1, 2, 2, 2]
        assert len(server.asked("POST")) == 3


@behaviour("UPS-7")
@pytest.mark.parametrize("how", ["cut", "ended"])
async def test_a_stream_that_breaks_without_an_event_id_is_lost(how: str) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event(PROGRESS)
        if how == "cut":
            exchange.cut()
        else:
            await exchange.end()

    async with talking_to(answer) as (client, server):
        with pytest.raises(UpstreamLost, match="no event id"):
            await client.request("tools/call")
        assert len(server.asked("POST")) == 3
        assert client.why_closed == []


@pytest.mark.parametrize(("status", "gets"), [(405, 1), (400, 1), (404, 1)])
async def test_a_stream_that_the_server_will_not_resume_is_lost(status: int, gets: int) -> None:
    async def answer(exchange: Exchange) -> None:
        if exchange.method == "POST":
            await exchange.stream()
            await exchange.event(id="e-1", retry="1")
            exchange.cut()
        else:
            await exchange.answer(status)

    async with talking_to(answer) as (client, server):
        with pytest.raises(UpstreamLost, match=str(status)):
            await client.request("tools/call")
        assert len([get for get in server.asked("GET") if "last-event-id" in get.headers]) == gets
        assert bool(client.why_closed) == (status == 404)


async def test_resuming_is_given_up_after_so_many_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.backoff._FIRST_WAIT_SECONDS", 0.001)

    async def answer(exchange: Exchange) -> None:
        if exchange.method == "POST":
            await exchange.stream()
            await exchange.event(id="e-1", retry="1")
            exchange.cut()
        else:
            await exchange.answer(503)

    async with talking_to(answer) as (client, server):
        with pytest.raises(UpstreamLost, match="503"):
            await client.request("tools/call")
        assert len(server.asked("GET")) == 1 + 8


@behaviour("UPS-7")
@pytest.mark.parametrize(
    ("status", "error"),
    [(500, UpstreamLost), (502, UpstreamLost), (504, UpstreamLost), (408, UpstreamLost)]
    + [(status, UpstreamUnreachable) for status in (400, 401, 403, 405, 413, 415, 429)],
)
async def test_a_refusal_is_unreachable_only_where_nothing_can_have_run(status: int, error: type[Exception]) -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.answer(status, b"<html>")

    async with talking_to(answer) as (client, _):
        with pytest.raises(error, match=str(status)):
            await client.request("tools/call")
        assert client.why_closed == []


@behaviour("UPS-8")
@pytest.mark.parametrize("identity", [2, None, "server-error"])
async def test_a_json_rpc_error_in_a_refusal_is_the_reply(identity: object) -> None:
    error = {"code": -32602, "message": "bad", "data": {"n": 1}}

    async def answer(exchange: Exchange) -> None:
        await exchange.answer(400, {"jsonrpc": "2.0", "id": identity, "error": error})

    async with talking_to(answer) as (client, _):
        assert (await client.ask("tools/call")).error == error


@behaviour("UPS-7")
async def test_a_connection_that_is_cut_after_the_request_was_read_is_lost() -> None:
    async def answer(exchange: Exchange) -> None:
        exchange.cut()

    async with talking_to(answer) as (client, server):
        with pytest.raises(UpstreamLost, match="cut off"):
            await client.request("tools/call")
        assert len(server.asked("POST")) == 3


@behaviour("UPS-7")
async def test_a_refused_connection_is_unreachable() -> None:
    async with faulty_server(lambda exchange: exchange.answer(500)) as server:
        url = server.url
    async with client_of(url) as client:
        with pytest.raises(UpstreamUnreachable, match="the connection was refused"):
            await client.initialize()


async def post(exchange: Exchange) -> None:
    """Answer all but GET as a server does."""
    if exchange.method == "POST" and "id" in exchange.message:
        await exchange.result(HELLO, mcp_session_id="sid-1")
    else:
        await exchange.answer(202)


async def test_what_belongs_to_no_request_comes_on_a_stream_of_its_own_that_is_opened_again() -> None:
    gets: list[str | None] = []
    changed = notification("notifications/tools/list_changed")

    async def answer(exchange: Exchange) -> None:
        if exchange.method != "GET":
            await post(exchange)
            return
        gets.append(exchange.headers.get("last-event-id"))
        await exchange.stream()
        await exchange.event({**changed, "params": {"n": len(gets)}}, id=f"g-{len(gets)}", retry="10")
        if len(gets) < 3:
            await exchange.end()

    async with faulty_server(answer) as server, client_of(server.url) as client:
        await client.initialize()
        await client.until(lambda m: getattr(m, "params", {}).get("n") == 3)
        assert gets == [None, "g-1", "g-2"]
        assert {identity for message, identity in client.heard if message.__class__.__name__ == "Notification"} == {
            None
        }


@behaviour("UPS-2")
async def test_nothing_is_called_before_the_stream_of_what_belongs_to_no_request_stands() -> None:
    """A server may ask on it in the middle of the first call; what it sends on no stream is lost."""
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slow_to_stand(exchange: Exchange) -> None:
        if exchange.method != "GET":
            await post(exchange)
            return
        asked.set()
        await may_answer.wait()
        await exchange.stream()

    initialized = asyncio.Event()

    async def initialize(client: Session) -> None:
        await client.initialize()
        initialized.set()

    async with (
        faulty_server(slow_to_stand) as server,
        client_of(server.url) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(initialize, client)
        with anyio.fail_after(SECONDS):
            await asked.wait()
            assert server.exchanges[-2].message["method"] == "notifications/initialized"
            assert not initialized.is_set()
            may_answer.set()
            await initialized.wait()


@behaviour("UPS-2")
async def test_a_stream_whose_head_comes_with_its_first_event_is_waited_for_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.streamable._LISTEN_SECONDS", 0.05)

    async def silent(exchange: Exchange) -> None:
        if exchange.method != "GET":
            await post(exchange)

    async with faulty_server(silent) as server, client_of(server.url) as client:
        await client.initialize()
        assert len(server.asked("GET")) == 1
        # The next session of the same server does not wait in vain again.
        monkeypatch.setattr("bridge.upstreams.remote.streamable._LISTEN_SECONDS", 1000.0)
        async with session(StreamableWire(client.wire._client)) as second:  # type: ignore[attr-defined]
            with anyio.fail_after(SECONDS):
                await second.initialize()


async def test_closing_ends_what_is_under_way() -> None:
    reached = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        if exchange.message["method"] == "stream":
            await exchange.stream()
        reached.set()
        await asyncio.sleep(SECONDS)

    for method in ("stream", "silence"):
        reached.clear()
        async with talking_to(answer) as (client, _):
            waiting = asyncio.ensure_future(client.request(method))
            await reached.wait()
            await client.wire.aclose()
            with pytest.raises(UpstreamLost, match="closed"):
                await waiting


async def test_a_send_that_is_cancelled_closes_its_connection_and_no_other() -> None:
    reached = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        if exchange.message["method"] == "fast":
            await exchange.result({"ok": True})
            return
        await exchange.stream()
        reached.set()
        await asyncio.sleep(SECONDS)

    async with talking_to(answer) as (client, server):
        waiting = asyncio.ensure_future(client.request("slow"))
        await reached.wait()
        server.gone.clear()
        waiting.cancel()
        with anyio.fail_after(SECONDS):
            await server.gone.wait()
        assert await client.request("fast") == {"ok": True}


async def test_a_session_that_does_not_end_is_left_within_two_seconds() -> None:
    async def answer(exchange: Exchange) -> None:
        if exchange.method == "DELETE":
            await asyncio.sleep(SECONDS)
        elif exchange.method == "GET":
            await exchange.answer(405)
        else:
            await exchange.result(HELLO, mcp_session_id="sid-1")

    async with faulty_server(answer) as server:
        began = anyio.current_time()
        async with client_of(server.url) as client:
            await client.request("initialize")
        assert anyio.current_time() - began < 4


async def test_a_redirect_is_followed_on_the_same_origin_only() -> None:
    async def answer(exchange: Exchange) -> None:
        if exchange.path == "/mcp":
            await exchange.answer(307, location="/mcp/")
        elif exchange.message["method"] == "away":
            await exchange.answer(307, location="http://example.invalid/mcp?key=secret")
        else:
            await exchange.result({"path": exchange.path})

    async with faulty_server(answer) as server, client_of(server.url) as client:
        assert await client.request("a") == {"path": "/mcp/"}
        assert await client.request("b") == {"path": "/mcp/"}
        assert [exchange.path for exchange in server.exchanges] == ["/mcp", "/mcp/", "/mcp/"]
        with pytest.raises(UpstreamUnreachable, match=r"307, to http://example.invalid/mcp:"):
            await client.request("away")


@pytest.mark.timeout(60)
async def test_a_reply_of_65_mib_is_lost() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 68157440\r\n\r\n")
        for _ in range(65):
            await exchange.write(b" " * 2**20)

    async with talking_to(answer) as (client, _):
        with pytest.raises(UpstreamLost, match="64 MiB"):
            await client.request("tools/call")


async def test_a_connection_that_the_server_closed_while_it_was_idle_is_replaced() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.result({"ok": True})
        if exchange.message["method"] == "last":
            exchange.cut()

    async with talking_to(answer) as (client, server):
        await client.request("first")
        server.gone.clear()
        await client.request("last")
        await server.gone.wait()
        await asyncio.sleep(0)
        assert await client.request("next") == {"ok": True}


async def test_a_reply_may_be_compressed_and_a_batch() -> None:
    replies = [PROGRESS, result_message(2, {"ok": True})]

    async def answer(exchange: Exchange) -> None:
        body = gzip.compress(json.dumps(replies).encode())
        await exchange.answer(200, body, content_type="application/json; charset=utf-8", content_encoding="gzip")

    async with talking_to(answer) as (client, _):
        assert await client.request("tools/list") == {"ok": True}
        assert [identity for _, identity in client.heard] == [1, 2, 2]


async def test_a_reply_that_is_none_is_lost() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.answer(200, b"<html>", content_type="text/html")

    async with talking_to(answer) as (client, _):
        with pytest.raises(UpstreamLost, match="without the reply"):
            await client.request("tools/call")
