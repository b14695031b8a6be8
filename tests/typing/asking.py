"""Never run: what mypy and pyright infer of the author's side. `test_types.py` checks this file with both."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, assert_type

import msgspec
from pydantic import BaseModel
from typing_extensions import TypedDict

from bridge import Answer, Attempt, Bridge, Context


class Confirm(BaseModel):
    confirm: bool


class Point(msgspec.Struct):
    x: int


@dataclass
class Place:
    name: str


class Row(TypedDict):
    id: int


class Color(Enum):
    RED = "red"


async def answers(ctx: Context) -> None:
    answer = await ctx.elicit("Sure?", Confirm)
    assert_type(answer, Answer[Confirm])
    assert_type(answer.status, Literal["accept", "decline", "cancel"])
    assert_type(answer.source, Literal["form", "chat", "page", "remembered"])
    assert_type(answer.accepted, bool)
    if answer.accepted:
        assert_type(answer.content, Confirm)
        assert_type(answer.content.confirm, bool)
    assert_type(await ctx.elicit("?", Point), Answer[Point])
    assert_type(await ctx.elicit("?", Place), Answer[Place])
    assert_type(await ctx.elicit("?", Row), Answer[Row])
    assert_type(await ctx.elicit("?", Color), Answer[Color])
    assert_type(await ctx.elicit("?", bool), Answer[bool])
    assert_type(await ctx.elicit("?", int), Answer[int])
    assert_type(await ctx.elicit("?", float), Answer[float])
    assert_type(await ctx.elicit("?", str), Answer[str])
    assert_type(await ctx.elicit("?", list[Color]), Answer[list[Color]])
    assert_type(await ctx.elicit("?", list[Literal["a", "b"]]), Answer[list[Literal["a", "b"]]])
    # What no checker has a type for yet: a special form as a value (PEP 747).
    assert_type(await ctx.elicit("?", Literal["a", "b"]), Answer[Any])
    assert_type(await ctx.elicit("?", {"type": "object"}), Answer[dict[str, Any]])
    full = await ctx.elicit("?", Confirm, key="k", on_invalid="reask", not_secret=("pin",))
    assert_type(full, Answer[Confirm])


def plain_answers(ctx: Context) -> None:
    answer = ctx.elicit_sync("Sure?", Confirm)
    assert_type(answer, Answer[Confirm])
    if answer.accepted:
        assert_type(answer.content, Confirm)
    assert_type(ctx.elicit_sync("?", Point), Answer[Point])
    assert_type(ctx.elicit_sync("?", Row), Answer[Row])
    assert_type(ctx.elicit_sync("?", Color), Answer[Color])
    assert_type(ctx.elicit_sync("?", bool), Answer[bool])
    assert_type(ctx.elicit_sync("?", int), Answer[int])
    assert_type(ctx.elicit_sync("?", str), Answer[str])
    assert_type(ctx.elicit_sync("?", list[Color]), Answer[list[Color]])
    assert_type(ctx.elicit_sync("?", Literal["a", "b"]), Answer[Any])
    assert_type(ctx.elicit_sync("?", {"type": "object"}), Answer[dict[str, Any]])
    assert_type(ctx.elicit_sync("?", Confirm, key="k", on_invalid="error", not_secret=["pin"]), Answer[Confirm])


async def more_questions(ctx: Context) -> None:
    found = await ctx.elicit_all({"a": ("A?", Confirm), "b": ("B?", bool)})
    assert_type(found, dict[str, Answer[Any]])
    page = await ctx.elicit_url("Pay", "https://example.com", key="pay")
    assert_type(page, Answer[None])
    attempt = await ctx.try_elicit("k", "?", Confirm)
    assert_type(attempt, Attempt)
    assert_type(attempt.status, Literal["required", "accept", "decline", "cancel"])
    assert_type(await ctx.sample([], 10, temperature=0.5), dict[str, Any])
    assert_type(await ctx.list_roots(), list[dict[str, Any]])
    assert_type(ctx.input_responses, dict[str, Any])


async def count() -> int:
    return 1


async def nothing() -> None: ...


def label() -> str:
    return "x"


async def steps(ctx: Context, ticket: str) -> None:
    async def look_up() -> dict[str, int]:
        return {ticket: 1}

    assert_type(await ctx.step("a", count), int)
    assert_type(await ctx.step("b", nothing), None)
    assert_type(await ctx.step("c", label), str)
    assert_type(await ctx.step("d", look_up), dict[str, int])
    assert_type(await ctx.step("e", lambda: count()), int)
    assert_type(await ctx.step("f", lambda: [1]), list[int])
    counted = await ctx.step("g", count)
    assert_type(counted + 1, int)


def plain_steps(ctx: Context) -> None:
    assert_type(ctx.step_sync("a", label), str)
    assert_type(ctx.step_sync("b", lambda: 1), int)


bridge = Bridge("typed", elicitation=True, threads=2, on_invalid="reask", chat_consent="deny", not_secret=("pin",))


@bridge.tool
async def bare(ctx: Context, id: str) -> int:  # noqa: A002
    return len(id)


@bridge.tool(name="other", annotations={"readOnlyHint": True}, on_invalid="error", duplicates="separate")
def with_options(id: str, times: int = 1) -> str:  # noqa: A002
    return id * times


@bridge.prompt(title="Greet")
def greet(who: str) -> str:
    return who


@bridge.resource("notes://{day}", mime_type="text/plain")
async def notes(day: str) -> bytes:
    return day.encode()


@bridge.completion("greet", "who")
def names(typed: str, given: dict[str, str]) -> list[str]:
    return [typed]


async def functions_keep_their_types(ctx: Context) -> None:
    assert_type(await bare(ctx, "x"), int)
    assert_type(await bare(id="x", ctx=ctx), int)
    assert_type(with_options("x", times=2), str)
    assert_type(greet("x"), str)
    assert_type(await notes("x"), bytes)
    assert_type(names("x", {}), list[str])
