"""`python -m benchmarks`: requests per second; `stores`: the same in each store; `memory`: bytes per idle session."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.fleet import missing, serving, started
from benchmarks.load import Connection, Invalid, Measure, measure
from benchmarks.process import LOAD_CORE, keep_to
from benchmarks.report import TITLES, save, show
from benchmarks.rows import RELAYED, SERVED, STORED, Row, open_sessions, prepare
from benchmarks.tables import print_tables, result

_WARMING_SESSIONS: Final = 200


def speed(rows: Sequence[Row], only: str, repetitions: int, seconds: int, *, keep_as: str | None) -> None:
    """Measure all rows in turn, several times, and print the medians."""
    targets = _targets(rows, only)
    found: dict[tuple[str, str], list[Measure]] = {(server, row.name): [] for row, server in targets}
    for number in range(repetitions):
        # New servers each time: none is slower for what it has kept of the repetition before.
        with started({server for _, server in targets}) as connections:
            for row, server in targets:
                print(f"{number + 1}/{repetitions}  {server}: {row.name}", file=sys.stderr)
                found[server, row.name].append(_run(row, server, connections[server], seconds))
    print_tables(found, f"median of {repetitions} x {seconds} s")
    if keep_as is not None:
        setup = {"repetitions": repetitions, "seconds": seconds}
        print(f"written to {save(keep_as, setup, [result(row, server, found) for row, server in targets])}")


def _targets(rows: Sequence[Row], only: str) -> list[tuple[Row, str]]:
    """What has the name and can be measured here."""
    everything = [(row, server) for row in rows for server in row.servers]
    named = [(row, server) for row, server in everything if only in f"{server}: {row.name}"]
    if not named:
        names = ", ".join(f"{server}: {row.name}" for row, server in everything)
        raise Invalid(f"nothing is named {only!r}; there are {names}")
    reasons = {server: missing(server) for _, server in named}
    for server, reason in reasons.items():
        if reason is not None:
            print(f"{server} is left out: {reason}", file=sys.stderr)
    return [(row, server) for row, server in named if reasons[server] is None]


def _run(row: Row, server: str, connection: Connection, seconds: int) -> Measure:
    requests, reply_bytes = prepare(row, server, connection, seconds)
    return measure(connection, requests, seconds, connections=row.connections, once=row.once, reply_bytes=reply_bytes)


def memory(count: int, *, keep: bool) -> None:
    """Weigh the servers before and after many legacy sessions were opened and left idle."""
    results = []
    for server in ("mcp", "bridge"):
        with serving(server, "--weighable") as connection:
            open_sessions(connection, _WARMING_SESSIONS)
            before = _weight(connection)
            open_sessions(connection, count)
            grown = _weight(connection) - before
        results.append({"server": TITLES[server], "sessions": count, "bytes_per_session": round(grown / count)})
    lines = [("idle legacy session", str(r["server"]), f"{r['bytes_per_session']:,}") for r in results]
    show(f"memory: growth of a process by {count:,} sessions", ("", "server", "bytes per session"), lines)
    if keep:
        print(f"written to {save('memory', {'sessions': count}, results)}")


def _weight(connection: Connection) -> int:
    (reply,) = connection.exchange([connection.post({}, {}, "/weight")])
    return int(reply.body)


def main() -> int:
    """See `--help`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("speed", "stores", "memory"), default="speed")
    parser.add_argument("--quick", action="store_true", help="one repetition of 2 s, or 2,000 sessions")
    parser.add_argument(
        "--only", default="", metavar="NAME", help="what has NAME in it, such as 'bridge: modern', or 'relayed'"
    )
    parser.add_argument("--repetitions", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=int, default=5, metavar="N")
    options = parser.parse_args()
    # What is written is a whole run: a part of one, or a short one, would be mistaken for it.
    keep = not options.quick and not options.only
    if not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2:
        print("The benchmarks need Linux and two cores: one for the server, one for the load.", file=sys.stderr)
        return 1
    if options.what != "memory" and shutil.which("wrk") is None:
        print("The benchmarks need wrk: apt-get install wrk, or see https://github.com/wg/wrk", file=sys.stderr)
        return 1
    keep_to(LOAD_CORE)
    try:
        if options.what == "memory":
            memory(2_000 if options.quick else 10_000, keep=keep)
        else:
            repetitions, seconds = (1, 2) if options.quick else (options.repetitions, options.seconds)
            rows, name = (STORED, "stores") if options.what == "stores" else ((*SERVED, *RELAYED), "latest")
            speed(rows, options.only, repetitions, seconds, keep_as=name if keep else None)
    except Invalid as invalid:
        print(f"Invalid run: {invalid}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
