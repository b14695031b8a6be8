"""Anything that the newest revisions allow, as each legacy revision has it: allowed there, and shaped once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bridge.protocol.revisions import LEGACY, Revision
from bridge.protocol.shaping import is_wrapped, shape_definition, shape_result, without_modern_fields
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour
Case = dict[str, Any]

legacy = pytest.mark.parametrize("revision", LEGACY.values(), ids=lambda revision: revision.name)

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
URIS = st.sampled_from(["https://example.com/a", "file:///a%20b", "notes://today", "urn:x:1"])
BYTES = st.sampled_from(["", "AAAA", "aGk="])
MIME = st.sampled_from(["text/plain", "image/png", "audio/wav"])
META = st.dictionaries(st.sampled_from(["a.example/x", "y"]), st.none() | st.integers() | WORDS, max_size=2)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)


def objects(required: Case, optional: Case) -> st.SearchStrategy[Case]:
    """Objects with these fields."""
    return st.fixed_dictionaries(required, optional=optional)


ICONS = st.lists(
    objects(
        {"src": URIS},
        {
            "mimeType": MIME,
            "sizes": st.lists(st.sampled_from(["48x48", "any"]), max_size=2),
            "theme": st.sampled_from(["dark", "light"]),
        },
    ),
    max_size=2,
)
ANNOTATIONS = objects(
    {},
    {
        "audience": st.lists(st.sampled_from(["user", "assistant"]), max_size=2),
        "priority": st.floats(0, 1),
        "lastModified": st.just("2026-07-28T10:00:00Z"),
    },
)
ABOUT: Case = {"title": WORDS, "description": WORDS, "icons": ICONS, "_meta": META}

ANY_SCHEMA: list[tuple[Case, Any]] = [
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}, {"a": 1}),
    ({"type": "integer"}, 3),
    ({"type": ["integer", "null"]}, None),
    ({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "integer"}}}, [1, 2]),
    ({"$ref": "#/definitions/A", "definitions": {"A": {"type": "string"}}}, "x"),
    ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]}, [1, [2, []]]),
    (
        {"$defs": {"A": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}, "type": "array", "items": {"$ref": "#/$defs/A"}},
        [[]],
    ),
    ({"anyOf": [{"type": "object"}, {"type": "null"}], "$schema": "https://json-schema.org/draft/2020-12/schema"}, {}),
    ({"oneOf": [{"const": 1}, {"enum": ["a", "b"]}]}, "b"),
    ({}, [{"any": "thing"}]),
]

TOOLS = objects(
    {
        "name": st.sampled_from(["a", "b.c", "d/e"]),
        "inputSchema": st.sampled_from(
            [
                {"type": "object"},
                {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "$defs": {}},
            ]
        ),
    },
    {
        **ABOUT,
        "annotations": objects(
            {},
            {
                "title": WORDS,
                **dict.fromkeys(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), st.booleans()),
            },
        ),
        "outputSchema": st.sampled_from([schema for schema, _ in ANY_SCHEMA]),
        "execution": objects({}, {"taskSupport": st.sampled_from(["forbidden", "optional"])}),
    },
)
ARGUMENTS = st.lists(objects({"name": WORDS}, {"description": WORDS, "required": st.booleans()}), max_size=2)
TITLED_ARGUMENTS = st.lists(objects({"name": WORDS, "title": WORDS}, {}), min_size=1, max_size=2)
PROMPTS = objects({"name": WORDS}, {**ABOUT, "arguments": ARGUMENTS})
RESOURCES = objects(
    {"name": WORDS, "uri": URIS},
    {**ABOUT, "mimeType": MIME, "size": st.integers(0, 99), "annotations": ANNOTATIONS},
)
TEMPLATES = objects(
    {"name": WORDS, "uriTemplate": st.just("notes://{day}")},
    {**ABOUT, "mimeType": MIME, "annotations": ANNOTATIONS},
)
DEFINITIONS = {
    "tools": (TOOLS, "tools/list"),
    "prompts": (PROMPTS, "prompts/list"),
    "resources": (RESOURCES, "resources/list"),
    "resourceTemplates": (TEMPLATES, "resources/templates/list"),
}

INSIDE: Case = {"annotations": ANNOTATIONS, "_meta": META}
CONTENTS = objects({"uri": URIS, "text": WORDS}, {"mimeType": MIME, "_meta": META}) | objects(
    {"uri": URIS, "blob": BYTES}, {"mimeType": MIME, "_meta": META}
)
BLOCKS = st.one_of(
    objects({"type": st.just("text"), "text": WORDS}, INSIDE),
    objects({"type": st.just("image"), "data": BYTES, "mimeType": MIME}, INSIDE),
    objects({"type": st.just("audio"), "data": BYTES, "mimeType": MIME}, INSIDE),
    objects({"type": st.just("resource"), "resource": CONTENTS}, INSIDE),
    objects(
        {"type": st.just("resource_link"), "uri": URIS, "name": WORDS},
        {**ABOUT, **INSIDE, "mimeType": MIME, "size": st.integers(0, 99)},
    ),
)
MODERN: Case = {
    "resultType": st.just("complete"),
    "ttlMs": st.integers(0, 99),
    "cacheScope": st.sampled_from(["public", "private"]),
    "_meta": META,
}
RESULTS = {
    "tools/call": objects(
        {"content": st.lists(BLOCKS, max_size=3)}, {**MODERN, "structuredContent": JSON, "isError": st.booleans()}
    ),
    "prompts/get": objects(
        {
            "messages": st.lists(
                objects({"role": st.sampled_from(["user", "assistant"]), "content": BLOCKS}, {}), max_size=3
            )
        },
        {**MODERN, "description": WORDS},
    ),
    "resources/read": objects({"contents": st.lists(CONTENTS, max_size=3)}, MODERN),
}


def check(result: Case, revision: Revision, method: str) -> None:
    """Hold a result against its revision."""
    tap = Tap()
    tap.check({"jsonrpc": "2.0", "id": 1, "result": result}, revision=revision.name, method=method)
    tap.assert_clean()


@behaviour("LEG-10")
@legacy
@pytest.mark.parametrize("kind", DEFINITIONS)
@given(data=st.data())
def test_a_definition_is_one_that_its_revision_allows(revision: Revision, kind: str, data: st.DataObject) -> None:
    drawn, method = DEFINITIONS[kind]
    definition = data.draw(drawn)
    before = repr(definition)
    shaped = shape_definition(kind, definition, revision)
    check({kind: [shaped]}, revision, method)
    assert shape_definition(kind, shaped, revision) == shaped
    assert repr(definition) == before, "what is shaped for one client is there for the next"


@behaviour("LEG-10")
@pytest.mark.parametrize(
    "revision",
    [pytest.param(revision, id=revision.name) for revision in LEGACY.values()],
)
def test_an_argument_of_a_prompt_has_a_title_where_the_revision_has_it(revision: Revision) -> None:
    prompt = {"name": "p", "arguments": [{"name": "a", "title": "The argument", "required": True}]}
    check({"prompts": [shape_definition("prompts", prompt, revision)]}, revision, "prompts/list")


@behaviour("LEG-10", "LEG-5")
@legacy
@pytest.mark.parametrize("method", RESULTS)
@given(data=st.data())
def test_a_result_is_one_that_its_revision_allows(revision: Revision, method: str, data: st.DataObject) -> None:
    result = data.draw(RESULTS[method])
    before = repr(result)
    shaped = without_modern_fields(shape_result(result, revision))
    check(shaped, revision, method)
    assert without_modern_fields(shape_result(shaped, revision)) == shaped
    assert repr(result) == before
    for name in ("content", "messages", "contents"):
        assert len(shaped.get(name, ())) == len(result.get(name, ())), "nothing is left out without a word"


@behaviour("LEG-10")
@legacy
@pytest.mark.parametrize(("schema", "value"), ANY_SCHEMA, ids=str)
@given(other=JSON)
def test_structured_content_matches_the_schema_that_was_listed(
    revision: Revision, schema: Case, value: Any, other: Any
) -> None:
    shaped = shape_definition("tools", {"name": "t", "inputSchema": {}, "outputSchema": schema}, revision)
    if "outputSchema" not in shaped:
        assert "structuredContent" not in shape_result({"content": [], "structuredContent": value}, revision)
        return
    listed = Draft202012Validator(shaped["outputSchema"])
    assert shaped["outputSchema"]["type"] == "object"
    wrap = is_wrapped(schema, revision)
    content = shape_result({"content": [], "structuredContent": value}, revision, wrap=wrap)["structuredContent"]
    assert listed.is_valid(content)
    if wrap:
        assert content == {"result": value}
        assert listed.is_valid({"result": other}) == Draft202012Validator(schema).is_valid(other)


@behaviour("LEG-10")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}],
                "items": {"$ref": "#/prefixItems/0"},
            },
            [1, 2],
        ),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/anyOf/0"}}]}, ["x"]),
    ],
)
def test_references_into_a_wrapped_schema_still_resolve(schema: Case, value: Any) -> None:
    revision = LEGACY["2025-11-25"]
    shaped = shape_definition("tools", {"name": "t", "inputSchema": {}, "outputSchema": schema}, revision)
    assert Draft202012Validator(shaped["outputSchema"]).is_valid({"result": value})
