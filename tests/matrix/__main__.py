"""`python -m tests.matrix` runs the matrix, writes what came of it, and fails where a cell is not as it must be."""

import argparse
import sys
import time
from pathlib import Path

from tests.matrix.cells import Cell
from tests.matrix.clients import CLIENTS
from tests.matrix.page import page, record
from tests.matrix.processes import no_orphans
from tests.matrix.running import run
from tests.matrix.servers import SERVERS
from tests.peers.environments import NotInstalled

_REPOSITORY = Path(__file__).parents[2]


def main() -> int:
    """Run it; return the exit code."""
    options = _parser().parse_args()
    clients = [client for client in CLIENTS if client.name in (options.client or [client.name])]
    servers = [server for server in SERVERS if server.name in (options.server or [server.name])]
    is_whole = (len(clients), len(servers), options.direct_only) == (len(CLIENTS), len(SERVERS), False)
    began = time.monotonic()

    def told(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    try:
        with no_orphans():
            cells = run(
                clients, servers, told if options.verbose else lambda what: None, with_bridge=not options.direct_only
            )
    except NotInstalled as reason:
        print(f"a peer cannot be installed: {reason}", file=sys.stderr)
        return 1
    if is_whole or options.out is not None:
        out = options.out or _REPOSITORY
        (out / "docs").mkdir(parents=True, exist_ok=True)
        (out / "docs" / "compatibility.md").write_text(page(clients, servers, cells), encoding="utf-8")
        (out / "matrix.json").write_bytes(record(clients, servers, cells))
    else:
        print(page(clients, servers, cells))
    return _verdict(cells, time.monotonic() - began)


def _verdict(cells: list[Cell], seconds: float) -> int:
    failures = [failure for cell in cells for failure in cell.failures]
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    print(f"{len(cells)} pairs in {seconds:.0f} s, {len(failures)} failures", file=sys.stderr)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    names = [client.name for client in CLIENTS]
    parser.add_argument("--client", action="append", choices=names, metavar="NAME", help=f"only it: {', '.join(names)}")
    names = [server.name for server in SERVERS]
    parser.add_argument("--server", action="append", choices=names, metavar="NAME", help=f"only it: {', '.join(names)}")
    parser.add_argument("--direct-only", action="store_true", help="without the bridge")
    parser.add_argument("--out", type=Path, help="where to write; by default the repository, after a whole run only")
    parser.add_argument("--verbose", action="store_true", help="tell of each visit")
    return parser


if __name__ == "__main__":
    sys.exit(main())
