"""stdio: both eras on one pair of pipes, what a client may do wrong there, and how it ends."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from bridge import Bridge, Context
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.protocol.lines import LineSplitter
from bridge.stores import MemoryStore, Store
from bridge.transports import connection, stdio
from bridge.transports.pipes import LineReader, LineWriter
from tests.behaviours.pipes import META, SECONDS, PipeClient, hello, is_reply, request, served
from tests.behaviours.works import Work, happens, lives, make
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour

FORM: Any = {"elicitation": {}}
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
MIB = 1024 * 1024


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def bridge(work: Work) -> Bridge:
    return make(work)


@pytest.fixture
async def mcp(bridge: Bridge, tap: Tap) -> AsyncIterator[PipeClient]:
    """A client that is connected and has said nothing yet."""
    async with served(bridge, tap) as client:
        yield client


@behaviour("TRN-2")
async def test_discover_does_not_pin_the_era(mcp: PipeClient) -> None:
    found = (await mcp.ask("server/discover", {"_meta": META}))["result"]
    assert found["supportedVersions"][0] == "2026-07-28"
    result = await mcp.initialize("2025-06-18")
    assert result["protocolVersion"] == "2025-06-18"
    await lives(mcp)


@behaviour("TRN-1", "TRN-2")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_legacy_revision_is_served(mcp: PipeClient, revision: str) -> None:
    assert (await mcp.initialize(revision))["protocolVersion"] == revision
    tools = (await mcp.ask("tools/list"))["result"]["tools"]
    assert {"add", FALLBACK_TOOL_NAME} <= {tool["name"] for tool in tools}
    assert (await mcp.call("add", a=2, b=3))["content"] == [{"type": "text", "text": "5"}]


async def test_a_version_that_requests_cannot_be_made_under_is_refused(mcp: PipeClient) -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    error = (await mcp.ask("tools/list", {"_meta": meta}))["error"]
    assert error["code"] == -32022
    assert "2026-07-28" in error["data"]["supported"]


async def test_before_initialize_there_is_only_ping(mcp: PipeClient) -> None:
    assert (await mcp.ask("ping"))["result"] == {}
    error = (await mcp.ask("tools/list"))["error"]
    assert error["code"] == INVALID_REQUEST
    assert "initialize" in error["message"]
    await mcp.notify("notifications/initialized")
    await mcp.send({"jsonrpc": "2.0", "id": "ask-00000000", "result": {}})
    await mcp.initialize()
    await lives(mcp)


@behaviour("LEG-4")
async def test_a_second_initialize_is_refused_and_changes_nothing(mcp: PipeClient) -> None:
    await mcp.initialize("2025-06-18")
    error = (await mcp.ask("initialize", hello("2025-03-26")))["error"]
    assert error["code"] == INVALID_REQUEST
    await lives(mcp)


async def test_requests_may_follow_initialize_without_a_pause(mcp: PipeClient) -> None:
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await mcp.send(request(0, "initialize", hello()), initialized, request(1, "tools/list"))
    assert "result" in await mcp.reply(0)
    assert "result" in await mcp.reply(1)


@behaviour("LEG-6")
async def test_what_a_session_knows_is_as_on_http(mcp: PipeClient) -> None:
    await mcp.initialize()
    assert (await mcp.ask("ping"))["result"] == {}
    assert (await mcp.ask("logging/setLevel", {"level": "error"}))["result"] == {}
    assert (await mcp.ask("resources/subscribe", {"uri": "notes://today"}))["result"] == {}
    await mcp.notify("notifications/roots/list_changed")
    await mcp.call("flood", kilobytes=1)
    assert mcp.heard == []


async def test_the_session_ends_with_the_connection(work: Work, tap: Tap) -> None:
    store = MemoryStore()
    async with served(make(work, store=store), tap) as mcp:
        await mcp.initialize()
        assert await store.count("session") == 1
    assert await store.count("session") == 0


# Asking


@behaviour("PSH-1", "PSH-3")
@pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
async def test_a_question_goes_out_before_the_reply_and_each_answer_to_its_own(
    work: Work, tap: Tap, store: Store
) -> None:
    async with served(make(work, store=store), tap) as mcp:
        await mcp.initialize(**FORM)
        await mcp.start("a", "ask", who="First?")
        await mcp.start("b", "ask", who="Second?")
        questions = [await mcp.question(), await mcp.question()]
        for question in reversed(questions):
            await mcp.answer(question, {"name": f"for {question['params']['message']}"})
        assert (await mcp.reply("a"))["result"]["content"][0]["text"] == "for First?"
        assert (await mcp.reply("b"))["result"]["content"][0]["text"] == "for Second?"


@behaviour("PSH-4")
async def test_a_client_that_cannot_be_asked_after_all_is_asked_by_chat(mcp: PipeClient) -> None:
    await mcp.initialize(**FORM)
    await mcp.start("a", "ask")
    question = await mcp.question()
    await mcp.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}})
    pending = (await mcp.reply("a"))["result"]["_meta"][PENDING]
    await mcp.notification("notifications/tools/list_changed")
    given = {"elicitId": pending["elicitId"], "action": "accept", "content": {"name": "Ada"}}
    assert (await mcp.call(FALLBACK_TOOL_NAME, **given))["content"][0]["text"] == "Ada"


@behaviour("MOD-1")
async def test_a_modern_client_is_asked_in_rounds(mcp: PipeClient) -> None:
    asked = await mcp.call("ask", META)
    (key,) = asked["inputRequests"]
    params = {
        "name": "ask",
        "arguments": {},
        "_meta": META,
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}},
    }
    assert (await mcp.ask("tools/call", params))["result"]["content"][0]["text"] == "Ada"


@behaviour("CHT-11")
async def test_a_call_can_wait_for_the_chat(work: Work, tap: Tap) -> None:
    async with served(make(work, fallback="wait", wait_seconds=SECONDS), tap) as mcp:
        await mcp.initialize()
        await mcp.start("a", "ask")
        message = await mcp.notification("notifications/message")
        assert (message["level"], message["logger"]) == ("warning", "elicitation")
        given = {"elicitId": message["data"]["elicitId"], "action": "accept", "content": {"name": "Ada"}}
        assert (await mcp.call(FALLBACK_TOOL_NAME, **given))["content"][0]["text"] == "Ada"
        assert (await mcp.reply("a"))["result"]["content"][0]["text"] == "Ada"


@behaviour("PSH-3")
async def test_a_client_that_stops_reading_while_its_form_is_open_can_answer(mcp: PipeClient, work: Work) -> None:
    await mcp.initialize(**FORM)
    await mcp.start("form", "ask")
    question = await mcp.question()
    await mcp.start("flood", "flood", kilobytes=1024)
    await happens(work.begun)
    await mcp.answer(question, {"name": "Ada"})
    await happens(work.answered)
    assert work.said < 512
    assert (await mcp.reply("form"))["result"]["content"][0]["text"] == "Ada"
    await mcp.reply("flood")
    assert work.said == 1024
    assert sum(message.get("method") == "notifications/message" for message in mcp.heard) == 1024


# What belongs to no call


async def test_a_changed_list_is_told(bridge: Bridge, mcp: PipeClient) -> None:
    await mcp.initialize()
    await mcp.ask("ping")
    await bridge.list_changed("tools")
    await mcp.notification("notifications/tools/list_changed")


@behaviour("LEG-6")
async def test_only_subscribed_resources_are_told_of(bridge: Bridge, mcp: PipeClient) -> None:
    await mcp.initialize()
    await mcp.ask("resources/subscribe", {"uri": "notes://today"})
    await bridge.resource_updated("notes://other")
    await bridge.resource_updated("notes://today")
    assert await mcp.notification("notifications/resources/updated") == {"uri": "notes://today"}
    assert mcp.heard == []


@behaviour("PSH-8")
async def test_a_page_that_is_done_is_told(work: Work, tap: Tap) -> None:
    bridge = make(work)
    made: list[str] = []

    @bridge.tool
    async def page(ctx: Context) -> str:
        return (await ctx.elicit_url("Log in", "https://example.com/login")).status

    async with served(bridge, tap) as mcp:
        await mcp.initialize(elicitation={"form": {}, "url": {}})
        await mcp.start("a", "page")
        question = await mcp.question()
        made.append(question["params"]["elicitationId"])
        assert await bridge.complete_url(made[0])
        assert await mcp.notification("notifications/elicitation/complete") == {"elicitationId": made[0]}
        await mcp.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
        await mcp.reply("a")


# Cancellation, ids


@behaviour("MOD-17", "LEG-6")
@pytest.mark.parametrize("meta", [None, META], ids=["legacy", "modern"])
@pytest.mark.parametrize("identity", [0, 7, "7"], ids=repr)
async def test_what_is_cancelled_ends_and_gets_nothing_more(
    mcp: PipeClient, work: Work, meta: Any, identity: Any
) -> None:
    await mcp.initialize()
    await mcp.start(identity, "use", meta)
    await happens(work.begun)
    other = int(identity) if isinstance(identity, str) else str(identity)
    for not_it in (other, None, [identity], {"id": identity}, True, 7.0):
        await mcp.notify("notifications/cancelled", {"requestId": not_it})
    await mcp.ask("ping")
    assert not work.over.is_set()
    await mcp.notify("notifications/cancelled", {"requestId": identity, "reason": "no need"})
    await happens(work.over)
    assert work.trace == ["cancelled"]
    await lives(mcp)
    assert mcp.heard == []


@behaviour("MOD-17")
async def test_a_call_that_waits_for_its_user_can_be_cancelled(mcp: PipeClient, work: Work) -> None:
    await mcp.initialize(**FORM)
    await mcp.start("a", "ask")
    question = await mcp.question()
    await mcp.notify("notifications/cancelled", {"requestId": "a"})
    await mcp.answer(question, {"name": "late"})
    await lives(mcp)
    assert mcp.heard == []
    assert not work.answered.is_set()


@behaviour("MOD-17")
async def test_a_cancelled_writer_leaves_the_wire_whole(mcp: PipeClient, work: Work) -> None:
    await mcp.initialize()
    await mcp.start("a", "echo", text="x" * MIB)
    await mcp.start("b", "flood", kilobytes=4096)
    await happens(work.begun)
    await mcp.notify("notifications/cancelled", {"requestId": "b"})
    await happens(work.over)
    assert work.said < 4096
    await lives(mcp)
    assert not any(is_reply("b")(message) for message in mcp.heard)


@behaviour("LEG-9")
@pytest.mark.parametrize("meta", [None, META], ids=["legacy", "modern"])
async def test_a_second_request_with_an_id_in_flight_is_dropped_and_logged(
    mcp: PipeClient, work: Work, meta: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await mcp.initialize()
    await mcp.start(5, "use", meta)
    await happens(work.begun)
    with caplog.at_level(logging.WARNING, "bridge.connection"):
        await mcp.start(5, "add", meta, a=1, b=1)
        await mcp.start("5", "add", meta, a=1, b=1)
        await mcp.reply("5")
    assert "its id 5 is in use" in caplog.text
    work.go.set()
    assert (await mcp.reply(5))["result"]["content"][0]["text"] == "done"
    await lives(mcp)
    assert mcp.heard == []


async def test_an_id_is_free_again_when_its_request_is_over(mcp: PipeClient) -> None:
    await mcp.initialize()
    for _ in range(3):
        await mcp.start(1, "add", a=1, b=1)
        assert "result" in await mcp.reply(1)


# Many at once


async def test_200_calls_at_once(mcp: PipeClient) -> None:
    await mcp.initialize(**FORM)
    await mcp.send(*(request(n, "tools/call", {"name": "ask", "arguments": {"who": f"{n}?"}}) for n in range(200)))
    for _ in range(200):
        question = await mcp.question()
        await mcp.answer(question, {"name": question["params"]["message"]})
    for n in range(200):
        assert (await mcp.reply(n))["result"]["content"][0]["text"] == f"{n}?"


async def test_quick_requests_may_come_in_any_number(mcp: PipeClient) -> None:
    await mcp.initialize()
    many = connection.MAX_RUNNING * 4
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mcp.send, *(request(n, "ping") for n in range(many)))
        for n in range(many):
            assert "result" in await mcp.reply(n)


async def test_one_request_too_many_is_refused_and_those_under_way_can_be_cancelled(
    mcp: PipeClient, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_RUNNING", 3)
    await mcp.initialize()
    for n in range(3):
        await mcp.start(n, "use")
    error = (await mcp.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}))["error"]
    assert error["code"] == -32603
    assert "are under way" in error["message"]
    await mcp.notify("notifications/cancelled", {"requestId": 0})
    await happens(work.over)
    await lives(mcp)
    work.go.set()


# Batches


@behaviour("LEG-8")
async def test_a_batch_is_served_on_the_one_revision_that_has_them(mcp: PipeClient, work: Work) -> None:
    await mcp.initialize("2025-03-26")
    call = {"name": "add", "arguments": {"a": 2, "b": 3}}
    await mcp.send([request(1, "tools/call", call), request(2, "tools/call", {"name": "use", "arguments": {}})])
    await happens(work.begun)
    await mcp.notify("notifications/cancelled", {"requestId": 2})
    batch: Any = await mcp.next()
    assert [reply["id"] for reply in batch] == [1]
    assert work.trace == ["cancelled"]
    assert (await mcp.ask("ping"))["result"] == {}


@behaviour("LEG-8")
async def test_a_batch_ends_with_the_connection(mcp: PipeClient, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "GRACE_SECONDS", 0.05)
    await mcp.initialize("2025-03-26")
    await mcp.send([request(1, "tools/call", {"name": "use", "arguments": {}})])
    await happens(work.begun)
    mcp.close()
    await happens(mcp.ended)
    assert work.trace == ["cancelled"]


@behaviour("LEG-8")
async def test_a_batch_is_refused_before_initialize_and_executes_nothing(mcp: PipeClient) -> None:
    await mcp.send([request(1, "ping")])
    error = await mcp.next()
    assert error is not None
    assert error["error"]["code"] == INVALID_REQUEST
    assert "id" not in error


# What is no message


def _deep(depth: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


def _with(member: str) -> bytes:
    return b'{"jsonrpc":"2.0",%s}' % member.encode()


NO_JSON = {
    "text": b"hello",
    "truncated": b'{"jsonrpc":"2.0","id":1,"method":"pi',
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "NaN": _with('"id":1,"method":"ping","params":{"a":NaN}'),
    "two in a line": _with('"id":1,"method":"ping"') * 2,
    "depth 10,000": _deep(10_000),
    "depth 65": _deep(64),
    "5 MiB": _with('"id":1,"method":"ping","params":{"a":"%s"}' % ("x" * 5 * MIB)),
    "5 MiB of nothing": b"x" * 5 * MIB,
}
NO_MESSAGE = {
    "id null": _with('"id":null,"method":"ping"'),
    "id 1.5": _with('"id":1.5,"method":"ping"'),
    "id true": _with('"id":true,"method":"ping"'),
    "id array": _with('"id":[1],"method":"ping"'),
    "id object": _with('"id":{"a":1},"method":"ping"'),
    "null": b"null",
    "number": b"1",
    "text": b'"ping"',
    "batch": b"[" + _with('"id":1,"method":"ping"') + b"]",
    "empty batch": b"[]",
    "empty": b"{}",
}
NO_REQUEST = {
    "params array": '"method":"ping","params":[]',
    "params null": '"method":"ping","params":null',
    "method number": '"method":1',
    "no method": '"params":{}',
    "both": '"result":{},"error":{"code":1,"message":""}',
}


@behaviour("TRN-4")
@pytest.mark.parametrize("line", NO_JSON.values(), ids=NO_JSON)
async def test_a_line_that_is_no_json_is_refused_and_the_connection_lives(mcp: PipeClient, line: bytes) -> None:
    await mcp.initialize()
    await mcp.send(line)
    error = await mcp.next()
    assert error is not None
    assert error["error"]["code"] == PARSE_ERROR
    assert "id" not in error
    await lives(mcp)
    assert mcp.heard == []


@pytest.mark.parametrize("line", NO_MESSAGE.values(), ids=NO_MESSAGE)
async def test_json_that_is_no_message_is_refused_and_the_connection_lives(mcp: PipeClient, line: bytes) -> None:
    await mcp.initialize()
    await mcp.send(line)
    error = await mcp.next()
    assert error is not None
    assert error["error"]["code"] == INVALID_REQUEST
    assert "id" not in error
    await lives(mcp)
    assert mcp.heard == []


@pytest.mark.parametrize("identity", [0, 3, "3"], ids=repr)
@pytest.mark.parametrize("rest", NO_REQUEST.values(), ids=NO_REQUEST)
async def test_a_request_that_is_none_is_refused_under_its_id(mcp: PipeClient, rest: str, identity: Any) -> None:
    await mcp.initialize()
    mcp._conversation.heard({"id": identity, "method": "ping"})
    await mcp.send(_with(f'"id":{identity!r},{rest}'.replace("'", '"')))
    assert (await mcp.reply(identity))["error"]["code"] == INVALID_REQUEST
    await lives(mcp)


async def test_blank_lines_and_carriage_returns_are_nothing(mcp: PipeClient) -> None:
    mcp._conversation.heard(request(1, "ping"))
    await mcp.send_raw(b"\n\r\n  \n" + _with('"id":1,"method":"ping"') + b"\r\n")
    await mcp.reply(1)
    assert mcp.heard == []


async def test_a_message_may_come_in_pieces_and_several_in_one(mcp: PipeClient) -> None:
    await mcp.initialize()
    for n in (1, 2, 3):
        mcp._conversation.heard(request(n, "ping"))
    lines = b"".join(_with(f'"id":{n},"method":"ping"') + b"\n" for n in (1, 2, 3))
    for at in range(0, len(lines), 7):
        await mcp.send_raw(lines[at : at + 7])
    for n in (1, 2, 3):
        await mcp.reply(n)


async def test_a_message_of_just_4_mib_is_served(mcp: PipeClient) -> None:
    await mcp.initialize()
    frame = len(_with('"id":1,"method":"ping","params":{"a":""}'))
    mcp._conversation.heard(request(1, "ping"))
    await mcp.send(_with('"id":1,"method":"ping","params":{"a":"%s"}' % ("x" * (4 * MIB - frame))))
    assert "result" in await mcp.reply(1)


# The end


@behaviour("TRN-6")
async def test_at_the_end_of_stdin_what_runs_may_finish(mcp: PipeClient, work: Work) -> None:
    await mcp.initialize()
    await mcp.start("a", "use")
    await happens(work.begun)
    mcp.close()
    work.go.set()
    assert (await mcp.reply("a"))["result"]["content"][0]["text"] == "done"
    await happens(mcp.ended)


@behaviour("TRN-6")
@pytest.mark.parametrize("tool", ["use", "ask"])
async def test_at_the_end_of_stdin_what_goes_on_is_cancelled_and_says_so(
    mcp: PipeClient, work: Work, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.setattr(connection, "GRACE_SECONDS", 0.05)
    await mcp.initialize(**FORM)
    await mcp.start("a", tool)
    await (happens(work.begun) if tool == "use" else mcp.question())
    mcp.close()
    assert "shutting down" in (await mcp.reply("a"))["error"]["message"]
    await happens(mcp.ended)
    assert work.trace == (["cancelled"] if tool == "use" else [])


async def test_a_last_line_needs_no_end(mcp: PipeClient) -> None:
    await mcp.initialize()
    mcp._conversation.heard(request(1, "ping"))
    await mcp.send_raw(_with('"id":1,"method":"ping"'))
    mcp.close()
    assert "result" in await mcp.reply(1)


@behaviour("TRN-6")
async def test_a_client_that_never_reads_does_not_keep_the_server(
    mcp: PipeClient, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(stdio, "_LAST_SECONDS", 0.05)
    await mcp.initialize()
    await mcp.start("a", "flood", kilobytes=4096)
    await happens(work.begun)
    mcp.close()
    await happens(mcp.ended)


@behaviour("TRN-6")
async def test_a_client_that_has_gone_ends_the_connection(mcp: PipeClient, work: Work) -> None:
    await mcp.initialize()
    await mcp.start("a", "use")
    await happens(work.begun)
    mcp.leave()
    await mcp.send(request("b", "ping"))
    await happens(mcp.ended)
    assert work.trace == ["cancelled"]


async def test_a_failing_tool_ends_nothing(work: Work, tap: Tap, caplog: pytest.LogCaptureFixture) -> None:
    bridge = make(work)

    @bridge.tool
    async def fail() -> str:
        raise RuntimeError("secret")

    async with served(bridge, tap) as mcp:
        await mcp.initialize()
        result = await mcp.call("fail")
        assert result["isError"]
        assert "secret" not in str(result)
        await lives(mcp)


# Lines


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_are_the_same_in_whatever_pieces_they_come(size: int) -> None:
    text = b"one\n\n two\r\n" + b"x" * 20 + b"\nthree\n" + b"y" * 9 + b"\nlast"
    splitter = LineSplitter(10)
    lines = [line for at in range(0, len(text), size) for line in splitter.feed(text[at : at + size])]
    lines += splitter.end()
    assert [line if len(line) <= 10 else b"too long" for line in lines] == [
        b"one",
        b" two\r",
        b"too long",
        b"three",
        b"y" * 9,
        b"last",
    ]
    assert all(len(line) <= 10 + size for line in lines if line[:1] == b"x") or size == 100


def test_of_a_line_that_is_too_long_nothing_is_kept() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"x" * 11) == [b"x" * 11]
    assert splitter.feed(b"x" * 1000) == []
    assert splitter.feed(b"xx\nnext\n") == [b"next"]
    assert splitter.end() == []


async def test_a_file_can_be_read_and_written(tmp_path: Any) -> None:
    path = tmp_path / "lines"
    target = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        writer = LineWriter(target)
        await writer.write(b"one")
        await writer.write(b"x" * 10_000)
    finally:
        os.close(target)
    source = os.open(path, os.O_RDONLY)
    reader = LineReader(source, MIB)
    lines: list[bytes] = []
    try:
        while (more := await reader.read()) is not None:
            lines += more
    finally:
        reader.close()
        os.close(source)
    assert lines == [b"one", b"x" * 10_000]


async def test_lines_of_several_writers_do_not_mix_and_a_cancelled_one_is_completed() -> None:
    incoming, outgoing = os.pipe()
    reader, writer = LineReader(incoming, MIB), LineWriter(outgoing)
    lines: list[bytes] = []

    async def read() -> None:
        while (more := await reader.read()) is not None:
            lines.extend(more)

    try:
        with suppress(TimeoutError), anyio.fail_after(0):
            await writer.write(b"a" * 200_000)
        assert os.get_blocking(outgoing)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            async with anyio.create_task_group() as writers:
                for letter in (b"b", b"c", b"d"):
                    writers.start_soon(writer.write, letter * 200_000)
            os.close(outgoing)
    finally:
        reader.close()
        os.close(incoming)
    assert sorted({line[:1] for line in lines}) == [b"a", b"b", b"c", b"d"]
    assert [len(line) for line in lines] == [200_000] * 4
    assert all(len(set(line)) == 1 for line in lines)
