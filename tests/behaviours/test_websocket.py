"""WebSocket: both eras on one connection, what a client may do wrong there, and how it ends."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from bridge import Bridge
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.protocol.clients import Principal
from bridge.server import Denied
from bridge.transports import sending
from tests.behaviours.sockets import Refused, SocketClient, connected
from tests.behaviours.talking import META, hello, is_reply, request, said
from tests.behaviours.works import Work, happens, lives, make
from tests.conftest import Serve
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour

FORM: Any = {"elicitation": {}}
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


@pytest.fixture
async def mcp(app: Any, tap: Tap) -> AsyncIterator[SocketClient]:
    """A client that is connected and has said nothing yet."""
    async with connected(app, tap) as client:
        yield client


async def is_closed(mcp: SocketClient, code: int) -> None:
    """The server has closed, with that code."""
    await mcp.end()
    await happens(mcp.ended)
    assert mcp.closed is not None
    assert mcp.closed[0] == code


# Both eras


@behaviour("TRN-1", "TRN-2")
async def test_both_eras_are_served_on_one_connection(mcp: SocketClient) -> None:
    assert mcp.subprotocol == "mcp"
    discovered = (await mcp.ask("server/discover", {"_meta": META}))["result"]
    assert discovered["supportedVersions"][0] == "2026-07-28"
    assert (await mcp.initialize("2025-06-18"))["protocolVersion"] == "2025-06-18"
    await lives(mcp)


@behaviour("TRN-1")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_legacy_revision_is_served(mcp: SocketClient, revision: str) -> None:
    assert (await mcp.initialize(revision))["protocolVersion"] == revision
    assert (await mcp.call("add", a=2, b=3))["content"] == [{"type": "text", "text": "5"}]


@behaviour("PSH-1", "PSH-3")
async def test_each_of_several_questions_gets_its_own_answer(mcp: SocketClient) -> None:
    await mcp.initialize(**FORM)
    await mcp.start("a", "ask", who="A?")
    await mcp.start("b", "ask", who="B?")
    asked = {question["params"]["message"]: question for question in [await mcp.question(), await mcp.question()]}
    await mcp.answer(asked["B?"], {"name": "Bo"})
    await mcp.send({"jsonrpc": "2.0", "id": asked["A?"]["id"], "result": {"action": "decline"}})
    assert said(await mcp.reply("a")) == "decline"
    assert said(await mcp.reply("b")) == "Bo"


@behaviour("CHT-3")
async def test_a_client_without_forms_is_asked_in_the_chat(mcp: SocketClient) -> None:
    await mcp.initialize()
    pending = (await mcp.call("ask"))["_meta"][PENDING]
    answer = {"elicitId": pending["elicitId"], "action": "accept", "content": {"name": "Ada"}}
    assert said(await mcp.ask("tools/call", {"name": FALLBACK_TOOL_NAME, "arguments": answer})) == "Ada"


async def test_a_modern_client_is_asked_in_rounds(mcp: SocketClient) -> None:
    first = await mcp.call("ask", META)
    ((key, asked),) = first["inputRequests"].items()
    assert asked["params"]["message"] == "Who?"
    answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
    params = {"name": "ask", "arguments": {}, "inputResponses": answers, "requestState": first["requestState"]}
    assert said(await mcp.ask("tools/call", {**params, "_meta": META})) == "Ada"


async def test_progress_and_logs_come_before_the_result(mcp: SocketClient) -> None:
    await mcp.initialize()
    await mcp.send(request("a", "tools/call", {"name": "flood", "arguments": {"kilobytes": 3}}))
    await mcp.reply("a")
    assert [message["method"] for message in mcp.heard] == ["notifications/message"] * 3


async def test_two_clients_never_cross(app: Any, tap: Tap) -> None:
    async with connected(app, tap) as one, connected(app, tap) as other:
        await one.initialize(**FORM)
        await other.initialize(**FORM)
        await one.start(1, "ask", who="one?")
        await other.start(1, "ask", who="other?")
        question, foreign = await one.question(), await other.question()
        assert (question["params"]["message"], foreign["params"]["message"]) == ("one?", "other?")
        await one.answer(foreign, {"name": "stolen"})
        await other.answer(foreign, {"name": "Bo"})
        assert said(await other.reply(1)) == "Bo"
        await one.answer(question, {"name": "Ada"})
        assert said(await one.reply(1)) == "Ada"
        assert one.heard == other.heard == []


# Cancellation, ids, batches


@behaviour("MOD-17", "LEG-6")
@pytest.mark.parametrize("meta", [None, META], ids=["legacy", "modern"])
async def test_what_is_cancelled_ends_and_gets_nothing_more(mcp: SocketClient, work: Work, meta: Any) -> None:
    await mcp.initialize()
    await mcp.start(0, "use", meta)
    await happens(work.begun)
    await mcp.notify("notifications/cancelled", {"requestId": 0})
    await happens(work.over)
    assert work.trace == ["cancelled"]
    await lives(mcp)
    assert mcp.heard == []


@behaviour("LEG-4")
async def test_a_second_initialize_is_refused_and_changes_nothing(mcp: SocketClient) -> None:
    await mcp.initialize("2025-06-18")
    assert (await mcp.ask("initialize", hello("2024-11-05")))["error"]["code"] == INVALID_REQUEST
    await lives(mcp)


@behaviour("LEG-9")
async def test_a_second_request_with_an_id_in_flight_is_dropped(mcp: SocketClient, work: Work) -> None:
    await mcp.initialize()
    await mcp.start("a", "use")
    await happens(work.begun)
    await mcp.start("a", "echo", text="no")
    await lives(mcp)
    work.go.set()
    assert said(await mcp.reply("a")) == "done"
    assert mcp.heard == []


@behaviour("LEG-8")
async def test_a_batch_is_served_on_the_one_revision_that_has_them(mcp: SocketClient) -> None:
    await mcp.initialize("2025-03-26")
    await mcp.send([request(1, "ping"), request(2, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})])
    replies: Any = await mcp.next()
    assert [reply["id"] for reply in replies] == [1, 2]


@behaviour("LEG-8")
async def test_a_batch_is_refused_on_another_revision(mcp: SocketClient) -> None:
    await mcp.initialize()
    await mcp.send([request(1, "ping")])
    refused = await mcp.next()
    assert refused is not None
    assert refused["error"]["code"] == INVALID_REQUEST


# What is wrong


@behaviour("TRN-4")
@pytest.mark.parametrize("text", [b"", b"{", b'{"a": NaN}', b"[" * 65 + b"]" * 65], ids=["empty", "cut", "nan", "deep"])
async def test_what_is_no_json_is_refused_and_the_connection_lives(mcp: SocketClient, text: bytes) -> None:
    await mcp.initialize()
    await mcp.send(text)
    refused = await mcp.next()
    assert refused is not None
    assert refused["error"]["code"] == PARSE_ERROR
    await lives(mcp)


@behaviour("TRN-4")
async def test_a_message_of_more_than_4_mib_closes_the_connection(mcp: SocketClient) -> None:
    await mcp.send(b'"%s"' % (b"x" * 4 * 1024 * 1024))
    await is_closed(mcp, 1009)


async def test_a_binary_frame_closes_the_connection(mcp: SocketClient) -> None:
    await mcp.send_binary(json.dumps(request(1, "ping")).encode())
    await is_closed(mcp, 1003)


@behaviour("TRN-3")
@pytest.mark.parametrize(
    ("headers", "status"),
    [({b"host": b"evil.example"}, 421), ({b"origin": b"https://evil.example"}, 403)],
    ids=["host", "origin"],
)
async def test_a_foreign_host_or_origin_is_refused_before_the_handshake(
    app: Any, tap: Tap, headers: dict[bytes, bytes], status: int
) -> None:
    with pytest.raises(Refused, match=r"evil\.example") as refused:
        async with connected(app, tap, headers=headers):
            pass
    assert refused.value.status == status


async def test_a_server_that_can_only_close_refuses_so(app: Any, tap: Tap) -> None:
    with pytest.raises(Refused, match=r"evil\.example") as refused:
        async with connected(app, tap, headers={b"host": b"evil.example"}, can_refuse=False):
            pass
    assert refused.value.status == 403


@behaviour("TRN-1")
async def test_other_subprotocols_are_refused_and_none_is_good(app: Any, tap: Tap) -> None:
    async with connected(app, tap, subprotocols=("soap", "mcp")) as mcp:
        assert mcp.subprotocol == "mcp"
    async with connected(app, tap, subprotocols=()) as mcp:
        assert mcp.subprotocol is None
    with pytest.raises(Refused) as refused:
        async with connected(app, tap, subprotocols=("soap",)):
            pass
    assert refused.value.status == 400


@behaviour("AUT-1")
async def test_who_is_not_let_in_is_refused_and_who_is_has_sessions_of_their_own(
    work: Work, serve: Serve, tap: Tap
) -> None:
    def authenticate(scope: Any) -> Principal | Denied:
        token = dict(scope["headers"]).get(b"authorization")
        return Denied() if token is None else Principal("test", token.decode())

    app = await serve(make(work, authenticate=authenticate))
    with pytest.raises(Refused) as refused:
        async with connected(app, tap):
            pass
    assert refused.value.status == 401
    assert refused.value.headers[b"www-authenticate"] == b"Bearer"
    async with connected(app, tap, headers={b"authorization": b"ada"}) as mcp:
        await mcp.initialize()
        await lives(mcp)


@behaviour("TRN-1")
async def test_a_transport_that_is_switched_off_is_not_there(work: Work, serve: Serve, tap: Tap) -> None:
    app = await serve(make(work, transports=("http",)))
    with pytest.raises(Refused) as refused:
        async with connected(app, tap):
            pass
    assert refused.value.status == 404


@behaviour("TRN-1")
@pytest.mark.parametrize(("path", "root"), [("/mcp", ""), ("/api/mcp", "/api"), ("/", "")])
async def test_it_stands_beside_the_endpoint(bridge: Bridge, tap: Tap, path: str, root: str) -> None:
    app = bridge.asgi(path=path)
    async with app.lifespan(), connected(app, tap, path=f"{root}/ws") as mcp:
        assert (await mcp.initialize())["protocolVersion"] == "2025-11-25"


# Clients that do not read, and how it ends


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "STALLED_SECONDS", 0.05)
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.01)


@behaviour("PSH-3")
@pytest.mark.usefixtures("impatient")
async def test_a_client_that_stops_reading_while_its_form_is_open_can_answer(mcp: SocketClient, work: Work) -> None:
    await mcp.initialize(**FORM)
    await mcp.start("a", "ask")
    question = await mcp.question()
    await mcp.start("b", "flood", kilobytes=64)
    await happens(work.begun)
    # More than once it is looked whether it reads: each look is a turn of the node's own clock.
    with anyio.move_on_after(0.2):
        await mcp.ended.wait()
    assert not mcp.ended.is_set()
    assert work.said < 64
    await mcp.answer(question, {"name": "Ada"})
    assert said(await mcp.reply("a")) == "Ada"
    await mcp.until(is_reply("b"))


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_never_reads_again_is_closed(app: Any, mcp: SocketClient, work: Work, tap: Tap) -> None:
    await mcp.initialize()
    await mcp.start("a", "flood", kilobytes=1024)
    await happens(work.over)
    assert work.said < 1024
    await is_closed(mcp, 1008)
    async with connected(app, tap) as other:
        await other.initialize()
        await lives(other)


@behaviour("MOD-10")
async def test_a_client_that_leaves_cancels_its_calls(mcp: SocketClient, work: Work) -> None:
    await mcp.initialize()
    await mcp.start("a", "use")
    await happens(work.begun)
    mcp.leave()
    await happens(work.over)
    await happens(mcp.ended)
    assert work.trace == ["cancelled"]


@behaviour("TRN-6")
async def test_at_shutdown_what_runs_may_finish_and_then_the_connection_is_closed(
    bridge: Bridge, work: Work, tap: Tap
) -> None:
    app = bridge.asgi()
    async with app.lifespan(), connected(app, tap) as mcp, anyio.create_task_group() as tasks:
        await mcp.initialize()
        await mcp.start("a", "use")
        await happens(work.begun)
        tasks.start_soon(app.drain)
        await app.node.closing.wait()
        with pytest.raises(Refused) as refused:
            async with connected(app, tap):
                pass
        assert refused.value.status == 503
        work.go.set()
        assert said(await mcp.reply("a")) == "done"
        await is_closed(mcp, 1001)


@behaviour("TRN-6")
async def test_at_shutdown_what_goes_on_is_cancelled_and_says_so(work: Work, tap: Tap) -> None:
    app = make(work, shutdown_seconds=0.01).asgi()
    async with app.lifespan(), connected(app, tap) as mcp, anyio.create_task_group() as tasks:
        await mcp.initialize()
        await mcp.start("a", "use")
        await happens(work.begun)
        tasks.start_soon(app.drain)
        assert "shutting down" in (await mcp.reply("a"))["error"]["message"]
        await is_closed(mcp, 1001)
    assert work.trace == ["cancelled"]
