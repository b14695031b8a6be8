"""`python -m tests.load [chaos|abandoned|idle] [--seconds N] [--write]`: the long runs; without a name, all of them.

With `--write` what they find goes into `docs/reliability.md`, each into its own section.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.load.abandoned import PER_SECOND, Abandoned, abandoned
from tests.load.chaos import Chaos, chaos
from tests.load.idle import Idle, idle
from tests.load.page import save, table
from tests.redis_server import redis_server

SECONDS: Final = 180
SESSIONS, QUESTIONS = 10_000, 1_000
SIZES: Final = {"redis": 3, "sqlite": 4}
_MIB: Final = 1 << 20


@contextmanager
def _store(kind: str) -> Iterator[tuple[Path, str]]:
    """A folder, and the URL of an empty store."""
    with TemporaryDirectory() as folder:
        if kind != "redis":
            yield Path(folder), "memory" if kind == "memory" else f"sqlite:///{folder}/state.db"
            return
        with redis_server() as url:
            yield Path(folder), url


async def run_chaos(seconds: float) -> tuple[str, bool]:
    """Kill nodes while clients work, on each store that nodes share."""
    found: dict[str, Chaos] = {}
    for kind, size in SIZES.items():
        with _store(kind) as (folder, url):
            found[kind] = await chaos(folder, url, size, seconds, seed=6)
    rows = [
        (
            f"{kind}, {SIZES[kind]} nodes",
            f"{one.conversations:,}",
            str(one.kills),
            f"{one.verdict.confirmed:,}",
            f"{len(one.verdict.failed):,}",
            str(len(one.verdict.faults)),
        )
        for kind, one in found.items()
    ]
    columns = ("", "conversations", "processes killed", "calls confirmed", "not confirmed", "effects twice or lost")
    reasons = [f"- {kind}: {count} times `{why}`" for kind, one in found.items() for why, count in one.reasons.items()]
    for one in found.values():
        print("\n".join(one.verdict.faults), file=sys.stderr)
    text = f"{seconds:g} s of mcp 1.30.0 and mcp 2.3.0 clients; a node is killed every 2 s and started again.\n\n"
    said = "\n\nWhy calls were not confirmed, as their clients saw it:\n\n" + "\n".join(reasons) if reasons else ""
    return text + table(columns, rows) + said, all(not one.verdict.faults for one in found.values())


async def run_abandoned(seconds: float) -> tuple[str, bool]:
    """Open sessions and abandon them, on each store."""
    rows, is_right = [], True
    for kind in ("memory", "sqlite", "redis"):
        with _store(kind) as (_, url):
            one = await abandoned(url, seconds)
        is_right &= levels_off(one)
        for when, at in (("at 60 %", one.middle), ("at the end", one.end)):
            memory = f"{at.resident_bytes / _MIB:.1f} MiB"
            rows.append((f"{kind}, {when}", memory, str(at.descriptors), str(at.tasks), f"{at.sessions:,}"))
        rows[-1] = (f"{rows[-1][0]}: {one.opened:,} opened", *rows[-1][1:])
    text = f"{PER_SECOND} sessions a second for {seconds:g} s; idle ones expire after 3 s.\n\n"
    return text + table(("", "memory", "descriptors", "tasks", "sessions in the store"), rows), is_right


def levels_off(one: Abandoned) -> bool:
    """Whether a node and its store hold at the end what they held before, within a tenth."""
    pairs = (
        (one.middle.resident_bytes, one.end.resident_bytes),
        (one.middle.descriptors + 10, one.end.descriptors),
        (one.middle.tasks + 10, one.end.tasks),
        (one.middle.sessions + PER_SECOND, one.end.sessions),
    )
    return all(end <= before * 1.1 for before, end in pairs)


async def run_idle(seconds: float) -> tuple[str, bool]:
    """Weigh idle sessions and open questions, on each store."""
    rows, is_right = [], True
    for kind in ("memory", "sqlite", "redis"):
        with _store(kind) as (_, url):
            one: Idle = await idle(url, SESSIONS, QUESTIONS)
        is_right &= one.loaded_call_ms <= 1.2 * one.call_ms
        rows.append(
            (
                kind,
                f"{one.before.resident_bytes / _MIB:.1f} MiB",
                f"{one.after.resident_bytes / _MIB:.1f} MiB",
                f"{one.call_ms:.2f} ms",
                f"{one.loaded_call_ms:.2f} ms",
                f"{one.loaded_call_ms / one.call_ms:.2f}",
                f"{one.count_ms:.1f} ms",
            )
        )
    columns = ("", "node before", "node with them", "call before", "call with them", "ratio", "look for expired ones")
    return f"{SESSIONS:,} idle sessions, {QUESTIONS:,} open questions.\n\n" + table(columns, rows), is_right


RUNS: Final[dict[str, Callable[[float], Awaitable[tuple[str, bool]]]]] = {
    "chaos": run_chaos,
    "abandoned": run_abandoned,
    "idle": run_idle,
}


def main() -> int:
    """See `--help`."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("what", nargs="?", choices=tuple(RUNS))
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    options = parser.parse_args()
    all_right = True
    for name in [options.what] if options.what else RUNS:
        text, is_right = asyncio.run(RUNS[name](options.seconds))  # type: ignore[arg-type]
        print(f"{name}: {'as it has to be' if is_right else 'NOT as it has to be'}\n\n{text}\n")
        all_right &= is_right
        if options.write:
            save(name, text)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
