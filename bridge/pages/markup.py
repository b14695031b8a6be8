"""HTML, escaped where it is put together: what is not `Markup` is text, whoever it comes from."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

__all__ = ["Markup", "badge", "document", "duration", "mark", "table"]

_MINUTE: Final = 60
_HOUR: Final = 3600
_ROUTES: Final = {"rounds": "in rounds", "push": "in the call", "chat": "in the chat", "refuse": "not at all"}
_EMPTY: Final = frozenset({"input", "link", "meta", "rect", "line"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __add__(self, other: str) -> "Markup":
        return Markup(str(self) + _safe(other))

    def join(self, parts: Iterable[str]) -> "Markup":
        """Put parts together; those that are text are escaped."""
        return Markup(str.join(self, [_safe(part) for part in parts]))


def mark(tag: str, *parts: str, **attributes: str | None) -> Markup:
    """An element; a name that Python or HTML writes otherwise ends in `_` or has `_` for `-`.

    Args:
        tag: its name.
        parts: what is in it.
        attributes: its attributes; what is None is left out, and an empty text is an attribute without a value.
    """
    given = "".join(
        " " + name.rstrip("_").replace("_", "-") + (f'="{escape(value)}"' if value else "")
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}/>" if tag in _EMPTY else f"<{tag}{given}>{Markup('').join(parts)}</{tag}>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, class_: str | None = None) -> Markup:
    """A table; each cell knows its column's name, for narrow screens."""
    titles = mark("tr", *(mark("th", title, scope="col") for title in head))
    lines = [
        mark("tr", *(mark("td", cell, data_title=name) for name, cell in zip(head, row, strict=True))) for row in rows
    ]
    return mark("div", mark("table", mark("thead", titles), mark("tbody", *lines), class_=class_), class_="scrolls")


def document(
    title: str, body: Markup, *, scripts: Sequence[str] = (), styles: Sequence[str] = (), icon: str | None = None
) -> str:
    """A whole page."""
    head = Markup("").join(
        [
            mark("meta", charset="utf-8"),
            mark("meta", name="viewport", content="width=device-width, initial-scale=1"),
            mark("meta", name="color-scheme", content="light dark"),
            mark("title", title),
            *(mark("link", rel="icon", href=href) for href in (icon,) if href),
            *(mark("link", rel="stylesheet", href=href) for href in styles),
            *(mark("script", src=source, defer="") for source in scripts),
        ]
    )
    return "<!doctype html>\n" + mark("html", mark("head", head), mark("body", body), lang="en")


def badge(route: str) -> Markup:
    """A route in two or three words, in its colour."""
    return mark("span", _ROUTES.get(route, route), class_=f"badge {route}")


def duration(seconds: float) -> str:
    """A time span for people."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{int(seconds // _HOUR)} h {int(seconds % _HOUR // _MINUTE)} min"


def _safe(part: str) -> str:
    return str(part) if isinstance(part, Markup) else escape(part)
