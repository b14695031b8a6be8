"""From a function's signature to a tool's schemas, and from JSON arguments to a call of it.

Knows Python functions and JSON Schema; knows nothing of calls, clients or questions.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, NotRequired, get_origin, get_type_hints, is_typeddict

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model, with_config
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from bridge.errors import ConfigurationError
from bridge.protocol.messages import Json
from bridge.upstreams.results import ToolResult

__all__ = ["ArgumentsError", "Signature"]

_UNSTRUCTURED: Final = (inspect.Signature.empty, Any, None, type(None), str, bytes, ToolResult)


class ArgumentsError(ValueError):
    """Arguments that do not fit a function, one line each."""


class _Schema(GenerateJsonSchema):
    """Titles that only repeat a field's name are left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Signature:
    """What a function takes and returns.

    Args:
        function: the author's function.
        context: the class whose annotation marks the parameter that is injected.
        input_schema: the schema of the arguments, where the author wrote it: the function takes them all as one dict.

    Raises:
        ConfigurationError: a parameter that JSON arguments cannot fill, or a schema that is none.
    """

    def __init__(self, function: Callable[..., Any], context: type, input_schema: Json | None = None) -> None:
        try:
            hints = get_type_hints(function, include_extras=True)
        except NameError as error:
            raise ConfigurationError(f"{function.__qualname__}: an annotation cannot be read: {error}") from None
        parameters = inspect.signature(function).parameters
        self.context_name = next((name for name in parameters if _is(hints.get(name), context)), None)
        taken = {name: parameter for name, parameter in parameters.items() if name != self.context_name}
        self._defaults: dict[str, Any] = {}
        self._validate: Callable[[Json], dict[str, Any]]
        if input_schema is None:
            self.input_schema = _input_schema(function, taken, hints)
            self._defaults = _field_defaults(taken)
            self._validate = _arguments_adapter(taken, hints).validator.validate_python
        else:
            self.input_schema = input_schema
            self._validate = _by_schema(function, list(taken), input_schema)
        returned = hints.get("return", inspect.Signature.empty)
        self._output, self.output_schema = _output(function, returned)
        self._plain = returned if returned in (int, bool) else None

    def bind(self, arguments: Json) -> dict[str, Any]:
        """Turn JSON arguments into keyword arguments.

        Raises:
            ArgumentsError: arguments that do not fit.
        """
        try:
            bound: dict[str, Any] = self._validate(arguments)
        except ValidationError as error:
            lines = (
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors(include_url=False)
            )
            raise ArgumentsError("\n".join(lines)) from None
        return {**self._defaults, **bound} if self._defaults else bound

    def dump(self, value: Any) -> Any:
        """Turn what the function returned into JSON; UNSET where it has no structured result."""
        if self._output is None or isinstance(value, ToolResult):
            return msgspec.UNSET
        if type(value) is self._plain:
            return value
        return self._output.serializer.to_python(value, mode="json", warnings="error", by_alias=True)


def _by_schema(function: Callable[..., Any], taken: list[str], schema: Json) -> Callable[[Json], dict[str, Any]]:
    """Checks arguments against the author's own schema, and makes one argument of them."""
    if len(taken) != 1:
        raise ConfigurationError(f"{function.__qualname__}: with input_schema it takes all arguments as one dict")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ConfigurationError(f"{function.__qualname__}: input_schema is no JSON Schema: {error.message}") from None
    if schema.get("type") != "object":
        raise ConfigurationError(f'{function.__qualname__}: input_schema needs "type": "object"')
    validator, (name,) = Draft202012Validator(schema), taken

    def validate(arguments: Json) -> dict[str, Any]:
        wrong = [f"{'.'.join(map(str, e.path)) or 'arguments'}: {e.message}" for e in validator.iter_errors(arguments)]
        if wrong:
            raise ArgumentsError("\n".join(wrong))
        return {name: arguments}

    return validate


def _is(annotation: Any, kind: type) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return isinstance(annotation, type) and issubclass(annotation, kind)


def _arguments_adapter(parameters: Mapping[str, inspect.Parameter], hints: dict[str, Any]) -> TypeAdapter[Any]:
    """Validates JSON arguments into keyword arguments; what is left out, the function's own defaults fill in."""
    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        annotation, default = hints.get(name, Any), parameter.default
        if isinstance(default, FieldInfo):
            # Its constraints count; its default is filled in by `bind`.
            annotation = Annotated[annotation, *default.metadata] if default.metadata else annotation
            default = parameter.empty if default.is_required() else default
        fields[name] = annotation if default is parameter.empty else NotRequired[annotation]
    make: Any = TypedDict
    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(make("Arguments", fields)))


def _field_defaults(parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The defaults of parameters that are written as `x: int = Field(3, …)`."""
    given = {name: parameter.default for name, parameter in parameters.items()}
    return {
        name: field.get_default(call_default_factory=True)
        for name, field in given.items()
        if isinstance(field, FieldInfo) and not field.is_required()
    }


def _input_schema(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], hints: dict[str, Any]
) -> Json:
    """The schema of the arguments. Its model has field names of its own, so that a parameter may have any name."""
    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigurationError(f"{function.__qualname__}: {parameter} cannot be filled from JSON arguments")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"p{len(fields)}"] = (Annotated[hints.get(name, Any), Field(alias=name)], default)
    model = create_model(f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    schema = model.model_json_schema(schema_generator=_Schema)
    schema.pop("title", None)
    return {"type": "object", "properties": {}, **schema}


def _output(function: Callable[..., Any], annotation: Any) -> tuple[TypeAdapter[Any] | None, Json | None]:
    if annotation in _UNSTRUCTURED:
        return None, None
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    schema = adapter.json_schema(mode="serialization", schema_generator=_Schema)
    if not (isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_typeddict(annotation))):
        schema.pop("title", None)
    return adapter, schema
