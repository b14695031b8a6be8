"""Any JSON Schema of an object, brought into the shape of a form: flat, every field of a kind that a form can show.

Constraints that a form cannot show are kept, for the answer to be checked against. Choices that are no texts (numbers)
are shown as texts, and become what they mean when the answer is read.
"""

from collections.abc import Collection
from typing import Any, Final

import msgspec
from jsonschema import Draft202012Validator

from bridge.protocol.messages import Json

__all__ = ["Flat", "flatten"]

_STRING: Final = ("minLength", "maxLength", "pattern", "format")
_NUMBER: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_CONSTRAINTS: Final = {"string": _STRING, "number": _NUMBER, "integer": _NUMBER, "boolean": ()}
_COMMON: Final = ("title", "description", "default")
_CHOICES: Final = ("enum", "enumNames", "const", "oneOf", "anyOf")
_LIST: Final = ("items", "minItems", "maxItems", "uniqueItems")
_ROOT: Final = ("type", "properties", "required", "additionalProperties", "title", "description", "default")
_SAY_NOTHING: Final = frozenset(
    {"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"contentEncoding", "contentMediaType"}
)
"""Keywords that describe, and constrain nothing."""
_MAX_REFERENCES: Final = 32


class Flat(msgspec.Struct, frozen=True):
    """A flat schema, and what the texts of its choices mean.

    Args:
        schema: `type`, `properties` and `required`, with every constraint.
        meanings: for each field whose choices are no texts: the value behind each text.
        nullable: the fields that must be there and may be None: left out, they are None.
    """

    schema: Json
    meanings: dict[str, dict[str, Any]]
    nullable: tuple[str, ...] = ()

    def meant(self, content: Json) -> Json:
        """Checked content with the values that its texts mean."""
        if self.nullable:
            content = {**dict.fromkeys(self.nullable), **content}
        if not self.meanings:
            return content
        return {name: self._meaning(name, value) for name, value in content.items()}

    def _meaning(self, name: str, value: Any) -> Any:
        known = self.meanings.get(name)
        if known is None:
            return value
        return [known.get(item, item) for item in value] if isinstance(value, list) else known.get(value, value)


def flatten(schema: Json, owner: str) -> Flat:
    """Bring a JSON Schema into the shape of a form.

    Args:
        schema: an object schema; local references and optional fields (`X | None`) are resolved.
        owner: what to call it in an error.

    Raises:
        TypeError: the field that cannot be in a form, and why.

    Source: client/elicitation#requested-schema.
    """
    root = _resolved(schema, schema, owner)
    if root.get("type", "object") != "object":
        raise TypeError(f"{owner} must describe an object, not {root.get('type')!r}")
    _check_keywords(root, _ROOT, owner)
    fields: Json = {}
    meanings: dict[str, dict[str, Any]] = {}
    nullable: list[str] = []
    properties, required = root.get("properties", {}), list(root.get("required", ()))
    others = root.get("additionalProperties", False)
    if isinstance(others, dict) or (others and not properties) or not properties.keys() >= set(required):
        raise TypeError(f"{owner}: a form has the fields that its properties name, and no others")
    for name, field in properties.items():
        where = f"{owner}.{name}"
        if not isinstance(field, dict):
            raise TypeError(f"{where}: a field needs a schema that says of which kind it is")
        shape, optional = _without_null(field, schema, where)
        fields[name] = _with_good_default(_field(shape, schema, where, meanings.setdefault(name, {})), where)
        if optional and name in required:
            required.remove(name)
            nullable.append(name)
    flat: Json = {"type": "object", "properties": fields}
    if required:
        flat["required"] = required
    if root.get("additionalProperties") is False:
        flat["additionalProperties"] = False
    return Flat(flat, {name: values for name, values in meanings.items() if values}, tuple(nullable))


def _check_keywords(schema: Json, known: Collection[str], where: str) -> None:
    """Refuse a constraint that would be lost: it would not be enforced on the answer."""
    for keyword in schema:
        if keyword not in known and keyword not in _SAY_NOTHING and not keyword.startswith("x-"):
            raise TypeError(f"{where}: a form cannot hold the keyword {keyword!r}")


def _resolved(schema: Json, root: Json, where: str) -> Json:
    """Follow local references; what stands beside one adds to what it points at."""
    for _ in range(_MAX_REFERENCES):
        all_of = schema.get("allOf")
        if "$ref" in schema:
            target = _target(str(schema["$ref"]), root, where)
        elif isinstance(all_of, list) and len(all_of) == 1 and isinstance(all_of[0], dict):
            target = all_of[0]
        else:
            return schema
        schema = {**target, **{key: value for key, value in schema.items() if key not in ("$ref", "allOf")}}
    raise TypeError(f"{where}: a form's schema may not refer to itself")


def _target(reference: str, root: Json, where: str) -> Json:
    target: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    if not reference.startswith("#") or not isinstance(target, dict):
        raise TypeError(f"{where}: the reference {reference!r} leads nowhere")
    return target


def _without_null(schema: Json, root: Json, where: str) -> tuple[Json, bool]:
    """A field without its `null` alternative, and whether it had one: `X | None` is an optional field."""
    schema = _resolved(schema, root, where)
    kinds = schema.get("type")
    if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
        kind = next(kind for kind in kinds if kind != "null")
        return _without_null_default({**schema, "type": kind}), True
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, list) and any(option.get("type") == "null" for option in options):
            rest = [option for option in options if option.get("type") != "null"]
            if len(rest) != 1:
                raise TypeError(f"{where}: a form cannot hold a union of types")
            beside = {key: value for key, value in schema.items() if key != keyword}
            return _without_null_default({**_resolved(rest[0], root, where), **beside}), True
    return schema, False


def _without_null_default(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if not (key == "default" and value is None)}


def _field(schema: Json, root: Json, where: str, meaning: dict[str, Any]) -> Json:
    if isinstance(schema.get("type"), list):
        raise TypeError(f"{where}: a form cannot hold a union of types")
    kept: Json = {key: schema[key] for key in _COMMON if key in schema}
    kind = schema.get("type")
    choices = _choices(schema, where, meaning)
    if choices is not None:
        _check_keywords(schema, ("type", *_COMMON, *_CHOICES), where)
        return {"type": "string", **choices, **_as_text(kept, meaning)}
    if kind == "array":
        _check_keywords(schema, ("type", *_COMMON, *_LIST), where)
        items = _choices(_resolved(schema.get("items", {}), root, where), where, meaning)
        if items is None:
            raise TypeError(f"{where}: a form can hold a list of fixed choices only (an Enum or Literal)")
        listed = {"anyOf": items["oneOf"]} if "oneOf" in items else {"type": "string", **items}
        limits: Json = {key: schema[key] for key in ("minItems", "maxItems", "uniqueItems") if key in schema}
        return {"type": "array", "items": listed, **limits, **_as_text(kept, meaning)}
    if kind in _CONSTRAINTS:
        _check_keywords(schema, ("type", *_COMMON, *_CONSTRAINTS[kind]), where)
    if kind == "string":
        return {"type": kind, **{key: schema[key] for key in _STRING if key in schema}, **kept}
    if kind in ("number", "integer"):
        return {"type": kind, **{key: schema[key] for key in _NUMBER if key in schema}, **kept}
    if kind == "boolean":
        return {"type": kind, **kept}
    if kind == "object" or "properties" in schema:
        raise TypeError(f"{where}: a form cannot hold a nested object; ask for its fields one by one")
    raise TypeError(f"{where}: a form cannot hold {'a union of types' if kind is None else repr(kind)}")


def _with_good_default(field: Json, where: str) -> Json:
    """A default that its own field does not allow would make every answer that leaves it out an invalid one."""
    if "default" in field and not Draft202012Validator(field).is_valid(field["default"]):
        raise TypeError(f"{where}: its default {field['default']!r} is not allowed by its own constraints")
    for key in ("title", "description"):
        if key in field and not isinstance(field[key], str):
            raise TypeError(f"{where}: its {key} must be a text, not {field[key]!r}")
    return field


def _as_text(kept: Json, meaning: dict[str, Any]) -> Json:
    """A default that is no text, as the text that stands for it."""
    if not meaning or "default" not in kept:
        return kept
    texts = {value: text for text, value in meaning.items()}
    default = kept["default"]
    chosen = (
        [texts.get(value, value) for value in default] if isinstance(default, list) else texts.get(default, default)
    )
    return {**kept, "default": chosen}


def _choices(schema: Json, where: str, meaning: dict[str, Any]) -> Json | None:
    """The choices of a field in one of two shapes: `enum`, or `oneOf` with titles; None where it has none."""
    titled = schema.get("oneOf", schema.get("anyOf"))
    names: list[str] = []
    if isinstance(titled, list) and titled and all("const" in option for option in titled):
        values = [option["const"] for option in titled]
        names = [str(option.get("title", option["const"])) for option in titled]
    elif "const" in schema:
        values = [schema["const"]]
    elif isinstance(schema.get("enum"), list):
        values, names = schema["enum"], [str(name) for name in schema.get("enumNames", ())]
    else:
        return None
    texts = [_text(value, where, meaning) for value in values]
    if not texts:
        raise TypeError(f"{where}: there is nothing to choose from")
    if len(set(texts)) < len(texts):
        raise TypeError(f"{where}: two choices look the same")
    if len(names) == len(texts) and names != texts:
        pairs = zip(texts, names, strict=True)
        return {"oneOf": [{"const": text, "title": name} for text, name in pairs]}
    return {"enum": texts}


def _text(value: Any, where: str, meaning: dict[str, Any]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{where}: the choices of a form are texts or numbers, not {value!r}")
    meaning[str(value)] = value
    return str(value)
