"""The page `docs/compatibility.md` and the file `matrix.json`. The same cells give the same bytes."""

from collections.abc import Iterable, Sequence

import msgspec

from tests.matrix.cells import Cell, Status, Verdicts, is_well
from tests.matrix.clients import Client
from tests.matrix.profiles import CHECKS, TITLES, Json
from tests.matrix.servers import Server

_MARKS: dict[Status, str] = {"passed": "✔", "refused": "◇", "failed": "✘", "absent": "·", "unreachable": "–"}
_HEAD = """# Compatibility

Every client below calls every server below, through the bridge and directly. `make matrix` makes this page, and
`matrix.json` with every reason; it fails where a cell through the bridge is not as it must be.

Each client lists tools, resources and prompts, calls a tool that adds, is asked once and accepts, is asked once and
declines, is asked twice in a row, and is told of progress. A server that the bridge holds in process is, directly,
served over Streamable HTTP by its own SDK.

"""
_FIRST = """## Every pair

How many of the checks came out as they have to **through the bridge**, and, in brackets, directly. A dash: the two
speak no transport in common. The native server does not exist without the bridge.

"""
_SECOND = """## Every check

{marks}. Through the bridge first, directly in brackets.

"""
_LEGEND: dict[Status, str] = {
    "passed": "passed",
    "refused": "told, as it must be, that it cannot be asked (see the notes)",
    "failed": "failed",
    "absent": "the server has no such tool",
    "unreachable": "no transport in common",
}
_NOTES = """## Cells that cannot be all ✔

- **A modern client without elicitation** cannot be asked. "A server **MUST NOT** rely on capabilities the client has
  not declared" and answers with `-32021`, "whose `data.requiredCapabilities` lists the missing capabilities"
  ([basic of 2026-07-28][1]); nor may it ask all the same ([multi round-trip requests, server requirements][2]). That is
  what ◇ says, and it counts as right.
- **The Inspector's command line** makes one request a run. It is legacy by default and declares no elicitation, so it
  is asked in the chat, and that is checked. Its answer would come out of another run, which has to initialize a session
  of its own ([basic/lifecycle of 2025-11-25][3]), and an answer counts only in the session that was asked. It shows no
  progress, so of that only the result is checked.
- **A client of 2024-11-05** knows no elicitation, which is [new in 2025-06-18][4]; through the bridge it is asked in
  the chat, as every legacy client that declares none.
- **server-everything** has no tool that asks twice, and lists the one that asks once to clients that declare
  elicitation only.
- **The clients in TypeScript** lose, over HTTP+SSE and stdio, the progress that arrives together with the result: they
  look up who is told of progress only after they have read on. There only the result is checked.

[1]: https://modelcontextprotocol.io/specification/2026-07-28/basic
[2]: https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
[3]: https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization
[4]: https://modelcontextprotocol.io/specification/2025-06-18/changelog
"""


def page(clients: Sequence[Client], servers: Sequence[Server], cells: Iterable[Cell]) -> str:
    """The page in Markdown."""
    found = {(cell.client, cell.server): cell for cell in cells}
    marks = ", ".join(f"{_MARKS[status]} {meaning}" for status, meaning in _LEGEND.items())
    parts = [_HEAD, _FIRST, _pairs(clients, servers, found), _SECOND.format(marks=marks)]
    parts += [_checks(client, servers, found) for client in clients]
    return "".join([*parts, _NOTES])


def record(clients: Sequence[Client], servers: Sequence[Server], cells: Iterable[Cell]) -> bytes:
    """The file `matrix.json`."""
    made: Json = {
        "checks": TITLES,
        "clients": {client.name: client.title for client in clients},
        "servers": {server.name: server.title for server in servers},
        "cells": [{**msgspec.to_builtins(cell), "adds": cell.adds} for cell in cells],
    }
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"


def _pairs(clients: Sequence[Client], servers: Sequence[Server], found: dict[tuple[str, str], Cell]) -> str:
    rows = [
        [
            server.title,
            *(_score(found[client.name, server.name], is_native=server.program is None) for client in clients),
        ]
        for server in servers
    ]
    names = "".join(f"- `{client.name}`: {client.title}\n" for client in clients)
    return _table(["server", *(f"`{client.name}`" for client in clients)], rows) + names + "\n"


def _score(cell: Cell, *, is_native: bool) -> str:
    through = "" if cell.bridge is None else f"**{_well(cell.bridge)}**"
    if is_native:
        return through
    return f"{through} ({_well(cell.direct)})".strip()


def _well(verdicts: Verdicts | None) -> str:
    if verdicts is None or any(verdict.status == "unreachable" for verdict in verdicts.values()):
        return "–"
    applying = [verdict for verdict in verdicts.values() if verdict.status != "absent"]
    return f"{sum(map(is_well, applying))}/{len(applying)}"


def _checks(client: Client, servers: Sequence[Server], found: dict[tuple[str, str], Cell]) -> str:
    rows = []
    for server in servers:
        cell = found[client.name, server.name]
        adds = "all" if len(cell.adds) == len(CHECKS) else ", ".join(cell.adds)
        rows.append([server.title, *(_mark(cell, index) for index in range(len(CHECKS))), adds])
    return f"### {client.title}\n\n" + _table(["server", *CHECKS, "the bridge adds"], rows)


def _mark(cell: Cell, index: int) -> str:
    check = CHECKS[index]
    through = "" if cell.bridge is None else _MARKS[cell.bridge[check].status]
    directly = "" if cell.direct is None else f"({_MARKS[cell.direct[check].status]})"
    return f"{through} {directly}".strip()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"
