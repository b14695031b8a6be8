"""Native tools: decorated functions as an upstream. They are run again from the top for each answer."""

import inspect
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypedDict, TypeVar

import anyio
import msgspec

from bridge.asking.fallback import FALLBACK_TOOL_NAME
from bridge.errors import ConfigurationError, QuestionError, ReplayError, Suspended, ToolError
from bridge.protocol.inbound import parameter_headers
from bridge.protocol.messages import INVALID_PARAMS, Json
from bridge.upstreams.base import Call, Failed, Finished, Outcome, Stopped
from bridge.upstreams.context import Context
from bridge.upstreams.signatures import ArgumentsError, Signature, content_of

__all__ = ["CODE_KEY", "Functions", "ToolAnnotations", "error_result"]

CODE_KEY: Final = "mcp-session-bridge/code"
"""Where the code of an error stands in a result's `_meta`."""

_log = logging.getLogger("bridge.tools")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class ToolAnnotations(TypedDict, total=False):
    """What a tool says of itself. Hints, never promises. Source: server/tools#tool."""

    title: str
    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


def error_result(text: str, code: str | None = None) -> Json:
    """A result that tells the model what went wrong. A code stands in `_meta` and at the head of the text."""
    if code is None:
        return {"content": [{"type": "text", "text": text}], "isError": True}
    content = [{"type": "text", "text": f"{code}: {text}"}]
    return {"content": content, "isError": True, "_meta": {CODE_KEY: code}}


class _Tool(msgspec.Struct, frozen=True):
    """One registered function."""

    function: Callable[..., Any]
    signature: Signature
    definition: Json
    asynchronous: bool


class Functions:
    """An upstream of decorated functions.

    Args:
        threads: how many synchronous tools may run at once.
    """

    def __init__(self, threads: int = 40) -> None:
        self._tools: dict[str, _Tool] = {}
        self._threads = threads
        self._limiter: anyio.CapacityLimiter | None = None

    @property
    def capabilities(self) -> Json:
        """See `Upstream`."""
        return {"logging": {}, "tools": {"listChanged": True}}

    async def tools(self) -> list[Json]:
        """See `Upstream`: in the order of registration."""
        return [tool.definition for tool in self._tools.values()]

    async def tool(self, name: str) -> Json | None:
        """See `Upstream`."""
        tool = self._tools.get(name)
        return None if tool is None else tool.definition

    def register(
        self,
        function: _Function,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
    ) -> _Function:
        """Make a function a tool; see `Bridge.tool`."""
        tool_name = name or function.__name__
        if tool_name == FALLBACK_TOOL_NAME:
            raise ConfigurationError(f"{FALLBACK_TOOL_NAME} is the bridge's own tool; give yours another name")
        if tool_name in self._tools:
            raise ConfigurationError(f"there are two tools named {tool_name!r}; give one another name")
        signature = Signature(function, Context)
        definition: Json = {"name": tool_name}
        if title:
            definition["title"] = title
        definition["description"] = description or inspect.getdoc(function) or tool_name
        definition["inputSchema"] = signature.input_schema
        if signature.output_schema is not None:
            definition["outputSchema"] = signature.output_schema
        if annotations:
            definition["annotations"] = dict(annotations)
        try:
            parameter_headers(signature.input_schema)
        except ValueError as error:
            raise ConfigurationError(f"{tool_name}: {error}") from None
        asynchronous = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is a coroutine function
        )
        self._tools[tool_name] = _Tool(function, signature, definition, asynchronous)
        return function

    async def run(self, call: Call) -> Outcome:
        """See `Upstream`."""
        tool = self._tools.get(call.request.target)
        if tool is None:
            return Failed(INVALID_PARAMS, f"Unknown tool: {call.request.target}")
        try:
            bound = tool.signature.bind(call.request.arguments)
        except ArgumentsError as error:
            name = call.request.target
            return Finished(error_result(f"The arguments of {name} are not valid:\n{error}", "INVALID_INPUT"))
        if tool.signature.context_name is None:
            return await self._finished(tool, bound)
        context = Context(call)
        bound[tool.signature.context_name] = context
        return await self._asking(tool, bound, context)

    async def _finished(self, tool: _Tool, bound: Mapping[str, Any]) -> Finished:
        try:
            return Finished(_result(tool, await self._invoke(tool, bound)))
        except Exception as error:
            return _failure(tool, error)

    async def _asking(self, tool: _Tool, bound: Mapping[str, Any], context: Context) -> Outcome:
        """Run a tool that may ask. A question without an answer counts, unless the tool failed beside it."""
        outcome: Finished | None = None
        try:
            value = await self._invoke(tool, bound)
            outcome = _failure(tool, _swallowed(context)) if context._replay.open else Finished(_result(tool, value))
        except Exception as error:
            outcome = _failure(tool, error)
        except Suspended:
            pass
        except BaseExceptionGroup as group:
            _, other = group.split(Suspended)
            if other is not None and not isinstance(other, ExceptionGroup):
                raise
            outcome = None if other is None else _failure(tool, other)
        await context._settle()
        if outcome is not None:
            return outcome
        replay = context._replay
        if not replay.open:
            return _failure(tool, ReplayError("raised Suspended without a question that is open"))
        return Stopped(list(replay.open.values()), stepped=replay.stepped, invalid=context._invalid)

    async def _invoke(self, tool: _Tool, bound: Mapping[str, Any]) -> Any:
        if tool.asynchronous:
            return await tool.function(**bound)
        return await self._in_thread(tool.function, bound)

    async def _in_thread(self, function: Callable[..., Any], bound: Mapping[str, Any]) -> Any:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._threads)
        return await anyio.to_thread.run_sync(partial(function, **bound), limiter=self._limiter)


def _result(tool: _Tool, value: Any) -> Json:
    structured = tool.signature.dump(value)
    if structured is msgspec.UNSET:
        return {"content": content_of(value)}
    return {"content": content_of(structured), "structuredContent": structured}


def _swallowed(context: Context) -> ReplayError:
    question = next(iter(context._replay.open.values())).message
    return ReplayError(
        f"stopped at the question {question!r}, swallowed its suspension and went on. Its result was discarded. "
        "Let BaseException pass: use `except Exception`, never a bare `except`."
    )


def _failure(tool: _Tool, error: Exception) -> Finished:
    """What the model reads of an error: a public one's text; of any other, only which tool it was."""
    public = _public(error)
    if public is not None:
        return Finished(error_result(public.message, public.code))
    name = tool.definition["name"]
    if isinstance(error, QuestionError | ReplayError):
        _log.error("the tool %r broke a rule: %s", name, error)
    else:
        _log.error("the tool %r raised %s", name, type(error).__name__, exc_info=error)
    return Finished(error_result(f"Internal error in the tool {name}. Its details are in the server's log."))


def _public(error: BaseException) -> ToolError | None:
    if isinstance(error, ToolError):
        return error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for found in map(_public, inner) if found is not None), None)
