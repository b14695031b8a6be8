"""The page `docs/reliability.md`, made of the figures that the runs have kept: one function for each section."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tests.load.runs import REPOSITORY, RESULTS, read

__all__ = ["page"]

Figures = Any
"""What a run gave to be kept."""

_HEAD = """# Reliability

What sessions and questions cost while they wait, and what becomes of them when processes are lost. Each section is made
of the figures of a run (`python -m tests.load NAME --write` makes it, and this page, anew).
"""

_ALSO = """## Also proved, by `make fleet`

- 200 conversations at once of mcp 1.30.0 and mcp 2.3.0, through a proxy that sends every request to another node: three
  nodes on Redis, four on one SQLite file. Every call ends right, every effect happens once.
- Every node is started again between a question and its answer, after a signal or killed. The call goes on.
- Redis is silent, or gone, for 5 s. Calls wait; none fails. Redis comes back empty: sessions are gone (404).

A client whose stream breaks has to come back for the rest. mcp 1.30.0 tries twice, within about two seconds; where no
node is there by then (all of a fleet were killed at once) its call fails, and what came of it at the server stands.
"""


def page() -> str:
    """The page; a run that was never kept has no section."""
    lines = [_HEAD]
    for path, section in _SECTIONS.items():
        kept = read(path)
        if kept is not None:
            lines += [*section(kept.get("figures", kept.get("results"))), ""]
            machine = kept["machine"]
            lines += [f"Measured on {machine['date']}, {machine['cores']} cores, Python {machine['python']}.", ""]
    return "\n".join([*lines, _ALSO])


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    for cells in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(str(cell) for cell in cells)} |"
    yield ""


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.1f} MiB"


def _chaos(figures: Figures) -> Iterator[str]:
    yield "## Nodes that are killed"
    yield ""
    yield f"For {figures[0]['seconds']:g} s clients of mcp 1.30.0 and mcp 2.3.0, asked by push, chat and rounds, use"
    yield "every tool of the demo through a proxy that sends each request to another node; every 2 s a node is killed"
    yield "(`SIGKILL`) and started again. An effect that a client was told of is there, once; one that it was not told"
    yield "of is there at most once."
    yield ""
    columns = ("", "conversations", "killed", "calls confirmed", "not confirmed", "effects twice or lost")
    rows = [
        (
            f"{one['store']}, {one['nodes']} nodes",
            f"{one['conversations']:,}",
            one["kills"],
            f"{one['confirmed']:,}",
            f"{one['not_confirmed']:,}",
            0,
        )
        for one in figures
    ]
    yield from _table(columns, rows)
    yield "Why calls were not confirmed, as their clients saw it:"
    yield ""
    for one in figures:
        yield from (f"- {one['store']}: {count} times `{why}`" for why, count in one["reasons"].items())


def _idle(figures: Figures) -> Iterator[str]:
    yield "## Ten thousand idle sessions and a thousand open questions"
    yield ""
    columns = ("", "node before", "node with them", "work for a call", "with them", "ratio", "look for expired ones")
    rows = [
        (
            one["store"],
            _mib(one["before"]["resident_bytes"]),
            _mib(one["after"]["resident_bytes"]),
            f"{one['call_ms']:.3f} ms",
            f"{one['loaded_call_ms']:.3f} ms",
            f"{one['loaded_call_ms'] / one['call_ms']:.2f}",
            f"{one['count_ms']:.1f} ms",
        )
        for one in figures
    ]
    yield from _table(columns, rows)


def _abandoned(figures: Figures) -> Iterator[str]:
    yield "## Sessions that are opened and abandoned"
    yield ""
    yield "Idle sessions expire after 3 s here. Each tenth opens a stream and drops it."
    yield ""
    columns = ("", "opened", "a second", "", "memory", "descriptors", "tasks", "sessions in the store")
    rows = []
    for one in figures:
        about = (one["store"], f"{one['opened']:,}", f"{one['per_second']:.0f}")
        for when, before, at in (("at 60 %", about, one["middle"]), ("at the end", ("", "", ""), one["end"])):
            rows.append((*before, when, _mib(at["resident_bytes"]), at["descriptors"], at["tasks"], at["sessions"]))
    yield from _table(columns, rows)


def _stores(figures: Figures) -> Iterator[str]:
    yield "## What a call costs in each store"
    yield ""


_SECTIONS: dict[Any, Callable[[Figures], Iterator[str]]] = {
    RESULTS / "chaos.json": _chaos,
    RESULTS / "idle.json": _idle,
    RESULTS / "abandoned.json": _abandoned,
    REPOSITORY / "benchmarks" / "results" / "stores.json": _stores,
}
