"""Every row of the table of bad input, on HTTP, stdio and WebSocket: answered, and life goes on."""

import json
import logging
from typing import Any

import pytest

from bridge import Bridge
from bridge.protocol.messages import MAX_BODY_BYTES
from bridge.testing import HttpReply, connect
from tests.behaviours.bad_input import PAGE, ROWS, Answer, Row, page
from tests.behaviours.pipes import served
from tests.behaviours.sockets import connected
from tests.behaviours.talking import Talker
from tests.conftest import Serve
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Any:
    """Nothing that a client sends wrong is the server's trouble."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.WARNING] == []


def is_as_told(message: Any, answer: Answer) -> None:
    """The reply has the code, and echoes the id in its own type."""
    assert message.get("error", {}).get("code") == answer.code
    identity = message.get("id", "none")
    assert (type(identity), identity) == (type(answer.identity), answer.identity)


async def check(reply: HttpReply, answer: Answer) -> None:
    assert reply.status == answer.status
    if answer.code is None and answer.identity == "none":
        await reply.closed()
        assert reply.raw == b""
    else:
        is_as_told(await reply.json(), answer)


def test_the_page_is_what_the_table_makes() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.behaviours.bad_input"


@each_row
@behaviour("LEG-13", "LEG-8", "TRN-4")
async def test_a_session_answers_bad_input_and_goes_on(serve: Serve, bridge: Bridge, row: Row) -> None:
    async with connect(await serve(bridge), revision="2025-11-25") as mcp:
        headers = {"mcp-protocol-version": ""} if row.what.endswith("2026-07-28") else {}
        await check(await mcp.raw.post(row.body, headers), row.session)
        assert (await mcp.tools.call("add", {"a": 1, "b": 2})).json() == 3


@each_row
@behaviour("MOD-3", "MOD-7", "TRN-4")
async def test_a_modern_endpoint_answers_bad_input(serve: Serve, bridge: Bridge, row: Row) -> None:
    if row.modern is None:
        pytest.skip("nothing modern can be said so")
    async with connect(await serve(bridge)) as mcp:
        await check(await mcp.raw.post(row.body, {"mcp-method": "no/such"}), row.modern)
        assert (await mcp.tools.call("add", {"a": 1, "b": 2})).json() == 3


async def _on_a_connection(mcp: Talker, row: Row) -> None:
    await mcp.initialize()
    if row.pipe.identity != "none":
        # The wire tap is told which request the answer is to; of bytes it reads nothing itself.
        mcp._conversation.heard({"jsonrpc": "2.0", "id": row.pipe.identity, "method": "ping"})
    await mcp.send(row.body)
    if row.pipe.code is not None:
        is_as_told(await mcp.until(lambda message: "error" in message), row.pipe)
    assert (await mcp.call("add", a=1, b=2))["structuredContent"] == {"result": 3}
    assert mcp.heard == []


@each_row
@behaviour("MOD-17", "LEG-4", "TRN-4")
async def test_stdio_answers_bad_input_and_goes_on(bridge: Bridge, tap: Tap, row: Row) -> None:
    async with served(bridge, tap) as mcp:
        await _on_a_connection(mcp, row)


@each_row
@behaviour("TRN-1", "LEG-4", "TRN-4")
async def test_a_websocket_answers_bad_input_and_goes_on(serve: Serve, bridge: Bridge, tap: Tap, row: Row) -> None:
    if row.binary:
        pytest.skip("no text frame can hold it")
    async with connected(await serve(bridge), tap) as mcp:
        await _on_a_connection(mcp, row)


@behaviour("LEG-8")
async def test_a_batch_that_holds_bad_input_answers_each_entry(serve: Serve, bridge: Bridge) -> None:
    entries: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        [],
        3,
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": "1", "method": "no/such"},
    ]
    async with connect(await serve(bridge), revision="2025-03-26") as mcp:
        reply = await mcp.raw.post(json.dumps(entries).encode())
        async for _ in reply.messages():
            pass
        answers = json.loads(reply.raw)
        assert reply.status == 200
        assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32600, -32600, -32600, -32601]
        assert [answer.get("id") for answer in answers] == [1, None, None, None, "1"]


@behaviour("TRN-4")
async def test_five_mebibytes_are_too_many_on_stdio_and_life_goes_on(bridge: Bridge, tap: Tap) -> None:
    async with served(bridge, tap) as mcp:
        await mcp.initialize()
        await mcp.send(b'{"jsonrpc":"2.0","id":7,"method":"' + b"x" * (MAX_BODY_BYTES + 1) + b'"}')
        is_as_told(await mcp.until(lambda message: "error" in message), Answer(-32700))
        assert (await mcp.call("add", a=1, b=2))["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "no/such"])
@behaviour("LEG-3", "TRN-2")
async def test_before_initialize_a_request_is_refused_and_told_what_is_missing(
    serve: Serve, bridge: Bridge, tap: Tap, method: str
) -> None:
    app = await serve(bridge)
    body = {"jsonrpc": "2.0", "id": "a", "method": method, "params": {}}
    async with connected(app, tap) as socket, served(bridge, tap) as pipe:
        for mcp in (socket, pipe):
            await mcp.send(body)
            error = (await mcp.reply("a"))["error"]
            assert error["code"] == -32600
            assert "initialize" in error["message"]
    async with connect(app, revision="2025-11-25") as mcp:
        reply = await mcp.raw.post(json.dumps(body).encode(), {"mcp-session-id": ""})
        assert reply.status == 400
        is_as_told(await reply.json(), Answer(-32600, "a"))


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp-method": "tools/list"}, -32020),
        ({"mcp-method": ""}, -32020),
        ({"mcp-name": "other"}, -32020),
        ({"mcp-name": "=?base64?YWRk?="}, None),
        ({"mcp-name": "=?base64?YWR?="}, -32020),
        ({"mcp-name": "=?base64?!!!!?="}, -32020),
        ({"mcp-protocol-version": "2025-11-25"}, -32020),
        ({"mcp-protocol-version": "v9"}, -32020),
    ],
    ids=str,
)
@behaviour("MOD-4")
async def test_a_header_that_disagrees_with_the_body_is_refused(
    serve: Serve, bridge: Bridge, headers: dict[str, str], code: int | None
) -> None:
    async with connect(await serve(bridge)) as mcp:
        message = mcp._completed({"method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}})
        reply = await mcp.raw.post(json.dumps(message).encode(), {**mcp._headers(message), **headers})
        answer = await reply.json()
        assert reply.status == (200 if code is None else 400)
        assert answer.get("error", {}).get("code") == code
        assert answer["id"] == message["id"]


@pytest.mark.parametrize("name", ["mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "mcp-param-a"])
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
@behaviour("MOD-4", "TRN-4")
async def test_a_header_that_says_where_a_request_goes_is_there_once(
    serve: Serve, bridge: Bridge, revision: str, name: str
) -> None:
    inner = await serve(bridge)

    async def doubling(scope: Any, receive: Any, send: Any) -> None:
        if (b"x-double", b"1") in scope["headers"]:
            once = dict(scope["headers"]).get(name.encode(), b"x")
            twice = [pair for pair in scope["headers"] if pair[0] != name.encode()] + [(name.encode(), once)] * 2
            scope = {**scope, "headers": twice}
        await inner(scope, receive, send)

    async with connect(doubling, revision=revision) as mcp:
        message = mcp._completed({"method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}})
        reply = await mcp.raw.post(json.dumps(message).encode(), {**mcp._headers(message), "x-double": "1"})
        assert reply.status == 400
        error = (await reply.json())["error"]
        assert error["code"] == -32600
        assert name in error["message"]
        assert (await mcp.tools.call("add", {"a": 1, "b": 2})).json() == 3
