"""`python -m benchmarks`: requests per second; `python -m benchmarks memory`: bytes per idle session."""

import argparse
import os
import shutil
import sys
from contextlib import ExitStack
from statistics import median
from typing import Any, Final

from benchmarks.load import CONNECTIONS, CORE, Connection, Invalid, Measure, measure, serving
from benchmarks.report import TITLES, save, show
from benchmarks.rows import ROWS, Row, open_sessions, prepare

_WARMING_SESSIONS: Final = 200

Found = dict[tuple[str, str], list[Measure]]


def speed(only: str, repetitions: int, seconds: int, *, keep: bool) -> None:
    """Measure all rows in turn, several times, and print the medians."""
    targets = [(row, server) for row in ROWS for server in row.servers if only in f"{server}: {row.name}"]
    if not targets:
        names = ", ".join(f"{server}: {row.name}" for row in ROWS for server in row.servers)
        raise Invalid(f"nothing is named {only!r}; there are {names}")
    found: Found = {(server, row.name): [] for row, server in targets}
    for number in range(repetitions):
        # New servers each time: none is slower for what it has kept of the repetition before.
        with ExitStack() as stack:
            servers = sorted({server for _, server in targets})
            connections = {server: stack.enter_context(serving(server)) for server in servers}
            for row, server in targets:
                print(f"{number + 1}/{repetitions}  {server}: {row.name}", file=sys.stderr)
                found[server, row.name].append(_run(row, server, connections[server], seconds))
    show(
        f"tools/call over HTTP: one core for the server, {CONNECTIONS} connections, "
        f"median of {repetitions} x {seconds} s",
        ("", "server", "requests/s", "p50 ms", "server µs", "x mcp", "x bare"),
        [_line(row, server, found) for row, server in targets],
    )
    if keep:
        setup = {"connections": CONNECTIONS, "repetitions": repetitions, "seconds": seconds}
        print(f"written to {save('latest', setup, [_result(row, server, found) for row, server in targets])}")


def _run(row: Row, server: str, connection: Connection, seconds: int) -> Measure:
    requests, reply_bytes = prepare(row, server, connection, seconds)
    return measure(connection, requests, seconds, once=row.once, reply_bytes=reply_bytes)


def _line(row: Row, server: str, found: Found) -> tuple[str, ...]:
    result = _result(row, server, found)
    return (
        row.name,
        TITLES[server],
        f"{result['requests_per_second']:,}",
        f"{result['p50_ms']:.2f}",
        f"{result['server_us']:.0f}",
        *("" if result[ratio] is None else f"{result[ratio]:.2f}" for ratio in ("ratio_to_mcp", "ratio_to_bare")),
    )


def _result(row: Row, server: str, found: Found) -> dict[str, Any]:
    measures = found[server, row.name]
    rate = median(measure.requests_per_second for measure in measures)
    return {
        "row": row.name,
        "server": TITLES[server],
        "requests_per_second": round(rate),
        "p50_ms": round(median(measure.p50_ms for measure in measures), 3),
        "p99_ms": round(median(measure.p99_ms for measure in measures), 3),
        "server_us": round(median(measure.server_us for measure in measures), 1),
        "ratio_to_mcp": _ratio(rate, found.get(("mcp", row.name))),
        "ratio_to_bare": _ratio(rate, found.get(("bare", ROWS[0].name))),
        "all_requests_per_second": [round(measure.requests_per_second) for measure in measures],
    }


def _ratio(rate: float, measures: list[Measure] | None) -> float | None:
    return None if measures is None else round(rate / median(each.requests_per_second for each in measures), 3)


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
    parser.add_argument("what", nargs="?", choices=("speed", "memory"), default="speed")
    parser.add_argument("--quick", action="store_true", help="one repetition of 2 s, or 2,000 sessions")
    parser.add_argument("--only", default="", metavar="NAME", help="what has NAME in it, such as 'bridge: modern call'")
    parser.add_argument("--repetitions", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=int, default=5, metavar="N")
    options = parser.parse_args()
    # What is written is a whole run: a part of one, or a short one, would be mistaken for it.
    keep = not options.quick and not options.only
    if not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2:
        print("The benchmarks need Linux and two cores: one for the server, one for the load.", file=sys.stderr)
        return 1
    if options.what == "speed" and shutil.which("wrk") is None:
        print("The benchmarks need wrk: apt-get install wrk, or see https://github.com/wg/wrk", file=sys.stderr)
        return 1
    os.sched_setaffinity(0, {CORE})
    try:
        if options.what == "memory":
            memory(2_000 if options.quick else 10_000, keep=keep)
        else:
            repetitions, seconds = (1, 2) if options.quick else (options.repetitions, options.seconds)
            speed(options.only, repetitions, seconds, keep=keep)
    except Invalid as invalid:
        print(f"Invalid run: {invalid}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
