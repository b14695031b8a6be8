"""From what an author writes to the form that is asked: one flat JSON Schema, and a way back.

A `Form` has the schema against which an answer is checked, on every route, and turns checked content into what the
tool gets. How the form looks under one revision is in `dialects.py`; this module knows no revision.
"""

import enum
import hashlib
import sys
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
import typing_extensions
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from bridge.asking.flattening import Flat, flatten
from bridge.asking.secrets import described_secrets, secret_fields
from bridge.protocol.messages import Json, canonical

__all__ = ["CONFIRM", "VALUE", "Form", "digest", "form_of"]

CONFIRM: Final = "confirm"
"""The one field of a form that would otherwise be empty, or a bare `bool`."""

VALUE: Final = "value"
"""The one field of a form that asks for a scalar."""


class Form(msgspec.Struct, frozen=True):
    """One form.

    Args:
        schema: a flat object schema; checked content is valid against it.
        digest: of the schema, independent of the order of keys.
        read: turns checked content into what the tool gets; raises ValueError with one line a field where a
            constraint that a form cannot show is broken.
        confirms: the form would be empty, so that it is one box: unticked, it is a no.
        secret: the free-text fields that ask for a secret by their name, title or format.
        described_secret: those whose description speaks of one.
    """

    schema: Json
    digest: str
    read: Callable[[Json], Any]
    confirms: bool = False
    secret: tuple[str, ...] = ()
    described_secret: tuple[str, ...] = ()


def form_of(schema: Any) -> Form:
    """Make the form of what an author passed to `elicit`.

    Args:
        schema: a pydantic model, msgspec Struct, dataclass or TypedDict; `bool`, `str`, `int`, `float`, an Enum or
            Literal, or a list of one of those two; or a JSON Schema as a dict.

    Returns:
        The form; the same object for the same class.

    Raises:
        TypeError: a field that MCP forms cannot hold, named.

    Source: client/elicitation#requested-schema.
    """
    if isinstance(schema, Mapping):
        flat = flatten(dict(schema), "the schema")
        return _form(msgspec.structs.replace(flat, nullable=()), lambda content: content)
    if isinstance(schema, str):
        raise TypeError(f"the text {schema!r} is no schema; to open a page, use elicit_url")
    try:
        # Two Literals are equal whatever the order of their values: the text tells them apart.
        return _form_of_type(schema, repr(schema) if get_args(schema) else "")
    except TypeError as error:
        if "unhashable" in str(error):
            raise TypeError(f"{schema!r} is no schema that elicit knows") from None
        raise


@lru_cache(maxsize=1024)
def _form_of_type(kind: Any, text: str) -> Form:
    if kind is bool:
        field = {"type": "boolean", "title": "Confirm"}
        asked = {"type": "object", "properties": {CONFIRM: field}, "required": [CONFIRM]}
        return _form(flatten(asked, "bool"), lambda content: content[CONFIRM])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _form(flatten(_struct_schema(kind), _name(kind)), lambda content: _converted(kind, content))
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(_of_today(kind))
        schema = adapter.json_schema(mode="validation")
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise TypeError(f"{_name(kind)} is no schema that elicit knows: {error}") from None
    if _is_scalar(kind):
        definitions = schema.pop("$defs", None)
        asked = {"type": "object", "properties": {VALUE: schema}, "required": [VALUE]}
        asked = asked if definitions is None else {**asked, "$defs": definitions}
        return _form(flatten(asked, _name(kind)), lambda content: _validated(adapter, content[VALUE]))
    if schema.get("type") != "object" and "$ref" not in schema:
        raise TypeError(f"{_name(kind)} is no form: pass a class with fields, a scalar, or a JSON Schema")
    flat = flatten(schema, _name(kind))
    for field in flat.schema["properties"].values():
        # pydantic checks it when the answer is read, with an engine that does not backtrack.
        field.pop("pattern", None)
    return _form(flat, lambda content: _validated(adapter, content))


def _is_scalar(kind: Any) -> bool:
    if get_origin(kind) is list:
        return any(map(_is_scalar, get_args(kind)[:1]))
    if get_origin(kind) is Literal:
        return True
    return kind in (str, int, float) or _is_enum(kind)


def _of_today(kind: Any) -> Any:
    """A TypedDict of the standard library as one of typing_extensions: before Python 3.12 pydantic takes no other."""
    if not typing.is_typeddict(kind) or sys.version_info >= (3, 12):
        return kind
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {
        name: typing_extensions.Required[hint]
        if name in kind.__required_keys__
        else typing_extensions.NotRequired[hint]
        for name, hint in hints.items()
    }
    make: Any = typing_extensions.TypedDict
    return make(kind.__name__, fields)


def _form(flat: Flat, read: Callable[[Json], Any]) -> Form:
    if flat.schema["properties"]:
        return Form(
            flat.schema,
            digest(flat.schema),
            lambda content: read(flat.meant(content)),
            secret=tuple(secret_fields(flat.schema)),
            described_secret=tuple(described_secrets(flat.schema)),
        )
    confirm = {"type": "boolean", "title": "Confirm"}
    filled = {**flat.schema, "properties": {CONFIRM: confirm}, "required": [CONFIRM]}
    return Form(filled, digest(filled), lambda content: read({}), confirms=True)


def _struct_schema(kind: type[msgspec.Struct]) -> Json:
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise TypeError(f"{_name(kind)} is no schema that elicit knows: {error}") from None
    for field in msgspec.structs.fields(kind):
        for choices in filter(_is_enum, (field.type, *get_args(field.type))):
            # msgspec sorts an Enum's values; its author chose their order.
            schema["$defs"].get(choices.__name__, {})["enum"] = [member.value for member in choices]
    return schema


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _converted(kind: type[msgspec.Struct], content: Json) -> Any:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _validated(adapter: TypeAdapter[Any], content: Any) -> Any:
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        lines = (f"{'.'.join(map(str, e['loc'])) or 'form'}: {e['msg']}" for e in error.errors(include_url=False))
        raise ValueError("\n".join(lines)) from None


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", repr(kind))


def digest(value: object) -> str:
    """A short text that two JSON values share only when they are equal: 128 bits of BLAKE2b."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()
