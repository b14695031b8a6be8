"""Small charts, drawn here and not in the browser: an hour of minutes as bars, and shares as one bar each."""

from collections.abc import Sequence
from typing import Final

import msgspec

from bridge.pages.markup import Markup, mark

__all__ = ["Series", "hour_chart", "share_bar"]

_STEP: Final = 4
_BAR: Final = 3
_HEIGHT: Final = 44
_SHARE_WIDTH: Final = 100


class Series(msgspec.Struct, frozen=True):
    """Counts by minute, the oldest first, and the class that colours them."""

    name: str
    counts: Sequence[int]
    colour: str


def hour_chart(label: str, series: Sequence[Series]) -> Markup:
    """Bars by minute, of several series one on the other.

    Args:
        label: what is counted, for who cannot see it.
        series: each as long as the others.
    """
    length = len(series[0].counts)
    totals = [sum(one.counts[position] for one in series) for position in range(length)]
    highest = max(totals, default=0)
    bars: list[Markup] = []
    for position in range(length):
        top = float(_HEIGHT)
        for one in series:
            height = one.counts[position] / max(highest, 1) * (_HEIGHT - 2)
            top -= height
            if height:
                bars.append(_rect(position * _STEP, top, _BAR, height, one.colour))
    width = length * _STEP - 1
    base = mark("line", x1="0", x2=str(width), y1=f"{_HEIGHT - 0.5}", y2=f"{_HEIGHT - 0.5}", class_="base")
    said = f"{label}, by minute over the last hour: {sum(totals)} in all, at most {highest} in a minute"
    shape = {"viewBox": f"0 0 {width} {_HEIGHT}", "preserveAspectRatio": "none"}
    axis = mark("p", mark("span", f"{length} min ago"), mark("span", "now"), class_="axis", aria_hidden="true")
    return mark("svg", base, *bars, class_="hour", role="img", aria_label=said, **shape) + axis


def share_bar(count: int, of: int, colour: str) -> Markup:
    """One bar that shows a share; the number stands beside it."""
    width = count / max(of, 1) * _SHARE_WIDTH
    shape = {"viewBox": f"0 0 {_SHARE_WIDTH} 8", "preserveAspectRatio": "none"}
    back, front = _rect(0, 0, _SHARE_WIDTH, 8, "track"), _rect(0, 0, max(width, 1), 8, colour)
    return mark("svg", back, front, class_="share", aria_hidden="true", **shape)


def _rect(x: float, y: float, width: float, height: float, colour: str) -> Markup:
    return mark("rect", x=f"{x:g}", y=f"{y:.2f}", width=f"{width:.2f}", height=f"{height:.2f}", class_=colour)
