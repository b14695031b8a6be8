"""The page `docs/reliability.md`, made of the figures that the runs have kept: one function for each section."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.load.runs import REPOSITORY, RESULTS, read

__all__ = ["page"]

Figures = Any
"""What a run gave to be kept."""

_HEAD = """# Reliability

What sessions and questions cost while they wait, and what becomes of them when processes are lost. Each section is made
of the figures of a run (`python -m tests.load NAME --write` makes it, and this page, anew).
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
    return "\n".join(lines)


def _idle(figures: Figures) -> Iterator[str]:
    yield "## Ten thousand idle sessions and a thousand open questions"
    yield ""


def _abandoned(figures: Figures) -> Iterator[str]:
    yield "## Sessions that are opened and abandoned"
    yield ""


def _stores(figures: Figures) -> Iterator[str]:
    yield "## What a call costs in each store"
    yield ""


_SECTIONS: dict[Any, Callable[[Figures], Iterator[str]]] = {
    RESULTS / "idle.json": _idle,
    RESULTS / "abandoned.json": _abandoned,
    REPOSITORY / "benchmarks" / "results" / "stores.json": _stores,
}
