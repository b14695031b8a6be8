"""Asking over a session: on the stream of the call that asks, each answer to its own question."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge import Bridge, Context
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.routes.push import PushLimits
from bridge.session import SessionLimits
from bridge.stores import MemoryStore, Store
from bridge.testing import Client, HttpReply, accept, cancel, connect, decline
from tests.conftest import Serve

behaviour = pytest.mark.behaviour
shared = pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)

PUSH = ("2025-06-18", "2025-11-25")
SECONDS = 10
YES = accept({"confirm": True})
WAITING = "waiting for user input"


class Name(BaseModel):
    name: str


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Stream:
    """A reply, message by message."""

    def __init__(self, reply: HttpReply) -> None:
        self.reply = reply
        self._messages = reply.messages()

    async def next(self) -> Any:
        with anyio.fail_after(SECONDS):
            return await anext(self._messages)

    async def rest(self) -> list[Any]:
        with anyio.fail_after(SECONDS):
            return [message async for message in self._messages]


async def post_call(
    mcp: Client, tool: str, arguments: Any = None, *, identity: Any = 900, meta: Any = None, headers: Any = None
) -> Stream:
    """Call a tool; return its reply once that has begun."""
    params = {"name": tool, "arguments": arguments or {}}
    if meta is not None:
        params["_meta"] = meta
    message = {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}
    with anyio.fail_after(SECONDS):
        return Stream(await mcp.raw.post(message, headers))


async def respond(mcp: Client, identity: Any, result: Any = None, *, error: Any = None, headers: Any = None) -> int:
    """Answer a request of the server's; return the HTTP status."""
    body = {"result": result} if error is None else {"error": error}
    with anyio.fail_after(SECONDS):
        reply = await mcp.raw.post({"jsonrpc": "2.0", "id": identity, **body}, headers)
        await reply.closed()
    assert reply.raw == b""
    return reply.status


@asynccontextmanager
async def uninitialized(app: Any) -> AsyncIterator[Client]:
    """A client that has sent `initialize` and nothing else."""
    async with connect(app, revision="2025-06-18") as mcp:
        params = {"protocolVersion": "2025-06-18", "capabilities": mcp.capabilities, "clientInfo": mcp.info}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        reply = await mcp.raw.post(message, {"mcp-session-id": ""})
        assert (await reply.json())["result"]["protocolVersion"] == "2025-06-18"
        mcp.session_id = reply.headers["mcp-session-id"]
        yield mcp


def asking(store: Store | None = None, **options: Any) -> Bridge:
    """A bridge whose tool `ask` asks `questions` names one after the other and returns them."""
    bridge = Bridge("push", elicitation=True, store=store, **options)

    @bridge.tool
    async def ask(ctx: Context, who: str = "x", questions: int = 1) -> str:
        answers = [await ctx.elicit(f"{who} {number}?", Name) for number in range(questions)]
        return ",".join(answer.content.name if answer.content else answer.status for answer in answers)

    return bridge


def text(message: Any) -> str:
    return "\n".join(block["text"] for block in message["result"]["content"])


async def ended_session(mcp: Client, stream: Stream) -> list[Any]:
    """End the session; return what was left on its standalone stream."""
    assert (await mcp.raw.delete()).status == 204
    return await stream.rest()


# PSH-1


@behaviour("PSH-1")
@pytest.mark.parametrize("revision", PUSH)
async def test_a_question_goes_on_the_stream_of_its_call_and_never_on_the_standalone_one(
    serve: Serve, store: Store, revision: str
) -> None:
    async with connect(await serve(asking(store)), revision=revision) as mcp:
        standalone = Stream(await mcp.raw.get())
        call = await post_call(mcp, "ask", identity=7)
        assert call.reply.status == 200
        assert call.reply.headers["content-type"] == "text/event-stream"
        question = await call.next()
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "x 0?"
        assert question["params"]["requestedSchema"]["required"] == ["name"]
        assert ("mode" in question["params"]) == (revision == "2025-11-25")
        assert await respond(mcp, question["id"], accept({"name": "Ada"})) == 202
        result = await call.next()
        assert (result["id"], text(result)) == (7, "Ada")
        assert await call.rest() == []
        assert await ended_session(mcp, standalone) == []


@behaviour("PSH-1", "LEG-13")
@pytest.mark.parametrize("unknown", ["ask-AAAAAAAAAAAAAAAAAAAAAAAA", "x", "", 1, 0, -5])
async def test_an_answer_to_an_unknown_id_is_accepted_and_dropped(serve: Serve, store: Store, unknown: Any) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        assert await respond(mcp, unknown, accept({"name": "nobody"})) == 202
        call = await post_call(mcp, "ask")
        question = await call.next()
        assert await respond(mcp, unknown, accept({"name": "nobody"})) == 202
        assert await respond(mcp, unknown, error={"code": -32601, "message": "no"}) == 202
        assert await respond(mcp, question["id"], accept({"name": "Ada"})) == 202
        assert text(await call.next()) == "Ada"
        assert await respond(mcp, unknown, accept({"name": "nobody"})) == 202


@behaviour("PSH-1", "PSH-3")
async def test_ids_of_calls_keep_their_type_while_they_ask(serve: Serve) -> None:
    async with connect(await serve(asking()), revision="2025-06-18") as mcp:
        identities = [0, "0", 1, "1", "", 2**53]
        calls = [await post_call(mcp, "ask", {"who": repr(one)}, identity=one) for one in identities]
        questions = [await call.next() for call in calls]
        assert len({question["id"] for question in questions}) == len(calls)
        for question in reversed(questions):
            await respond(mcp, question["id"], accept({"name": question["params"]["message"]}))
        for identity, call in zip(identities, calls, strict=True):
            result = await call.next()
            assert result["id"] == identity
            assert type(result["id"]) is type(identity)
            assert text(result) == f"{identity!r} 0?"


@behaviour("PSH-1")
async def test_the_answer_of_another_session_reaches_nobody(serve: Serve, store: Store) -> None:
    app = await serve(asking(store))
    async with connect(app, revision="2025-06-18") as mcp, connect(app, revision="2025-06-18") as other:
        call = await post_call(mcp, "ask")
        question = await call.next()
        assert await respond(other, question["id"], accept({"name": "Mallory"})) == 202
        assert await respond(mcp, question["id"], accept({"name": "Ada"})) == 202
        assert text(await call.next()) == "Ada"


@behaviour("PSH-1")
@shared
async def test_an_answer_is_taken_at_another_node(serve: Serve, store: Store) -> None:
    bridge = asking(store)
    here, there = await serve(bridge), await serve(bridge)
    async with connect(here, revision="2025-06-18") as mcp, connect(there, revision="2025-06-18") as other:
        other.session_id = mcp.session_id
        call = await post_call(mcp, "ask", {"questions": 3})
        for number in range(3):
            question = await call.next()
            assert question["params"]["message"] == f"x {number}?"
            assert await respond(other, question["id"], accept({"name": f"n{number}"})) == 202
        assert text(await call.next()) == "n0,n1,n2"


# PSH-2


@behaviour("PSH-2")
async def test_nothing_is_asked_before_the_client_is_initialized(serve: Serve) -> None:
    bridge = Bridge("push", elicitation=True)
    running, replies = anyio.Event(), []

    @bridge.tool
    async def ask(ctx: Context) -> str:
        running.set()
        return (await ctx.elicit("Who?", Name)).status

    async with uninitialized(await serve(bridge)) as mcp, anyio.create_task_group() as tasks:

        async def call() -> None:
            stream = await post_call(mcp, "ask")
            question = await stream.next()
            replies.append(question["method"])
            await respond(mcp, question["id"], decline())
            replies.append(text(await stream.next()))

        tasks.start_soon(call)
        with anyio.fail_after(SECONDS):
            await running.wait()
        await anyio.wait_all_tasks_blocked()
        assert replies == []
        await mcp.notify("notifications/initialized")
    assert replies == ["elicitation/create", "decline"]


@behaviour("PSH-2")
@shared
async def test_another_node_may_hear_that_the_client_is_initialized(serve: Serve, store: Store) -> None:
    bridge = asking(store)
    here, there = await serve(bridge), await serve(bridge)
    async with (
        uninitialized(here) as mcp,
        connect(there, revision="2025-06-18") as other,
        anyio.create_task_group() as tasks,
    ):
        other.session_id = mcp.session_id

        async def call() -> None:
            stream = await post_call(mcp, "ask")
            question = await stream.next()
            assert question["method"] == "elicitation/create"
            await respond(mcp, question["id"], accept({"name": "Ada"}))
            assert text(await stream.next()) == "Ada"

        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        await other.notify("notifications/initialized")


@behaviour("PSH-2")
async def test_a_client_that_does_not_say_it_is_initialized_is_asked_by_chat(serve: Serve) -> None:
    bridge = asking(push=PushLimits(initialized_seconds=0.05))
    async with uninitialized(await serve(bridge)) as mcp:
        call = await post_call(mcp, "ask")
        result = await call.next()
        assert "isError" not in result["result"]
        assert result["result"]["_meta"][PENDING]["message"] == "x 0?"
        assert await call.rest() == []


@behaviour("PSH-2")
async def test_a_client_asked_by_chat_before_it_is_initialized_can_answer(serve: Serve) -> None:
    bridge = asking(push=PushLimits(initialized_seconds=0.05))
    async with uninitialized(await serve(bridge)) as mcp:
        result = await (await post_call(mcp, "ask")).next()
        pending = result["result"]["_meta"][PENDING]
        arguments = {"elicitId": pending["elicitId"], **accept({"name": "Ada"})}
        answered = await (await post_call(mcp, FALLBACK_TOOL_NAME, arguments)).next()
        assert "error" not in answered, answered
        assert text(answered) == "Ada"


# PSH-3


@behaviour("PSH-3")
async def test_calls_that_ask_at_once_each_get_their_own_answers_in_any_order(serve: Serve, store: Store) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        names = [f"call-{number}" for number in range(5)]
        calls = {name: await post_call(mcp, "ask", {"who": name, "questions": 2}, identity=name) for name in names}
        for number in range(2):
            questions = {name: await call.next() for name, call in calls.items()}
            for name in reversed(names):
                assert questions[name]["params"]["message"] == f"{name} {number}?"
                await respond(mcp, questions[name]["id"], accept({"name": f"{name}-{number}"}))
        for name, call in calls.items():
            result = await call.next()
            assert result["id"] == name
            assert text(result) == f"{name}-0,{name}-1"
            assert await call.rest() == []


@behaviour("PSH-3")
async def test_questions_that_one_call_asks_at_once_each_get_their_own_answer(serve: Serve) -> None:
    bridge = Bridge("push", elicitation=True)

    @bridge.tool
    async def ask(ctx: Context) -> str:
        got: dict[str, str] = {}

        async def one(letter: str) -> None:
            answer = await ctx.elicit(f"{letter}?", Name)
            got[letter] = answer.content.name if answer.content else answer.status

        async with anyio.create_task_group() as tasks:
            for letter in "abc":
                tasks.start_soon(one, letter)
        return " ".join(f"{letter}={got[letter]}" for letter in "abc")

    async with connect(await serve(bridge), revision="2025-11-25") as mcp:
        mcp.on_elicitation(lambda asked: decline() if asked.message == "b?" else accept({"name": asked.message}))
        assert (await mcp.tools.call("ask")).text() == "a=a? b=decline c=c?"
        assert sorted(asked.message for asked in mcp.asked) == ["a?", "b?", "c?"]


@behaviour("PSH-3")
async def test_a_client_that_does_not_read_one_call_is_served_on_the_others(serve: Serve) -> None:
    app, stuck, go = await serve(asking()), anyio.Event(), anyio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        names = dict(scope["headers"])

        async def held(event: Any) -> None:
            if b"x-slow" in names and event["type"] == "http.response.body":
                stuck.set()
                await go.wait()
            await send(event)

        await app(scope, receive, held)

    async with connect(slow, revision="2025-06-18") as mcp:
        first = await post_call(mcp, "ask", {"who": "slow"}, identity=1, headers={"x-slow": "1"})
        with anyio.fail_after(SECONDS):
            await stuck.wait()
        second = await post_call(mcp, "ask", {"who": "quick"}, identity=2)
        await respond(mcp, (await second.next())["id"], accept({"name": "Ada"}))
        assert text(await second.next()) == "Ada"
        go.set()
        await respond(mcp, (await first.next())["id"], accept({"name": "Bob"}))
        assert text(await first.next()) == "Bob"


# PSH-4


@behaviour("PSH-4", "LEG-7")
@pytest.mark.parametrize("code", [-32601, -32600])
async def test_a_client_that_cannot_be_asked_goes_on_by_chat_for_good(serve: Serve, store: Store, code: int) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        assert FALLBACK_TOOL_NAME not in [tool["name"] for tool in await mcp.tools.list()]
        standalone = Stream(await mcp.raw.get())
        call = await post_call(mcp, "ask", {"questions": 2})
        first = await call.next()
        await respond(mcp, first["id"], accept({"name": "Ada"}))
        second = await call.next()
        assert await respond(mcp, second["id"], error={"code": code, "message": "no forms"}) == 202
        result = await call.next()
        pending = result["result"]["_meta"][PENDING]
        assert pending["message"] == "x 1?"
        assert pending["elicitId"] in text(result)
        assert (await standalone.next())["method"] == "notifications/tools/list_changed"
        assert FALLBACK_TOOL_NAME in [tool["name"] for tool in await mcp.tools.list()]
        arguments = {"elicitId": pending["elicitId"], **accept({"name": "Bob"})}
        assert text(await (await post_call(mcp, FALLBACK_TOOL_NAME, arguments)).next()) == "Ada,Bob"
        again = await (await post_call(mcp, "ask", {"who": "again"})).next()
        assert again["result"]["_meta"][PENDING]["message"] == "again 0?", "remembered: no form was tried"
        assert await ended_session(mcp, standalone) == [], "told once"


@behaviour("PSH-4")
async def test_a_question_that_cannot_be_shown_goes_by_chat_and_the_next_one_as_a_form(serve: Serve) -> None:
    async with connect(await serve(asking()), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        question = await call.next()
        assert await respond(mcp, question["id"], error={"code": -32602, "message": "cannot show it"}) == 202
        pending = (await call.next())["result"]["_meta"][PENDING]
        arguments = {"elicitId": pending["elicitId"], **accept({"name": "Ada"})}
        assert text(await (await post_call(mcp, FALLBACK_TOOL_NAME, arguments)).next()) == "Ada"
        again = await post_call(mcp, "ask", {"who": "again"})
        question = await again.next()
        assert question["method"] == "elicitation/create"
        await respond(mcp, question["id"], accept({"name": "Bob"}))
        assert text(await again.next()) == "Bob"


@behaviour("PSH-4")
@pytest.mark.parametrize("code", [-32603, -32000, -1, 0, 1, 32601, -32700])
async def test_any_other_error_in_place_of_an_answer_is_cancel(serve: Serve, code: int) -> None:
    async with connect(await serve(asking()), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        question = await call.next()
        assert await respond(mcp, question["id"], error={"code": code, "message": "x", "data": {"a": [1]}}) == 202
        assert text(await call.next()) == "cancel"
        assert FALLBACK_TOOL_NAME not in [tool["name"] for tool in await mcp.tools.list()]


@behaviour("PSH-4")
@pytest.mark.parametrize("error", [{}, {"code": "-32601"}, {"code": None, "message": 3}, {"code": [1]}])
async def test_an_error_that_is_none_is_cancel(serve: Serve, error: Any) -> None:
    async with connect(await serve(asking()), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        question = await call.next()
        assert await respond(mcp, question["id"], error=error) == 202
        assert text(await call.next()) == "cancel"


@behaviour("PSH-4", "ANS-2")
@pytest.mark.parametrize("result", [{}, {"action": "yes"}, {"action": "accept"}, accept({"name": 3}), accept({})])
async def test_an_answer_that_does_not_fit_ends_the_call_and_not_the_session(serve: Serve, result: Any) -> None:
    async with connect(await serve(asking()), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        question = await call.next()
        assert await respond(mcp, question["id"], result) == 202
        ended = await call.next()
        assert ended["result"]["isError"] is True
        assert "does not match the requested schema" in text(ended)
        mcp.on_elicitation(lambda asked: cancel())
        assert (await mcp.tools.call("ask")).text() == "cancel"


# PSH-5


@behaviour("PSH-5")
@pytest.mark.parametrize(
    ("value", "media_type"),
    [
        ("*/*", "text/event-stream"),
        ("", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("text/*", "text/event-stream"),
        ("Application/JSON, Text/Event-Stream", "text/event-stream"),
        ("application/json, */*;q=0.1", "text/event-stream"),
    ],
)
async def test_a_client_that_takes_a_stream_is_asked_on_it(serve: Serve, value: str, media_type: str) -> None:
    async with connect(await serve(asking()), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask", headers={"accept": value})
        assert call.reply.headers["content-type"] == media_type
        question = await call.next()
        assert await respond(mcp, question["id"], accept({"name": "Ada"}), headers={"accept": value}) == 202
        assert text(await call.next()) == "Ada"


@behaviour("PSH-5")
async def test_a_client_that_takes_events_only_gets_every_result_as_one(serve: Serve) -> None:
    async with connect(await serve(asking()), revision="2025-06-18") as mcp:
        for method, answer in (("ping", "result"), ("no/such", "error")):
            reply = await mcp.raw.post(
                {"jsonrpc": "2.0", "id": method, "method": method}, {"accept": "text/event-stream"}
            )
            assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
            messages = await Stream(reply).rest()
            assert [message["id"] for message in messages] == [method]
            assert answer in messages[0]


@behaviour("PSH-5")
@pytest.mark.parametrize("value", ["application/json", "application/*"])
async def test_a_client_that_takes_no_stream_is_asked_by_chat_at_once(serve: Serve, value: str) -> None:
    async with connect(await serve(asking()), revision="2025-06-18", headers={"accept": value}) as mcp:
        call = await post_call(mcp, "ask")
        assert call.reply.headers["content-type"] == "application/json"
        pending = (await call.next())["result"]["_meta"][PENDING]
        assert FALLBACK_TOOL_NAME in [tool["name"] for tool in await mcp.tools.list()]
        arguments = {"elicitId": pending["elicitId"], **accept({"name": "Ada"})}
        assert text(await (await post_call(mcp, FALLBACK_TOOL_NAME, arguments)).next()) == "Ada"


@behaviour("PSH-5")
async def test_with_the_fallback_off_a_call_without_a_stream_fails(serve: Serve) -> None:
    bridge = asking(fallback="off")
    async with connect(await serve(bridge), revision="2025-06-18", headers={"accept": "application/json"}) as mcp:
        result = await mcp.tools.call("ask")
        assert result.is_error
        assert result.error_code == "ELICITATION_NOT_SUPPORTED"
        assert result.text().startswith("ELICITATION_NOT_SUPPORTED: ask ")
        assert FALLBACK_TOOL_NAME not in [tool["name"] for tool in await mcp.tools.list()]


@behaviour("PSH-5")
async def test_with_the_fallback_off_the_error_names_the_stream_that_could_not_be_opened(serve: Serve) -> None:
    bridge = asking(fallback="off")
    async with connect(await serve(bridge), revision="2025-06-18", headers={"accept": "application/json"}) as mcp:
        assert re.search(r"stream|Accept", (await mcp.tools.call("ask")).text())


@behaviour("PSH-4", "PSH-5")
async def test_with_the_fallback_off_a_client_that_cannot_be_asked_gets_an_error(serve: Serve) -> None:
    async with connect(await serve(asking(fallback="off")), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask")
        question = await call.next()
        await respond(mcp, question["id"], error={"code": -32601, "message": "no forms"})
        result = (await call.next())["result"]
        assert result["isError"] is True
        assert result["_meta"]["mcp-session-bridge/code"] == "ELICITATION_NOT_SUPPORTED"
        assert FALLBACK_TOOL_NAME not in [tool["name"] for tool in await mcp.tools.list()]


# PSH-6


@behaviour("PSH-6")
@pytest.mark.parametrize("token", [0, "0", "abc", 12])
async def test_progress_goes_out_at_once_and_rises_while_the_call_waits(serve: Serve, token: Any) -> None:
    bridge = Bridge("push", elicitation=True, push=PushLimits(progress_seconds=0.02))

    @bridge.tool
    async def ask(ctx: Context) -> str:
        await ctx.progress(1, total=10, message="begun")
        first = await ctx.elicit("First?", Name)
        await ctx.progress(5, total=10)
        second = await ctx.elicit("Second?", Name)
        await ctx.progress(10, total=10)
        return f"{first.status} {second.status}"

    reports: list[Any] = []
    async with connect(await serve(bridge), revision="2025-11-25") as mcp:
        call = await post_call(mcp, "ask", meta={"progressToken": token})
        questions: list[Any] = []
        waited = 0
        while "method" in (message := await call.next()):
            if message["method"] == "elicitation/create":
                assert not questions or waited >= 3
                questions.append(message)
                waited = 0
            else:
                assert message["method"] == "notifications/progress"
                reports.append(message["params"])
                waited += message["params"].get("message") == WAITING
                if waited == 3:
                    await respond(mcp, questions[-1]["id"], accept({"name": "Ada"}))
        assert text(message) == "accept accept"
    assert {(type(report["progressToken"]), report["progressToken"]) for report in reports} == {(type(token), token)}
    values = [report["progress"] for report in reports]
    assert values == sorted(set(values)), "strictly rising, shared with the tool's own"
    assert {1, 5, 10} <= set(values)
    assert sum(report.get("message") == WAITING for report in reports) >= 6


@behaviour("PSH-6")
async def test_without_a_token_no_progress_goes_out(serve: Serve) -> None:
    bridge = asking(push=PushLimits(progress_seconds=0.005, answer_seconds=0.1))
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        for meta in (None, {}, {"progressToken": None}, {"progressToken": True}, {"progressToken": [1]}):
            call = await post_call(mcp, "ask", meta=meta)
            methods = [message.get("method") for message in await call.rest()]
            assert methods == ["elicitation/create", "notifications/cancelled", None]


@behaviour("PSH-6")
async def test_progress_that_starts_at_zero_is_sent(serve: Serve) -> None:
    bridge = Bridge("push", elicitation=True)

    @bridge.tool
    async def work(ctx: Context) -> str:
        await ctx.progress(0, total=2)
        await ctx.progress(1, total=2)
        return "done"

    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        messages = await (await post_call(mcp, "work", meta={"progressToken": 1})).rest()
    assert [message["params"]["progress"] for message in messages[:-1]] == [0, 1]


@behaviour("PSH-6", "ASK-20")
async def test_a_question_that_nobody_answers_is_cancelled_and_the_call_ends_with_the_limit(
    serve: Serve, store: Store
) -> None:
    bridge = asking(store, push=PushLimits(answer_seconds=0.25))
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        question, cancelled, result = await (await post_call(mcp, "ask")).rest()
        assert question["method"] == "elicitation/create"
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == question["id"]
        assert result["result"]["isError"] is True
        assert result["result"]["_meta"]["mcp-session-bridge/code"] == "ELICITATION_TIMEOUT"
        assert text(result).startswith("ELICITATION_TIMEOUT: ")
        assert "0.25 seconds" in text(result)
        assert await respond(mcp, question["id"], accept({"name": "late"})) == 202
        call = await post_call(mcp, "ask")
        again = await call.next()
        assert again["id"] != question["id"]
        await respond(mcp, again["id"], accept({"name": "Ada"}))
        assert text(await call.next()) == "Ada"


@behaviour("PSH-1", "PSH-3")
async def test_of_two_answers_to_one_question_the_second_is_dropped(serve: Serve, store: Store) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask", {"questions": 2})
        first = await call.next()
        assert await respond(mcp, first["id"], accept({"name": "once"})) == 202
        assert await respond(mcp, first["id"], accept({"name": "twice"})) == 202
        second = await call.next()
        assert await respond(mcp, first["id"], accept({"name": "thrice"})) == 202
        assert await respond(mcp, second["id"], accept({"name": "other"})) == 202
        assert text(await call.next()) == "once,other"
        assert await call.rest() == []


@behaviour("PSH-1", "LEG-12")
async def test_a_session_can_be_asked_again_after_a_long_silence(serve: Serve) -> None:
    clock = Clock()
    bridge = asking(MemoryStore(clock=clock), sessions=SessionLimits(idle_seconds=86400.0))
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": "Ada"}))
        assert (await mcp.tools.call("ask", {"questions": 3})).text() == "Ada,Ada,Ada"
        clock.now += 3600
        with anyio.fail_after(2):
            assert (await mcp.tools.call("ask")).text() == "Ada"


@behaviour("PSH-3")
async def test_a_tool_cancelled_at_its_question_takes_no_late_answer(serve: Serve, store: Store) -> None:
    async with connect(await serve(asking(store)), revision="2025-06-18") as mcp:
        call = await post_call(mcp, "ask", identity=5)
        question = await call.next()
        await mcp.notify("notifications/cancelled", {"requestId": 5})
        assert await call.rest() == [], "nothing more for a cancelled call"
        assert await respond(mcp, question["id"], YES) == 202
        mcp.on_elicitation(lambda asked: accept({"name": "Ada"}))
        assert (await mcp.tools.call("ask")).text() == "Ada"
