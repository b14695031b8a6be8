"""A link to a modern server: what each request says, what comes back, what is done where it was refused."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import notification, result_message
from bridge.protocol.revisions import MODERN
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.links import Facts
from bridge.upstreams.remote import RemoteServer, Url
from bridge.upstreams.remote.http import HttpClient
from bridge.upstreams.remote.modern import ModernLink
from bridge.upstreams.remote.posting import HttpCarrier
from tests.upstreams.remote.faulty import Answer, Exchange, FaultyServer, faulty_server
from tests.upstreams.remote.peers import command, serving
from tests.upstreams.remote.session import SECONDS, until
from tests.upstreams.remote.talks import HELLO, Heard, News

behaviour = pytest.mark.behaviour

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
DONE = {"resultType": "complete", "content": []}


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


@asynccontextmanager
async def linked(
    answer: Answer, news: News | None = None, **capabilities: Any
) -> AsyncIterator[tuple[ModernLink, FaultyServer]]:
    async with faulty_server(answer) as server:
        client = HttpClient(server.url, {"Authorization": "Bearer own"})
        facts = Facts(revision=MODERN, capabilities=capabilities, info={})
        link = ModernLink(HttpCarrier(client), facts, HELLO, news or News())
        try:
            yield link, server
        finally:
            await link.aclose()
            await client.aclose()


async def lists_then_done(exchange: Exchange) -> None:
    if exchange.message["method"] == "tools/list":
        await exchange.result({"tools": [tool("t")]})
    else:
        await exchange.result(DONE)


def error(code: int, message: str = "no", data: Any = None) -> dict[str, Any]:
    return {"code": code, "message": message, "data": data}


async def refuse(exchange: Exchange, status: int, code: int, data: Any = None) -> None:
    identity = exchange.message["id"]
    await exchange.answer(status, {"jsonrpc": "2.0", "id": identity, "error": error(code, data=data)})


@behaviour("UPS-2", "UPS-14")
async def test_a_request_says_itself_who_makes_it_and_keeps_what_it_does_not_know() -> None:
    async with linked(lists_then_done) as (link, server):
        given = {"traceparent": "00-1", "progressToken": "theirs", LEVEL: "debug", VERSION: "2025-11-25"}
        params = {"name": "t", "arguments": {"a": 2**70}, "requestState": "s", "later": {"x": [1]}, "_meta": given}
        assert await link.request("tools/call", params) == Finished(DONE)
        exchange = server.exchanges[-1]
    sent = exchange.message["params"]
    assert {key: value for key, value in sent.items() if key != "_meta"} == {
        key: value for key, value in params.items() if key != "_meta"
    }
    assert sent["_meta"] == {
        "traceparent": "00-1",
        VERSION: "2026-07-28",
        CAPABILITIES: HELLO.capabilities,
        "io.modelcontextprotocol/clientInfo": HELLO.info,
    }
    assert given["progressToken"] == "theirs"
    headers = exchange.headers
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "t"
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["authorization"] == "Bearer own"
    assert "cookie" not in headers


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", ""),
        (-7, "-7"),
        (True, "true"),
        (None, None),
    ],
)
async def test_parameters_and_names_travel_in_headers_as_the_specification_encodes_them(
    value: Any, header: str | None
) -> None:
    kind = {str: "string", int: "integer", bool: "boolean"}.get(type(value), "string")
    where = {"type": "object", "properties": {"inner": {"type": kind, "x-mcp-header": "Region"}}}

    async def answer(exchange: Exchange) -> None:
        if exchange.message["method"] == "tools/list":
            await exchange.result({"tools": [tool("sql", where=where)]})
        else:
            await exchange.result(DONE)

    async with linked(answer) as (link, server):
        for _ in range(2):
            await link.request("tools/call", {"name": "sql", "arguments": {"where": {"inner": value}}})
        if isinstance(value, str) and value:
            await link.request("prompts/get", {"name": value})
            await link.request("resources/read", {"uri": value})
            assert [exchange.headers["mcp-name"] for exchange in server.exchanges[-2:]] == [header, header]
    methods = [exchange.message["method"] for exchange in server.exchanges]
    assert methods[:3] == ["tools/list", "tools/call", "tools/call"]
    assert server.exchanges[1].headers.get("mcp-param-region") == header


async def test_tools_that_were_listed_are_not_listed_again_and_bad_ones_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = tool("bad", n={"type": "number", "x-mcp-header": "N"})

    async def answer(exchange: Exchange) -> None:
        if exchange.message["method"] == "tools/list":
            await exchange.result({"tools": [bad, tool("t", r={"type": "string", "x-mcp-header": "R"})], "more": 1})
        else:
            await exchange.result(DONE)

    async with linked(answer) as (link, server):
        listed = await link.request("tools/list", {})
        assert isinstance(listed, Finished)
        assert [item["name"] for item in listed.result["tools"]] == ["t"]
        assert listed.result["more"] == 1
        await link.request("tools/call", {"name": "t", "arguments": {"r": "x"}})
    assert [exchange.message["method"] for exchange in server.exchanges] == ["tools/list", "tools/call"]
    assert server.exchanges[1].headers["mcp-param-r"] == "x"
    assert "'bad'" in caplog.text


@behaviour("UPS-7")
async def test_a_stale_schema_is_fetched_again_and_the_call_sent_once_more() -> None:
    lists = 0

    async def answer(exchange: Exchange) -> None:
        nonlocal lists
        if exchange.message["method"] == "tools/list":
            lists += 1
            r = {"type": "string", "x-mcp-header": "R"} if lists > 1 else {"type": "string"}
            await exchange.result({"tools": [tool("t", r=r)]})
        elif "mcp-param-r" in exchange.headers:
            await exchange.result(DONE)
        else:
            await refuse(exchange, 400, -32020)

    async with linked(answer) as (link, _):
        assert await link.request("tools/call", {"name": "t", "arguments": {"r": "x"}}) == Finished(DONE)
        assert lists == 2


@behaviour("UPS-7")
@pytest.mark.parametrize(
    ("status", "code", "data"), [(400, -32020, None), (400, -32022, {"supported": ["2027-01-01"]})]
)
async def test_what_the_server_refused_unread_is_unreachable(status: int, code: int, data: Any) -> None:
    async with linked(lambda exchange: refuse(exchange, status, code, data)) as (link, server):
        with pytest.raises(UpstreamUnreachable, match=r"refused the headers|2027-01-01"):
            await link.request("resources/read", {"uri": "a:b"})
        assert len(server.exchanges) == 1


@behaviour("UPS-8")
@pytest.mark.parametrize(
    ("status", "code"), [(404, -32601), (400, -32602), (400, -32021), (200, -32603), (500, -32603)]
)
async def test_an_error_keeps_its_code_message_and_data(status: int, code: int) -> None:
    async with linked(lambda exchange: refuse(exchange, status, code, {"n": 1})) as (link, _):
        assert await link.request("prompts/list", {}) == Failed(code, "no", {"n": 1})


@behaviour("UPS-7")
@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, UpstreamUnreachable), (405, UpstreamUnreachable), (401, UpstreamUnreachable), (502, UpstreamLost)],
)
async def test_a_refusal_without_an_error_is_unreachable_or_lost(status: int, kind: type[Exception]) -> None:
    async with linked(lambda exchange: exchange.answer(status, b"<html>")) as (link, server):
        with pytest.raises(kind, match=str(status)):
            await link.request("prompts/list", {})
        assert len(server.exchanges) == 1
        assert link.is_open


@behaviour("UPS-7")
@pytest.mark.parametrize("how", ["at once", "in a stream"])
async def test_a_connection_that_is_cut_is_lost_and_not_tried_again(how: str) -> None:
    async def answer(exchange: Exchange) -> None:
        if how == "in a stream":
            await exchange.stream()
            await exchange.event(notification("notifications/progress", {}), id="1")
        exchange.cut()

    async with linked(answer) as (link, server):
        with pytest.raises(UpstreamLost):
            await link.request("prompts/list", {})
        assert len(server.exchanges) == 1


async def test_progress_and_logs_of_a_stream_come_before_its_result() -> None:
    async def answer(exchange: Exchange) -> None:
        meta = exchange.message["params"]["_meta"]
        await exchange.stream()
        token = meta["progressToken"]
        await exchange.event(notification("notifications/progress", {"progressToken": "x", "progress": 9}))
        await exchange.event(
            notification("notifications/progress", {"progressToken": token, "progress": 1, "total": 2})
        )
        await exchange.event(notification("notifications/message", {"level": meta[LEVEL], "data": [1], "logger": "l"}))
        await exchange.event(result_message(exchange.message["id"], DONE))
        await exchange.end()

    talk = Heard(wants_progress=True, log_level="info")
    async with linked(answer) as (link, _):
        assert await link.request("prompts/list", {}, talk) == Finished(DONE)
    assert talk.progressed == [(1, 2, None)]
    assert talk.logged == [("info", [1], "l")]


@behaviour("UPS-3")
async def test_an_input_required_result_comes_as_it_is() -> None:
    result = {"resultType": "input_required", "requestState": "opaque", "inputRequests": {"k": {"method": "x"}}, "y": 1}
    async with linked(lambda exchange: exchange.result(result)) as (link, _):
        assert await link.request("resources/read", {"uri": "a:b"}) == Finished(result)


async def test_a_request_that_is_cancelled_closes_its_connection() -> None:
    reached = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        reached.set()
        await asyncio.sleep(SECONDS)

    async with linked(answer) as (link, server):
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(link.request, "prompts/list", {})
                await reached.wait()
                server.gone.clear()
                tasks.cancel_scope.cancel()
            await server.gone.wait()
        assert link.is_open


async def test_closing_a_link_ends_what_is_under_way_and_leaves_other_links_alone() -> None:
    reached = asyncio.Event()

    async def answer(exchange: Exchange) -> None:
        reached.set()
        await asyncio.sleep(SECONDS)

    async with linked(answer) as (link, server):
        waiting = asyncio.ensure_future(link.request("prompts/list", {}))
        await reached.wait()
        await link.aclose()
        with pytest.raises(UpstreamLost, match="closed"):
            await waiting
        with anyio.fail_after(SECONDS):
            await server.gone.wait()
        assert not link.is_open
        with pytest.raises(UpstreamUnreachable):
            await link.request("prompts/list", {})


class Listened:
    """A server's side of `subscriptions/listen`."""

    def __init__(self) -> None:
        self.streams: list[tuple[Exchange, dict[str, Any]]] = []
        self.stirred = asyncio.Event()

    async def answer(self, exchange: Exchange) -> None:
        assert exchange.message["method"] == "subscriptions/listen"
        wanted = exchange.message["params"]["notifications"]
        await exchange.stream()
        await self.tell(exchange, "notifications/subscriptions/acknowledged", {"notifications": wanted})
        self.streams.append((exchange, wanted))
        self.stirred.set()

    async def tell(self, exchange: Exchange, method: str, params: dict[str, Any]) -> None:
        await exchange.event(notification(method, {**params, "_meta": {SUBSCRIPTION: exchange.message["id"]}}))

    async def until(self, number: int) -> Exchange:
        with anyio.fail_after(SECONDS):
            while len(self.streams) < number:
                self.stirred.clear()
                await self.stirred.wait()
        return self.streams[number - 1][0]


async def test_changes_come_on_a_stream_that_is_opened_again_and_tells_what_may_be_missed() -> None:
    listened, news = Listened(), News()
    async with linked(listened.answer, news, tools={"listChanged": True}, prompts={"listChanged": False}) as (link, _):
        first = await listened.until(1)
        assert listened.streams[0][1] == {"toolsListChanged": True}
        await listened.tell(first, "notifications/tools/list_changed", {})
        with anyio.fail_after(SECONDS):
            assert await news.heard.get() == ("notifications/tools/list_changed", {})
            first.cut()
            await listened.until(2)
            assert await news.heard.get() == ("notifications/tools/list_changed", {})
        assert link.is_open


async def test_a_subscription_joins_the_stream_and_leaves_it() -> None:
    listened, news = Listened(), News()
    async with linked(listened.answer, news, resources={"subscribe": True}) as (link, server):
        assert server.exchanges == []
        with anyio.fail_after(SECONDS):
            assert await link.request("resources/subscribe", {"uri": "a:1"}) == Finished({})
            assert await link.request("resources/subscribe", {"uri": "a:2"}) == Finished({})
            stream = await listened.until(2)
            await listened.tell(stream, "notifications/resources/updated", {"uri": "a:1"})
            assert await news.heard.get() == ("notifications/resources/updated", {"uri": "a:1"})
            assert await link.request("resources/unsubscribe", {"uri": "a:1"}) == Finished({})
            assert await link.request("resources/unsubscribe", {"uri": "a:2"}) == Finished({})
    assert [wanted["resourceSubscriptions"] for _, wanted in listened.streams] == [["a:1"], ["a:1", "a:2"], ["a:2"]]
    assert news.heard.empty()


async def test_a_server_without_subscriptions_says_so_and_log_levels_need_no_request() -> None:
    async with linked(lists_then_done) as (link, server):
        assert isinstance(await link.request("resources/subscribe", {"uri": "a:1"}), Failed)
        assert await link.request("logging/setLevel", {"level": "debug"}) == Finished({})
        await link.notify("notifications/roots/list_changed", {})
        assert server.exchanges == []


@pytest.fixture(scope="module")
def sdk_url() -> Iterator[str]:
    with serving("mcp2", "streamable") as url:
        yield url


@asynccontextmanager
async def peer(over: str, sdk_url: str) -> AsyncIterator[ModernLink]:
    server = RemoteServer(Url(sdk_url) if over == "http" else command("mcp2"), protocol="modern")
    await server.start()
    try:
        link = await server.connect_modern(HELLO, News())
        try:
            yield link
        finally:
            await link.aclose()
    finally:
        await server.aclose()


OVER = pytest.mark.parametrize("over", ["http", "stdio"])


@OVER
@behaviour("UPS-2", "UPS-3")
async def test_a_server_of_mcp_2_is_called_asked_and_answered(over: str, sdk_url: str) -> None:
    async with peer(over, sdk_url) as link:
        assert link.facts.revision is MODERN
        assert link.facts.info["name"] == "peer"
        assert link.facts.instructions == "Add numbers."
        added = await link.request("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
        assert isinstance(added, Finished)
        assert added.result["structuredContent"] == {"result": 5}
        read = await link.request("resources/read", {"uri": "note://one"})
        assert isinstance(read, Finished)
        assert read.result["contents"][0]["text"] == "a note"
        assert isinstance(await link.request("no/such", {}), Failed)


@OVER
async def test_progress_of_mcp_2_comes_to_the_talk_that_wants_it(over: str, sdk_url: str) -> None:
    talk = Heard(wants_progress=True, log_level="debug")
    async with peer(over, sdk_url) as link:
        await link.request("tools/call", {"name": "count", "arguments": {"to": 3}}, talk)
    assert talk.progressed == [(number, 3, f"at {number}") for number in (1, 2, 3)]
    assert len(talk.logged) == 1


@behaviour("UPS-9")
async def test_cancelling_over_stdio_tells_the_server(sdk_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bridge.upstream.stderr")

    async with peer("stdio", sdk_url) as link:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.request, "tools/call", {"name": "wait", "arguments": {}})
            await until(lambda: "waiting" in caplog.text)
            tasks.cancel_scope.cancel()
        await until(lambda: "wait was cancelled" in caplog.text)
        assert link.is_open
        assert isinstance(await link.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}), Finished)


async def test_many_requests_at_once_get_their_own_replies() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.result({"n": exchange.message["params"]["n"]})

    async with linked(answer) as (link, _):
        replies = await asyncio.gather(*(link.request("any", {"n": n}) for n in range(300)))
    assert [reply.result["n"] for reply in replies if isinstance(reply, Finished)] == list(range(300))
    assert json.dumps(len(replies)) == "300"
