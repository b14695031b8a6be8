"""Forms: what an author may ask for, how it looks under each revision, and what the tool gets."""

import dataclasses
import enum
import typing
from datetime import date
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from typing_extensions import TypedDict

from bridge import Bridge, Context
from bridge.asking.checking import InvalidReply, check_reply
from bridge.asking.dialects import read_shown, requested_schema
from bridge.asking.form import form_of
from bridge.asking.question import Question, Reply
from bridge.asking.secrets import described_secrets, secret_fields
from bridge.protocol.revisions import REVISIONS
from bridge.testing import Asked, CallResult, accept, connect
from tests.behaviours.test_asking import CLIENTS, client
from tests.conftest import Serve

__all__ = ["client"]

behaviour = pytest.mark.behaviour
OLD = REVISIONS["2025-06-18"]
SHOWING = {name: CLIENTS[name] for name in ("modern", "push-2025-11-25", "push-2025-06-18")}

Case: typing.TypeAlias = dict[str, Any]


class Color(enum.Enum):
    RED = "#f00"
    GREEN = "#0f0"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Order(BaseModel):
    """A pydantic model with a field of every kind."""

    name: str = Field(title="Your name", description="As in the passport", min_length=2)
    seats: int = Field(default=2, ge=1, le=9)
    price: float | None = None
    window: bool = True
    color: Color = Color.GREEN
    level: Level = Level.LOW
    meal: Literal["meat", "fish"] = "fish"
    sizes: list[Literal[38, 39]] = [39]
    colors: list[Color] = []
    day: date | None = None


class OrderStruct(msgspec.Struct):
    """The same as a msgspec Struct."""

    name: Annotated[str, msgspec.Meta(title="Your name", description="As in the passport", min_length=2)]
    seats: Annotated[int, msgspec.Meta(ge=1, le=9)] = 2
    price: float | None = None
    window: bool = True
    color: Color = Color.GREEN
    level: Level = Level.LOW
    meal: Literal["meat", "fish"] = "fish"
    sizes: list[Literal[38, 39]] = msgspec.field(default_factory=lambda: [39])
    colors: list[Color] = []
    day: date | None = None


@dataclasses.dataclass
class OrderClass:
    """The same as a dataclass."""

    name: Annotated[str, Field(title="Your name", description="As in the passport", min_length=2)]
    seats: Annotated[int, Field(ge=1, le=9)] = 2
    price: float | None = None
    window: bool = True
    color: Color = Color.GREEN
    level: Level = Level.LOW
    meal: Literal["meat", "fish"] = "fish"
    sizes: list[Literal[38, 39]] = dataclasses.field(default_factory=lambda: [39])
    colors: list[Color] = dataclasses.field(default_factory=list)
    day: date | None = None


class OrderDict(TypedDict, total=False):
    """What of it a TypedDict can say: it has no defaults."""

    name: typing.Required[Annotated[str, Field(title="Your name", description="As in the passport", min_length=2)]]
    seats: int
    color: Color
    level: Level
    sizes: list[Literal[38, 39]]


class PlainDict(typing.TypedDict):
    """A TypedDict of the standard library."""

    name: str


class Nothing(BaseModel):
    """No field at all."""


FULL: Case = {
    "name": "Ann",
    "seats": 3,
    "price": 9.5,
    "window": False,
    "color": "#f00",
    "level": "2",
    "meal": "meat",
    "sizes": ["38"],
    "colors": ["#f00"],
    "day": "2026-07-28",
}
MEANT: Case = {
    **FULL,
    "color": Color.RED,
    "level": Level.HIGH,
    "sizes": [38],
    "colors": [Color.RED],
    "day": date(2026, 7, 28),
}
JSON_SCHEMA: Case = {
    "type": "object",
    "properties": {
        "who": {"$ref": "#/$defs/Who"},
        "size": {"type": "integer", "enum": [38, 39], "default": 39},
        "color": {"oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]},
        "tint": {"type": "string", "enum": ["#f00", "#0f0"], "enumNames": ["Red", "Green"]},
        "colors": {
            "type": "array",
            "items": {"anyOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]},
        },
        "note": {"type": ["string", "null"], "default": None},
        "mail": {"anyOf": [{"type": "string", "format": "email"}, {"type": "null"}]},
    },
    "required": ["who", "mail"],
    "$defs": {"Who": {"$ref": "#/$defs/Name"}, "Name": {"type": "string", "title": "Who", "maxLength": 5}},
}

KINDS = [
    pytest.param(Order, FULL, Order(**MEANT), id="pydantic"),
    pytest.param(Order, {"name": "Ann"}, Order(name="Ann"), id="pydantic-defaults"),
    pytest.param(OrderStruct, FULL, OrderStruct(**MEANT), id="struct"),
    pytest.param(OrderStruct, {"name": "Ann"}, OrderStruct(name="Ann"), id="struct-defaults"),
    pytest.param(OrderClass, FULL, OrderClass(**MEANT), id="dataclass"),
    pytest.param(OrderClass, {"name": "Ann"}, OrderClass(name="Ann"), id="dataclass-defaults"),
    pytest.param(
        OrderDict,
        {key: FULL[key] for key in ("name", "seats", "color", "level", "sizes")},
        {key: MEANT[key] for key in ("name", "seats", "color", "level", "sizes")},
        id="typeddict",
    ),
    pytest.param(OrderDict, {"name": "Ann"}, {"name": "Ann"}, id="typeddict-absent"),
    pytest.param(Nothing, {"confirm": True}, Nothing(), id="empty-model"),
    pytest.param(bool, {"confirm": True}, True, id="bool"),
    pytest.param(bool, {"confirm": False}, False, id="bool-no"),
    pytest.param(str, {"value": "3"}, "3", id="str"),
    pytest.param(int, {"value": 3}, 3, id="int"),
    pytest.param(float, {"value": 3.5}, 3.5, id="float"),
    pytest.param(float, {"value": 3}, 3.0, id="float-whole"),
    pytest.param(Color, {"value": "#0f0"}, Color.GREEN, id="enum-str"),
    pytest.param(Level, {"value": "2"}, Level.HIGH, id="enum-int"),
    pytest.param(Literal["meat", "fish"], {"value": "fish"}, "fish", id="literal-str"),
    pytest.param(Literal["alone"], {"value": "alone"}, "alone", id="literal-one"),
    pytest.param(Literal[38, 39], {"value": "39"}, 39, id="literal-int"),
    pytest.param(list[Literal["meat", "fish"]], {"value": ["fish"]}, ["fish"], id="list-literal"),
    pytest.param(list[Literal[38, 39]], {"value": ["38", "39"]}, [38, 39], id="list-literal-int"),
    pytest.param(list[Color], {"value": ["#0f0"]}, [Color.GREEN], id="list-enum"),
    pytest.param(list[Level], {"value": []}, [], id="list-enum-none"),
    pytest.param(
        JSON_SCHEMA,
        {"who": "Ann", "size": "38", "color": "#f00", "tint": "#0f0", "colors": ["#f00"], "mail": "a@b.c"},
        {"who": "Ann", "size": 38, "color": "#f00", "tint": "#0f0", "colors": ["#f00"], "mail": "a@b.c"},
        id="json-schema",
    ),
    pytest.param(JSON_SCHEMA, {"who": "Ann"}, {"who": "Ann", "size": 39}, id="json-schema-defaults"),
]


def filled(asked: Asked, content: Case) -> Case:
    """What a user ticks and types who means `content`: where the form has boxes for a choice of several, those."""
    fields = asked.schema["properties"]
    form: Case = {}
    for name, value in content.items():
        boxes = {box: box.removeprefix(f"{name}: ") for box in fields if box.startswith(f"{name}: ")}
        form |= {box: choice in value for box, choice in boxes.items()} if boxes else {name: value}
    return form


def asking(schema: Any, seen: list[Any], options: Case | None = None, **bridge_options: Any) -> Bridge:
    """A bridge whose tool `ask` asks one form; `seen` gets the content of each answer that it went past."""
    bridge = Bridge("forms", elicitation=True, **bridge_options)

    @bridge.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("What?", schema, **(options or {}))
        seen.append(answer.content)
        return answer.status

    return bridge


def shown_to(revision: str, schema: Any) -> Case:
    """The form's fields as a revision shows them."""
    fields: Case = requested_schema(form_of(schema).schema, REVISIONS[revision])["properties"]
    return fields


def checked(schema: Any, content: Any, source: Literal["form", "chat"] = "form") -> Reply | InvalidReply:
    """Content as it is checked, in the words of the newest revision."""
    question = Question(key="k", path="p", message="?", schema=form_of(schema).schema)
    return check_reply(question, {"action": "accept", "content": content}, source)


# ASK-2


@behaviour("ASK-2")
@pytest.mark.parametrize(("schema", "content", "meant"), KINDS)
async def test_the_tool_gets_what_was_meant_as_the_class_has_it(
    serve: Serve, client: Case, schema: Any, content: Case, meant: Any
) -> None:
    seen: list[Any] = []
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept(filled(asked, content)))
        result = await mcp.tools.call("ask")
    assert result.text() == "accept"
    assert seen == [meant]
    assert type(seen[0]) is type(meant)


@behaviour("ASK-2")
@pytest.mark.parametrize("schema", [Order, OrderStruct, OrderClass])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_titles_descriptions_and_defaults_reach_the_form(schema: Any, revision: str) -> None:
    fields = shown_to(revision, schema)
    assert fields["name"]["title"] == "Your name"
    assert fields["name"]["description"] == "As in the passport"
    assert "default" not in fields["name"]
    assert fields["seats"]["default"] == 2
    assert fields["window"]["default"] is True
    assert fields["color"]["default"] == "#0f0"
    assert fields["level"]["default"] == "1"
    assert fields["meal"]["default"] == "fish"
    assert "default" not in fields["price"], "None is no default of a field that is optional"
    assert fields["day"]["format"] == "date"
    required = requested_schema(form_of(schema).schema, REVISIONS[revision])["required"]
    assert required == ["name"]


@behaviour("ASK-2")
async def test_titles_descriptions_and_defaults_reach_a_model_in_its_text(serve: Serve) -> None:
    async with connect(await serve(asking(Order, [])), revision="2024-11-05") as mcp:
        text = CallResult(await mcp.request("tools/call", {"name": "ask"})).text()
    assert "- name (string, minLength 2, required): As in the passport" in text
    assert "- seats (integer, minimum 1, maximum 9, default 2, optional)" in text
    assert "- level (string, one of '1', '2', default '1', optional)" in text


@behaviour("ASK-2")
@pytest.mark.parametrize("title", ["oneOf", "enumNames"])
async def test_the_titles_of_choices_reach_every_form(serve: Serve, client: Case, title: str) -> None:
    field: Case = {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]}
    if title == "enumNames":
        field = {"type": "string", "enum": ["#f00", "#0f0"], "enumNames": ["Red", "Green"]}
    seen: list[Any] = []
    schema = {"type": "object", "properties": {"color": field}, "required": ["color"]}
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"color": "#0f0"}))
        await mcp.tools.call("ask")
        shown = mcp.asked[0].schema["properties"]["color"]
    assert seen == [{"color": "#0f0"}]
    if client == CLIENTS["push-2025-06-18"] or (title == "enumNames" and "enum" in shown):
        # What an author wrote in the old way, newer revisions still have words for.
        assert shown == {"type": "string", "enum": ["#f00", "#0f0"], "enumNames": ["Red", "Green"]}
    else:
        assert [option["title"] for option in shown["oneOf"]] == ["Red", "Green"]


@behaviour("ASK-2")
def test_a_typeddict_of_the_standard_library_is_a_schema() -> None:
    assert form_of(PlainDict).read({"name": "Ann"}) == {"name": "Ann"}


@behaviour("ASK-2")
def test_the_choices_of_a_literal_keep_their_order_whatever_was_asked_before() -> None:
    first, second = form_of(Literal["x-first", "y"]), form_of(Literal["y", "x-first"])
    assert first.schema["properties"]["value"]["enum"] == ["x-first", "y"]
    assert second.schema["properties"]["value"]["enum"] == ["y", "x-first"]


@behaviour("ASK-2")
@pytest.mark.parametrize(
    "schema",
    [
        Order,
        OrderStruct,
        OrderClass,
    ],
)
def test_the_choices_of_an_enum_keep_their_order(schema: Any) -> None:
    assert form_of(schema).schema["properties"]["color"]["enum"] == [color.value for color in Color]


@behaviour("ASK-2")
@pytest.mark.parametrize("schema", [object(), 7, "text", [1, 2], list[str], list[int], tuple, str | int, ()])
def test_what_is_no_schema_is_a_type_error(schema: Any) -> None:
    with pytest.raises(TypeError):
        form_of(schema)


@behaviour("ASK-2")
def test_a_list_of_nothing_in_particular_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        form_of(typing.List)  # noqa: UP006


@behaviour("ASK-2")
async def test_a_whole_number_written_with_a_point_is_an_integer_for_a_struct_too(serve: Serve) -> None:
    seen: list[Any] = []
    async with connect(await serve(asking(OrderStruct, seen))) as mcp:
        mcp.on_elicitation(lambda asked: accept({"name": "Ann", "seats": 3.0}))
        await mcp.tools.call("ask")
    assert seen == [OrderStruct(name="Ann", seats=3)]


@behaviour("ANS-1", "ANS-6")
@pytest.mark.parametrize("number", [1e19, 1e300])
def test_a_whole_number_beyond_64_bits_is_out_of_range_however_it_is_written(number: float) -> None:
    schema = one_field("x", {"type": "integer"})
    assert isinstance(checked(schema, {"x": int(number)}), InvalidReply)
    assert isinstance(checked(schema, {"x": number}, "chat"), InvalidReply)
    assert isinstance(checked(schema, {"x": number}), InvalidReply)


# ASK-15


class Node(BaseModel):
    """Refers to itself."""

    name: str
    next: "Node | None" = None


class Inner(BaseModel):
    street: str


class Nested(BaseModel):
    home: Inner


class NestedOptional(BaseModel):
    home: Inner | None = None


class Several(BaseModel):
    homes: list[Inner]


class Words(BaseModel):
    words: list[str]


class Union(BaseModel):
    either: int | str


class UnionOptional(BaseModel):
    either: int | str | None = None


class Mapped(BaseModel):
    table: dict[str, int]


class Anything(BaseModel):
    thing: Any


class WrongDefault(BaseModel):
    seats: int = Field(default=12, le=9)


class NestedStruct(msgspec.Struct):
    home: OrderStruct


class UnionStruct(msgspec.Struct):
    either: int | str


@dataclasses.dataclass
class NestedClass:
    home: OrderClass


class NestedDict(TypedDict):
    home: OrderDict


def one_field(name: str, field: Any, **more: Any) -> Case:
    return {"type": "object", "properties": {name: field}, **more}


IMPOSSIBLE = [
    (Nested, "home"),
    (NestedOptional, "home"),
    (NestedStruct, "home"),
    (NestedClass, "home"),
    (NestedDict, "home"),
    (Several, "homes"),
    (Words, "words"),
    (Union, "either"),
    (UnionOptional, "either"),
    (UnionStruct, "either"),
    (Mapped, "table"),
    (Anything, "thing"),
    (WrongDefault, "seats"),
    (Node, "next"),
    (one_field("home", {"type": "object", "properties": {"a": {"type": "string"}}}), "home"),
    (one_field("homes", {"type": "array", "items": {"type": "object"}}), "homes"),
    (one_field("either", {"type": ["string", "integer"]}), "either"),
    (one_field("either", {"anyOf": [{"type": "string"}, {"type": "integer"}]}), "either"),
    (one_field("thing", {}), "thing"),
    (one_field("seats", {"type": "integer", "default": "two"}), "seats"),
    (one_field("seats", {"type": "integer", "maximum": 9, "default": 12}), "seats"),
    (one_field("color", {"enum": ["a", "b"], "default": "c"}), "color"),
    (one_field("colors", {"type": "array", "items": {"enum": ["a"]}, "default": ["b"]}), "colors"),
    (one_field("self", {"$ref": "#/properties/self"}), "self"),
    (one_field("self", {"$ref": "#"}), "self"),
    (one_field("far", {"$ref": "https://example.com/schema"}), "far"),
    (one_field("lost", {"$ref": "#/$defs/absent"}), "lost"),
    (one_field("color", {"enum": [1, "1"]}), "color"),
]


@behaviour("ASK-15")
@pytest.mark.parametrize(("schema", "field"), IMPOSSIBLE, ids=str)
def test_what_a_form_cannot_hold_is_a_type_error_that_names_the_field(schema: Any, field: str) -> None:
    with pytest.raises(TypeError, match=rf"\.{field}\b"):
        form_of(schema)


@behaviour("ASK-15")
@pytest.mark.parametrize("schema", [Nested, Several, Union, WrongDefault, Node])
async def test_it_is_raised_at_the_call_before_anything_is_sent(serve: Serve, client: Case, schema: Any) -> None:
    bridge = Bridge("forms", elicitation=True)
    raised: list[TypeError] = []

    @bridge.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.elicit("What?", schema)
        except TypeError as error:
            raised.append(error)
            raise
        return "asked"

    async with connect(await serve(bridge), **client) as mcp:
        result = await mcp.tools.call("ask")
        assert mcp.asked == []
    assert result.is_error
    assert result.error_code is None, "it is never mistaken for a client that cannot be asked"
    assert len(raised) == 1
    assert schema.__name__ in str(raised[0])


@behaviour("ASK-15")
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            {
                "anyOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}},
                    {"type": "object", "properties": {"b": {"type": "string"}}},
                ]
            },
            id="anyOf",
        ),
        pytest.param(
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}},
                    {"type": "object", "properties": {"b": {"type": "string"}}},
                ]
            },
            id="allOf",
        ),
        pytest.param(dict[str, int], id="dict-of"),
        pytest.param(dict, id="dict"),
    ],
)
def test_fields_that_are_not_in_properties_are_not_mistaken_for_an_empty_form(schema: Any) -> None:
    try:
        form = form_of(schema)
    except TypeError:
        return
    assert "confirm" not in form.schema["properties"]


@behaviour("ASK-15")
def test_a_property_without_a_schema_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="thing"):
        form_of(one_field("thing", True))


class Maybe(BaseModel):
    note: str | None = None
    color: Color | None = None
    tags: list[Color] | None = None


class MaybeStruct(msgspec.Struct):
    note: str | None = None
    color: Color | None = None
    tags: list[Color] | None = None


@dataclasses.dataclass
class MaybeClass:
    note: str | None = None
    color: Color | None = None
    tags: list[Color] | None = None


@behaviour("ASK-15")
@pytest.mark.parametrize("schema", [Maybe, MaybeStruct, MaybeClass])
async def test_a_field_that_may_be_none_is_optional(serve: Serve, client: Case, schema: Any) -> None:
    seen: list[Any] = []
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({}))
        assert (await mcp.tools.call("ask")).text() == "accept"
        shown = mcp.asked[0].schema
    assert seen == [schema()]
    assert "required" not in shown
    assert shown["properties"]["note"]["type"] == "string"
    assert "null" not in str(shown)


class Must(BaseModel):
    note: str | None


class MustStruct(msgspec.Struct):
    note: str | None


@dataclasses.dataclass
class MustClass:
    note: str | None


class MustDict(TypedDict):
    note: str | None


@behaviour("ASK-15")
@pytest.mark.parametrize("schema", [Must, MustStruct, MustClass, MustDict])
async def test_a_field_that_may_be_none_and_has_no_default_is_optional_and_none(
    serve: Serve, client: Case, schema: Any
) -> None:
    seen: list[Any] = []
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({}))
        result = await mcp.tools.call("ask")
        assert "required" not in mcp.asked[0].schema
    assert not result.is_error
    assert (seen[0]["note"] if isinstance(seen[0], dict) else seen[0].note) is None


class Coded(BaseModel):
    code: str = Field(pattern=r"^[A-Z]{3}$")

    @field_validator("code")
    @classmethod
    def known(cls, code: str) -> str:
        if code == "XXX":
            raise ValueError("there is no XXX")
        return code

    @model_validator(mode="after")
    def allowed(self) -> "Coded":
        if self.code == "YYY":
            raise ValueError("YYY is closed")
        return self


class CodedStruct(msgspec.Struct):
    code: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$")]

    def __post_init__(self) -> None:
        if self.code in ("XXX", "YYY"):
            raise ValueError(f"there is no {self.code}")


@dataclasses.dataclass
class CodedClass:
    code: Annotated[str, Field(pattern="^[A-Z]{3}$")]

    def __post_init__(self) -> None:
        if self.code in ("XXX", "YYY"):
            raise ValueError(f"there is no {self.code}")


CODED_JSON = one_field("code", {"type": "string", "pattern": "^[A-Z]{3}$", "format": "iso-code"}, required=["code"])


@behaviour("ASK-15", "ANS-1")
@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        *((schema, bad) for schema in (Coded, CodedStruct, CodedClass) for bad in ("abc", "XXX", "YYY")),
        (CODED_JSON, "abc"),
    ],
)
async def test_what_a_form_cannot_show_is_enforced_on_the_answer(
    serve: Serve, client: Case, schema: Any, bad: str
) -> None:
    seen: list[Any] = []
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"code": bad}))
        result = await mcp.tools.call("ask")
        assert result.error_code == "INVALID_INPUT"
        assert "does not match the requested schema" in result.text()
        if client in SHOWING.values():
            assert not {"pattern", "format"} & set(mcp.asked[0].schema["properties"]["code"])
        assert seen == []
        mcp.on_elicitation(lambda asked: accept({"code": "ABC"}))
        assert (await mcp.tools.call("ask")).text() == "accept"
    assert len(seen) == 1


@behaviour("ASK-15", "ANS-1")
@pytest.mark.parametrize(
    ("field", "bad", "good"),
    [
        ({"type": "number", "exclusiveMinimum": 0}, 0, 0.5),
        ({"type": "number", "exclusiveMaximum": 1}, 1, 0.5),
        ({"type": "integer", "multipleOf": 5}, 7, 10),
        ({"type": "integer", "exclusiveMinimum": 0, "minimum": -5}, 0, 1),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}, ["a", "a"], ["a", "b"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2}, ["a"], ["a", "b"]),
        ({"type": "string", "pattern": "^a+$"}, "b", "aa"),
    ],
)
def test_constraints_of_json_schema_are_kept(field: Case, bad: Any, good: Any) -> None:
    assert isinstance(checked(one_field("x", field), {"x": bad}), InvalidReply)
    assert checked(one_field("x", field), {"x": good}) == Reply("accept", {"x": good})


@behaviour("ASK-15", "ANS-1")
@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        pytest.param(one_field("x", {"type": "string", "not": {"const": "no"}}), {"x": "no"}, id="not"),
        pytest.param(
            one_field("x", {"type": "array", "items": {"enum": ["a", "b"]}, "contains": {"const": "a"}}),
            {"x": ["b"]},
            id="contains",
        ),
        pytest.param(one_field("x", {"type": "string"}, minProperties=1), {}, id="minProperties"),
        pytest.param(
            {
                "type": "object",
                "properties": {"mail": {"type": "string"}, "phone": {"type": "string"}},
                "anyOf": [{"required": ["mail"]}, {"required": ["phone"]}],
            },
            {},
            id="anyOf-required",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {"mail": {"type": "string"}, "name": {"type": "string"}},
                "dependentRequired": {"mail": ["name"]},
            },
            {"mail": "a@b.c"},
            id="dependentRequired",
        ),
        pytest.param(one_field("x", {"type": "string", "enum": ["a", "b"], "pattern": "^a"}), {"x": "b"}, id="pattern"),
    ],
)
def test_every_constraint_of_json_schema_is_enforced_or_refused(schema: Case, bad: Case) -> None:
    try:
        reply = checked(schema, bad)
    except TypeError:
        return
    assert isinstance(reply, InvalidReply)


# ASK-16

SECRETS = [
    "password",
    "passphrase",
    "secret",
    "api key",
    "access token",
    "private key",
    "card number",
    "cvv",
    "pin",
]


def spellings(words: str) -> list[str]:
    """The ways in which a name or title may be written."""
    parts = words.split()
    camel = parts[0] + "".join(part.title() for part in parts[1:])
    return [
        words,
        "_".join(parts),
        "-".join(parts),
        "_".join(parts).upper(),
        camel,
        camel[0].upper() + camel[1:],
        f"user_{'_'.join(parts)}",
        f"user{camel[0].upper()}{camel[1:]}",
        f"{'_'.join(parts)}_2",
        f"your {words}, please",
        words.upper(),
        words.title(),
    ]


COMPOUNDS = ["count", "limit", "policy", "hint", "expiry", "last4"]
INNOCENT = [
    "max_tokens",
    "maxTokens",
    "max tokens",
    "shipping",
    "spin",
    "opinion",
    "pinned",
    "secretary",
    "name",
    "key",
    "token",
    "card",
    "number",
    "card type",
    "keyboard",
]


def free_text(**field: Any) -> Case:
    return {"type": "string", **field}


@behaviour("ASK-16")
@pytest.mark.parametrize("secret", SECRETS)
def test_every_secret_word_is_seen_in_every_spelling_of_a_name_or_title(secret: str) -> None:
    for spelling in spellings(secret):
        by_name = form_of(one_field(spelling, free_text())).schema
        by_title = form_of(one_field("x", free_text(title=spelling))).schema
        assert list(secret_fields(by_name, ())) == [spelling]
        assert list(secret_fields(by_title, ())) == ["x"], spelling
        assert list(secret_fields(by_name, (spelling,))) == []
        assert list(secret_fields(by_title, ("x",))) == []


@behaviour("ASK-16")
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("compound", COMPOUNDS)
def test_a_compound_is_about_a_secret_and_is_none(secret: str, compound: str) -> None:
    for spelling in set(spellings(f"{secret} {compound}")[:8]) - {f"{secret} last4".replace(" ", "_").upper()}:
        assert list(secret_fields(form_of(one_field(spelling, free_text())).schema, ())) == []
        assert list(secret_fields(form_of(one_field("x", free_text(title=spelling))).schema, ())) == []


@behaviour("ASK-16")
@pytest.mark.parametrize("name", ["CARD_NUMBER_LAST4", "card_number_last_4", "cardNumberLast_4"])
def test_the_last_four_digits_are_no_secret_however_they_are_written(name: str) -> None:
    assert list(secret_fields(form_of(one_field(name, free_text())).schema, ())) == []


@behaviour("ASK-16")
@pytest.mark.parametrize("name", INNOCENT)
def test_other_words_are_no_secrets(name: str) -> None:
    assert list(secret_fields(form_of(one_field(name, free_text(title=name))).schema, ())) == []


@behaviour("ASK-16")
@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "enum": ["none", "strong"]},
        {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"type": "boolean"},
        {"type": "integer"},
    ],
)
def test_only_free_text_can_be_a_secret(field: Case) -> None:
    assert list(secret_fields(form_of(one_field("password", {**field, "title": "Password"})).schema, ())) == []


@behaviour("ASK-16")
def test_a_description_is_worth_a_warning_only() -> None:
    schema = form_of(one_field("x", free_text(description="Never your password"))).schema
    assert list(secret_fields(schema, ())) == []
    assert list(described_secrets(schema, ())) == ["x"]
    assert list(described_secrets(schema, ("x",))) == []


class Login(BaseModel):
    user: str
    api_key: str


class Hidden(BaseModel):
    word: SecretStr


SECRET_FORMS = [
    pytest.param(Login, "api_key", id="name"),
    pytest.param(one_field("x", free_text(title="Your PIN")), "x", id="title"),
    pytest.param(one_field("x", free_text(format="password")), "x", id="format"),
    pytest.param(Hidden, "word", id="SecretStr"),
]


@behaviour("ASK-16")
@pytest.mark.parametrize(("schema", "field"), SECRET_FORMS)
async def test_a_form_that_asks_for_a_secret_is_refused(
    serve: Serve, client: Case, schema: Any, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        result = await mcp.tools.call("ask")
        assert mcp.asked == []
    assert result.is_error
    assert seen == []
    assert repr(field) in caplog.text
    assert "elicit_url" in caplog.text
    assert "not_secret" in caplog.text


@behaviour("ASK-16")
@pytest.mark.parametrize("level", ["elicit", "tool", "bridge"])
async def test_the_author_or_the_operator_may_say_that_it_is_no_secret(serve: Serve, client: Case, level: str) -> None:
    allowed = ("api_key",)
    bridge = Bridge("forms", elicitation=True, **({"not_secret": allowed} if level == "bridge" else {}))

    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Login, not_secret=allowed if level == "elicit" else ())
        return str(answer.content)

    bridge.tool(name="ask", **({"not_secret": allowed} if level == "tool" else {}))(ask)
    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"user": "ann", "api_key": "k"}))
        assert (await mcp.tools.call("ask")).text() == "user='ann' api_key='k'"


@behaviour("ASK-16")
async def test_what_one_field_is_allowed_no_other_is(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    bridge = asking(Login, seen, {"not_secret": ("user",)}, not_secret=("other",))
    async with connect(await serve(bridge)) as mcp:
        assert (await mcp.tools.call("ask")).is_error
    assert "'api_key'" in caplog.text


@behaviour("ASK-16")
async def test_a_description_that_speaks_of_a_secret_is_logged_and_asked(
    serve: Serve, client: Case, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    schema = one_field("x", free_text(description="Never your password"))
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept({"x": "fine"}))
        await mcp.tools.call("ask")
    assert seen == [{"x": "fine"}]
    assert any(record.levelname == "WARNING" and "'x'" in record.getMessage() for record in caplog.records)


# ANS-3


class Booking(BaseModel):
    name: str = Field(min_length=2)
    seats: int = Field(ge=1)

    @field_validator("name")
    @classmethod
    def known(cls, name: str) -> str:
        if name == "Nobody":
            raise ValueError("nobody is nobody")
        return name


GOOD: Case = {"name": "Ann", "seats": 2}
BY_SCHEMA: Case = {"name": "A", "seats": 0}
BY_VALIDATOR: Case = {"name": "Nobody", "seats": 2}
shows_forms = pytest.mark.parametrize("showing", SHOWING)


def again(where: str, seen: list[Any]) -> Bridge:
    """A bridge whose tool asks again; said at the bridge, the tool or the question."""
    bridge = Bridge("forms", elicitation=True, **({"on_invalid": "reask"} if where == "bridge" else {}))

    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("What?", Booking, on_invalid="reask" if where == "elicit" else None)
        seen.append(answer.content)
        return answer.status

    bridge.tool(name="ask", **({"on_invalid": "reask"} if where == "tool" else {}))(ask)
    return bridge


@behaviour("ANS-3")
@shows_forms
@pytest.mark.parametrize("where", ["bridge", "tool", "elicit"])
@pytest.mark.parametrize(
    ("bad", "lines"),
    [(BY_SCHEMA, ["name: 'A' is too short", "seats: 0 is less than the minimum of 1"]), (BY_VALIDATOR, ["name: "])],
    ids=["schema", "validator"],
)
async def test_an_invalid_answer_is_met_by_the_same_question_with_the_reasons(
    serve: Serve, showing: str, where: str, bad: Case, lines: list[str]
) -> None:
    seen: list[Any] = []
    async with connect(await serve(again(where, seen)), **SHOWING[showing]) as mcp:
        mcp.on_elicitation(lambda asked: accept(bad if len(mcp.asked) < 3 else GOOD))
        result = await mcp.tools.call("ask")
        asked = mcp.asked
    assert result.text() == "accept"
    assert seen == [Booking(**GOOD)]
    assert len(asked) == 3
    assert asked[0].message == "What?"
    for repeated in asked[1:]:
        message, *reasons = repeated.message.splitlines()
        assert message == "What?"
        for line in lines:
            assert any(line in reason for reason in reasons), repeated.message
        assert repeated.schema == asked[0].schema


@behaviour("ANS-3")
@shows_forms
@pytest.mark.parametrize("bad", [BY_SCHEMA, BY_VALIDATOR], ids=["schema", "validator"])
async def test_after_three_times_it_ends_as_an_error(serve: Serve, showing: str, bad: Case) -> None:
    seen: list[Any] = []
    async with connect(await serve(again("elicit", seen)), **SHOWING[showing]) as mcp:
        mcp.on_elicitation(lambda asked: accept(bad))
        result = await mcp.tools.call("ask")
        assert len(mcp.asked) == 4, "once, and three times again"
    assert result.error_code == "INVALID_INPUT"
    assert "does not match the requested schema" in result.text()
    assert seen == []


@behaviour("ANS-3")
@shows_forms
async def test_three_times_is_the_limit_whatever_was_wrong(serve: Serve, showing: str) -> None:
    seen: list[Any] = []
    async with connect(await serve(again("elicit", seen)), **SHOWING[showing]) as mcp:
        mcp.on_elicitation(lambda asked: accept(BY_SCHEMA if len(mcp.asked) % 2 else BY_VALIDATOR))
        result = await mcp.tools.call("ask")
        assert result.error_code == "INVALID_INPUT"
        assert len(mcp.asked) == 4


@behaviour("ANS-3")
@shows_forms
async def test_a_question_may_end_at_once_in_a_tool_that_asks_again(serve: Serve, showing: str) -> None:
    bridge = Bridge("forms", elicitation=True, on_invalid="reask")

    @bridge.tool(on_invalid="reask")
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("What?", Booking, on_invalid="error")).status

    async with connect(await serve(bridge), **SHOWING[showing]) as mcp:
        mcp.on_elicitation(lambda asked: accept(BY_SCHEMA))
        assert (await mcp.tools.call("ask")).error_code == "INVALID_INPUT"
        assert len(mcp.asked) == 1


@behaviour("ANS-3")
async def test_a_tool_may_end_at_once_in_a_bridge_that_asks_again(serve: Serve) -> None:
    bridge = Bridge("forms", elicitation=True, on_invalid="reask")

    @bridge.tool(on_invalid="error")
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("What?", Booking)).status

    async with connect(await serve(bridge)) as mcp:
        mcp.on_elicitation(lambda asked: accept(BY_SCHEMA))
        assert (await mcp.tools.call("ask")).error_code == "INVALID_INPUT"
        assert len(mcp.asked) == 1


@behaviour("ANS-3")
@shows_forms
async def test_a_no_after_an_invalid_answer_is_a_no(serve: Serve, showing: str) -> None:
    seen: list[Any] = []
    async with connect(await serve(again("tool", seen)), **SHOWING[showing]) as mcp:
        mcp.on_elicitation(lambda asked: accept(BY_SCHEMA) if len(mcp.asked) == 1 else {"action": "decline"})
        assert (await mcp.tools.call("ask")).text() == "decline"
    assert seen == [None]


@behaviour("ANS-3", "ANS-4")
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(BY_SCHEMA, id="schema"),
        pytest.param(
            BY_VALIDATOR,
            id="validator",
        ),
    ],
)
async def test_on_chat_the_same_question_stays_open(serve: Serve, bad: Case) -> None:
    seen: list[Any] = []
    async with connect(await serve(again("bridge", seen)), revision="2025-03-26") as mcp:
        pending = (await mcp.request("tools/call", {"name": "ask"}))["_meta"]["elicitationPending"]

        async def send(content: Case) -> CallResult:
            arguments = {"elicitId": pending["elicitId"], "action": "accept", "content": content}
            return CallResult(
                await mcp.request("tools/call", {"name": "sendElicitationResult", "arguments": arguments})
            )

        refused = await send(bad)
        assert refused.is_error
        assert refused.error_code == "INVALID_INPUT"
        assert (await send(GOOD)).text() == "accept"


# ANS-9

RICH: Case = {
    "type": "object",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "pattern": "^[A-Z]", "default": "Ann"},
        "mail": {"type": "string", "format": "email"},
        "code": {"type": "string", "format": "uuid"},
        "seats": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "default": 2},
        "share": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.25},
        "window": {"type": "boolean", "default": True},
        "plain": {"type": "string", "enum": ["a", "b"], "default": "b"},
        "titled": {
            "type": "string",
            "oneOf": [{"const": "a", "title": "A!"}, {"const": "b", "title": "B!"}],
            "default": "a",
        },
        "several": {
            "type": "array",
            "title": "Several",
            "description": "Tick",
            "items": {"type": "string", "enum": ["a", "b"]},
            "minItems": 1,
            "maxItems": 2,
            "uniqueItems": True,
            "default": ["b"],
        },
        "named": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "A!"}, {"const": "b", "title": "B!"}]},
        },
    },
    "required": ["name", "several"],
    "additionalProperties": False,
}
RICH_SHOWN: Case = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "default": "Ann"},
        "mail": {"type": "string", "format": "email"},
        "code": {"type": "string"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "share": {"type": "number", "minimum": 0},
        "window": {"type": "boolean", "default": True},
        "plain": {"type": "string", "enum": ["a", "b"], "default": "b"},
        "titled": {
            "type": "string",
            "oneOf": [{"const": "a", "title": "A!"}, {"const": "b", "title": "B!"}],
            "default": "a",
        },
        "several": {
            "type": "array",
            "title": "Several",
            "description": "Tick",
            "items": {"type": "string", "enum": ["a", "b"]},
            "minItems": 1,
            "maxItems": 2,
            "default": ["b"],
        },
        "named": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "A!"}, {"const": "b", "title": "B!"}]},
        },
    },
    "required": ["name", "several"],
}
PLAIN_SHOWN: Case = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1},
        "mail": {"type": "string", "format": "email"},
        "code": {"type": "string"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "minimum": 0},
        "window": {"type": "boolean", "default": True},
        "plain": {"type": "string", "enum": ["a", "b"]},
        "titled": {"type": "string", "enum": ["a", "b"], "enumNames": ["A!", "B!"]},
        "several: a": {"type": "boolean", "title": "Several: a", "description": "Tick", "default": False},
        "several: b": {"type": "boolean", "title": "Several: b", "description": "Tick", "default": True},
        "named: a": {"type": "boolean", "title": "named: A!", "default": False},
        "named: b": {"type": "boolean", "title": "named: B!", "default": False},
    },
    "required": ["name"],
}


@behaviour("ANS-9")
@pytest.mark.parametrize(
    ("showing", "shown"),
    [("modern", RICH_SHOWN), ("push-2025-11-25", RICH_SHOWN), ("push-2025-06-18", PLAIN_SHOWN)],
)
async def test_a_form_in_the_dialect_of_each_revision(serve: Serve, showing: str, shown: Case) -> None:
    seen: list[Any] = []
    async with connect(await serve(asking(RICH, seen)), **SHOWING[showing]) as mcp:
        mcp.on_elicitation(lambda asked: accept(filled(asked, {"name": "Bob", "several": ["a"], "named": ["a", "b"]})))
        assert (await mcp.tools.call("ask")).text() == "accept"
        params = mcp.asked[0].params
    assert params["requestedSchema"] == shown
    assert params.get("mode") == (None if showing == "push-2025-06-18" else "form")
    assert set(params) <= {"mode", "message", "requestedSchema"}
    assert seen == [
        {
            "name": "Bob",
            "seats": 2,
            "window": True,
            "plain": "b",
            "titled": "a",
            "several": ["a"],
            "named": ["a", "b"],
        }
    ]


@behaviour("ANS-9")
async def test_inside_input_requests_is_nothing_that_only_sessions_have(serve: Serve) -> None:
    bridge = Bridge("forms", elicitation=True)

    @bridge.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit_url("Open it", "https://example.com/pay", key="page", elicitation_id="e-1")
        return "done"

    async with connect(await serve(bridge), capabilities={"elicitation": {"url": {}}}) as mcp:
        result = await mcp.request("tools/call", {"name": "ask"})
    assert result["inputRequests"] == {
        "page": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Open it", "url": "https://example.com/pay"},
        }
    }


def boxes(field: Case, content: Any, required: bool = False) -> Reply | InvalidReply:
    """An answer to the field `x` as a client of 2025-06-18 gives it."""
    schema = form_of(one_field("x", field, **({"required": ["x"]} if required else {}))).schema
    question = Question(key="k", path="p", message="?", schema=schema)
    return check_reply(question, {"action": "accept", "content": read_shown(schema, content, OLD)}, "form")


SEVERAL: Case = {"type": "array", "items": {"enum": ["a", "b"]}}
SOME: Case = {**SEVERAL, "default": ["a"]}


@behaviour("ANS-9")
@pytest.mark.parametrize(
    ("field", "content", "required", "meant"),
    [
        (SEVERAL, {"x: a": True, "x: b": True}, False, {"x": ["a", "b"]}),
        (SEVERAL, {"x: a": False, "x: b": True}, False, {"x": ["b"]}),
        (SEVERAL, {"x: a": False, "x: b": False}, False, {"x": []}),
        (SEVERAL, {"x: b": True}, False, {"x": ["b"]}),
        (SEVERAL, {}, False, {}),
        (SEVERAL, {}, True, {"x": []}),
        (SOME, {}, False, {"x": ["a"]}),
        (SOME, {"x: a": False, "x: b": False}, False, {"x": []}),
        (SEVERAL, {"x": ["a"]}, False, {"x": ["a"]}),
        ({**SEVERAL, "minItems": 1}, {"x: a": False, "x: b": False}, True, None),
        ({**SEVERAL, "minItems": 1}, {}, True, None),
        ({**SEVERAL, "maxItems": 1}, {"x: a": True, "x: b": True}, False, None),
    ],
)
def test_boxes_become_choices_again(field: Case, content: Case, required: bool, meant: Case | None) -> None:
    reply = boxes(field, content, required)
    if meant is None:
        assert isinstance(reply, InvalidReply)
    else:
        assert reply == Reply("accept", meant)


@behaviour("ANS-9", "ANS-1")
@pytest.mark.parametrize("ticked", ["yes", 1, None, [], "true"], ids=repr)
@pytest.mark.parametrize(
    "required",
    [
        False,
        True,
    ],
)
def test_a_box_that_is_no_boolean_is_invalid(ticked: Any, required: bool) -> None:
    assert isinstance(boxes(SEVERAL, {"x: a": ticked, "x: b": True}, required), InvalidReply)


@behaviour("ANS-8", "ANS-9")
@pytest.mark.parametrize(
    ("content", "required", "meant"),
    [({"x: b": True}, False, ["a", "b"]), ({"x: b": False}, False, ["a"]), ({}, True, ["a"])],
)
def test_a_box_that_is_absent_has_its_default(content: Case, required: bool, meant: list[str]) -> None:
    assert boxes(SOME, content, required) == Reply("accept", {"x": meant})


@behaviour("ANS-9")
def test_a_box_and_a_field_of_its_name_are_two() -> None:
    schema = form_of({"type": "object", "properties": {"x": SEVERAL, "x: a": {"type": "string"}}}).schema
    assert len(requested_schema(schema, OLD)["properties"]) == 3


@behaviour("ANS-9")
@pytest.mark.parametrize("values", [[], ["a"], ["b"], ["a", "b"]])
async def test_a_choice_of_several_is_folded_into_boxes_and_back(serve: Serve, client: Case, values: list[str]) -> None:
    seen: list[Any] = []
    schema = one_field("x", {**SEVERAL, "title": "Which"}, required=["x"])
    async with connect(await serve(asking(schema, seen)), **client) as mcp:
        mcp.on_elicitation(lambda asked: accept(filled(asked, {"x": values})))
        await mcp.tools.call("ask")
    assert seen == [{"x": values}]


@behaviour("ANS-8")
def test_a_default_fills_in_only_what_is_optional() -> None:
    fields = {"a": {"type": "string", "default": "x"}, "b": {"type": "string", "default": "y"}}
    question = Question(key="k", path="p", schema={"type": "object", "properties": fields, "required": ["a"]})
    assert isinstance(check_reply(question, {"action": "accept", "content": {}}, "form"), InvalidReply)
    reply = check_reply(question, {"action": "accept", "content": {"a": "1"}}, "form")
    assert isinstance(reply, Reply)
    assert reply.content == {"a": "1", "b": "y"}


@behaviour("ANS-6")
def test_on_chat_a_number_names_the_choice_that_is_written_so() -> None:
    field = {"type": "string", "enum": ["1", "2"]}
    question = Question(key="k", path="p", schema={"type": "object", "properties": {"n": field}, "required": ["n"]})
    for given, wanted in ((1, "1"), ("2", "2")):
        reply = check_reply(question, {"action": "accept", "content": {"n": given}}, "chat")
        assert isinstance(reply, Reply)
        assert reply.content == {"n": wanted}
    for wrong in (3, True, 1.5):
        assert isinstance(check_reply(question, {"action": "accept", "content": {"n": wrong}}, "chat"), InvalidReply)
    assert isinstance(check_reply(question, {"action": "accept", "content": {"n": 1}}, "form"), InvalidReply)


AS_WRITTEN: Case = {
    "type": "object",
    "properties": {
        "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["Ay", "Bee"]},
        "new": {"type": "string", "oneOf": [{"const": "a", "title": "Ay"}]},
    },
}
UNTITLED: Case = {"type": "object", "properties": {"new": {"type": "string", "oneOf": [{"const": "a"}]}}}


@behaviour("ASK-2", "ANS-9")
@pytest.mark.parametrize("showing", ["modern", "push-2025-11-25"])
async def test_a_json_schema_is_shown_as_it_was_written_where_the_revision_has_its_words(
    serve: Serve, showing: str
) -> None:
    for schema, is_shown in ((AS_WRITTEN, True), (UNTITLED, False)):
        async with connect(await serve(asking(schema, [])), **SHOWING[showing]) as mcp:
            mcp.on_elicitation(lambda asked: accept({"new": "a"}))
            assert (await mcp.tools.call("ask")).text() == "accept"
            assert (mcp.asked[0].schema == schema) is is_shown
