"""Checking answers: what does not match never gets past its question, on any route."""

from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from bridge import Bridge, Context
from bridge.asking.checking import InvalidReply, check_reply, lenient_content
from bridge.asking.form import form_of
from bridge.asking.question import Question, Reply
from bridge.stores import Store
from bridge.testing import Asked, CallResult, accept, connect
from tests.behaviours.test_asking import client
from tests.conftest import Serve

__all__ = ["client"]

behaviour = pytest.mark.behaviour


class Booking(BaseModel):
    name: str = Field(min_length=2)
    seats: int = Field(ge=1, le=9)
    window: bool = False

    @field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        if name == "Nobody":
            raise ValueError("nobody is nobody")
        return name


class Booked:
    """A server with one tool that asks for a booking, and how often it got past the question."""

    def __init__(self, store: Store | None = None) -> None:
        self.passed: list[Any] = []
        self.bridge = Bridge("answers", elicitation=True, store=store)

        @self.bridge.tool
        async def book(ctx: Context) -> str:
            answer = await ctx.elicit("What seats?", Booking)
            self.passed.append(answer.content)
            return f"{answer.status}: {answer.content}"


BAD: list[Any] = [
    {"name": "A", "seats": 2},
    {"name": "Ann"},
    {"name": "Ann", "seats": 0},
    {"name": "Ann", "seats": 2.5},
    {"name": "Ann", "seats": "two"},
    {"name": "Ann", "seats": 2, "window": "yes"},
    {"name": "Nobody", "seats": 2},
    {},
    None,
]


@behaviour("ANS-1", "ANS-2", "ANS-4", "ANS-5")
@pytest.mark.parametrize("content", BAD, ids=str)
async def test_content_that_does_not_match_never_gets_past_its_question(
    serve: Serve, client: dict[str, Any], content: Any
) -> None:
    booked = Booked()
    async with connect(await serve(booked.bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: {"action": "accept", "content": content})
        result = await mcp.tools.call("book")
    assert result.is_error
    assert result.error_code == "INVALID_INPUT"
    assert result.text().startswith("INVALID_INPUT: ")
    assert "does not match the requested schema" in result.text()
    assert "- " in result.text()
    assert booked.passed == []


@behaviour("ANS-2")
@pytest.mark.parametrize("bad", [{"name": "A", "seats": 2}, {"name": "Nobody", "seats": 2}])
async def test_a_corrected_answer_to_the_same_round_is_taken(serve: Serve, store: Store, bad: Any) -> None:
    booked = Booked(store)
    async with connect(await serve(booked.bridge)) as mcp:
        first = await mcp.request("tools/call", {"name": "book"})
        for content, error in ((bad, True), ({"name": "Ann", "seats": 2}, False)):
            params = {
                "name": "book",
                "inputResponses": {"elicitation-1": accept(content)},
                "requestState": first["requestState"],
            }
            result = CallResult(await mcp.request("tools/call", params))
            assert result.is_error is error
    assert booked.passed == [Booking(name="Ann", seats=2)]


@behaviour("ANS-4")
async def test_on_chat_an_invalid_answer_leaves_the_question_open_up_to_ten_times(serve: Serve, store: Store) -> None:
    booked = Booked(store)
    async with connect(await serve(booked.bridge), revision="2025-03-26") as mcp:
        for limit in (3, 11):
            pending = (await mcp.request("tools/call", {"name": "book"}))["_meta"]["elicitationPending"]
            for attempt in range(1, limit):
                bad = BAD[attempt % 2 * 6]
                result = await _send(mcp, pending["elicitId"], bad)
                assert result.is_error
                assert result.error_code == "INVALID_INPUT"
            result = await _send(mcp, pending["elicitId"], {"name": "Ann", "seats": 2})
            assert result.is_error is (limit == 11)
        assert "No pending elicitation" in result.text()
    assert booked.passed == [Booking(name="Ann", seats=2)]


async def _send(mcp: Any, elicit_id: str, content: Any) -> CallResult:
    arguments = {"elicitId": elicit_id, "action": "accept", "content": content}
    return CallResult(await mcp.request("tools/call", {"name": "sendElicitationResult", "arguments": arguments}))


@behaviour("ANS-5")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_content_of_a_no_is_ignored(serve: Serve, client: dict[str, Any], action: str) -> None:
    booked = Booked()
    async with connect(await serve(booked.bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: {"action": action, "content": {"name": 7}})
        assert (await mcp.tools.call("book")).text() == f"{action}: None"


@behaviour("ANS-6")
@pytest.mark.parametrize(
    ("field", "given", "meant"),
    [
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "", None),
        ({"type": "boolean"}, "yes", None),
        ({"type": "integer"}, "3", 3),
        ({"type": "integer"}, 3.0, 3),
        ({"type": "integer"}, "3.5", None),
        ({"type": "number"}, "3.5", 3.5),
        ({"type": "number"}, "nan", None),
        ({"type": "number"}, "inf", None),
        ({"type": "string", "enum": ["low", "high"]}, "High", "high"),
        (
            {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]},
            "red",
            "#f00",
        ),
        ({"type": "string", "oneOf": [{"const": "a", "title": "X"}, {"const": "b", "title": "X"}]}, "X", None),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "a", ["a"]),
        ({"type": "string"}, 3, None),
    ],
)
def test_chat_reads_what_a_model_surely_means_and_nothing_else(field: Any, given: Any, meant: Any) -> None:
    form = form_of({"type": "object", "properties": {"x": field}, "required": ["x"]})
    question = Question(key="k", path="p", message="?", schema=form.schema)
    raw = {"action": "accept", "content": {"x": given}}
    lenient = check_reply(question, raw, "chat")
    if meant is None:
        assert isinstance(lenient, InvalidReply)
    else:
        assert lenient == Reply("accept", {"x": meant}, "chat")
    if given != meant or type(given) is not type(meant):
        strict = check_reply(question, raw, "form")
        assert isinstance(strict, InvalidReply) or strict.content == {"x": given}


@behaviour("ANS-6")
async def test_chat_takes_content_as_json_text_and_push_does_not(serve: Serve) -> None:
    booked = Booked()
    text = '{"name": "Ann", "seats": "2"}'
    app = await serve(booked.bridge)
    async with connect(app, revision="2024-11-05") as mcp:
        mcp.on_elicitation(lambda asked: {"action": "accept", "content": text})
        assert not (await mcp.tools.call("book")).is_error
    async with connect(app, revision="2025-11-25") as mcp:
        mcp.on_elicitation(lambda asked: {"action": "accept", "content": {"name": "Ann", "seats": "2"}})
        assert (await mcp.tools.call("book")).error_code == "INVALID_INPUT"
    assert booked.passed == [Booking(name="Ann", seats=2)]


def test_what_is_no_json_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {}}
    assert lenient_content(schema, "just text") == "just text"
    assert lenient_content(schema, "[" * 5000) == "[" * 5000


@behaviour("ANS-7")
async def test_missing_answers_are_asked_for_again_and_unknown_keys_ignored(serve: Serve, store: Store) -> None:
    bridge = Bridge("answers", elicitation=True, store=store)
    runs = 0

    @bridge.tool
    async def both(ctx: Context) -> str:
        nonlocal runs
        runs += 1
        import anyio

        found: dict[str, Any] = {}

        async def ask(name: str) -> None:
            found[name] = (await ctx.elicit(f"{name}?", Booking, key=name)).content

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "one")
            tasks.start_soon(ask, "two")
        return f"{found['one'].seats} {found['two'].seats}"

    async with connect(await serve(bridge)) as mcp:
        first = await mcp.request("tools/call", {"name": "both"})
        assert set(first["inputRequests"]) == {"one", "two"}
        some = {"one": accept({"name": "Ann", "seats": 1}), "elsewhere": accept({})}
        params = {"name": "both", "inputResponses": some, "requestState": first["requestState"]}
        second = await mcp.request("tools/call", params)
        assert set(second["inputRequests"]) == {"two"}
        assert runs == 1, "nothing runs before every answer is there"
        rest = {"two": accept({"name": "Bob", "seats": 2})}
        params = {"name": "both", "inputResponses": rest, "requestState": second["requestState"]}
        assert (await mcp.request("tools/call", params))["content"][0]["text"] == "1 2"
        late = {"one": accept({"name": "Ann", "seats": 7}), "two": accept({"name": "Bob", "seats": 8})}
        params = {"name": "both", "inputResponses": late, "requestState": first["requestState"]}
        assert (await mcp.request("tools/call", params))["isError"], "one round, whichever copy of it comes back"
    assert runs == 2


@behaviour("ANS-7")
@pytest.mark.parametrize("responses", [7, "x", {"elicitation-1": 7}, {"elicitation-1": {}}, {"elicitation-1": None}])
async def test_malformed_responses_are_never_an_answer(serve: Serve, responses: Any) -> None:
    booked = Booked()
    async with connect(await serve(booked.bridge)) as mcp:
        first = await mcp.request("tools/call", {"name": "book"})
        params = {"name": "book", "inputResponses": responses, "requestState": first["requestState"]}
        reply = await mcp.raw.request({"method": "tools/call", "params": params})
        assert reply["error"]["code"] == -32602
    assert booked.passed == []


@behaviour("ANS-8")
async def test_defaults_are_filled_in_for_optional_fields(serve: Serve, client: dict[str, Any]) -> None:
    booked = Booked()
    async with connect(await serve(booked.bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": "Ann", "seats": 3}))
        await mcp.tools.call("book")
    assert booked.passed[-1] == Booking(name="Ann", seats=3, window=False)


@behaviour("ANS-8")
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("email", "ann@example.com", "ann at example"),
        ("uri", "https://example.com/x", "not a uri"),
        ("date", "2026-07-28", "2026-7-28"),
        ("date-time", "2026-07-28T10:00:00Z", "2026-07-28 10:00"),
    ],
)
async def test_formats_are_checked(serve: Serve, kind: str, good: str, bad: str) -> None:
    bridge = Bridge("answers", elicitation=True)
    schema = {"type": "object", "properties": {"x": {"type": "string", "format": kind}}, "required": ["x"]}

    @bridge.tool
    async def ask(ctx: Context) -> str:
        return str((await ctx.elicit("What?", schema)).content)

    def answer(asked: Asked) -> Any:
        assert asked.schema["properties"]["x"]["format"] == kind
        return accept({"x": value})

    async with connect(await serve(bridge)) as mcp:
        mcp.on_elicitation(answer)
        value = good
        assert (await mcp.tools.call("ask")).text() == str({"x": good})
        value = bad
        assert (await mcp.tools.call("ask")).error_code == "INVALID_INPUT"
