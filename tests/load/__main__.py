"""`python -m tests.load NAME`: make a run, print its figures, and keep them with `--write`."""

import argparse
import json
import sys
from importlib import import_module

from tests.load.page import page
from tests.load.runs import REPOSITORY, Options, write

RUNS = {
    "abandoned": "tests.load.abandoned",
    "chaos": "tests.load.chaos",
    "idle": "tests.load.idle",
}
"""Which module has `run(options)`, which returns figures that JSON can hold, or raises AssertionError."""


def main() -> int:
    """Make the run; return the exit code."""
    chosen = _parser().parse_args()
    if chosen.name != "page":
        figures = import_module(RUNS[chosen.name]).run(Options(chosen.seconds, chosen.only))
        print(json.dumps(figures, indent=2))
        if chosen.write:
            print(f"written to {write(chosen.name, figures)}", file=sys.stderr)
    if chosen.write or chosen.name == "page":
        (REPOSITORY / "docs" / "reliability.md").write_text(page(), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("name", choices=[*RUNS, "page"], help="the run; page: only make docs/reliability.md")
    parser.add_argument("--seconds", type=float, metavar="N", help="how long; by default as the page has it")
    parser.add_argument("--only", metavar="STORE", help="memory, sqlite or redis; by default every store")
    parser.add_argument("--write", action="store_true", help="keep the figures, and make docs/reliability.md of them")
    return parser


if __name__ == "__main__":
    sys.exit(main())
