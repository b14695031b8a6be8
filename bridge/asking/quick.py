"""A form's schema as a type of msgspec, which takes valid content only, though not all of it.

Nearly every answer is valid. msgspec says so in a tenth of the time of a JSON Schema validator; what it does not take,
the validator judges. So a keyword that is not known here costs time, never a wrong verdict.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bridge.protocol.messages import Json

__all__ = ["quick_type"]

_SAY_NOTHING: Final = frozenset({"type", "title", "description", "default"})
_STRING: Final = {"minLength": "min_length", "maxLength": "max_length"}
_NUMBER: Final = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
_LIST: Final = {"minItems": "min_length", "maxItems": "max_length"}


class _Unknown(Exception):
    """A schema has what no type says."""


def quick_type(schema: Json) -> type[msgspec.Struct] | None:
    """Make the type of a form.

    Args:
        schema: the flat schema that answers are checked against.

    Returns:
        A Struct that only content converts to which is valid; None where the schema has what no type says.
    """
    required = schema.get("required", ())
    names = {f"f{number}": name for number, name in enumerate(schema["properties"])}
    try:
        kinds = {name: _kind(field) for name, field in schema["properties"].items()}
        fields = [
            (short, kinds[name]) if name in required else (short, kinds[name] | UnsetType, UNSET)
            for short, name in names.items()
        ]
        content = msgspec.defstruct("Content", fields, rename=names, forbid_unknown_fields=True, kw_only=True)
        msgspec.json.Decoder(content)  # only now a limit is found that its type cannot have
    except (_Unknown, TypeError, ValueError, OverflowError):
        return None
    return content


def _kind(field: Json) -> Any:
    kind = field.get("type")
    if "enum" in field or "oneOf" in field:
        return _choice(field)
    if kind == "string":
        return _limited(str, field, _STRING)
    if kind == "integer":
        return _limited(int, field, _NUMBER)
    if kind == "number":
        return _limited(int, field, _NUMBER) | _limited(float, field, _NUMBER)
    if kind == "boolean":
        return _limited(bool, field, {})
    if kind == "array":
        return _limited(list[_choice(field["items"])], field, _LIST, "items")  # type: ignore[misc]
    raise _Unknown


def _limited(kind: Any, field: Json, limits: dict[str, str], *known: str) -> Any:
    """The type with the limits that a field has."""
    if field.keys() - limits.keys() - _SAY_NOTHING - set(known):
        raise _Unknown
    meant = {limits[key]: value for key, value in field.items() if key in limits}
    return Annotated[kind, Meta(**meant)] if meant else kind


def _choice(field: Json) -> Any:
    titled = field.get("oneOf", field.get("anyOf"))
    known = {"enum"} if titled is None else {"oneOf", "anyOf"}
    if field.keys() - known - _SAY_NOTHING:
        raise _Unknown
    values = field["enum"] if titled is None else [option["const"] for option in titled]
    if not all(isinstance(value, str) for value in values):
        raise _Unknown
    return Literal[tuple(values)]
