"""`Context`: what a native tool is handed to ask, to record, to report. It knows no route and no revision."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, TypeVar, overload

import anyio
import msgspec
from pydantic_core import to_jsonable_python

from bridge.asking.checking import InvalidReply
from bridge.asking.form import form_of
from bridge.asking.journal import ROOT, Replay
from bridge.asking.question import Answer, Question
from bridge.asking.routes import RouteName
from bridge.errors import QuestionError, Suspended, ToolError
from bridge.protocol.clients import ClientProfile
from bridge.upstreams.base import Call

__all__ = ["Context"]

Model = TypeVar("Model")
Result = TypeVar("Result")

_log = logging.getLogger("bridge.tools")

DISABLED: Final = (
    "Elicitation is disabled in server configuration. To enable it, make the server with Bridge(..., elicitation=True)."
)

_asked_before: ContextVar[str] = ContextVar("bridge_asked_before", default=ROOT)
"""The path of the last question of the task that runs. A task starts with that of the task that started it."""


class Context:
    """One run of one call, as the author of a tool sees it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._replay = Replay(call.journal)
        self._steps_under_way = 0
        self._settled = anyio.Event()
        self._invalid: InvalidReply | None = None
        _asked_before.set(ROOT)

    @property
    def client(self) -> ClientProfile:
        """Who calls: `revision`, `capabilities`, `info` and `principal`."""
        return self._call.client

    @property
    def route(self) -> RouteName:
        """The way that a question in a form takes to this client's user."""
        return self._call.route

    @overload
    async def elicit(self, message: str, schema: type[Model], *, key: str | None = None) -> Answer[Model]: ...

    @overload
    async def elicit(
        self, message: str, schema: Mapping[str, Any], *, key: str | None = None
    ) -> Answer[dict[str, Any]]: ...

    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Answer[Any]:
        """Ask the user of this call, and return the answer.

        The tool stops here and runs again from the top once the answer has come; then this returns at once. So
        ask first and act afterwards, and put what must happen once before a question into `step`.

        Args:
            message: the question, as the user reads it.
            schema: the form: a pydantic model, dataclass or TypedDict, `bool`, or a flat JSON Schema.
            key: the question's name on the wire; by default `elicitation-1`, `elicitation-2`, …

        Returns:
            The answer. `content` is an instance where `schema` is a class, a dict where it is a JSON Schema.

        Raises:
            TypeError: a field that a form cannot hold.
            QuestionError: the same key, or an equal question, open twice.
            ToolError: with the code `ELICITATION_DISABLED`, where asking is switched off.

        Source: client/elicitation.
        """
        form = form_of(schema)
        if not self._call.elicitation:
            raise ToolError(DISABLED, "ELICITATION_DISABLED")
        after = _asked_before.get()
        path, question, reply = self._replay.ask(after, message, form.schema, form.digest, key)
        _asked_before.set(path)
        if reply is None:
            raise Suspended(question.key)
        if reply.status != "accept":
            return Answer(reply.status, None, reply.source)
        try:
            return Answer("accept", form.read(reply.content), reply.source)
        except ValueError as error:
            self._refuse(question, str(error))
            raise Suspended(question.key) from None

    def _refuse(self, question: Question, reasons: str) -> None:
        """Forget an answer that broke a rule which its form could not show: the question is open again."""
        self._invalid = InvalidReply(tuple(reasons.splitlines()))
        self._replay.journal.replies.pop(question.path, None)
        self._replay.open[question.key] = question

    async def step(self, name: str, fn: Callable[[], Awaitable[Result] | Result]) -> Result:
        """Run `fn` once in this call, however often the tool runs again, and return its recorded result.

        A step that has begun is not broken off when another task of the tool stops at a question.

        Args:
            name: the step's name, unique in the tool.
            fn: what to do; sync or async. Its result must be JSON.

        Returns:
            What `fn` returned, as JSON has it: now, or when it ran.

        Raises:
            QuestionError: one name for two steps, or a result that is no JSON.
        """
        self._replay.enter_step(name)
        steps = self._replay.journal.steps
        if name in steps:
            recorded: Result = steps[name]
            return recorded
        self._steps_under_way += 1
        try:
            with anyio.CancelScope(shield=True):
                result = fn()
                if isinstance(result, Awaitable):
                    result = await result
                plain = self._as_json(name, result)
                self._replay.record_step(name, plain)
        finally:
            self._steps_under_way -= 1
            if not self._steps_under_way:
                self._settled.set()
        return plain  # type: ignore[no-any-return]

    @staticmethod
    def _as_json(name: str, result: Any) -> Any:
        try:
            return msgspec.json.decode(msgspec.json.encode(to_jsonable_python(result)))
        except Exception as error:
            raise QuestionError(f"the result of step {name!r} is no JSON: {error}") from error

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the client, if it asked for it.

        Args:
            progress: how much is done, rising; a value that is not above the last one is not sent.
            total: how much there is, where known.
            message: what is going on.
        """
        await self._call.outlet.progress(progress, total, message)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants that level.

        Args:
            level: `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
            data: any JSON value.
            logger: where it comes from.
        """
        await self._call.outlet.log(level, data, logger)

    async def debug(self, data: Any) -> None:
        """Send a log message of level `debug`."""
        await self.log("debug", data)

    async def info(self, data: Any) -> None:
        """Send a log message of level `info`."""
        await self.log("info", data)

    async def warning(self, data: Any) -> None:
        """Send a log message of level `warning`."""
        await self.log("warning", data)

    async def error(self, data: Any) -> None:
        """Send a log message of level `error`."""
        await self.log("error", data)

    async def _settle(self) -> None:
        """Wait for steps that go on after the tool has stopped, so that none is lost."""
        while self._steps_under_way:
            self._settled = anyio.Event()
            await self._settled.wait()
