"""`docs/reliability.md`: a section for each run, between marks, so that a run replaces its own and no other."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["PAGE", "save", "table"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "reliability.md"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def save(name: str, text: str) -> None:
    """Replace what stands between the marks of a run.

    Raises:
        ValueError: the page has no such marks.
    """
    before = PAGE.read_text()
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    after, found = re.subn(pattern, lambda marks: f"{marks[1]}{text}\n{marks[2]}", before, flags=re.DOTALL)
    if not found:
        raise ValueError(f"{PAGE} has no section {name!r}")
    PAGE.write_text(after)
