"""Several questions at once, pages, questions without suspension, plain functions, sampling and roots, prompts."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, field_validator

from bridge import Attempt, Bridge, Context, PushLimits, ToolError
from bridge.asking.dialects import request_params
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.asking.question import Question
from bridge.protocol.revisions import REVISIONS
from bridge.stores import Store
from bridge.testing import Asked, CallResult, Client, RpcError, accept, cancel, connect, decline
from tests.behaviours.test_asking import CLIENTS, client
from tests.behaviours.test_push import post_call, respond, text
from tests.conftest import Serve
from tests.wiretap import Tap

__all__ = ["client"]

behaviour = pytest.mark.behaviour

SECONDS = 20
CHATS = [name for name in CLIENTS if name.startswith("chat")]
PUSHES = [name for name in CLIENTS if name.startswith("push")]
YES = accept({"confirm": True})


class Name(BaseModel):
    name: str


class Known(BaseModel):
    """A name with a rule that no form shows."""

    name: str

    @field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        if name.startswith("Nobody"):
            raise ValueError(f"{name} is nobody")
        return name


def asking(store: Store | None = None, **options: Any) -> Bridge:
    return Bridge("asking", elicitation=True, store=store, **options)


def named(asked: Asked) -> Any:
    """An answer that says which question it answers."""
    return accept({"name": asked.message})


async def call(mcp: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and answer nothing."""
    return await mcp.request("tools/call", {"name": tool, "arguments": arguments})


async def tell(mcp: Client, elicit_id: str, action: str = "accept", content: Any = None) -> CallResult:
    """Call the fallback tool."""
    arguments: dict[str, Any] = {"elicitId": elicit_id, "action": action}
    if content is not None:
        arguments["content"] = content
    return CallResult(await mcp.request("tools/call", {"name": FALLBACK_TOOL_NAME, "arguments": arguments}))


# ASK-7


class Trip:
    """A bridge with a tool that asks three questions in one round; `seen` gets the answers of each run that had all."""

    def __init__(self, store: Store | None = None) -> None:
        self.runs = 0
        self.seen: list[dict[str, Any]] = []
        self.bridge = asking(store)

        @self.bridge.tool
        async def trip(ctx: Context) -> str:
            self.runs += 1
            answers = await ctx.elicit_all({"from": ("From?", Name), "to": ("To?", Name), "back": ("Back?", bool)})
            self.seen.append({key: answer.content or answer.status for key, answer in answers.items()})
            sure = await ctx.elicit("Sure?", bool)
            return f"{sorted(answers)} {sure.status}"


ALL = {"from": {"name": "A"}, "to": {"name": "B"}, "back": {"confirm": True}}
ALL_SEEN = {"from": Name(name="A"), "to": Name(name="B"), "back": True}


def trip_answer(asked: Asked) -> Any:
    return accept({"From?": ALL["from"], "To?": ALL["to"]}.get(asked.message, {"confirm": True}))


@behaviour("ASK-7")
async def test_several_questions_are_one_round(serve: Serve) -> None:
    trip = Trip()
    async with connect(await serve(trip.bridge)) as mcp:
        first = await call(mcp, "trip")
        assert {key: asked["params"]["message"] for key, asked in first["inputRequests"].items()} == {
            "from": "From?",
            "to": "To?",
            "back": "Back?",
        }
        mcp.on_elicitation(trip_answer)
        assert (await mcp.tools.call("trip")).text() == "['back', 'from', 'to'] accept"
    assert trip.runs == 4, "once for the first look, then one run for three answers and one for the last"
    assert trip.seen[-1] == ALL_SEEN


@behaviour("ASK-7", "PSH-3")
@pytest.mark.parametrize("name", PUSHES)
async def test_several_questions_are_pushed_one_after_the_other(serve: Serve, name: str) -> None:
    trip, open_now = Trip(), 0

    async def answer(asked: Asked) -> Any:
        nonlocal open_now
        open_now += 1
        assert open_now == 1
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        open_now -= 1
        return trip_answer(asked)

    async with connect(await serve(trip.bridge), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(answer)
        assert (await mcp.tools.call("trip")).text() == "['back', 'from', 'to'] accept"
        assert [asked.message for asked in mcp.asked] == ["From?", "To?", "Back?", "Sure?"]
    assert trip.runs == 3
    assert trip.seen[-1] == ALL_SEEN


@behaviour("ASK-7", "CHT-3")
@pytest.mark.parametrize("name", CHATS)
async def test_several_questions_are_one_text_that_one_call_answers(serve: Serve, name: str, store: Store) -> None:
    trip = Trip(store)
    async with connect(await serve(trip.bridge), **CLIENTS[name]) as mcp:
        result = await call(mcp, "trip")
        told, pending = CallResult(result).text(), result["_meta"][PENDING]
        places = [told.index(part) for part in ("[from]", "From?", "[to]", "To?", "[back]", "Back?", "Ask the user")]
        assert places == sorted(places)
        assert set(pending["schema"]["properties"]) == set(ALL)
        assert [one["elicitId"] for one in pending["questions"]] == [f"{pending['elicitId']}~{n}" for n in range(3)]
        last = await tell(mcp, pending["elicitId"], content=ALL)
        assert "Sure?" in last.text()
        done = await tell(mcp, last.raw["_meta"][PENDING]["elicitId"], content={"confirm": True})
        assert done.text() == "['back', 'from', 'to'] accept"
    assert trip.runs == 3
    assert trip.seen[-1] == ALL_SEEN


@behaviour("ASK-7")
@pytest.mark.parametrize("name", CHATS)
async def test_several_questions_may_be_answered_one_by_one_in_any_order(serve: Serve, name: str, store: Store) -> None:
    trip = Trip(store)
    async with connect(await serve(trip.bridge), **CLIENTS[name]) as mcp:
        pending = (await call(mcp, "trip"))["_meta"][PENDING]
        head = pending["elicitId"]
        second = await tell(mcp, f"{head}~1", content=ALL["to"])
        assert not second.is_error
        assert "From?" in second.text()
        assert "To?" not in second.text()
        assert [one["elicitId"] for one in second.raw["_meta"][PENDING]["questions"]] == [f"{head}~0", f"{head}~2"]
        assert (await tell(mcp, f"{head}~9", content=ALL["to"])).text().startswith("No pending elicitation found")
        assert (await tell(mcp, f"{head}~0", content={"name": 7})).error_code == "INVALID_INPUT"
        third = await tell(mcp, f"{head}~0", content=ALL["from"])
        assert "Back?" in third.text()
        assert trip.runs == 1, "nothing runs before every answer is there"
        assert "Sure?" in (await tell(mcp, f"{head}~2", content=ALL["back"])).text()
        again = await tell(mcp, f"{head}~2", content=ALL["back"])
        assert "Sure?" in again.text(), "the same answer once more has the same result"
        other = await tell(mcp, f"{head}~2", content={"confirm": False})
        assert other.text().startswith("No pending elicitation found")
    assert len(trip.seen) == 1
    assert trip.seen[-1] == ALL_SEEN


@behaviour("ASK-7")
@pytest.mark.parametrize("name", CHATS)
async def test_an_answer_to_one_of_several_is_kept_whatever_is_said_of_it_later(serve: Serve, name: str) -> None:
    trip = Trip()
    async with connect(await serve(trip.bridge), **CLIENTS[name]) as mcp:
        head = (await call(mcp, "trip"))["_meta"][PENDING]["elicitId"]
        await tell(mcp, f"{head}~1", content=ALL["to"])
        await tell(mcp, f"{head}~1", content={"name": "elsewhere"})
        await tell(mcp, head, content={"from": ALL["from"], "back": ALL["back"]})
    assert trip.seen[-1] == ALL_SEEN


@behaviour("ASK-7")
@pytest.mark.parametrize("name", CHATS)
async def test_some_of_several_in_one_call_leave_the_rest_open(serve: Serve, name: str) -> None:
    trip = Trip()
    async with connect(await serve(trip.bridge), **CLIENTS[name]) as mcp:
        head = (await call(mcp, "trip"))["_meta"][PENDING]["elicitId"]
        rest = await tell(mcp, head, content={"to": ALL["to"], "elsewhere": 1})
        assert [one["elicitId"] for one in rest.raw["_meta"][PENDING]["questions"]] == [f"{head}~0", f"{head}~2"]
        wrong = await tell(mcp, head, content={"from": {"name": 7}, "back": ALL["back"]})
        assert wrong.error_code == "INVALID_INPUT"
        assert "from.name: 7 is not of type" in wrong.text()
        assert (await tell(mcp, head, content={})).error_code == "INVALID_INPUT"
        assert "Sure?" in (await tell(mcp, head, "decline")).text(), "a no is one to what is still open"
    assert trip.seen == [{"from": "decline", "to": Name(name="B"), "back": "decline"}]


@behaviour("ASK-7", "ANS-6")
async def test_chat_takes_the_content_of_several_questions_as_json_text_too(serve: Serve) -> None:
    trip = Trip()
    async with connect(await serve(trip.bridge), **CLIENTS["chat-2025-03-26"]) as mcp:
        head = (await call(mcp, "trip"))["_meta"][PENDING]["elicitId"]
        text = '{"from": {"name": "A"}, "to": {"name": "B"}, "back": {"confirm": "true"}}'
        assert "Sure?" in (await tell(mcp, head, content=text)).text()


@behaviour("ASK-7", "ASK-17")
@pytest.mark.parametrize("no", [decline(), cancel()], ids=["decline", "cancel"])
async def test_a_no_to_each_of_several(serve: Serve, client: Any, no: Any) -> None:
    trip = Trip()
    async with connect(await serve(trip.bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: no)
        assert (await mcp.tools.call("trip")).text() == f"['back', 'from', 'to'] {no['action']}"
        assert len(mcp.asked) == 4
    assert trip.seen[-1] == dict.fromkeys(ALL, no["action"])


@behaviour("ASK-7")
@pytest.mark.parametrize("name", CHATS)
async def test_a_no_to_all_of_several_in_one_call(serve: Serve, name: str) -> None:
    trip = Trip()
    async with connect(await serve(trip.bridge), **CLIENTS[name]) as mcp:
        head = (await call(mcp, "trip"))["_meta"][PENDING]["elicitId"]
        assert "Sure?" in (await tell(mcp, head, "decline")).text()
    assert trip.seen == [dict.fromkeys(ALL, "decline")]


@behaviour("ASK-7", "ANS-7")
async def test_answers_to_some_of_several_are_kept_and_the_rest_asked_again(serve: Serve) -> None:
    trip = Trip()
    async with connect(await serve(trip.bridge)) as mcp:
        result = await call(mcp, "trip")
        for key, content in ALL.items():
            assert key in result["inputRequests"]
            again = {"inputResponses": {key: accept(content)}, "requestState": result["requestState"]}
            result = await mcp.request("tools/call", {"name": "trip", "arguments": {}, **again})
        assert list(result["inputRequests"]) == ["elicitation-4"]
    assert trip.seen == [ALL_SEEN]
    assert trip.runs == 2


def asking_both() -> Bridge:
    """A bridge with a tool that asks two questions in one round, each with a rule that no form shows."""
    bridge = asking(on_invalid="reask")

    @bridge.tool
    async def both(ctx: Context) -> str:
        answers = await ctx.elicit_all({"a": ("A?", Known), "b": ("B?", Known)})
        return " ".join(answers[key].content.name for key in ("a", "b"))

    return bridge


@behaviour("ASK-7", "ANS-3")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
async def test_one_of_several_that_breaks_a_hidden_rule_is_asked_again_alone(serve: Serve, name: str) -> None:
    def answer(asked: Asked) -> Any:
        wrong = asked.message == "B?" and [one.message for one in mcp.asked].count("B?") == 1
        return accept({"name": "Nobody" if wrong else asked.message[0]})

    async with connect(await serve(asking_both()), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(answer)
        assert (await mcp.tools.call("both")).text() == "A B"
        assert [asked.message.split("\n")[0] for asked in mcp.asked] == ["A?", "B?", "B?"]
        assert "\nname: " in mcp.asked[-1].message, "what is asked again needs no name of its question"


@behaviour("ASK-7", "ANS-2")
async def test_one_of_several_that_breaks_a_hidden_rule_may_be_corrected_in_the_same_round(serve: Serve) -> None:
    bridge = asking()

    @bridge.tool
    async def both(ctx: Context) -> str:
        answers = await ctx.elicit_all({"a": ("A?", Known), "b": ("B?", Known)})
        return " ".join(answers[key].content.name for key in ("a", "b"))

    async with connect(await serve(bridge)) as mcp:
        first = await call(mcp, "both")
        for name, end in (("Nobody", "INVALID_INPUT: "), ("B", "A B")):
            responses = {"a": accept({"name": "A"}), "b": accept({"name": name})}
            again = {"inputResponses": responses, "requestState": first["requestState"]}
            result = await mcp.request("tools/call", {"name": "both", "arguments": {}, **again})
            assert CallResult(result).text().startswith(end)


@behaviour("ASK-7", "ANS-4")
@pytest.mark.parametrize("name", CHATS)
async def test_on_chat_one_of_several_that_breaks_a_hidden_rule_may_be_corrected(serve: Serve, name: str) -> None:
    async with connect(await serve(asking_both()), **CLIENTS[name]) as mcp:
        head = (await call(mcp, "both"))["_meta"][PENDING]["elicitId"]
        refused = await tell(mcp, head, content={"a": {"name": "A"}, "b": {"name": "Nobody"}})
        assert refused.error_code == "INVALID_INPUT"
        assert "Nobody is nobody" in refused.text()
        assert (await tell(mcp, head, content={"a": {"name": "A"}, "b": {"name": "B"}})).text() == "A B"


@behaviour("ASK-7", "ANS-4")
@pytest.mark.parametrize("name", CHATS)
async def test_on_chat_one_of_several_that_breaks_a_hidden_rule_leaves_the_others(serve: Serve, name: str) -> None:
    async with connect(await serve(asking_both()), **CLIENTS[name]) as mcp:
        head = (await call(mcp, "both"))["_meta"][PENDING]["elicitId"]
        await tell(mcp, f"{head}~0", content={"name": "A"})
        assert (await tell(mcp, f"{head}~1", content={"name": "Nobody"})).error_code == "INVALID_INPUT"
        assert (await tell(mcp, f"{head}~1", content={"name": "B"})).text() == "A B"


@behaviour("ASK-7", "ANS-4")
@pytest.mark.parametrize("name", CHATS)
async def test_on_chat_the_reasons_name_the_one_of_several_that_they_are_about(serve: Serve, name: str) -> None:
    async with connect(await serve(asking_both()), **CLIENTS[name]) as mcp:
        head = (await call(mcp, "both"))["_meta"][PENDING]["elicitId"]
        refused = await tell(mcp, head, content={"a": {"name": "A"}, "b": {"name": "Nobody"}})
        assert "b.name: " in refused.text()


# ASK-8


async def in_task_group(ctx: Context, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def ask(name: str) -> None:
        found[name] = (await ctx.elicit(f"{name}?", Name)).content

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(ask, name)
    return found


async def in_asyncio_group(ctx: Context, names: list[str]) -> dict[str, Any]:
    async with asyncio.TaskGroup() as tasks:
        running = {name: tasks.create_task(ctx.elicit(f"{name}?", Name)) for name in names}
    return {name: task.result().content for name, task in running.items()}


async def in_gather(ctx: Context, names: list[str]) -> dict[str, Any]:
    answers = await asyncio.gather(*(ctx.elicit(f"{name}?", Name) for name in names))
    return {name: answer.content for name, answer in zip(names, answers, strict=True)}


async def in_wait_for(ctx: Context, names: list[str]) -> dict[str, Any]:
    return {name: (await asyncio.wait_for(ctx.elicit(f"{name}?", Name), 5)).content for name in names}


async def in_deadlines(ctx: Context, names: list[str]) -> dict[str, Any]:
    found = {}
    for name in names:
        with anyio.fail_after(5):
            found[name] = (await ctx.elicit(f"{name}?", Name)).content
    return found


async def in_tasks(ctx: Context, names: list[str]) -> dict[str, Any]:
    running = {name: asyncio.ensure_future(ctx.elicit(f"{name}?", Name)) for name in names}
    await asyncio.wait(running.values())
    return {name: task.result().content for name, task in running.items()}


async def nested(ctx: Context, names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def ask(name: str) -> None:
        first = (await ctx.elicit(f"{name}?", Name)).content
        async with anyio.create_task_group() as inner:
            for part in ("x", "y"):
                inner.start_soon(ask_inner, name, part)
        # The same words in each task: told apart by what was asked before.
        await ctx.elicit("Done?", bool, key=f"done-{name}")
        found[name] = first

    async def ask_inner(name: str, part: str) -> None:
        answer = await ctx.elicit(f"{name}.{part}?", Name)
        assert answer.content == Name(name=f"{name}.{part}?")

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(ask, name)
    return found


WAYS = [in_task_group, in_asyncio_group, in_gather, in_wait_for, in_deadlines, in_tasks, nested]


@behaviour("ASK-8")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_questions_asked_at_once_each_get_their_own_answer(
    serve: Serve, client: Any, way: Callable[..., Any]
) -> None:
    bridge, names = asking(), ["one", "two", "three"]
    seen: list[Any] = []

    @bridge.tool
    async def ask(ctx: Context) -> str:
        seen.append(await way(ctx, names))
        return "done"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: YES if asked.message == "Done?" else named(asked))
        with anyio.fail_after(SECONDS):
            assert (await mcp.tools.call("ask")).text() == "done"
        messages = [asked.message for asked in mcp.asked if asked.message != "Done?"]
        assert len(set(messages)) == len(messages), "nothing is asked twice"
    assert seen[-1] == {name: Name(name=f"{name}?") for name in names}


@behaviour("ASK-8")
async def test_tasks_that_come_to_ask_in_another_order_each_time(serve: Serve, client: Any) -> None:
    bridge, runs, names = asking(), 0, ["one", "two", "three", "four"]

    @bridge.tool
    async def ask(ctx: Context) -> str:
        nonlocal runs
        runs += 1
        found: dict[str, str] = {}

        async def one(name: str, delay: int) -> None:
            for _ in range(delay):
                await anyio.lowlevel.checkpoint()
            first = await ctx.elicit(f"{name}?", Name)
            for _ in range(delay):
                await anyio.lowlevel.checkpoint()
            second = await ctx.elicit(f"{name} again?", Name)
            assert first.content
            assert second.content
            found[name] = f"{first.content.name}{second.content.name}"

        async with anyio.create_task_group() as tasks:
            for place, name in enumerate(names):
                tasks.start_soon(one, name, (place * runs * 3) % 5)
        return str(dict(sorted(found.items())))

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(named)
        expected = {name: f"{name}?{name} again?" for name in sorted(names)}
        assert (await mcp.tools.call("ask")).text() == str(expected)
        assert len(mcp.asked) == 8


@behaviour("ASK-8", "ASK-3")
async def test_one_question_in_two_tasks_needs_keys_and_then_each_has_its_answer(serve: Serve, client: Any) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        left, right = await asyncio.gather(*(ctx.elicit("Who?", Name, key=key) for key in ("left", "right")))
        return f"{left.content.name} {right.content.name}"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": f"n{len(mcp.asked)}"}))
        assert (await mcp.tools.call("ask")).text() == "n1 n2"


@behaviour("ASK-8", "ASK-3")
async def test_one_question_in_two_tasks_of_gather_without_keys_is_the_authors_error(
    serve: Serve, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        await asyncio.gather(ctx.elicit("Who?", Name), ctx.elicit("Who?", Name))
        return "never"

    async with connect(await serve(bridge), **client) as mcp:
        result = await mcp.tools.call("ask")
        assert mcp.asked == []
    assert result.is_error
    assert "give each a key=" in caplog.text


@behaviour("ASK-8", "ASK-12")
async def test_gather_that_collects_exceptions_has_swallowed_the_suspension(
    serve: Serve, client: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = asking()

    @bridge.tool
    async def ask(ctx: Context) -> str:
        await asyncio.gather(ctx.elicit("Who?", Name), return_exceptions=True)
        return "never"

    async with connect(await serve(bridge), **client) as mcp:
        result = await mcp.tools.call("ask")
        assert mcp.asked == []
    assert result.is_error
    assert "swallowed its suspension" in caplog.text


@behaviour("ASK-6", "ASK-8")
async def test_a_task_that_gather_left_behind_takes_no_step_once_its_run_has_stopped(serve: Serve) -> None:
    bridge, effects = asking(), []

    @bridge.tool
    async def pay(ctx: Context) -> str:
        async def charge() -> None:
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            await ctx.step("charge", lambda: effects.append("charged"))

        await asyncio.gather(ctx.elicit("Sure?", bool), charge())
        return "paid"

    async def answer(asked: Asked) -> Any:
        for _ in range(200):
            await anyio.lowlevel.checkpoint()
        return YES

    async with connect(await serve(bridge)) as mcp:
        mcp.on_elicitation(answer)
        assert (await mcp.tools.call("pay")).text() == "paid"
    assert effects == ["charged"]


# ASK-9

PAGE = "https://example.com/pay?id=1#top"
URL_CLIENTS: dict[str, dict[str, Any]] = {
    "modern": {"capabilities": {"elicitation": {"url": {}}}},
    "push-2025-11-25": {"revision": "2025-11-25", "capabilities": {"elicitation": {"form": {}, "url": {}}}},
    "chat-2025-11-25": {"revision": "2025-11-25", "capabilities": {"elicitation": {"form": {}}}},
    "chat-2025-06-18": {"revision": "2025-06-18"},
    "chat-2025-03-26": {"revision": "2025-03-26"},
    "chat-2024-11-05": {"revision": "2024-11-05"},
}


def paying(**options: Any) -> Bridge:
    bridge = asking(**options)

    @bridge.tool
    async def pay(ctx: Context) -> str:
        answer = await ctx.elicit_url("Please pay", PAGE)
        return f"{answer.status} {answer.content} {answer.accepted}"

    return bridge


@behaviour("ASK-9", "CHT-13")
@pytest.mark.parametrize("kind", URL_CLIENTS)
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (accept(), "accept None True"),
        (accept({"paid": True}), "accept None True"),
        (decline(), "decline None False"),
        (cancel(), "cancel None False"),
    ],
)
async def test_a_page_on_every_route(serve: Serve, kind: str, answer: Any, status: str) -> None:
    async with connect(await serve(paying()), **URL_CLIENTS[kind]) as mcp:
        mcp.on_elicitation(lambda asked: answer)
        assert (await mcp.tools.call("pay")).text() == status
        (asked,) = mcp.asked
    assert asked.message == "Please pay"
    assert asked.url == PAGE
    if kind == "modern":
        assert asked.params == {"mode": "url", "message": "Please pay", "url": PAGE}
    elif kind.startswith("push"):
        assert asked.params.pop("elicitationId")
        assert asked.params == {"mode": "url", "message": "Please pay", "url": PAGE}


@behaviour("ASK-9", "CHT-13")
@pytest.mark.parametrize("kind", [kind for kind in URL_CLIENTS if kind.startswith("chat")])
async def test_on_chat_the_text_gives_the_link(serve: Serve, kind: str) -> None:
    async with connect(await serve(paying()), **URL_CLIENTS[kind]) as mcp:
        told = CallResult(await call(mcp, "pay")).text()
        assert "Please pay" in told
        assert "open this link" in told
        assert PAGE in told
        assert "says it is done" in told


@behaviour("ASK-9")
async def test_a_modern_client_that_opens_no_pages_is_refused_by_name(serve: Serve) -> None:
    async with connect(await serve(paying())) as mcp:
        with pytest.raises(RpcError) as refused:
            await mcp.tools.call("pay")
    assert refused.value.code == -32021
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}


BAD_URLS = [
    "",
    "example.com",
    "/pay",
    "//example.com/pay",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "data:text/html,x",
    "ftp://example.com/x",
    "mailto:a@b.c",
    "https://",
    "https:///pay",
    "https:example.com",
    "http://:80/",
]


WEAK_URLS = [
    " https://example.com/",
    "https://example.com/a b",
    "https://exa mple.com/",
    "https://example.com/a\nb",
    "java\nscript:x",
    "https://[::1/",
    "https://example.com:port/",
    "https://example.com:99999/",
]


@behaviour("ASK-9")
@pytest.mark.parametrize(
    "url",
    [*BAD_URLS, *WEAK_URLS],
)
async def test_what_is_no_absolute_url_of_the_web_is_refused(
    serve: Serve, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = asking()

    @bridge.tool
    async def pay(ctx: Context) -> str:
        await ctx.elicit_url("Please pay", url)
        return "asked"

    app = await serve(bridge)
    for kind in ("modern", "push-2025-11-25", "chat-2025-03-26"):
        caplog.clear()
        async with connect(app, **URL_CLIENTS[kind]) as mcp:
            result = await mcp.tools.call("pay")
            assert mcp.asked == []
        assert result.is_error
        assert "absolute http or https URL" in caplog.text


# ASK-10


def trying(schema_or_url: Any = Known) -> Bridge:
    bridge = asking()

    @bridge.tool
    async def attempt(ctx: Context) -> str:
        found: Attempt = await ctx.try_elicit("who", "Who?", schema_or_url)
        if found.status == "required":
            return found.result  # type: ignore[no-any-return]
        return f"{found.status} {found.data!r} {found.result}"

    return bridge


@behaviour("ASK-10")
@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (accept({"name": "Ann"}), "accept Known(name='Ann') None"),
        (decline(), "decline None None"),
        (cancel(), "cancel None None"),
    ],
    ids=["accept", "decline", "cancel"],
)
async def test_an_attempt_finds_the_answer_or_returns_what_asks(
    serve: Serve, client: Any, answer: Any, end: str
) -> None:
    async with connect(await serve(trying()), **client) as mcp:
        mcp.on_elicitation(lambda asked: answer)
        assert (await mcp.tools.call("attempt")).text() == end
        assert [asked.message for asked in mcp.asked] == ["Who?"]


@behaviour("ASK-10")
async def test_an_attempt_asks_under_its_key(serve: Serve) -> None:
    async with connect(await serve(trying())) as mcp:
        result = await call(mcp, "attempt")
    assert list(result["inputRequests"]) == ["who"]


@behaviour("ASK-10")
@pytest.mark.parametrize("kind", URL_CLIENTS)
async def test_an_attempt_at_a_page(serve: Serve, kind: str) -> None:
    async with connect(await serve(trying(PAGE)), **URL_CLIENTS[kind]) as mcp:
        mcp.on_elicitation(lambda asked: accept())
        assert (await mcp.tools.call("attempt")).text() == "accept None None"
        assert [asked.url for asked in mcp.asked] == [PAGE]


@behaviour("ASK-10", "ANS-3")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
@pytest.mark.parametrize("bad", [{"name": 7}, {"name": "Nobody"}], ids=["schema", "validator"])
async def test_an_attempt_with_invalid_data_is_required_again_with_the_reasons(
    serve: Serve, name: str, bad: Any
) -> None:
    async with connect(await serve(trying()), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(lambda asked: accept(bad if len(mcp.asked) < 3 else {"name": "Ann"}))
        assert (await mcp.tools.call("attempt")).text() == "accept Known(name='Ann') None"
        assert len(mcp.asked) == 3
        for asked in mcp.asked[1:]:
            assert asked.message.startswith("Who?\n")
            assert "name" in asked.message


@behaviour("ASK-10", "ANS-3")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"name": 7}, id="schema"),
        pytest.param(
            {"name": "Nobody"},
            id="validator",
        ),
    ],
)
async def test_an_attempt_that_is_never_valid_ends_as_other_questions_do(serve: Serve, name: str, bad: Any) -> None:
    async with connect(await serve(trying()), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(lambda asked: accept(bad))
        result = await mcp.tools.call("attempt")
        assert result.is_error
        assert result.error_code == "INVALID_INPUT"
        assert len(mcp.asked) == 4


@behaviour("ASK-10")
async def test_an_attempt_that_is_not_returned_asks_nothing(serve: Serve, client: Any) -> None:
    bridge = asking()

    @bridge.tool
    async def attempt(ctx: Context) -> str:
        return (await ctx.try_elicit("who", "Who?", Name)).status

    async with connect(await serve(bridge), **client) as mcp:
        assert (await mcp.tools.call("attempt")).text() == "required"
        assert mcp.asked == []


@behaviour("ASK-10", "ASK-14")
async def test_an_attempt_fails_where_asking_is_off(serve: Serve, client: Any) -> None:
    bridge = Bridge("quiet")

    @bridge.tool
    async def attempt(ctx: Context) -> str:
        return (await ctx.try_elicit("who", "Who?", Name)).status

    async with connect(await serve(bridge), **client) as mcp:
        assert (await mcp.tools.call("attempt")).error_code == "ELICITATION_DISABLED"


# ASK-11


@behaviour("ASK-11")
async def test_the_raw_answers_of_a_round_are_there_for_modern_clients_only(serve: Serve, client: Any) -> None:
    bridge, raw = asking(), []

    @bridge.tool
    async def ask(ctx: Context) -> str:
        raw.append(ctx.input_responses)
        await ctx.elicit("Sure?", bool)
        await ctx.elicit("Really?", bool)
        return "done"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: YES)
        assert (await mcp.tools.call("ask")).text() == "done"
    if client == CLIENTS["modern"]:
        assert raw == [{}, {"elicitation-1": YES}, {"elicitation-2": YES}]
    else:
        assert raw == [{}, {}, {}]


@behaviour("ASK-11", "ANS-7")
async def test_the_raw_answers_are_as_they_were_sent_and_nothing_is_made_of_them(serve: Serve) -> None:
    bridge, raw = asking(), []

    @bridge.tool
    async def ask(ctx: Context) -> str:
        raw.append(ctx.input_responses)
        return (await ctx.elicit("Sure?", bool)).status

    async with connect(await serve(bridge)) as mcp:
        first = await call(mcp, "ask")
        responses = {"elicitation-1": {"action": "decline", "content": {"x": 1}, "more": [1]}, "elsewhere": 7}
        again = {"inputResponses": responses, "requestState": first["requestState"]}
        result = await mcp.request("tools/call", {"name": "ask", "arguments": {}, **again})
    assert result["content"][0]["text"] == "decline"
    assert raw == [{}, responses]


# ASK-13


@behaviour("ASK-13")
async def test_a_plain_function_asks_on_every_route(serve: Serve, client: Any, store: Store) -> None:
    bridge, threads, effects = asking(store), set(), []

    @bridge.tool
    def ask(ctx: Context, who: str) -> str:
        threads.add(threading.current_thread() is threading.main_thread())
        effect = ctx.step_sync("once", lambda: effects.append("ran") or len(effects))
        first = ctx.elicit_sync(f"{who}?", Name)
        second = ctx.elicit_sync("Sure?", bool, key="sure")
        return f"{effect} {first.content.name} {second.content}"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: YES if asked.message == "Sure?" else named(asked))
        assert (await mcp.tools.call("ask", {"who": "Ann"})).text() == "1 Ann? True"
        assert [asked.message for asked in mcp.asked] == ["Ann?", "Sure?"]
    assert threads == {False}
    assert effects == ["ran"]


@behaviour("ASK-13", "ANS-1")
async def test_a_plain_function_never_gets_past_an_invalid_answer(serve: Serve, client: Any) -> None:
    bridge, passed = asking(), []

    @bridge.tool
    def ask(ctx: Context) -> str:
        passed.append(ctx.elicit_sync("Who?", Known).content)
        return "done"

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": "Nobody"}))
        assert (await mcp.tools.call("ask")).error_code == "INVALID_INPUT"
    assert passed == []


@behaviour("ASK-13")
@pytest.mark.parametrize("name", ["push-2025-11-25", "modern", "chat-2025-03-26"])
async def test_plain_functions_that_wait_for_people_hold_no_thread(serve: Serve, name: str) -> None:
    bridge, at_once, most, lock = asking(threads=2), 0, 0, threading.Lock()
    done: list[str] = []

    @bridge.tool(duplicates="separate")
    def ask(ctx: Context, who: str) -> str:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        try:
            return str(ctx.elicit_sync(f"{who}?", Name).content)
        finally:
            with lock:
                at_once -= 1

    @bridge.tool
    def plain() -> str:
        return "ran"

    people, all_asked, go_on = 60, anyio.Event(), anyio.Event()
    waiting = 0

    async def answer(asked: Asked) -> Any:
        nonlocal waiting
        waiting += 1
        if waiting == people:
            all_asked.set()
        await go_on.wait()
        return named(asked)

    app = await serve(bridge)

    async def one(who: str) -> None:
        # Each person with a client of their own: a session may have few pending calls.
        async with connect(app, **CLIENTS[name]) as mcp:
            mcp.on_elicitation(answer)
            done.append((await mcp.tools.call("ask", {"who": who})).text())

    with anyio.fail_after(SECONDS):
        async with connect(app, **CLIENTS[name]) as other, anyio.create_task_group() as tasks:
            for number in range(people):
                tasks.start_soon(one, f"p{number}")
            await all_asked.wait()
            assert at_once == 0
            assert (await other.tools.call("plain")).text() == "ran"
            go_on.set()
    assert sorted(done) == sorted(f"name='p{number}?'" for number in range(people))
    assert most <= 2


# ASK-18

SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m-1"}
HELLO = [{"role": "user", "content": {"type": "text", "text": "Hello"}}]
ROOTS = {"roots": [{"uri": "file:///home", "name": "home"}, {"uri": "file:///tmp"}]}
BOTH = {"sampling": {}, "roots": {}}
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def helping() -> Bridge:
    """A bridge with tools that ask the client itself; asking users is off."""
    bridge = Bridge("helping")

    @bridge.tool
    async def write(ctx: Context) -> str:
        made = await ctx.sample(HELLO, 50, systemPrompt="Be brief", temperature=0.5)
        return f"{made['model']}: {made['content']['text']}"

    @bridge.tool
    async def look(ctx: Context) -> str:
        return " ".join(root["uri"] for root in await ctx.list_roots())

    @bridge.tool
    async def either(ctx: Context) -> str:
        try:
            return str((await ctx.sample(HELLO, 5))["model"])
        except ToolError as error:
            return f"none: {error.message} {error.code}"

    @bridge.tool
    async def twice(ctx: Context) -> str:
        first = await ctx.sample(HELLO, 5)
        second = await ctx.sample(HELLO, 5)
        return f"{first['model']} {second['model']}"

    return bridge


@behaviour("ASK-18")
async def test_a_modern_client_samples_and_tells_its_roots_in_rounds(serve: Serve) -> None:
    async with connect(await serve(helping()), capabilities=BOTH) as mcp:
        for tool, key, request, answer, end in (
            (
                "write",
                "sampling-1",
                {
                    "method": "sampling/createMessage",
                    "params": {"messages": HELLO, "maxTokens": 50, "systemPrompt": "Be brief", "temperature": 0.5},
                },
                SAMPLED,
                "m-1: hi",
            ),
            ("look", "roots-1", {"method": "roots/list"}, ROOTS, "file:///home file:///tmp"),
        ):
            first = await call(mcp, tool)
            assert first["inputRequests"] == {key: request}
            again = {"inputResponses": {key: answer}, "requestState": first["requestState"]}
            result = await mcp.request("tools/call", {"name": tool, "arguments": {}, **again})
            assert result["content"][0]["text"] == end


@behaviour("ASK-18")
@pytest.mark.parametrize("bad", [7, {}, {"role": "assistant"}, {"action": "accept"}], ids=str)
async def test_a_malformed_answer_of_a_modern_client_is_an_error(serve: Serve, bad: Any) -> None:
    async with connect(await serve(helping()), capabilities=BOTH) as mcp:
        first = await call(mcp, "write")
        again = {"inputResponses": {"sampling-1": bad}, "requestState": first["requestState"]}
        with pytest.raises(RpcError) as error:
            await mcp.request("tools/call", {"name": "write", "arguments": {}, **again})
    assert error.value.code == -32602
    assert "sampling" in error.value.message


@behaviour("ASK-18")
@pytest.mark.parametrize("revision", LEGACY)
async def test_a_legacy_client_is_pushed_both(serve: Serve, revision: str) -> None:
    async with connect(await serve(helping()), revision=revision, capabilities=BOTH) as mcp:
        stream = await post_call(mcp, "write", identity="w")
        asked = await stream.next()
        assert asked["method"] == "sampling/createMessage"
        assert asked["params"] == {
            "messages": HELLO,
            "maxTokens": 50,
            "systemPrompt": "Be brief",
            "temperature": 0.5,
        }
        assert await respond(mcp, asked["id"], SAMPLED) == 202
        assert text((await stream.rest())[-1]) == "m-1: hi"
        stream = await post_call(mcp, "look", identity="l")
        asked = await stream.next()
        assert asked["method"] == "roots/list"
        await respond(mcp, asked["id"], ROOTS)
        assert text((await stream.rest())[-1]) == "file:///home file:///tmp"


@behaviour("ASK-18")
@pytest.mark.parametrize("revision", LEGACY)
async def test_a_client_that_does_not_sample_after_all_is_a_tool_error(serve: Serve, revision: str) -> None:
    async with connect(await serve(helping()), revision=revision, capabilities=BOTH) as mcp:
        stream = await post_call(mcp, "either")
        asked = await stream.next()
        await respond(mcp, asked["id"], error={"code": -1, "message": "User rejected sampling request"})
        assert text((await stream.rest())[-1]).startswith("none: ")
        assert (await mcp.tools.call("write")).error_code == "ELICITATION_NOT_SUPPORTED"


@behaviour("ASK-18", "ASK-3")
async def test_the_same_message_sampled_twice_is_sampled_twice(serve: Serve) -> None:
    async with connect(await serve(helping()), revision="2025-06-18", capabilities=BOTH) as mcp:
        stream = await post_call(mcp, "twice")
        for model in ("one", "two"):
            await respond(mcp, (await stream.next())["id"], {**SAMPLED, "model": model})
        assert text((await stream.rest())[-1]) == "one two"


@behaviour("ASK-18")
@pytest.mark.parametrize(("tool", "capability"), [("write", "sampling"), ("look", "roots")])
async def test_a_client_that_does_not_declare_it_is_told_which_capability(
    serve: Serve, client: Any, tool: str, capability: str
) -> None:
    async with connect(await serve(helping()), **client) as mcp:
        if client == CLIENTS["modern"]:
            with pytest.raises(RpcError) as refused:
                await mcp.tools.call(tool)
            assert refused.value.code == -32021
            assert refused.value.data == {"requiredCapabilities": {capability: {}}}
        else:
            result = await mcp.tools.call(tool)
            assert result.is_error
            assert result.error_code == "ELICITATION_NOT_SUPPORTED"
            assert f'"{capability}"' in result.text()


NEW_SAMPLING: dict[str, Any] = {
    "messages": HELLO,
    "maxTokens": 5,
    "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
    "toolChoice": {"mode": "auto"},
}


@behaviour("ASK-18", "LEG-10")
@pytest.mark.parametrize(
    ("revision", "params"),
    [
        *(
            pytest.param(
                revision,
                NEW_SAMPLING,
                id=f"{revision}-tools",
            )
            for revision in LEGACY
        ),
        pytest.param(
            "2024-11-05",
            {
                "messages": [{"role": "user", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}}],
                "maxTokens": 5,
            },
            id="2024-11-05-audio",
        ),
    ],
)
def test_what_is_sampled_is_shaped_for_the_revision(revision: str, params: dict[str, Any]) -> None:
    tap = Tap()
    question = Question(key="k", path="p", mode="sampling", params=params)
    shaped = request_params(question, REVISIONS[revision])
    message = {"jsonrpc": "2.0", "id": 1, "method": question.method, "params": shaped}
    tap.check(message, revision=revision, method=None)
    tap.assert_clean()


# ASK-19


def reading() -> Bridge:
    bridge = asking()

    @bridge.prompt()
    async def greet(ctx: Context, who: str) -> str:
        answer = await ctx.elicit(f"How shall I greet {who}?", Name)
        sure = await ctx.elicit("Sure?", bool)
        return f"{answer.content.name if answer.content else answer.status} {sure.content}"

    @bridge.prompt()
    def greet_plainly(ctx: Context) -> str:
        return str(ctx.elicit_sync("How?", Name).content)

    @bridge.resource("notes://today")
    async def today(ctx: Context) -> str:
        return str((await ctx.elicit("Whose?", Name)).content)

    @bridge.resource("notes://{day}/{hour}")
    async def at(ctx: Context, day: str, hour: int) -> str:
        return f"{day} {hour} {(await ctx.elicit(f'Whose on {day}?', Name)).content}"

    return bridge


def by_form(asked: Asked) -> Any:
    return YES if asked.message == "Sure?" else accept({"name": "Ann"})


@behaviour("ASK-19")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
async def test_prompts_and_resources_ask(serve: Serve, name: str) -> None:
    async with connect(await serve(reading()), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(by_form)
        prompt = await mcp.prompts.get("greet", {"who": "Bob"})
        assert prompt["messages"][0]["content"]["text"] == "Ann True"
        prompt = await mcp.prompts.get("greet_plainly")
        assert prompt["messages"][0]["content"]["text"] == "name='Ann'"
        assert (await mcp.resources.read("notes://today"))["contents"][0]["text"] == "name='Ann'"
        read = await mcp.resources.read("notes://monday/7")
        assert read["contents"][0]["text"] == "monday 7 name='Ann'"
        assert [asked.message for asked in mcp.asked] == [
            "How shall I greet Bob?",
            "Sure?",
            "How?",
            "Whose?",
            "Whose on monday?",
        ]


@behaviour("ASK-19", "ASK-17")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
async def test_a_prompt_gets_a_no_as_a_tool_does(serve: Serve, name: str) -> None:
    async with connect(await serve(reading()), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(lambda asked: decline())
        prompt = await mcp.prompts.get("greet", {"who": "Bob"})
        assert prompt["messages"][0]["content"]["text"] == "decline None"


async def error_of(request: Awaitable[Any]) -> str:
    """The message of the JSON-RPC error with which a request ends; empty where it ends with a result."""
    try:
        await request
    except RpcError as error:
        return error.message
    return ""


@behaviour("ASK-19", "ANS-1")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
@pytest.mark.parametrize("bad", [{"name": 7}, {}], ids=str)
async def test_an_invalid_answer_ends_a_prompt_or_resource_as_an_error(name: str, bad: Any) -> None:
    async with connect(reading(), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(lambda asked: accept(bad))
        for attempt in (lambda: mcp.prompts.get("greet", {"who": "B"}), lambda: mcp.resources.read("notes://today")):
            assert "does not match the requested schema" in await error_of(attempt())


@behaviour("ASK-19")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
async def test_a_prompt_whose_answer_breaks_a_hidden_rule_is_an_error(name: str) -> None:
    bridge = asking()

    @bridge.prompt()
    async def greet(ctx: Context) -> str:
        return str((await ctx.elicit("Who?", Known)).content)

    async with connect(bridge, **CLIENTS[name]) as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": "Nobody"}))
        assert "Nobody is nobody" in await error_of(mcp.prompts.get("greet"))


@behaviour("ASK-19", "MOD-14")
@pytest.mark.parametrize("name", ["modern", *PUSHES])
async def test_a_prompt_that_never_stops_asking_is_an_error(name: str) -> None:
    bridge, runs = asking(), 0

    @bridge.prompt()
    async def greet(ctx: Context) -> str:
        nonlocal runs
        runs += 1
        await ctx.elicit(f"Run {runs}?", bool)
        return "never"

    async with connect(bridge, **CLIENTS[name]) as mcp:
        mcp.on_elicitation(lambda asked: YES)
        assert "Too many input rounds" in await error_of(mcp.prompts.get("greet"))


@behaviour("ASK-19", "PSH-6")
@pytest.mark.parametrize("name", PUSHES)
async def test_a_prompt_that_nobody_answers_is_an_error(name: str) -> None:
    bridge = asking(push=PushLimits(answer_seconds=0.0))

    @bridge.prompt()
    async def greet(ctx: Context) -> str:
        return str((await ctx.elicit("Who?", Name)).content)

    async with connect(bridge, **CLIENTS[name]) as mcp:
        assert "Nobody answered" in await error_of(mcp.prompts.get("greet"))


@behaviour("ASK-19")
@pytest.mark.parametrize("name", CHATS)
async def test_a_prompt_that_asks_where_there_is_no_chat_is_an_error(name: str) -> None:
    bridge = asking(fallback="off")

    @bridge.prompt()
    async def greet(ctx: Context) -> str:
        return str((await ctx.elicit("Who?", Name)).content)

    async with connect(bridge, **CLIENTS[name]) as mcp:
        assert "cannot be asked" in await error_of(mcp.prompts.get("greet"))


@behaviour("ASK-18", "ASK-19")
@pytest.mark.parametrize("revision", LEGACY)
async def test_a_prompt_that_samples_where_nothing_does_is_an_error(revision: str) -> None:
    bridge = asking()

    @bridge.prompt()
    async def greet(ctx: Context) -> str:
        return str(await ctx.sample(HELLO, 5))

    async with connect(bridge, revision=revision) as mcp:
        assert '"sampling"' in await error_of(mcp.prompts.get("greet"))


@behaviour("ASK-19")
@pytest.mark.parametrize("name", CHATS)
async def test_on_chat_a_prompt_or_resource_that_asks_is_an_error_with_the_reason(serve: Serve, name: str) -> None:
    async with connect(await serve(reading()), **CLIENTS[name]) as mcp:
        for attempt, target in (
            (lambda: mcp.prompts.get("greet", {"who": "Bob"}), "greet"),
            (lambda: mcp.resources.read("notes://today"), "notes://today"),
        ):
            with pytest.raises(RpcError) as error:
                await attempt()
            assert target in error.value.message
            assert "asks its user" in error.value.message
            assert "only while it calls a tool" in error.value.message
        assert mcp.asked == []


@behaviour("ASK-19")
async def test_a_modern_client_that_shows_no_forms_is_refused_by_name(serve: Serve) -> None:
    async with connect(await serve(reading()), capabilities={}) as mcp:
        with pytest.raises(RpcError) as refused:
            await mcp.resources.read("notes://today")
    assert refused.value.code == -32021
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


@behaviour("ASK-18")
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_tools_are_sampled_with_only_where_the_client_declares_it(serve: Serve, revision: str) -> None:
    bridge = Bridge("tooled")

    @bridge.tool
    async def write(ctx: Context) -> str:
        made = await ctx.sample(HELLO, 5, tools=NEW_SAMPLING["tools"], toolChoice={"mode": "auto"})
        return str(made["model"])

    app = await serve(bridge)
    async with connect(app, revision=revision, capabilities={"sampling": {}}) as mcp:
        result = await mcp.tools.call("write")
        assert "sampling.tools" in result.text()
        assert result.error_code == "ELICITATION_NOT_SUPPORTED"
    async with connect(app, capabilities={"sampling": {"tools": {}}}) as mcp:
        first = await call(mcp, "write")
        params = first["inputRequests"]["sampling-1"]["params"]
        assert params == {**NEW_SAMPLING, "messages": HELLO}
