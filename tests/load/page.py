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
    yield "Two nodes side by side: one serves a single session, one has the others beside it. They are asked in turn. A"
    yield "question is asked through the chat and answered: two calls, and everything that a store does for them."
    yield ""
    columns = ("", "node before", "with sessions", "and questions", "a call", "ratio", "a question", "ratio")
    rows = [
        (
            one["store"],
            *map(_mib, one["resident_bytes"]),
            *(cell for what in ("call", "question") for cell in _compared(one[what])),
        )
        for one in figures
    ]
    yield from _table(columns, rows)
    yield "Time is that of the node's processor. When as many records expire at once, the next writes sweep them:"
    yield ""
    columns = ("", "records", "a write", "a write that sweeps", "the longest of 4,000")
    sweeps = [(one["store"], one["sweep"]) for one in figures]
    yield from _table(
        columns,
        [
            (
                store,
                f"{sweep['records']:,}",
                f"{sweep['write_ms']:.3f} ms",
                f"{sweep['sweeping_write_ms']:.3f} ms",
                f"{sweep['longest_ms']:.1f} ms (of others {sweep['longest_clean_ms']:.1f} ms)",
            )
            for store, sweep in sweeps
        ],
    )


def _compared(one: Figures) -> tuple[str, str]:
    both = f"{one['processor_us']:,.0f} µs, {one['full_processor_us']:,.0f} µs"
    return both, f"{one['processor_ratio']:.2f}"


def _abandoned(figures: Figures) -> Iterator[str]:
    yield "## Sessions that are opened and abandoned"
    yield ""
    yield "200 a second, over 10 connections a second that are dropped; one in four makes a call. Sessions expire after"
    yield "a tenth of the run. The means of each third of it:"
    yield ""
    columns = ("", "opened", "in", "", "memory", "descriptors", "tasks", "keys of the store")
    rows = []
    for one in figures:
        about = (one["store"], f"{one['opened']:,}", f"{one['seconds']:g} s")
        for number, third in enumerate(one["thirds"], 1):
            held = (_mib(third["resident_bytes"]), third["descriptors"], third["tasks"], f"{third['keys']:,}")
            rows.append((*(about if number == 1 else ("", "", "")), f"{number} of 3", *held))
    yield from _table(columns, rows)


def _stores(figures: Figures) -> Iterator[str]:
    yield "## What a call costs in each store"
    yield ""
    yield "`python -m benchmarks stores`: 16 connections to one process on one core; SQLite and Redis hold everything"
    yield "encrypted. The SDK keeps its sessions in the process. Redis itself runs on the core of the load."
    yield ""
    columns = ("", "server", "requests/s", "processor time", "throughput to mcp", "to memory")
    rows = [
        (
            one["row"].removesuffix(", by store"),
            one["server"],
            f"{one['requests_per_second']:,}",
            f"{one['server_us']:.0f} µs",
            f"{one['ratio_to_mcp']:.2f}",
            f"{one['ratio_to_memory']:.2f}",
        )
        for one in figures
    ]
    yield from _table(columns, rows)


_SECTIONS: dict[Any, Callable[[Figures], Iterator[str]]] = {
    RESULTS / "chaos.json": _chaos,
    RESULTS / "idle.json": _idle,
    RESULTS / "abandoned.json": _abandoned,
    REPOSITORY / "benchmarks" / "results" / "stores.json": _stores,
}
