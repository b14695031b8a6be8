"""What every upstream must do, as checks that run for ours and for a user's. See `bridge.testing.check_upstream`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import msgspec

from bridge.asking.journal import Journal
from bridge.asking.question import Question, Reply
from bridge.asking.routes import RouteName
from bridge.protocol.clients import ClientProfile
from bridge.protocol.messages import Json, encode
from bridge.protocol.revisions import MODERN
from bridge.stores.memory import MemoryStore
from bridge.upstreams.base import (
    Call,
    CallRequest,
    Deaf,
    Failed,
    Finished,
    Kind,
    Outcome,
    Stopped,
    Surroundings,
    Upstream,
    Visitor,
)

__all__ = ["check_upstream"]

_SECONDS: Final = 30.0
_KINDS: Final[tuple[Kind, ...]] = ("tools", "prompts", "resources", "resourceTemplates")
_KEYS: Final[dict[Kind, str]] = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
}


_CAPABILITIES: Final[Json] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
_CALLER: Final = Visitor(ClientProfile(MODERN, _CAPABILITIES, {"name": "check_upstream", "version": "1"}))


async def check_upstream(
    make: Callable[[], Upstream | Awaitable[Upstream]],
    *,
    simple: tuple[str, Mapping[str, Any]],
    asking: tuple[str, Mapping[str, Any]] | None = None,
    answer: Callable[[Question], Reply] | None = None,
) -> None:
    """Check that an upstream keeps its contract: that the loop, and so every route, can stand on it.

    Args:
        make: makes a new one, not started.
        simple: a tool of it that asks nothing, and arguments.
        asking: a tool of it that asks, and arguments; None where it never asks.
        answer: answers its questions so that the tool comes to an end.

    Raises:
        AssertionError: what it does otherwise than `bridge.upstreams.base.Upstream` says.
    """
    await _check_lists(make, simple[0])
    await _check_simple(make, *simple)
    await _check_beside(make)
    if asking is not None:
        assert answer is not None, "a tool that asks needs somebody who answers"
        await _check_answered(make, *asking, answer)
        await _check_declined(make, *asking)
        await _check_given_up(make, *asking)


@asynccontextmanager
async def _started(make: Callable[[], Upstream | Awaitable[Upstream]]) -> AsyncIterator[Upstream]:
    """A started upstream; afterwards nothing that it began may be left."""
    before = len(asyncio.all_tasks())
    made = make()
    upstream = await made if isinstance(made, Awaitable) else made
    with anyio.fail_after(_SECONDS):
        async with anyio.create_task_group() as tasks:

            async def completed(elicitation_id: str) -> bool:
                return False

            async def drop(*message: Any) -> None:
                pass

            def spawn(run: Callable[..., Any], *args: Any) -> None:
                tasks.start_soon(run, *args)

            async def is_alive(node_id: str) -> bool:
                return node_id == "check"

            around = Surroundings(
                node_id="check",
                store=MemoryStore(),
                is_alive=is_alive,
                spawn=spawn,
                changed=drop,
                tell=drop,
                completed=completed,
            )
            await upstream.start(around)
            try:
                yield upstream
            finally:
                await upstream.aclose()
                tasks.cancel_scope.cancel()
    assert len(asyncio.all_tasks()) <= before, "aclose leaves no task behind"


def _call(name: str, arguments: Mapping[str, Any], journal: Journal | None = None, call_id: str = "") -> Call:
    request = CallRequest("tools/call", name, dict(arguments))
    known = Journal() if journal is None else journal
    return Call(
        call_id, request, _CALLER, known, Deaf(wants_progress=True, log_level="debug"), lambda: RouteName.ROUNDS
    )


async def _check_lists(make: Callable[[], Any], tool: str) -> None:
    async with _started(make) as upstream:
        for kind in _KINDS:
            listed = await upstream.list(kind, _CALLER)
            assert not isinstance(listed, Failed), f"list({kind!r}) fails: {listed}"
            names = [entry[_KEYS[kind]] for entry in listed]
            assert len(set(names)) == len(names), f"list({kind!r}) names something twice"
            assert await upstream.list(kind, _CALLER) == listed, f"list({kind!r}) has a fixed order"
            encode(listed)
        known = await upstream.tool(tool)
        assert known is not None, f"tool({tool!r}) finds what is listed"
        assert known["name"] == tool
        assert await upstream.tool("no such tool") is None
        assert "tools" in upstream.capabilities


async def _check_simple(make: Callable[[], Any], tool: str, arguments: Mapping[str, Any]) -> None:
    async with _started(make) as upstream:
        outcome = await upstream.run(_call(tool, arguments))
        assert isinstance(outcome, Finished), f"{tool} must come to an end, not {outcome}"
        assert isinstance(outcome.result.get("content"), list), "a tool's result has content"
        assert not outcome.result.get("isError"), f"{tool} fails: {outcome.result}"
        encode(outcome.result)
        unknown = await upstream.run(_call("no such tool", {}))
        assert isinstance(unknown, Failed) or (
            isinstance(unknown, Finished) and unknown.result.get("isError") is True
        ), "an unknown tool is an error, not an exception"


async def _check_beside(make: Callable[[], Any]) -> None:
    async with _started(make) as upstream:
        params: Json = {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": ""}}
        assert isinstance(await upstream.complete(params, _CALLER), Finished | Failed)
        assert isinstance(await upstream.relay("logging/setLevel", {"level": "info"}, _CALLER), Finished | Failed)
        await upstream.end_session("no-such-session")


async def _stopped(upstream: Upstream, call: Call) -> Stopped:
    outcome = await upstream.run(call)
    assert isinstance(outcome, Stopped), f"{call.request.target} must stop at a question, not {outcome}"
    assert outcome.questions, "a call that has stopped has questions"
    keys, paths = ([getattr(question, name) for question in outcome.questions] for name in ("key", "path"))
    assert len(set(keys)) == len(keys), "questions have keys of their own"
    assert len(set(paths)) == len(paths), "questions have paths of their own"
    return outcome


def _stored(journal: Journal) -> Journal:
    """A journal as it comes back from a client or a store."""
    return msgspec.json.decode(msgspec.json.encode(journal), type=Journal)


async def _go_on(upstream: Upstream, call: Call, reply: Callable[[Question], Reply]) -> Finished:
    """Answer what is asked, each time in a new request, until the call ends."""
    asked: set[str] = set()
    outcome: Outcome = await _stopped(upstream, call)
    while isinstance(outcome, Stopped):
        for question in outcome.questions:
            assert question.path not in asked, f"{question.message!r} is asked again though it has its answer"
            asked.add(question.path)
            call.journal.record(question, reply(question))
        if outcome.hold is not None:
            outcome.hold.keep(float("inf"))
        call = _call(call.request.target, call.request.arguments, _stored(call.journal), call.named())
        outcome = await upstream.run(call)
    assert isinstance(outcome, Finished), f"an answered call must come to an end, not {outcome}"
    return outcome


async def _check_answered(
    make: Callable[[], Any], tool: str, arguments: Mapping[str, Any], answer: Callable[[Question], Reply]
) -> None:
    async with _started(make) as upstream:
        ended = await _go_on(upstream, _call(tool, arguments), answer)
        assert not ended.result.get("isError"), f"{tool} fails with its answers: {ended.result}"


async def _check_declined(make: Callable[[], Any], tool: str, arguments: Mapping[str, Any]) -> None:
    async with _started(make) as upstream:
        await _go_on(upstream, _call(tool, arguments), lambda question: Reply("decline"))


async def _check_given_up(make: Callable[[], Any], tool: str, arguments: Mapping[str, Any]) -> None:
    """A call that nobody answers: ended by its hold, or just left."""
    async with _started(make) as upstream:
        stopped = await _stopped(upstream, _call(tool, arguments))
        if stopped.hold is not None:
            await stopped.hold.cancel()
        await _stopped(upstream, _call(tool, arguments))
