"""Chat: the fallback tool, its texts, pending calls, and who may answer them."""

import re
from collections import Counter
from typing import Any, Literal

import anyio
import jsonschema
import pytest
from pydantic import BaseModel

from bridge import Bridge, ConfigurationError, Context
from bridge.asking.fallback import widened_output_schema
from bridge.pending import MAX_PENDING
from bridge.stores import Store
from bridge.testing import CallResult, Client, RpcError, accept, connect
from tests.conftest import Serve

behaviour = pytest.mark.behaviour

TOOL = "sendElicitationResult"


class Pick(BaseModel):
    """One choice."""

    agent: Literal["access", "billing"]
    note: str = "none"


class Outcome(BaseModel):
    """What a tool with an output schema returns."""

    done: bool
    inner: "Inner"


class Inner(BaseModel):
    """Referred to, so that references have to resolve."""

    agent: str | None


class Desk:
    """A server with tools that ask, and what their runs did."""

    def __init__(self, store: Store | None = None, **options: Any) -> None:
        self.effects: list[str] = []
        self.started = 0
        self.go_on = anyio.Event()
        self.go_on.set()
        self.bridge = Bridge("chat", elicitation=True, store=store, **options)

        @self.bridge.tool
        async def assign(id: str, ctx: Context) -> Outcome:  # noqa: A002
            self.started += 1
            await self.go_on.wait()
            answer = await ctx.elicit(f"Who takes {id}?", Pick)
            if answer.content is None:
                return Outcome(done=False, inner=Inner(agent=None))
            self.effects.append(f"{id}:{answer.content.agent}:{answer.source}")
            return Outcome(done=True, inner=Inner(agent=answer.content.agent))

        @self.bridge.tool
        async def twice(ctx: Context) -> str:
            first = await ctx.elicit("First?", Pick)
            second = await ctx.elicit("Second?", Pick)
            assert first.content is not None
            assert second.content is not None
            self.effects.append(f"{first.content.agent}+{second.content.agent}")
            return self.effects[-1]


async def call(mcp: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    return await mcp.request("tools/call", {"name": tool, "arguments": arguments})


async def answer(mcp: Client, elicit_id: str, action: str = "accept", **content: Any) -> CallResult:
    arguments: dict[str, Any] = {"elicitId": elicit_id, "action": action}
    if content:
        arguments["content"] = content
    return CallResult(await call(mcp, TOOL, **arguments))


def pending(result: dict[str, Any]) -> dict[str, Any]:
    form: dict[str, Any] = result["_meta"]["elicitationPending"]
    return form


@behaviour("CHT-1")
@pytest.mark.parametrize(
    ("revision", "capabilities", "sees"),
    [
        ("2024-11-05", {}, True),
        ("2025-03-26", {}, True),
        ("2025-03-26", {"elicitation": {}}, True),
        ("2025-06-18", {}, True),
        ("2025-06-18", {"elicitation": {}}, False),
        ("2025-11-25", {"elicitation": {"url": {}}}, True),
        ("2025-11-25", {"elicitation": {"form": {}}}, False),
        ("2026-07-28", {}, False),
        ("2026-07-28", {"elicitation": {}}, False),
    ],
)
async def test_only_legacy_clients_without_forms_see_the_fallback_tool(
    serve: Serve, revision: str, capabilities: dict[str, Any], sees: bool
) -> None:
    async with connect(await serve(Desk().bridge), revision=revision, capabilities=capabilities) as mcp:
        first, second = await mcp.tools.list(), await mcp.tools.list()
        found = [tool for tool in first if tool["name"] == TOOL]
        assert bool(found) is sees
        assert found == [tool for tool in second if tool["name"] == TOOL], "its definition never changes"
        if not sees:
            with pytest.raises(RpcError) as unknown:
                await call(mcp, TOOL, elicitId="x", action="accept")
            assert unknown.value.code == -32602


@behaviour("CHT-2")
async def test_the_fallback_tool_takes_an_id_an_action_and_content(serve: Serve) -> None:
    async with connect(await serve(Desk().bridge), revision="2025-03-26") as mcp:
        (tool,) = [tool for tool in await mcp.tools.list() if tool["name"] == TOOL]
        properties = tool["inputSchema"]["properties"]
        assert {name: field["type"] for name, field in properties.items()} == {
            "elicitId": "string",
            "action": "string",
            "content": "object",
        }
        assert set(properties["action"]["enum"]) == {"accept", "decline", "cancel"}
        assert tool["inputSchema"]["required"] == ["elicitId", "action"]
        for wrong in ({}, {"elicitId": 7, "action": "accept"}, {"elicitId": "x", "action": "yes"}):
            result = CallResult(await call(mcp, TOOL, **wrong))
            assert result.is_error
            assert result.error_code == "INVALID_INPUT"


@behaviour("CHT-3", "CHT-9")
async def test_the_asking_result_tells_the_model_what_to_do_in_order(serve: Serve) -> None:
    async with connect(await serve(Desk().bridge), revision="2025-06-18", capabilities={}) as mcp:
        result = await call(mcp, "assign", id="T-1")
    assert not result.get("isError")
    form = pending(result)
    text = result["content"][0]["text"]
    order = [
        "Nothing has been done",
        "Who takes T-1?",
        "agent (string, one of 'access', 'billing', required)",
        "note (string, default 'none', optional)",
        "do not answer for them",
        TOOL,
        form["elicitId"],
        '"action": "decline"',
        "open until",
    ]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert set(form) == {"elicitId", "message", "schema", "instructions"}
    assert form["message"] == "Who takes T-1?"
    assert form["schema"]["properties"]["agent"]["enum"] == ["access", "billing"]
    assert result["structuredContent"] == {"elicitationPending": form}
    assert len(form["elicitId"]) * 6 >= 128


@behaviour("CHT-4", "CHT-3")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_listed_output_schemas_allow_the_pending_form_and_the_result(serve: Serve, revision: str) -> None:
    desk = Desk()
    app = await serve(desk.bridge)
    async with connect(app, revision=revision, capabilities={}) as mcp, connect(app) as modern:
        schemas = {tool["name"]: tool.get("outputSchema") for tool in await mcp.tools.list()}
        asking = await call(mcp, "assign", id="T-1")
        jsonschema.validate(asking["structuredContent"], schemas["assign"])
        result = await answer(mcp, pending(asking)["elicitId"], agent="access")
        jsonschema.validate(result.raw["structuredContent"], schemas["assign"])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"done": True}, schemas["assign"])
        modern.on_elicitation(lambda asked: accept({"agent": "access"}))
        same = await modern.tools.call("assign", {"id": "T-1"})
        assert result.raw["structuredContent"] == same.raw["structuredContent"]
        assert result.raw["content"] == same.raw["content"]


DEFINED = {"A": {"type": "integer"}, "B": {"type": "object", "required": ["x"]}}


@behaviour("CHT-4")
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": DEFINED},
            {"a": 1},
            {"a": "x"},
        ),
        ({"type": "object", "anyOf": [{"$ref": "#/$defs/B"}], "$defs": DEFINED}, {"x": 1}, {"y": 1}),
        ({"$ref": "#/$defs/B", "$defs": DEFINED}, {"x": 1}, {}),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
    ],
)
def test_a_widened_schema_still_resolves_its_references(schema: Any, good: Any, bad: Any) -> None:
    widened = widened_output_schema(schema)
    assert widened["type"] == "object"
    jsonschema.validate(good, widened)
    jsonschema.validate({"elicitationPending": {"elicitId": "x"}}, widened)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, widened)


@behaviour("CHT-5", "CHT-8")
async def test_the_stored_arguments_are_used_and_equal_answers_get_one_result(serve: Serve, store: Store) -> None:
    desk = Desk(store)
    async with connect(await serve(desk.bridge), revision="2025-03-26") as mcp:
        elicit_id = pending(await call(mcp, "assign", id="T-1"))["elicitId"]
        texts: list[str] = []

        async def send(**content: Any) -> None:
            arguments = {"elicitId": elicit_id, "action": "accept", "content": content, "id": "T-9"}
            texts.append(CallResult(await call(mcp, TOOL, **arguments)).text())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: send(agent="access"))
            tasks.start_soon(lambda: send(agent="access"))
        await send(agent="access")
        await send(agent="billing")
    assert Counter(desk.effects) == {"T-1:access:chat": 1}
    assert len(set(texts[:3])) == 1
    assert '"done":true' in texts[0]
    assert texts[3].startswith("No pending elicitation found for ID: ")


@behaviour("CHT-6")
async def test_several_questions_come_one_after_the_other_and_keep_their_answers(serve: Serve, store: Store) -> None:
    desk = Desk(store)
    async with connect(await serve(desk.bridge), revision="2024-11-05") as mcp:
        first = pending(await call(mcp, "twice"))
        second = pending((await answer(mcp, first["elicitId"], agent="access")).raw)
        assert second["message"] == "Second?"
        assert second["elicitId"] != first["elicitId"]
        late = await answer(mcp, first["elicitId"], agent="billing")
        assert late.is_error, "an answer to the first question is not taken for the second"
        assert (await answer(mcp, second["elicitId"], agent="billing")).text() == "access+billing"
    assert desk.effects == ["access+billing"]


@behaviour("CHT-7")
async def test_unknown_expired_and_foreign_ids_get_the_same_words(serve: Serve, store: Store) -> None:
    desk, brief = Desk(store), Desk(store, pending_seconds=0.0)
    app = await serve(desk.bridge)
    async with connect(await serve(brief.bridge), revision="2025-03-26") as mcp:
        expired = await answer(mcp, pending(await call(mcp, "assign", id="T-1"))["elicitId"], agent="access")
    async with connect(app, revision="2025-03-26") as mcp, connect(app, revision="2025-03-26") as other:
        foreign = pending(await call(mcp, "assign", id="T-1"))["elicitId"]
        replies = [
            expired,
            await answer(other, foreign, agent="access"),
            await answer(mcp, "no-such-id-anywhere", agent="access"),
            await answer(mcp, "../../session/x", agent="access"),
        ]
    for reply in replies:
        assert reply.is_error
        assert reply.text().startswith("No pending elicitation found for ID: ")
        assert "may have expired or been answered" in reply.text()
    assert desk.effects == brief.effects == []


@behaviour("CHT-9")
async def test_a_session_may_have_sixteen_questions_open(serve: Serve) -> None:
    desk = Desk()
    async with connect(await serve(desk.bridge), revision="2025-03-26") as mcp:
        ids = [pending(await call(mcp, "assign", id=f"T-{n}"))["elicitId"] for n in range(MAX_PENDING)]
        assert len(set(ids)) == MAX_PENDING == 16
        full = CallResult(await call(mcp, "assign", id="T-99"))
        assert full.is_error
        assert ids[0] in full.text(), "the way out is named"
        assert not (await answer(mcp, ids[0], "cancel")).is_error
        assert "_meta" in await call(mcp, "assign", id="T-99")


@behaviour("CHT-10")
async def test_an_equal_call_that_asks_already_is_not_started_again(serve: Serve, store: Store) -> None:
    desk = Desk(store)
    async with connect(await serve(desk.bridge), revision="2025-03-26") as mcp:
        desk.go_on = anyio.Event()
        results: list[dict[str, Any]] = []

        async def send() -> None:
            results.append(await call(mcp, "assign", id="T-1"))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                tasks.start_soon(send)
                while desk.started < 2:
                    await anyio.lowlevel.checkpoint()
                desk.go_on.set()
        ids = {pending(result)["elicitId"] for result in results}
        assert len(ids) == 2, "equal calls in flight together are separate"
        again = await call(mcp, "assign", id="T-1")
        assert pending(again)["elicitId"] in ids
        assert "nothing new was started" in again["content"][-1]["text"]
        assert desk.started == 2
        for elicit_id in ids:
            assert not (await answer(mcp, elicit_id, agent="access")).is_error
        assert pending(await call(mcp, "assign", id="T-1"))["elicitId"] not in ids, "answered: a new call"


@behaviour("CHT-14")
async def test_a_call_that_waits_on_chat_survives_a_restart(serve: Serve, store: Store) -> None:
    if not store.durable:
        pytest.skip("a memory store dies with its process")
    before = Desk(store)
    app = before.bridge.asgi()
    async with app.lifespan(), connect(app, revision="2025-03-26") as mcp:
        elicit_id = pending(await call(mcp, "twice"))["elicitId"]
        second = pending((await answer(mcp, elicit_id, agent="access")).raw)["elicitId"]
        session_id = mcp.session_id
    after = Desk(store)
    async with connect(await serve(after.bridge), revision="2025-03-26") as mcp:
        mcp.session_id = session_id
        assert (await answer(mcp, second, agent="billing")).text() == "access+billing"
    assert before.effects == []
    assert after.effects == ["access+billing"]


def test_a_native_tool_cannot_take_the_fallback_tools_name() -> None:
    bridge = Bridge("chat")
    with pytest.raises(ConfigurationError, match=re.escape(TOOL)):
        bridge.tool(name=TOOL)(lambda: None)
