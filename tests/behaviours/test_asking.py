"""What the author of a tool sees: `elicit`, `step`, the journal, suspension."""

from contextlib import suppress
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, Field

from bridge import Bridge, Context, ToolError
from bridge.stores import Store
from bridge.testing import Asked, Client, RpcError, accept, cancel, connect, decline
from tests.conftest import Serve

behaviour = pytest.mark.behaviour

CLIENTS = {
    "modern": {"revision": "2026-07-28"},
    "push-2025-11-25": {"revision": "2025-11-25"},
    "push-2025-06-18": {"revision": "2025-06-18"},
    "chat-2025-06-18": {"revision": "2025-06-18", "capabilities": {}},
    "chat-2025-03-26": {"revision": "2025-03-26"},
    "chat-2024-11-05": {"revision": "2024-11-05"},
}


class Confirm(BaseModel):
    confirm: bool = Field(title="Sure?", description="Tick it", default=False)


class Name(BaseModel):
    name: str


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Each kind of client in turn, as arguments of `connect`."""
    return CLIENTS[request.param]


def asking(store: Store | None = None, **options: Any) -> Bridge:
    return Bridge("asking", elicitation=True, store=store, **options)


@behaviour("ASK-1", "ASK-2")
async def test_an_answer_has_a_status_checked_content_and_a_source(serve: Serve, client: Any, store: Store) -> None:
    bridge = asking(store)
    seen: list[Any] = []

    @bridge.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Sure?", Confirm)
        seen.append(answer)
        return f"{answer.status} {answer.accepted} {answer.source}"

    async with connect(await serve(bridge), **client) as mcp:
        source = "chat" if "sendElicitationResult" in [tool["name"] for tool in await mcp.tools.list()] else "form"
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        assert (await mcp.tools.call("ask")).text() == f"accept True {source}"
        assert seen[-1].content == Confirm(confirm=True)
        mcp.on_elicitation(lambda asked: decline())
        assert (await mcp.tools.call("ask")).text() == f"decline False {source}"
        assert seen[-1].content is None
        mcp.on_elicitation(lambda asked: cancel())
        assert (await mcp.tools.call("ask")).text() == f"cancel False {source}"
        assert len(mcp.asked) == 3
        field = mcp.asked[0].schema["properties"]["confirm"]
        assert field["title"] == "Sure?"
        assert field["description"] == "Tick it"
        assert field["default"] is False


@behaviour("ASK-2")
async def test_json_schema_gives_a_dict_and_bool_gives_a_bool(serve: Serve, client: Any) -> None:
    bridge = asking()
    seen: list[Any] = []

    @bridge.tool
    async def ask(ctx: Context) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}
        seen.append((await ctx.elicit("How many?", schema)).content)
        seen.append((await ctx.elicit("Sure?", bool)).content)
        seen.append((await ctx.elicit("Go on?", {"type": "object", "properties": {}})).content)

    def answer(asked: Asked) -> Any:
        assert asked.schema["properties"], "an empty form is never sent"
        return accept({"n": 5} if "n" in asked.schema["properties"] else {"confirm": True})

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(answer)
        await mcp.tools.call("ask")
    assert seen[-3:] == [{"n": 5}, True, {}], "the last run had every answer"


@behaviour("ASK-2")
async def test_an_unticked_box_of_an_empty_form_is_a_no(serve: Serve, client: Any) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Wipe the disk?", {"type": "object", "properties": {}})).status

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": False}))
        assert (await mcp.tools.call("ask")).text() == "decline"


@behaviour("ASK-3")
async def test_keys_are_numbered_in_the_order_of_first_asking_or_given(serve: Serve) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit("One?", bool)
        await ctx.elicit("Two?", bool, key="approve")
        await ctx.elicit("Three?", bool)
        return "done"

    async with connect(await serve(bridge)) as mcp:
        keys = [key async for key in _keys(mcp, "ask")]
    assert keys == ["elicitation-1", "approve", "elicitation-3"]


async def _keys(mcp: Client, tool: str) -> Any:
    params: dict[str, Any] = {"name": tool, "arguments": {}}
    result = await mcp.request("tools/call", params)
    while result["resultType"] == "input_required":
        for key in result["inputRequests"]:
            yield key
        responses = {key: accept({"confirm": True}) for key in result["inputRequests"]}
        again = {**params, "inputResponses": responses, "requestState": result["requestState"]}
        result = await mcp.request("tools/call", again)


@behaviour("ASK-3")
@pytest.mark.parametrize("key", ["same", None])
async def test_two_questions_that_cannot_be_told_apart_are_the_authors_error(
    serve: Serve, key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: ctx.elicit("Sure?", bool, key=key))
            tasks.start_soon(lambda: ctx.elicit("Sure?" if key is None else "Really?", bool, key=key))
        return "done"

    async with connect(await serve(bridge)) as mcp:
        result = await mcp.tools.call("ask")
    assert result.is_error
    assert not mcp.asked
    assert "give each" in caplog.text


@behaviour("ASK-4")
async def test_three_dependent_questions_take_three_rounds(serve: Serve, client: Any, store: Store) -> None:
    bridge = asking(store)
    runs = 0

    @bridge.tool
    async def ask(ctx: Context) -> str:
        nonlocal runs
        runs += 1
        first = await ctx.elicit("First?", Name)
        second = await ctx.elicit(f"After {first.content and first.content.name}?", Name)
        third = await ctx.elicit(f"After {second.content and second.content.name}?", Name)
        return f"{first.content}, {second.content}, {third.content}"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": f"n{len(mcp.asked)}"}))
        result = await mcp.tools.call("ask")
        assert result.text() == "name='n1', name='n2', name='n3'"
        assert [asked.message for asked in mcp.asked] == ["First?", "After n1?", "After n2?"]
    assert runs == 4


@behaviour("ASK-5")
async def test_after_a_changed_question_later_answers_are_dropped_and_steps_are_kept(serve: Serve) -> None:
    bridge = asking()
    steps: list[str] = []
    wording = ["A?"]

    @bridge.tool
    async def ask(ctx: Context) -> str:
        await ctx.step("once", lambda: steps.append("ran"))
        first = await ctx.elicit(wording[0], Name)
        second = await ctx.elicit("B?", Name)
        third = await ctx.elicit("C?", Name)
        return ",".join(answer.content.name if answer.content else "-" for answer in (first, second, third))

    def answer(asked: Asked) -> Any:
        if asked.message == "C?" and wording[0] == "A?":
            wording[0] = "A, changed?"
        return accept({"name": f"{asked.message}{len(mcp.asked)}"})

    async with connect(await serve(bridge)) as mcp:
        mcp.on_elicitation(answer)
        result = await mcp.tools.call("ask")
    assert [asked.message for asked in mcp.asked] == ["A?", "B?", "C?", "A, changed?", "B?", "C?"]
    assert result.text() == "A, changed?4,B?5,C?6"
    assert steps == ["ran"]


@behaviour("ASK-5", "MOD-14")
async def test_a_tool_that_asks_something_new_each_time_ends_at_the_round_limit(serve: Serve, client: Any) -> None:
    bridge = asking()
    runs = 0

    @bridge.tool
    async def ask(ctx: Context) -> str:
        nonlocal runs
        runs += 1
        await ctx.elicit(f"Run {runs}?", bool)
        return "never"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        result = await mcp.tools.call("ask")
    assert result.is_error
    assert "Too many input rounds" in result.text()
    assert "same questions" in result.text()
    assert len(mcp.asked) == 10


@behaviour("ASK-6")
async def test_a_step_runs_once_and_its_result_is_kept(serve: Serve, client: Any, store: Store) -> None:
    bridge = asking(store)
    effects: list[str] = []

    async def charge() -> dict[str, int]:
        effects.append("charged")
        return {"receipt": len(effects)}

    @bridge.tool
    async def pay(ctx: Context) -> dict[str, Any]:
        receipt = await ctx.step("charge", charge)
        sure = await ctx.elicit("Sure?", bool)
        why = await ctx.elicit("Why?", Name)
        return {"receipt": receipt, "sure": sure.content, "why": why.content and why.content.name}

    def answer(asked: Asked) -> Any:
        return accept({"confirm": True} if asked.message == "Sure?" else {"name": "x"})

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(answer)
        result = await mcp.tools.call("pay")
    assert result.json() == {"receipt": {"receipt": 1}, "sure": True, "why": "x"}
    assert effects == ["charged"]


@behaviour("ASK-6")
async def test_a_step_under_way_is_not_broken_off_when_another_task_stops(serve: Serve) -> None:
    bridge = asking()
    effects: list[str] = []

    async def charge() -> str:
        effects.append("begun")
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        effects.append("done")
        return "receipt"

    @bridge.tool
    async def pay(ctx: Context) -> str:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ctx.step, "charge", charge)
            tasks.start_soon(ctx.elicit, "Sure?", bool)
        return "paid"

    async with connect(await serve(bridge)) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        assert (await mcp.tools.call("pay")).text() == "paid"
    assert effects == ["begun", "done"]


@behaviour("ASK-12")
async def test_except_exception_does_not_swallow_the_suspension_and_finally_runs(serve: Serve, client: Any) -> None:
    bridge = asking()
    cleaned: list[str] = []

    @bridge.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.elicit("Sure?", bool)
        except Exception:
            return "swallowed"
        finally:
            cleaned.append("finally")
        return "asked"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        assert (await mcp.tools.call("ask")).text() == "asked"
    assert cleaned == ["finally", "finally"]


@behaviour("ASK-12")
async def test_a_run_that_swallowed_its_suspension_has_failed(
    serve: Serve, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        with suppress(BaseException):
            await ctx.elicit("Delete all?", bool)
        return "deleted"

    async with connect(await serve(bridge), **client) as mcp:
        result = await mcp.tools.call("ask")
    assert result.is_error
    assert "deleted" not in result.text()
    assert not mcp.asked
    assert "swallowed its suspension" in caplog.text


@behaviour("ASK-14", "ASK-20")
async def test_elicitation_is_off_unless_switched_on(serve: Serve, client: Any) -> None:
    bridge = Bridge("quiet")

    @bridge.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit("Sure?", bool)
        return "asked"

    async with connect(await serve(bridge), **client) as mcp:
        assert [tool["name"] for tool in await mcp.tools.list()] == ["ask"]
        result = await mcp.tools.call("ask")
    assert result.is_error
    assert result.error_code == "ELICITATION_DISABLED"
    assert result.text().startswith("ELICITATION_DISABLED: Elicitation is disabled in server configuration")
    assert "elicitation=True" in result.text()


@behaviour("ASK-17")
async def test_a_no_is_a_recorded_answer(serve: Serve, client: Any) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        first = await ctx.elicit("Sure?", bool)
        second = await ctx.elicit("Really?", bool)
        return f"{first.status} {second.status}"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: decline() if asked.message == "Sure?" else cancel())
        assert (await mcp.tools.call("ask")).text() == "decline cancel"
        assert [asked.message for asked in mcp.asked] == ["Sure?", "Really?"]


@behaviour("ASK-20")
async def test_a_public_error_reaches_the_model_and_no_other_does(
    serve: Serve, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = asking()

    @bridge.tool
    async def public() -> str:
        raise ToolError("Unknown ticket T-9.", "NOT_FOUND")

    @bridge.tool
    async def private() -> str:
        raise RuntimeError("password=hunter2")

    async with connect(await serve(bridge), **client) as mcp:
        result = await mcp.tools.call("public")
        assert result.is_error
        assert result.text() == "NOT_FOUND: Unknown ticket T-9."
        assert result.error_code == "NOT_FOUND"
        result = await mcp.tools.call("private")
        assert result.is_error
        assert "hunter2" not in result.text()
        assert "private" in result.text()
        assert "hunter2" in caplog.text
        with pytest.raises(RpcError) as unknown:
            await mcp.tools.call("absent")
        assert unknown.value.code == -32602
