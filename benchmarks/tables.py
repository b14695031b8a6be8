"""From what was measured to what is said of it: results with their ratios, and the lines of the tables."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Final, TypeAlias

from benchmarks.load import Measure
from benchmarks.report import TITLES, show
from benchmarks.rows import RELAYED, SERVED, STORED, Row

__all__ = ["Found", "print_tables", "result"]

Found: TypeAlias = Mapping[tuple[str, str], Sequence[Measure]]
"""What was measured, by server and row."""

_COLUMNS: Final = ("", "server", "requests/s", "p50 ms")
_SERVED_COLUMNS: Final = (*_COLUMNS, "server µs", "x mcp", "x bare")
_STORED_COLUMNS: Final = (*_COLUMNS, "server µs", "x mcp", "x memory")
_RELAYED_COLUMNS: Final = (*_COLUMNS, "added ms", "p99 ms", "relay µs", "x aiohttp", "x FastMCP", "x mcp-proxy")


def print_tables(found: Found, how: str) -> None:
    """Print what servers answer by themselves, and what relays hand on."""
    served = [_served_line(one) for one in _results(SERVED, found)]
    stored = [_stored_line(one) for one in _results(STORED, found)]
    relayed = [_relayed_line(one) for one in _results(RELAYED, found)]
    if served:
        show(f"tools/call over HTTP: one core for the server, {how}", _SERVED_COLUMNS, served)
    if stored:
        show(f"by where sessions and rounds are kept: one core for the server, {how}", _STORED_COLUMNS, stored)
    if relayed:
        title = f"the same through relays: one core for the relay, the server shares that of the load, {how}"
        show(title, _RELAYED_COLUMNS, relayed)


def _results(rows: Iterable[Row], found: Found) -> list[dict[str, Any]]:
    return [result(row, server, found) for row in rows for server in row.servers if (server, row.name) in found]


def result(row: Row, server: str, found: Found) -> dict[str, Any]:
    """The medians of what was measured for one line of a table, and how they compare."""
    measures = found[server, row.name]
    rate = median(each.requests_per_second for each in measures)
    return {
        "row": row.name,
        "server": TITLES[server],
        "connections": row.connections,
        "requests_per_second": round(rate),
        "p50_ms": round(_p50_ms(measures), 3),
        "p99_ms": round(median(each.p99_ms for each in measures), 3),
        "server_us": round(median(each.server_us for each in measures), 1),
        **(_compared_relay if row in RELAYED else _compared)(row, rate, _p50_ms(measures), found),
        "all_requests_per_second": [round(each.requests_per_second) for each in measures],
    }


def _compared(row: Row, rate: float, p50_ms: float, found: Found) -> dict[str, float | None]:
    return {
        "ratio_to_mcp": _ratio(rate, found.get(("mcp", row.name))),
        "ratio_to_memory": _ratio(rate, found.get(("bridge", row.name))) if row in STORED else None,
        "ratio_to_bare": _ratio(rate, found.get(("bare", SERVED[0].name))),
    }


def _compared_relay(row: Row, rate: float, p50_ms: float, found: Found) -> dict[str, float | None]:
    """All are compared with the modern calls that no relay, or the barest, handles: those two have no sessions."""
    direct = found.get(("direct", RELAYED[0].name))
    transport = row.servers[-1].rpartition("-")[2]
    return {
        "added_ms": None if direct is None else round(p50_ms - _p50_ms(direct), 3),
        "ratio_to_aiohttp": _ratio(rate, found.get(("aiohttp", RELAYED[0].name))),
        "ratio_to_fastmcp": _ratio(rate, found.get((f"fastmcp-{transport}", row.name))),
        "ratio_to_mcp_proxy": _ratio(rate, found.get((f"mcp-proxy-{transport}", row.name))),
    }


def _p50_ms(measures: Sequence[Measure]) -> float:
    return median(each.p50_ms for each in measures)


def _ratio(rate: float, measures: Sequence[Measure] | None) -> float | None:
    return None if measures is None else round(rate / median(each.requests_per_second for each in measures), 3)


def _served_line(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (*_start(one), f"{one['server_us']:.0f}", _two(one["ratio_to_mcp"]), _two(one["ratio_to_bare"]))


def _stored_line(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (*_start(one), f"{one['server_us']:.0f}", _two(one["ratio_to_mcp"]), _two(one["ratio_to_memory"]))


def _relayed_line(one: Mapping[str, Any]) -> tuple[str, ...]:
    ratios = (one[f"ratio_to_{name}"] for name in ("aiohttp", "fastmcp", "mcp_proxy"))
    return (*_start(one), _two(one["added_ms"]), _two(one["p99_ms"]), f"{one['server_us']:.0f}", *map(_two, ratios))


def _start(one: Mapping[str, Any]) -> tuple[str, ...]:
    return one["row"], one["server"], f"{one['requests_per_second']:,}", _two(one["p50_ms"])


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
