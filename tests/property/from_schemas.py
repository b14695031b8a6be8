"""Strategies made of the published schemas: anything that one revision allows in one place.

Where a schema says too little to be useful ("an object", for a JSON Schema), a strategy is written by hand.
"""

import base64
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.wiretap.schemas import SPEC_FOLDER, _Revision

__all__ = ["definitions", "drawn"]

Schema = dict[str, Any]

_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
_META = st.dictionaries(st.sampled_from(["a.example/x", "y"]), st.none() | st.integers(-9, 9) | _WORDS, max_size=2)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | _WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=2),
    max_leaves=3,
)
_INPUT = st.sampled_from(
    [
        {"type": "object"},
        {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    ]
)
_OBJECT_OUTPUT = st.sampled_from(
    [
        {"type": "object"},
        {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    ]
)
_ANY_OUTPUT = _OBJECT_OUTPUT | st.sampled_from(
    [
        {"type": "integer"},
        {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "string"}}},
        {"anyOf": [{"type": "object"}, {"type": "null"}], "$schema": "https://json-schema.org/draft/2020-12/schema"},
    ]
)
_FORMATS: dict[str, st.SearchStrategy[str]] = {
    "uri": st.sampled_from(["https://example.com/a", "urn:x:1", "file:///a%20b"]),
    "uri-template": st.just("notes://{day}"),
    "byte": st.binary(max_size=4).map(lambda data: base64.b64encode(data).decode()),
}


@cache
def definitions(revision: str) -> _Revision:
    """The definitions of a revision."""
    assert SPEC_FOLDER is not None
    return _Revision.read(SPEC_FOLDER / revision / "schema.json")


@cache
def drawn(revision: str, name: str) -> st.SearchStrategy[Any]:
    """Anything that a revision allows under the name of a definition."""
    read = definitions(revision)
    return _of(read.closed(read._definitions[name]), revision)


def _of(schema: Schema, revision: str) -> st.SearchStrategy[Any]:
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([_of(choice, revision) for choice in schema["anyOf"]])
    kinds = schema.get("type", [])
    if isinstance(kinds, list):
        return st.one_of([_typed({**schema, "type": kind}, revision) for kind in kinds]) if kinds else _JSON
    return _typed(schema, revision)


def _typed(schema: Schema, revision: str) -> st.SearchStrategy[Any]:
    kind = schema["type"]
    if kind == "object":
        return _object(schema, revision)
    if kind == "array":
        return st.lists(_of(schema.get("items", {}), revision), min_size=schema.get("minItems", 0), max_size=2)
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), _WORDS)
    if kind == "boolean":
        return st.booleans()
    low, high = schema.get("minimum", -99), schema.get("maximum", 99)
    return st.integers(int(low), int(high)) if kind == "integer" else st.floats(low, high, allow_nan=False)


def _object(schema: Schema, revision: str) -> st.SearchStrategy[Any]:
    required = schema.get("required", ())
    fields = {name: _field(name, inner, revision) for name, inner in schema.get("properties", {}).items()}
    fields = {name: strategy for name, strategy in fields.items() if strategy is not None or name in required}
    if not fields:
        extra = schema.get("additionalProperties", {})
        inner = _of(extra, revision) if isinstance(extra, dict) and extra else _JSON
        return st.dictionaries(st.sampled_from(["a", "b", "ç"]), inner, max_size=2)
    return st.fixed_dictionaries(
        {name: strategy for name, strategy in fields.items() if name in required},
        optional={name: strategy for name, strategy in fields.items() if name not in required},
    )


def _field(name: str, schema: Schema, revision: str) -> Any:
    by_hand = {
        "_meta": _META,
        "inputSchema": _INPUT,
        "outputSchema": _ANY_OUTPUT if revision == "2026-07-28" else _OBJECT_OUTPUT,
        "metadata": _META,
        "experimental": st.just({"x": {}}),
        "extensions": st.just({"a.example/x": {}}),
        "size": st.integers(0, 99),
    }
    return by_hand[name] if name in by_hand else _of(schema, revision)
