"""What may come in that should not: one table, and the answer to each on every transport.

`python -m tests.behaviours.bad_input` writes it as `docs/bad-input.md`; the tests prove every row of it.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["PAGE", "ROWS", "Answer", "Row", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "bad-input.md"
NOTHING = "nothing"
"""No answer is due, and none comes."""


class Answer(NamedTuple):
    """What comes back: an error code and the id with it, or a result, or nothing.

    Args:
        code: the error's; None for none.
        identity: the id that is echoed; the text `none` where it has none.
        status: over HTTP.
    """

    code: int | None
    identity: Any = "none"
    status: int = 400


class Row(NamedTuple):
    """One thing that comes in.

    Args:
        what: in a few words.
        body: the bytes.
        session: the answer over HTTP on a live session of 2025-11-25.
        modern: the answer over HTTP of 2026-07-28; None where nothing modern can be said so.
        pipe: the answer on stdio and WebSocket, after `initialize`; its status says nothing.
        binary: it is no text, so that no WebSocket frame can hold it.
    """

    what: str
    body: bytes
    session: Answer
    modern: Answer | None
    pipe: Answer
    binary: bool = False


def _said(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


def _deep(levels: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":7,"method":"ping","params":' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"


_META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
_UNREAD = Answer(-32700), Answer(-32700), Answer(-32700)
_NO_MESSAGE = Answer(-32600, status=200), Answer(-32600), Answer(-32600)
_NO_RESULT = Answer(None, status=202)
_NO_BATCH = Answer(-32600), Answer(-32600), Answer(-32600)
_NAMED = Answer(-32600, 7, 200), Answer(-32600, 7), Answer(-32600, 7)

ROWS: tuple[Row, ...] = (
    Row("truncated JSON", b'{"jsonrpc":"2.0","id":7,"method":', *_UNREAD),
    Row("invalid UTF-8", b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', *_UNREAD, binary=True),
    Row("a lone surrogate", b'{"jsonrpc":"2.0","id":7,"method":"\\ud800"}', *_UNREAD),
    Row("`NaN`", b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', *_UNREAD),
    Row("a number beyond every range", b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1e999}}', *_UNREAD),
    Row("depth 65", _deep(64), *_UNREAD),
    Row("depth 10,000", _deep(10_000), *_UNREAD),
    Row("no JSON-RPC at all", b'"hello"', *_NO_MESSAGE),
    Row('`"jsonrpc": "1.0"`', b'{"jsonrpc":"1.0","id":7,"method":"ping"}', *_NAMED),
    Row("an id that is `null`", _said(id=None, method="ping"), *_NO_MESSAGE),
    Row("an id that is `1.5`", _said(id=1.5, method="ping"), *_NO_MESSAGE),
    Row("an id that is `true`", _said(id=True, method="ping"), *_NO_MESSAGE),
    Row("an id that is an array", _said(id=[1], method="ping"), *_NO_MESSAGE),
    Row("an id that is an object", _said(id={"a": 1}, method="ping"), *_NO_MESSAGE),
    Row("params that are an array", _said(id=7, method="ping", params=[1]), *_NAMED),
    Row("a method that is a number", _said(id=7, method=3), *_NAMED),
    Row("neither method nor result", _said(id=7), *_NAMED),
    Row(
        "a result and an error",
        _said(id=7, result={}, error={"code": 1, "message": ""}),
        *_NAMED,
    ),
    Row(
        "an unknown method",
        _said(id=7, method="no/such"),
        Answer(-32601, 7, 200),
        Answer(-32602, 7),  # without `_meta` it does not say of which revision it is
        Answer(-32601, 7),
    ),
    Row(
        "an unknown method, in 2026-07-28",
        _said(id="7", method="no/such", params=_META),
        Answer(-32020, "7"),  # its header is missing
        Answer(-32602, "7"),
        Answer(-32602, "7"),
    ),
    Row("an unknown notification", _said(method="notifications/no"), _NO_RESULT, _NO_RESULT, Answer(None)),
    Row("an answer to nothing", _said(id=99, result={}), _NO_RESULT, Answer(-32600, 99), Answer(None)),
    Row("an error for nothing", _said(id="x", error={"code": 1, "message": ""}), _NO_RESULT, None, Answer(None)),
    Row("a batch", b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', *_NO_BATCH),
    Row("an empty batch", b"[]", *_NO_BATCH),
    Row("a batch inside a batch", b"[[]]", *_NO_BATCH),
    Row(
        "`initialize` on an open session",
        _said(id=7, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}}),
        Answer(None, 7, 200),  # a session of its own
        None,
        Answer(-32600, 7),
    ),
)


def page() -> str:
    """The page."""
    lines = [
        "# Bad input",
        "",
        "<!-- Made by tests/behaviours/bad_input.py, whose rows the tests prove: change that. -->",
        "",
        "What is answered to what should not have come: the JSON-RPC code, the id that is echoed with it, and over",
        "HTTP the status. On a live session an error of a request that was read rides HTTP 200, since many clients",
        "drop everything on any other status. Afterwards the session or connection goes on, and nothing is logged",
        "above `warning`. A body of more than 4 MiB gets 413 over HTTP, closes a WebSocket with 1009, and is a parse",
        "error on stdio.",
        "",
        "| what comes | HTTP, a session | HTTP, 2026-07-28 | stdio, WebSocket |",
        "| --- | --- | --- | --- |",
    ]
    for row in ROWS:
        modern = "–" if row.modern is None else _cell(row.modern, with_status=True)
        cells = (row.what, _cell(row.session, with_status=True), modern, _cell(row.pipe, with_status=False))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _cell(answer: Answer, *, with_status: bool) -> str:
    status = f"{answer.status}, " if with_status else ""
    if answer.code is None:
        return (status + ("a result" if answer.identity != "none" else NOTHING)).strip()
    identity = "no id" if answer.identity == "none" else f"id `{json.dumps(answer.identity)}`"
    return f"{status}`{answer.code}`, {identity}"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.exit(0)
