"""Native tools, prompts and resources: decorated functions as an upstream, run again from the top for each answer."""

import inspect
import re
from collections.abc import Callable
from typing import Any, Final, TypedDict, TypeVar
from urllib.parse import unquote

import msgspec

from bridge.asking.fallback import FALLBACK_TOOL_NAME
from bridge.errors import ConfigurationError, ToolError
from bridge.protocol.inbound import ParameterHeaders, parameter_headers
from bridge.protocol.messages import INVALID_PARAMS, Json
from bridge.upstreams.base import (
    AskingRules,
    Call,
    Caller,
    Failed,
    Finished,
    Kind,
    Outcome,
    Policy,
    Surroundings,
)
from bridge.upstreams.context import Context
from bridge.upstreams.results import error_result, prompt_result, resource_result, tool_result
from bridge.upstreams.running import Function, Runner
from bridge.upstreams.signatures import ArgumentsError, Signature

__all__ = ["Functions", "ToolAnnotations"]

_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_MAX_COMPLETIONS: Final = 100
_Function = TypeVar("_Function", bound=Callable[..., Any])


class ToolAnnotations(TypedDict, total=False):
    """What a tool says of itself. Hints, never promises. Source: server/tools#tool."""

    title: str
    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


class _Entry(msgspec.Struct, frozen=True):
    """Something registered: its definition, its function, and what is decided for it."""

    definition: Json
    function: Function
    rules: AskingRules | None = None
    policy: Policy = Policy()
    headers: ParameterHeaders = ()


class _Template(msgspec.Struct, frozen=True):
    """A resource template, and what URIs it matches."""

    pattern: re.Pattern[str]
    entry: _Entry


class Functions:
    """An upstream of decorated functions.

    Args:
        threads: how many synchronous functions may run at once.
    """

    def __init__(self, threads: int = 40) -> None:
        self._runner = Runner(threads)
        self._tools: dict[str, _Entry] = {}
        self._prompts: dict[str, _Entry] = {}
        self._resources: dict[str, _Entry] = {}
        self._templates: dict[str, _Template] = {}
        self._completions: dict[tuple[str, str], Callable[..., Any]] = {}

    @property
    def capabilities(self) -> Json:
        """See `Upstream`."""
        capabilities: Json = {"logging": {}, "tools": {"listChanged": True}}
        if self._prompts:
            capabilities["prompts"] = {"listChanged": True}
        if self._resources or self._templates:
            capabilities["resources"] = {"subscribe": True, "listChanged": True}
        if self._completions:
            capabilities["completions"] = {}
        return capabilities

    @property
    def said(self) -> None:
        """See `Upstream`."""
        return None

    async def start(self, around: Surroundings) -> None:
        """See `Upstream`: functions need none."""

    async def aclose(self) -> None:
        """See `Upstream`."""

    async def end_session(self, session_id: str) -> None:
        """See `Upstream`: functions keep nothing for a session."""

    async def list(self, kind: Kind, caller: Caller) -> list[Json]:
        """See `Upstream`: in the order of registration."""
        if kind == "resourceTemplates":
            return [template.entry.definition for template in self._templates.values()]
        entries = {"tools": self._tools, "prompts": self._prompts, "resources": self._resources}[kind]
        return [entry.definition for entry in entries.values()]

    async def tool(self, name: str) -> Json | None:
        """See `Upstream`."""
        entry = self._tools.get(name)
        return None if entry is None else entry.definition

    def parameter_headers(self, tool: str) -> ParameterHeaders:
        """See `Upstream`."""
        entry = self._tools.get(tool)
        return () if entry is None else entry.headers

    def policy(self, tool: str) -> Policy:
        """See `Upstream`."""
        entry = self._tools.get(tool)
        return Policy() if entry is None else entry.policy

    def add_tool(
        self,
        function: _Function,
        about: Json,
        rules: AskingRules | None,
        policy: Policy,
    ) -> _Function:
        """Make a function a tool; see `Bridge.tool`. `about` holds what of its definition the author gives."""
        name = about.get("name") or function.__name__
        _check_name("tool", name, self._tools)
        signature = Signature(function, Context, about.get("input_schema"))
        definition = _definition(name, function, about)
        definition["inputSchema"] = signature.input_schema
        if signature.output_schema is not None:
            definition["outputSchema"] = signature.output_schema
        if about.get("annotations"):
            definition["annotations"] = dict(about["annotations"])
        try:
            headers = parameter_headers(signature.input_schema)
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from None

        def finish(value: Any) -> Json:
            return tool_result(value, signature.dump(value))

        def fail(error: ToolError) -> Finished:
            return Finished(error_result(error.message, error.code))

        entry = Function(f"tool {name}", function, signature, finish, fail)
        self._tools[name] = _Entry(definition, entry, rules, policy, headers)
        return function

    def add_prompt(self, function: _Function, about: Json) -> _Function:
        """Make a function a prompt; see `Bridge.prompt`."""
        name = about.get("name") or function.__name__
        _check_name("prompt", name, self._prompts)
        signature = Signature(function, Context)
        definition = _definition(name, function, about)
        definition["arguments"] = _prompt_arguments(signature.input_schema)

        def finish(value: Any) -> Json:
            return prompt_result(value, definition["description"])

        self._prompts[name] = _Entry(definition, Function(f"prompt {name}", function, signature, finish, _failed))
        return function

    def add_resource(self, function: _Function, uri: str, about: Json) -> _Function:
        """Make a function a resource, or a template where its URI has variables; see `Bridge.resource`."""
        signature = Signature(function, Context)
        variables = _VARIABLE.findall(uri)
        if set(variables) != set(signature.input_schema["properties"]):
            raise ConfigurationError(f"{uri}: its variables and the function's parameters must be the same")
        if uri in self._resources or uri in self._templates:
            raise ConfigurationError(f"there are two resources at {uri!r}")
        definition = _definition(about.get("name") or function.__name__, function, about)
        mime_type = about.get("mime_type")
        if mime_type is not None:
            definition["mimeType"] = mime_type
        entry = Function(f"resource {uri}", function, signature, lambda value: value, _failed)
        if not variables:
            self._resources[uri] = _Entry({"uri": uri, **definition}, entry)
            return function
        pattern = "".join(
            f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part) for index, part in enumerate(_VARIABLE.split(uri))
        )
        self._templates[uri] = _Template(re.compile(pattern), _Entry({"uriTemplate": uri, **definition}, entry))
        return function

    def add_completion(self, function: _Function, reference: str, argument: str) -> _Function:
        """Make a function complete an argument; see `Bridge.completion`."""
        self._completions[reference, argument] = function
        return function

    async def run(self, call: Call) -> Outcome:
        """See `Upstream`."""
        if call.request.method == "prompts/get":
            return await self._run_prompt(call)
        if call.request.method == "resources/read":
            return await self._run_resource(call)
        name = call.request.target
        entry = self._tools.get(name)
        if entry is None:
            return Failed(INVALID_PARAMS, f"Unknown tool: {name}")
        try:
            bound = entry.function.signature.bind(call.request.arguments)
        except ArgumentsError as error:
            return Finished(error_result(f"The arguments of {name} are not valid:\n{error}", "INVALID_INPUT"))
        return await self._runner.run(entry.function, bound, _ruled(call, entry))

    async def _run_prompt(self, call: Call) -> Outcome:
        name = call.request.target
        entry = self._prompts.get(name)
        if entry is None:
            return Failed(INVALID_PARAMS, f"Unknown prompt: {name}")
        try:
            bound = entry.function.signature.bind(call.request.arguments)
        except ArgumentsError as error:
            return Failed(INVALID_PARAMS, f"The arguments of {name} are not valid:\n{error}")
        return await self._runner.run(entry.function, bound, _ruled(call, entry))

    async def _run_resource(self, call: Call) -> Outcome:
        uri = call.request.target
        entry, variables = self._resources.get(uri), {}
        if entry is None:
            for template in self._templates.values():
                match = template.pattern.fullmatch(uri)
                if match is not None:
                    entry, variables = template.entry, {key: unquote(value) for key, value in match.groupdict().items()}
                    break
        if entry is None:
            return Failed(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
        try:
            bound = entry.function.signature.bind(variables)
        except ArgumentsError as error:
            return Failed(INVALID_PARAMS, f"Resource not found: {uri}: {error}", {"uri": uri})
        outcome = await self._runner.run(entry.function, bound, _ruled(call, entry))
        if isinstance(outcome, Failed) and outcome.data == {"code": "NOT_FOUND"}:
            return Failed(INVALID_PARAMS, outcome.message, {"uri": uri})
        if not isinstance(outcome, Finished):
            return outcome
        return Finished(resource_result(outcome.result, uri, entry.definition.get("mimeType")))

    async def complete(self, params: Json, caller: Caller) -> Finished | Failed:
        """See `Upstream`."""
        ref, argument = params.get("ref"), params.get("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
            return Failed(INVALID_PARAMS, "completion/complete needs a ref and an argument with a name and a value")
        reference = ref.get("name", ref.get("uri"))
        known = {**self._prompts, **self._resources, **self._templates}
        if reference not in known:
            return Failed(INVALID_PARAMS, f"Unknown reference: {reference}")
        function = self._completions.get((str(reference), str(argument.get("name"))))
        values: list[str] = []
        if function is not None:
            context = params.get("context")
            given = context.get("arguments", {}) if isinstance(context, dict) else {}
            found = function(argument["value"], given)
            values = list(await found if inspect.isawaitable(found) else found)
        shown = values[:_MAX_COMPLETIONS]
        return Finished({"completion": {"values": shown, "total": len(values), "hasMore": len(shown) < len(values)}})

    async def relay(self, method: str, params: Json, caller: Caller) -> Finished:
        """See `Upstream`: the bridge itself keeps levels and subscriptions."""
        return Finished({})


def _ruled(call: Call, entry: _Entry) -> Call:
    """The call with what the tool decides of asking, which goes before what the bridge does."""
    if entry.rules is not None and entry.function.signature.context_name is not None:
        call.rules = msgspec.structs.replace(entry.rules, elicitation=call.rules.elicitation)
    return call


def _check_name(kind: str, name: str, taken: dict[str, _Entry]) -> None:
    if name == FALLBACK_TOOL_NAME:
        raise ConfigurationError(f"{FALLBACK_TOOL_NAME} is the bridge's own tool; give yours another name")
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"a {kind}'s name has 1 to 128 of A-Z a-z 0-9 _ . / -, which {name!r} has not")
    if name in taken:
        raise ConfigurationError(f"there are two {kind}s named {name!r}; give one another name")


def _definition(name: str, function: Callable[..., Any], about: Json) -> Json:
    definition: Json = {"name": name}
    if about.get("title"):
        definition["title"] = about["title"]
    definition["description"] = about.get("description") or inspect.getdoc(function) or name
    if about.get("icons"):
        definition["icons"] = about["icons"]
    if about.get("meta"):
        definition["_meta"] = about["meta"]
    return definition


def _prompt_arguments(schema: Json) -> list[Json]:
    required = schema.get("required", ())
    arguments = []
    for name, field in schema["properties"].items():
        argument: Json = {"name": name}
        if "description" in field:
            argument["description"] = field["description"]
        arguments.append({**argument, "required": name in required})
    return arguments


def _failed(error: ToolError) -> Failed:
    return Failed(INVALID_PARAMS, error.message, None if error.code is None else {"code": error.code})
