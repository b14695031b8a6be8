"""Forms of any flat schema: shown as each revision has them, filled in honestly or not, and read back."""

from datetime import UTC
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bridge.asking.checking import InvalidReply, check_reply
from bridge.asking.dialects import read_shown, request_params
from bridge.asking.form import form_of
from bridge.asking.question import Question, Reply
from bridge.asking.quick import quick_type
from bridge.protocol.revisions import REVISIONS, Revision
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour

Case = dict[str, Any]

SHOWING = [revision for revision in REVISIONS.values() if revision.form_elicitation]
showing = pytest.mark.parametrize("revision", SHOWING, ids=lambda revision: revision.name)

ABSENT = object()
"""The user leaves the field out."""


class Field(NamedTuple):
    """A field, and an answer to it.

    Args:
        schema: the field's JSON Schema, as an author writes it.
        required: whether it must be filled in.
        sent: what a client sends that shows forms as the newest revision has them; `ABSENT` for nothing.
        meant: what the tool is to get for it; `ABSENT` for nothing.
    """

    schema: Case
    required: bool
    sent: Any
    meant: Any


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
NAMES = st.one_of(
    st.from_regex(r"[a-z][a-z_]{0,7}", fullmatch=True),
    st.sampled_from(
        ["type", "properties", "required", "$ref", "confirm", "value", "a.b", "a/b", "ünï", "a b", "__x__"]
    ),
)
WHOLE = st.integers(-(2**53), 2**53)
REAL = st.floats(-1e12, 1e12, allow_nan=False)
FORMATS = {
    "email": st.emails(),
    "uri": st.from_regex(r"https://[a-z]{1,9}\.example/[a-z0-9]{0,9}", fullmatch=True),
    "date": st.dates().map(lambda day: day.isoformat()),
    "date-time": st.datetimes(timezones=st.just(UTC)).map(lambda time: time.isoformat()),
}


@st.composite
def texts(draw: st.DrawFn) -> tuple[Case, st.SearchStrategy[str]]:
    """A text with limits, or of a format."""
    if draw(st.booleans()):
        kind = draw(st.sampled_from(sorted(FORMATS)))
        return {"type": "string", "format": kind}, FORMATS[kind]
    low = draw(st.none() | st.integers(0, 5))
    high = draw(st.none() | st.integers(low or 0, 12))
    limits = {"minLength": low, "maxLength": high}
    schema = {"type": "string", **{key: value for key, value in limits.items() if value is not None}}
    values = st.text(st.characters(codec="utf-8"), min_size=low or 0, max_size=12 if high is None else high)
    return schema, values


@st.composite
def numbers(draw: st.DrawFn) -> tuple[Case, st.SearchStrategy[Any]]:
    """A whole number or any, with limits of both kinds."""
    kind = draw(st.sampled_from(["integer", "number"]))
    value = WHOLE if kind == "integer" else REAL
    low, high = sorted([draw(value), draw(value)])
    schema: Case = {"type": kind}
    bounds: Case = {}
    for keyword, strict, bound in (
        ("minimum", "exclusiveMinimum", low),
        ("maximum", "exclusiveMaximum", high),
    ):
        chosen = draw(st.sampled_from([None, keyword, strict]))
        if chosen is not None:
            schema[chosen] = bound
            bounds[keyword] = (bound, chosen == strict)
    return schema, _within(kind, bounds)


def _within(kind: str, bounds: Case) -> st.SearchStrategy[Any]:
    low, low_open = bounds.get("minimum", (None, False))
    high, high_open = bounds.get("maximum", (None, False))
    if kind == "integer":
        low = -(2**62) if low is None else low + low_open
        high = 2**62 if high is None else high - high_open
        return st.integers(low, high) if low <= high else st.nothing()
    low, high = -1e15 if low is None else low, 1e15 if high is None else high
    if low > high or (low == high and (low_open or high_open)):
        return st.nothing()
    return st.floats(low, high, exclude_min=low_open, exclude_max=high_open).filter(
        lambda value: not (low_open and value == low) and not (high_open and value == high)
    )


@st.composite
def choices(draw: st.DrawFn) -> tuple[Case, dict[str, Any]]:
    """The choices of a field as a part of its schema, and what each text that is sent means."""
    values: list[Any] = draw(
        st.one_of(
            st.lists(TEXT, min_size=1, max_size=5, unique=True),
            st.lists(st.integers(-99, 99), min_size=1, max_size=5, unique=True),
        )
    )
    meanings = {str(value): value for value in values}
    titles = draw(st.none() | st.lists(TEXT, min_size=len(values), max_size=len(values)))
    if titles is None:
        return {"enum": values}, meanings
    if draw(st.booleans()):
        return {"enum": values, "enumNames": titles}, meanings
    pairs = zip(values, titles, strict=True)
    return {"oneOf": [{"const": value, "title": title} for value, title in pairs]}, meanings


@st.composite
def kinds(draw: st.DrawFn) -> tuple[Case, st.SearchStrategy[Any], dict[str, Any]]:
    """A field's schema, what may be sent for it, and what sent texts mean."""
    kind = draw(st.sampled_from(["text", "number", "boolean", "one", "several"]))
    if kind == "text":
        return (*draw(texts()), {})
    if kind == "number":
        return (*draw(numbers()), {})
    if kind == "boolean":
        return {"type": "boolean"}, st.booleans(), {}
    options, meanings = draw(choices())
    if kind == "one":
        typed = {"type": "string"} if all(isinstance(value, str) for value in meanings.values()) else {}
        return {**typed, **options}, st.sampled_from(list(meanings)), meanings
    low = draw(st.integers(0, len(meanings)))
    high = draw(st.integers(low, len(meanings)))
    items = {"anyOf": options["oneOf"]} if "oneOf" in options and draw(st.booleans()) else options
    limits: Case = draw(
        st.sampled_from([{}, {"minItems": low}, {"maxItems": high}, {"minItems": low, "maxItems": high}])
    )
    limits |= draw(st.sampled_from([{}, {"uniqueItems": True}]))
    # In the order of the choices: boxes have no other.
    some = st.sets(
        st.sampled_from(list(meanings)), min_size=limits.get("minItems", 0), max_size=limits.get("maxItems")
    ).map(lambda chosen: [text for text in meanings if text in chosen])
    return {"type": "array", "items": items, **limits}, some, meanings


@st.composite
def fields(draw: st.DrawFn) -> Field:
    """A field with an answer to it."""
    schema, values, meanings = draw(kinds())
    assume(not values.is_empty)

    def meant(sent: Any) -> Any:
        if not meanings:
            return sent
        return [meanings[text] for text in sent] if isinstance(sent, list) else meanings[sent]

    about = draw(st.fixed_dictionaries({}, optional={"title": TEXT, "description": TEXT}))
    default = draw(st.just(ABSENT) | values)
    required = draw(st.booleans())
    sent = draw(values if required else st.just(ABSENT) | values)
    schema = {**schema, **about}
    if default is not ABSENT:
        schema["default"] = meant(default)
    if sent is ABSENT:
        return Field(schema, required, ABSENT, ABSENT if default is ABSENT else meant(default))
    return Field(schema, required, sent, meant(sent))


FIELDS = st.dictionaries(NAMES, fields(), min_size=1, max_size=5)


def asked(drawn: dict[str, Field]) -> tuple[Question, Any]:
    """The question for some fields, and the form it comes from."""
    schema = {
        "type": "object",
        "properties": {name: field.schema for name, field in drawn.items()},
        "required": [name for name, field in drawn.items() if field.required],
    }
    form = form_of(schema)
    return Question(key="k", path="p", message="?", schema=form.schema), form


def shown(question: Question, revision: Revision) -> Case:
    """The form as a client of that revision gets it; what leaves the server is held against the revision."""
    params = request_params(question, revision)
    tap = Tap()
    if revision.name == "2026-07-28":
        inside = {"k": {"method": "elicitation/create", "params": params}}
        meta = {"io.modelcontextprotocol/serverInfo": {"name": "x", "version": "1"}}
        result = {"resultType": "input_required", "inputRequests": inside, "requestState": "s", "_meta": meta}
        tap.check({"jsonrpc": "2.0", "id": 1, "result": result}, revision=revision.name, method="tools/call")
    else:
        message = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
        tap.check(message, revision=revision.name, method=None)
    tap.assert_clean()
    schema: Case = params["requestedSchema"]
    return schema


def filled(drawn: dict[str, Field], form: Case) -> Case:
    """What an honest client sends that shows this form to a user who means the drawn answers."""
    content: Case = {}
    for name, field in drawn.items():
        if field.sent is ABSENT:
            continue
        if name in form["properties"]:
            content[name] = field.sent
        else:
            boxes = [box for box in form["properties"] if box.startswith(f"{name}: ")]
            content |= {box: box.removeprefix(f"{name}: ") in field.sent for box in boxes}
    return content


def read(question: Question, content: Any, revision: Revision) -> Reply | InvalidReply:
    """What is made of content that a client of that revision sent."""
    assert question.schema is not None
    raw = {"action": "accept", "content": read_shown(question.schema, content, revision)}
    return check_reply(question, raw, "form")


@behaviour("ANS-9", "ASK-2")
@showing
@given(drawn=FIELDS)
def test_an_honest_client_gives_the_tool_exactly_what_was_meant(revision: Revision, drawn: dict[str, Field]) -> None:
    question, form = asked(drawn)
    schema = shown(question, revision)
    content = filled(drawn, schema)
    assert Draft202012Validator(schema).is_valid(content), "the test itself is honest"
    reply = read(question, content, revision)
    assert isinstance(reply, Reply), reply
    meant = {name: field.meant for name, field in drawn.items() if field.meant is not ABSENT}
    assert form.read(reply.content) == meant
    assert list(map(type, form.read(reply.content).values())) == [type(meant[key]) for key in form.read(reply.content)]


@behaviour("ANS-9")
@showing
@given(drawn=FIELDS)
def test_no_keyword_is_shown_twice_or_to_nobody(revision: Revision, drawn: dict[str, Field]) -> None:
    question, _ = asked(drawn)
    schema = shown(question, revision)
    Draft202012Validator.check_schema({**schema, "properties": _without_names(schema["properties"])})
    assert set(schema.get("required", ())) <= set(schema["properties"])


@behaviour("ANS-9")
@showing
@given(drawn=FIELDS)
def test_the_limits_of_whole_numbers_that_are_shown_are_those_that_hold(
    revision: Revision, drawn: dict[str, Field]
) -> None:
    question, _ = asked(drawn)
    schema = shown(question, revision)
    content = filled(drawn, schema)
    for name, field in schema["properties"].items():
        if field["type"] != "integer":
            continue
        for limit, beyond in (("minimum", -1), ("maximum", 1)):
            if limit in field:
                assert isinstance(read(question, {**content, name: field[limit]}, revision), Reply)
                assert isinstance(read(question, {**content, name: field[limit] + beyond}, revision), InvalidReply)


def _without_names(properties: Case) -> Case:
    """`enumNames` is no keyword of JSON Schema, but of revision 2025-06-18."""
    return {
        name: {key: value for key, value in field.items() if key != "enumNames"} for name, field in properties.items()
    }


JSON_VALUES = st.recursive(
    # Whole numbers beyond 64 bits, written with a point: see test_forms.py.
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e15, 1e15) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def spoilt(draw: st.DrawFn, drawn: dict[str, Field], form: Case) -> Any:
    """An answer in which something is not as it should be, or everything."""
    if draw(st.integers(0, 5)) == 0:
        return draw(JSON_VALUES)
    content: Case = filled(drawn, form)
    name = draw(st.sampled_from(sorted(form["properties"])))
    if name in content and draw(st.integers(0, 3)) == 0:
        del content[name]
    else:
        content[name] = draw(JSON_VALUES)
    return content


@behaviour("ANS-1")
@showing
@given(data=st.data(), drawn=FIELDS)
def test_content_that_the_form_does_not_allow_is_never_an_answer(
    revision: Revision, data: st.DataObject, drawn: dict[str, Field]
) -> None:
    question, form = asked(drawn)
    schema = shown(question, revision)
    content = data.draw(spoilt(drawn, schema))
    reply = read(question, content, revision)
    if isinstance(reply, InvalidReply):
        assert reply.reasons
        return
    assert isinstance(content, dict)
    known = {name: value for name, value in content.items() if name in schema["properties"]}
    # A default stands for what was left out, shown or not, required or not.
    defaults = {
        name: field["default"]
        for name, field in form.schema["properties"].items()
        if "default" in field and name in schema["properties"]
    }
    assert Draft202012Validator(schema).is_valid({**defaults, **known})
    form.read(reply.content)


@behaviour("ANS-1")
@given(data=st.data(), drawn=FIELDS)
def test_what_is_taken_at_a_glance_is_valid(data: st.DataObject, drawn: dict[str, Field]) -> None:
    question, _ = asked(drawn)
    assert question.schema is not None
    quick = quick_type(question.schema)
    assume(quick is not None)
    assert quick is not None
    content = data.draw(st.just(filled(drawn, question.schema)) | spoilt(drawn, question.schema))
    try:
        msgspec.convert(content, quick)
    except msgspec.ValidationError:
        return
    assert Draft202012Validator(question.schema).is_valid(content)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "boolean"},
        {"type": "string", "title": "Name", "minLength": 1, "maxLength": 5},
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
        {"type": "number", "maximum": 3},
        {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    ],
    ids=str,
)
def test_common_fields_are_taken_at_a_glance(field: Case) -> None:
    assert quick_type(form_of({"type": "object", "properties": {"class": field}}).schema) is not None


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "pattern": "a"},
        {"type": "string", "format": "email"},
        {"type": "number", "multipleOf": 0.1},
        {"type": "integer", "minimum": 0.5},
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
    ],
    ids=str,
)
def test_what_no_type_says_is_left_to_the_validator(field: Case) -> None:
    assert quick_type(form_of({"type": "object", "properties": {"x": field}}).schema) is None


@behaviour("ANS-1", "ANS-6")
@given(drawn=FIELDS)
def test_leniency_changes_nothing_that_is_valid_as_it_was_sent(drawn: dict[str, Field]) -> None:
    question, _ = asked(drawn)
    content = filled(drawn, question.schema or {})
    raw = {"action": "accept", "content": content}
    strict, lenient = check_reply(question, raw, "form"), check_reply(question, raw, "chat")
    assert isinstance(strict, Reply)
    assert lenient == Reply("accept", strict.content, "chat")


@behaviour("ANS-1", "ANS-6")
@given(data=st.data(), drawn=FIELDS)
def test_leniency_makes_no_answer_of_anything_else_that_the_form_does_not_allow(
    data: st.DataObject, drawn: dict[str, Field]
) -> None:
    question, _ = asked(drawn)
    assert question.schema is not None
    content = data.draw(spoilt(drawn, question.schema))
    raw = {"action": "accept", "content": content}
    strict, lenient = check_reply(question, raw, "form"), check_reply(question, raw, "chat")
    if isinstance(lenient, Reply):
        assert Draft202012Validator(question.schema).is_valid(lenient.content)
    if isinstance(strict, Reply):
        assert lenient == Reply("accept", strict.content, "chat")
