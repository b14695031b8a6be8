"""From a function's signature to a tool's schemas, and from JSON arguments to a call of it.

Knows Python functions and JSON Schema; knows nothing of calls, clients or questions.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_origin, get_type_hints, is_typeddict

import msgspec
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

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

    Raises:
        ConfigurationError: a parameter that JSON arguments cannot fill.
    """

    def __init__(self, function: Callable[..., Any], context: type) -> None:
        try:
            hints = get_type_hints(function, include_extras=True)
        except NameError as error:
            raise ConfigurationError(f"{function.__qualname__}: an annotation cannot be read: {error}") from None
        parameters = inspect.signature(function).parameters
        self.context_name = next((name for name in parameters if _is(hints.get(name), context)), None)
        self._model, self._names = _arguments_model(function, parameters, hints, self.context_name)
        self._validate = self._model.__pydantic_validator__.validate_python
        self.input_schema = _input_schema(self._model)
        self._output, self.output_schema = _output(function, hints.get("return", inspect.Signature.empty))

    def bind(self, arguments: Json) -> dict[str, Any]:
        """Turn JSON arguments into keyword arguments.

        Raises:
            ArgumentsError: arguments that do not fit.
        """
        try:
            values = self._validate(arguments).__dict__
        except ValidationError as error:
            lines = (
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors(include_url=False)
            )
            raise ArgumentsError("\n".join(lines)) from None
        return {name: values[field] for name, field in self._names.items()}

    def dump(self, value: Any) -> Any:
        """Turn what the function returned into JSON; UNSET where it has no structured result."""
        if self._output is None or isinstance(value, ToolResult):
            return msgspec.UNSET
        return self._output.dump_python(value, mode="json", warnings="error", by_alias=True)


def _is(annotation: Any, kind: type) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return isinstance(annotation, type) and issubclass(annotation, kind)


def _arguments_model(
    function: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    hints: dict[str, Any],
    skip: str | None,
) -> tuple[type[BaseModel], dict[str, str]]:
    """A model of the arguments. Its fields have names of their own, so that a parameter may have any name."""
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name, parameter in parameters.items():
        if name == skip:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigurationError(f"{function.__qualname__}: {parameter} cannot be filled from JSON arguments")
        names[name] = f"p{len(fields)}"
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[names[name]] = (Annotated[hints.get(name, Any), Field(alias=name)], default)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    return create_model(f"{function.__name__}_arguments", __config__=config, **fields), names


def _input_schema(model: type[BaseModel]) -> Json:
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
