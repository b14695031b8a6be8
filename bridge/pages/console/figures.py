"""The numbers of the console: what there is now, and the last hour as charts."""

from collections.abc import Mapping
from typing import Final

from bridge.counting import Hour
from bridge.explaining import Explained
from bridge.pages.console.charts import Series, hour_chart, share_bar
from bridge.pages.markup import Markup, mark

__all__ = ["shares", "tiles"]

_NOTHING: Final = Markup("")


def tiles(explained: Explained, hour: Hour) -> Markup:
    """One tile for each number."""
    counts = hour.minutes
    asked = [
        Series("in rounds", counts["rounds"], "rounds"),
        Series("pushed", counts["pushed"], "push"),
        Series("in the chat", counts["chatted"], "chat"),
        Series("refused", counts["refused"], "refuse"),
    ]
    keys = [mark("li", f"{sum(one.counts)} {one.name}", class_=f"key {one.colour}") for one in asked]
    nodes = f"on {hour.nodes} node{'' if hour.nodes == 1 else 's'}"
    held = mark("p", mark("b", f"{hour.held:,}"), " ", mark("small", "held calls"), class_="number")
    return mark(
        "section",
        _tile("Live sessions", explained.in_all, nodes, _hour("Sessions opened", counts["sessions"], "accent")),
        _tile("Open questions", explained.open_questions, "in sessions", held),
        _tile("Calls", hour.total("calls"), "last hour", _hour("Calls", counts["calls"], "soft")),
        _tile(
            "Questions asked",
            sum(sum(one.counts) for one in asked),
            "last hour",
            hour_chart("Questions asked", asked) + mark("ul", *keys),
        ),
        _tile("Errors", hour.total("errors"), "last hour", _hour("Errors", counts["errors"], "refuse")),
        class_="tiles",
        aria_label="Numbers",
    )


def shares(explained: Explained) -> Markup:
    """Who is connected, by revision and by client."""
    return mark(
        "section",
        _shares("By revision", explained.by_revision, "accent"),
        _shares("By client", explained.by_client, "accent"),
        class_="pair",
    )


def _hour(label: str, counts: list[int], colour: str) -> Markup:
    return hour_chart(label, [Series(label, counts, colour)])


def _tile(name: str, number: int, beside: str, below: Markup) -> Markup:
    value = mark("p", mark("b", f"{number:,}"), " ", mark("small", beside), class_="number")
    return mark("div", mark("h2", name), value, below, class_="tile bad" if name == "Errors" and number else "tile")


def _shares(title: str, counts: Mapping[str, int], colour: str) -> Markup:
    of = sum(counts.values())
    rows = [
        mark(
            "li",
            mark("span", name or "without a name", class_="name"),
            share_bar(count, of, colour),
            mark("b", f"{count:,}"),
        )
        for name, count in counts.items()
    ]
    shown = mark("ul", *rows, class_="shares") if rows else mark("p", "Nobody is connected.", class_="hint")
    return mark("div", mark("h2", title), shown, class_="card")
