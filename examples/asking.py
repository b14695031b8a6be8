"""Everything that a tool can ask, one small tool each. Run it with `python examples/asking.py`."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from bridge import Bridge, Context

bridge = Bridge("asking", elicitation=True)


class Guest(BaseModel):
    """A pydantic model: titles, descriptions, defaults and limits reach the form."""

    name: str = Field(description="As on the passport", min_length=1)
    nights: int = Field(default=1, ge=1, le=30)
    note: str | None = None


class Table(msgspec.Struct):
    """A msgspec Struct."""

    seats: Annotated[int, msgspec.Meta(ge=1, le=12)]


@dataclass
class Trip:
    """A dataclass."""

    city: str
    by_train: bool = True


class Contact(TypedDict):
    """A TypedDict."""

    email: Annotated[str, Field(json_schema_extra={"format": "email"})]


class Size(Enum):
    SMALL = "S"
    LARGE = "L"


class Even(BaseModel):
    """A rule that no form can show is checked when the answer comes."""

    number: Annotated[int, Field(multiple_of=2)]


Day: Any = Literal["Saturday", "Sunday"]  # Any: type checkers do not take a Literal for a class.
Topping = Literal["cheese", "ham", "olives"]
COLOUR = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}
booked: list[int] = []


@bridge.tool
async def classes(ctx: Context) -> str:
    """A class with fields is a form, and the answer is an instance of it."""
    guest = await ctx.elicit("Who is coming?", Guest)
    table = await ctx.elicit("How many are you?", Table)
    trip = await ctx.elicit("Where from?", Trip)
    contact = await ctx.elicit("How do we reach you?", Contact)
    return f"{guest.content!r}, {table.content!r}, {trip.content!r}, {contact.content!r}"


@bridge.tool
async def scalars(ctx: Context) -> str:
    """A plain type is a form of one field."""
    sure = await ctx.elicit("Sure?", bool)
    name = await ctx.elicit("What name?", str)
    count = await ctx.elicit("How many?", int)
    price = await ctx.elicit("How much?", float)
    return f"{sure.content!r}, {name.content!r}, {count.content!r}, {price.content!r}"


@bridge.tool
async def choices(ctx: Context) -> str:
    """An Enum or a Literal is a choice, a list of those several, and JSON Schema is whatever it says."""
    size = await ctx.elicit("What size?", Size)
    day = await ctx.elicit("Which day?", Day)
    toppings = await ctx.elicit("What on it?", list[Topping])
    colour = await ctx.elicit("Which colour?", COLOUR)
    return f"{size.content!r}, {day.content!r}, {toppings.content!r}, {colour.content!r}"


@bridge.tool
async def several(ctx: Context) -> str:
    """Several questions at once, each under its key."""
    answers = await ctx.elicit_all({"day": ("Which day?", Day), "table": ("How many are you?", Table)})
    sure = await ctx.elicit("Sure?", bool, key="approve")
    return f"{answers['day'].content}, {answers['table'].content}, {sure.content}"


@bridge.tool
async def page(ctx: Context) -> str:
    """A page to open, for what no client may see. An accept does not say that the user is done there."""
    answer = await ctx.elicit_url("Pay for the room.", "https://pay.example/room/7", key="payment")
    return "Look whether it is paid." if answer.accepted else f"Not paid ({answer.status})."


@bridge.tool
async def attempt(ctx: Context) -> Any:
    """Asking without being suspended: what the tool returns is the question."""
    found = await ctx.try_elicit("guest", "Who is coming?", Guest)
    if found.status == "required":
        return found.result
    return found.data.name if found.status == "accept" else found.status


@bridge.tool
def plain(ctx: Context) -> str:
    """A plain function asks too, and no thread waits for the user."""
    return f"{ctx.elicit_sync('Where from?', Trip).content!r}"


async def book() -> int:
    """Book a room, and return the number of the booking."""
    booked.append(len(booked) + 1)
    return booked[-1]


@bridge.tool
async def once(ctx: Context) -> str:
    """What must happen once before a question is a step."""
    number: int = await ctx.step("book", book)
    sure = await ctx.elicit(f"Keep booking {number}?", bool)
    return f"{number}, {sure.content}"


@bridge.tool(on_invalid="reask")
async def again(ctx: Context) -> str:
    """An answer that does not match is asked for again, with the reasons."""
    return f"{(await ctx.elicit('An even number?', Even)).content!r}"


@bridge.tool
async def answers(ctx: Context) -> str:
    """A user may accept, decline, or close the question; and an unticked box is no yes either."""
    sure = await ctx.elicit("Sure?", bool)
    return f"{sure.status}, {sure.accepted}, {sure.content}"


if __name__ == "__main__":
    bridge.run()
