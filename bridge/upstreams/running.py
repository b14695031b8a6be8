"""Running one native function: it returns, fails, or stops at questions. Knows no tools, prompts or resources."""

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import anyio
import msgspec

from bridge.errors import QuestionError, ReplayError, Suspended, ToolError
from bridge.upstreams.base import Call, Failed, Finished, Outcome, Stopped
from bridge.upstreams.context import Asking, Context
from bridge.upstreams.signatures import Signature

__all__ = ["Function", "Runner"]

_CANCELLED_ITSELF = "it awaited a task that was cancelled, and let the cancellation pass"
_log = logging.getLogger("bridge.tools")


class Function(msgspec.Struct, frozen=True):
    """One registered function.

    Args:
        what: how to call it in a log, such as `tool close_ticket`.
        function: the author's.
        signature: what it takes and returns.
        finish: from what it returned to a result.
        fail: from an error to how the call ends: a public one, or one whose details are in the log.
    """

    what: str
    function: Callable[..., Any]
    signature: Signature
    finish: Callable[[Any], Any]
    fail: Callable[[ToolError], Finished | Failed]


@lru_cache(maxsize=4096)
def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


class Runner:
    """Runs functions; synchronous ones in a limited pool of threads of its own.

    Args:
        threads: how many synchronous functions may run at once.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, function: Function, bound: dict[str, Any], call: Call) -> Outcome:
        """Run a function with its arguments, to its end or to its next question."""
        name = function.signature.context_name
        if name is not None:
            context = bound[name] = Context(call)
            try:
                return await self._asking(function, bound, context)
            finally:
                context._over = True
        try:
            made = function.function(**bound) if is_async(function.function) else self._in_thread(function, bound)
            return Finished(function.finish(await made))
        except Exception as error:
            return _failure(function, error)
        except asyncio.CancelledError:
            if _is_wanted():
                raise
            return _failure(function, RuntimeError(_CANCELLED_ITSELF))

    async def _asking(self, function: Function, bound: Mapping[str, Any], context: Context) -> Outcome:
        """Run a function that may ask. A question without an answer counts, unless the function failed beside it."""
        outcome: Outcome | None = None
        try:
            made = function.function(**bound) if is_async(function.function) else self._in_thread(function, bound)
            outcome = self._returned(function, await made, context)
        except Exception as error:
            outcome = _failure(function, error)
        except Suspended:
            pass
        except asyncio.CancelledError:
            if _is_wanted():
                raise
            outcome = _failure(function, RuntimeError(_CANCELLED_ITSELF))
        except BaseExceptionGroup as group:
            _, other = group.split(Suspended)
            if other is not None and not isinstance(other, ExceptionGroup):
                raise
            outcome = None if other is None else _failure(function, other)
        if context._steps is not None:
            await context._steps.settle()
        replay = context._replay
        if context._call.fresh and (unused := context._call.journal.replies.keys() - replay.met):
            _log.info("%d recorded answers were dropped: the %s asks otherwise than before", len(unused), function.what)
        if outcome is not None:
            return outcome
        if replay.broken is not None:
            return _failure(function, replay.broken)
        if not replay.open:
            return _failure(function, ReplayError("raised Suspended without a question that is open"))
        return Stopped(list(replay.open.values()), invalid=context._invalid, acted=context._acted)

    def _returned(self, function: Function, value: Any, context: Context) -> Outcome:
        replay = context._replay
        if replay.open:
            return _failure(function, _swallowed(context))
        if isinstance(value, Asking):
            return Stopped([value.question], acted=context._acted)
        return Finished(function.finish(value))

    async def _in_thread(self, function: Function, bound: Mapping[str, Any]) -> Any:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._threads)
        return await anyio.to_thread.run_sync(partial(function.function, **bound), limiter=self._limiter)


def _is_wanted() -> bool:
    """Whether somebody wants this task to end; else the cancellation came out of what the function awaited."""
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling() > 0)


def _swallowed(context: Context) -> ReplayError:
    question = next(iter(context._replay.open.values())).message
    return ReplayError(
        f"stopped at the question {question!r}, swallowed its suspension and went on. Its result was discarded. "
        "Let BaseException pass: use `except Exception`, never a bare `except`."
    )


def _failure(function: Function, error: Exception) -> Finished | Failed:
    """What the client learns of an error: a public one's text; of any other, only which function it was."""
    public = _public(error)
    if public is not None:
        return function.fail(public)
    if isinstance(error, QuestionError | ReplayError):
        _log.error("the %s broke a rule: %s", function.what, error)
    else:
        _log.error("the %s raised %s", function.what, type(error).__name__, exc_info=error)
    return function.fail(ToolError(f"Internal error in the {function.what}. Its details are in the server's log."))


def _public(error: BaseException) -> ToolError | None:
    if isinstance(error, ToolError):
        return error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for found in map(_public, inner) if found is not None), None)
