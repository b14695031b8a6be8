"""`python -m tests.conformance` runs the suite, writes what came of it, and fails where something is not as known."""

import argparse
import sys
import time

from tests.conformance.legs import LEGS
from tests.conformance.page import page
from tests.conformance.running import run
from tests.conformance.suite import REPOSITORY
from tests.matrix.processes import no_orphans
from tests.peers.environments import NotInstalled, install


def main() -> int:
    """Run it; return the exit code."""
    options = _parser().parse_args()
    legs = [leg for leg in LEGS if leg.name in (options.leg or [leg.name])]
    began = time.monotonic()

    def told(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    try:
        for environment in ("conformance", "mcp1", "mcp2"):
            install(environment)
        with no_orphans():
            results = run(legs, told)
    except NotInstalled as reason:
        print(f"what the run needs cannot be installed: {reason}", file=sys.stderr)
        return 1
    failures = [failure for result in results for failure in result.failures]
    if len(legs) == len(LEGS) and not failures:
        (REPOSITORY / "docs" / "conformance.md").write_text(page(results), encoding="utf-8")
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    print(f"{len(legs)} legs in {time.monotonic() - began:.0f} s, {len(failures)} failures", file=sys.stderr)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    names = [leg.name for leg in LEGS]
    parser.add_argument("--leg", action="append", choices=names, metavar="NAME", help=f"only it: {', '.join(names)}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
