"""From what an author writes to the form that is asked: one flat JSON Schema, and a way back.

A `Form` has the schema against which an answer is checked, on every route, and turns checked content into what the
tool gets. How the form looks under one revision is in `dialects.py`; this module knows no revision.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from bridge.protocol.messages import Json, canonical

__all__ = ["CONFIRM", "Form", "digest", "flat_schema", "form_of"]

CONFIRM: Final = "confirm"
"""The one field of a form that would otherwise be empty, or a bare `bool`."""

_STRING: Final = ("minLength", "maxLength", "pattern", "format")
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COMMON: Final = ("title", "description", "default")


class Form(msgspec.Struct, frozen=True):
    """One form.

    Args:
        schema: a flat object schema; checked content is valid against it.
        digest: of the schema, independent of the order of keys.
        read: turns checked content into what the tool gets; raises ValueError with one line a field where a
            constraint that a form cannot show is broken.
    """

    schema: Json
    digest: str
    read: Callable[[Json], Any]


def form_of(schema: Any) -> Form:
    """Make the form of what an author passed to `elicit`.

    Args:
        schema: a pydantic model, dataclass or TypedDict, `bool`, or a JSON Schema as a dict.

    Returns:
        The form; the same object for the same class.

    Raises:
        TypeError: a field that MCP forms cannot hold, named.

    Source: client/elicitation#requested-schema.
    """
    if isinstance(schema, Mapping):
        return _form(flat_schema(dict(schema)), _same)
    return _form_of_type(schema)


@lru_cache(maxsize=1024)
def _form_of_type(kind: Any) -> Form:
    if kind is bool:
        field = {"type": "boolean", "title": "Confirm"}
        return _form({"type": "object", "properties": {CONFIRM: field}, "required": [CONFIRM]}, _confirmed)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema(mode="validation")
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise TypeError(f"{_name(kind)} is no schema that elicit knows: {error}") from None
    if schema.get("type") != "object" and "$ref" not in schema:
        raise TypeError(f"{_name(kind)} is no form: pass a class with fields, bool, or a JSON Schema")
    return _form(flat_schema(schema, _name(kind)), lambda content: _validated(adapter, content))


def _form(schema: Json, read: Callable[[Json], Any]) -> Form:
    if schema["properties"]:
        return Form(schema, digest(schema), read)
    confirm = {"type": "boolean", "title": "Confirm"}
    filled = {**schema, "properties": {CONFIRM: confirm}, "required": [CONFIRM]}
    return Form(filled, digest(filled), lambda content: read({}))


def _same(content: Json) -> Json:
    return content


def _confirmed(content: Json) -> bool:
    return content[CONFIRM] is True


def _validated(adapter: TypeAdapter[Any], content: Json) -> Any:
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        lines = (f"{'.'.join(map(str, e['loc'])) or 'form'}: {e['msg']}" for e in error.errors(include_url=False))
        raise ValueError("\n".join(lines)) from None


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", repr(kind))


def digest(value: object) -> str:
    """A short text that two JSON values share only when they are equal: 128 bits of SHA-256."""
    return base64.urlsafe_b64encode(hashlib.sha256(canonical(value)).digest()[:16]).decode().rstrip("=")


def flat_schema(schema: Json, owner: str = "the schema") -> Json:
    """Bring a JSON Schema into the shape of a form: one object, every field of a kind that a form can show.

    Args:
        schema: an object schema; local references and optional fields (`X | None`) are resolved.
        owner: what to call it in an error.

    Returns:
        `type`, `properties` and `required`, with every constraint that the schema has.

    Raises:
        TypeError: the field that cannot be in a form, and why.
    """
    root = _resolved(schema, schema)
    if root.get("type", "object") != "object":
        raise TypeError(f"{owner} must describe an object, not {root.get('type')!r}")
    fields: Json = {}
    required = list(root.get("required", ()))
    for name, field in root.get("properties", {}).items():
        flat, optional = _field(field, schema, f"{owner}.{name}")
        fields[name] = flat
        if optional and name in required:
            required.remove(name)
    flat_root: Json = {"type": "object", "properties": fields}
    if required:
        flat_root["required"] = required
    if root.get("additionalProperties") is False:
        flat_root["additionalProperties"] = False
    return flat_root


def _resolved(schema: Json, root: Json) -> Json:
    """Follow local references; what stands beside one adds to what it points at."""
    for _ in range(16):
        reference = schema.get("$ref")
        if reference is None:
            all_of = schema.get("allOf")
            if not (isinstance(all_of, list) and len(all_of) == 1):
                return schema
            target: Any = all_of[0]
        else:
            target = root
            for part in str(reference).removeprefix("#").strip("/").split("/"):
                target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if part else target
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        schema = {**target, **beside}
    raise TypeError("a form's schema may not refer to itself")


def _field(schema: Json, root: Json, where: str) -> tuple[Json, bool]:
    schema = _resolved(schema, root)
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, list) and any(o.get("type") == "null" for o in options):
            rest = [option for option in options if option.get("type") != "null"]
            if len(rest) != 1:
                raise TypeError(f"{where}: a form cannot hold a union of types")
            beside = {k: v for k, v in schema.items() if k != keyword and not (k == "default" and v is None)}
            return _field({**_resolved(rest[0], root), **beside}, root, where)[0], True
    return _primitive(schema, root, where), False


def _primitive(schema: Json, root: Json, where: str) -> Json:
    kept = {key: schema[key] for key in _COMMON if schema.get(key) is not None}
    choices = _choices(schema, where)
    if choices is not None:
        return {"type": "string", **choices, **kept}
    kind = schema.get("type")
    if kind == "string":
        return {"type": kind, **{key: schema[key] for key in _STRING if key in schema}, **kept}
    if kind in ("number", "integer"):
        return {"type": kind, **{key: schema[key] for key in _NUMBER if key in schema}, **kept}
    if kind == "boolean":
        return {"type": kind, **kept}
    if kind == "array":
        items = _choices(_resolved(schema.get("items", {}), root), where)
        if items is None:
            raise TypeError(f"{where}: a form can hold a list of fixed choices only (an Enum or Literal)")
        listed = {"anyOf": items["oneOf"]} if "oneOf" in items else {"type": "string", **items}
        limits: Json = {key: schema[key] for key in ("minItems", "maxItems", "uniqueItems") if key in schema}
        return {"type": "array", "items": listed, **limits, **kept}
    if kind == "object" or "properties" in schema:
        raise TypeError(f"{where}: a form cannot hold a nested object; ask for its fields one by one")
    raise TypeError(f"{where}: a form cannot hold {kind or 'a union of types'!r}")


def _choices(schema: Json, where: str) -> Json | None:
    """The choices of a field in one of two shapes: `enum`, or `oneOf` with titles; None where it has none."""
    titled = schema.get("oneOf", schema.get("anyOf"))
    if isinstance(titled, list) and titled and all("const" in option for option in titled):
        values = [option["const"] for option in titled]
        names = [str(option.get("title", option["const"])) for option in titled]
    elif "const" in schema:
        values, names = [schema["const"]], []
    elif isinstance(schema.get("enum"), list):
        values, names = schema["enum"], [str(name) for name in schema.get("enumNames", ())]
    else:
        return None
    if not all(isinstance(value, str) for value in values):
        raise TypeError(f"{where}: the choices of a form are texts")
    if len(names) == len(values) and names != values:
        pairs = zip(values, names, strict=True)
        return {"oneOf": [{"const": value, "title": name} for value, name in pairs]}
    return {"enum": values}
