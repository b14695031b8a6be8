"""What a call does once, however often its tool runs again: steps, whose results are recorded in its journal."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
from pydantic_core import to_jsonable_python

from bridge.asking.journal import Replay
from bridge.errors import QuestionError

__all__ = ["Steps"]


class Steps:
    """The steps of one run.

    Args:
        replay: where they are looked up and recorded.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._under_way = 0
        self._settled: anyio.Event | None = None

    async def take(self, name: str, fn: Callable[[], Any]) -> Any:
        """Run a step, sync or async, or return what it gave when it ran. See `Context.step`."""
        self._replay.enter_step(name)
        steps = self._replay.journal.steps
        if name in steps:
            return steps[name]
        self._under_way += 1
        try:
            result = fn()
            if inspect.isawaitable(result):
                return await self._finish(name, result)
            return self._record(name, result)
        finally:
            self._under_way -= 1
            if not self._under_way and self._settled is not None:
                self._settled.set()

    def take_sync(self, name: str, fn: Callable[[], Any]) -> Any:
        """`take` for a step that is a plain function of a plain function."""
        self._replay.enter_step(name)
        steps = self._replay.journal.steps
        return steps[name] if name in steps else self._record(name, fn())

    async def settle(self) -> None:
        """Wait for steps that go on after the tool has stopped, so that none is lost."""
        while self._under_way:
            self._settled = anyio.Event()
            await self._settled.wait()

    async def _finish(self, name: str, under_way: Awaitable[Any]) -> Any:
        """Let a step come to its end and record it, whoever cancels the call meanwhile; only then be cancelled."""
        task, cancelled = asyncio.ensure_future(under_way), False
        with anyio.CancelScope(shield=True):
            while not task.done():
                try:
                    await asyncio.wait([task])
                except asyncio.CancelledError:
                    cancelled = True
        plain = self._record(name, task.result())
        if cancelled:
            raise asyncio.CancelledError
        return plain

    def _record(self, name: str, result: Any) -> Any:
        try:
            plain = msgspec.json.decode(msgspec.json.encode(to_jsonable_python(result)))
        except Exception as error:
            raise QuestionError(f"the result of step {name!r} is no JSON: {error}") from error
        self._replay.record_step(name, plain)
        return plain
