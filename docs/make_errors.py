"""Writes `errors.md` from `bridge/errors.py` and `bridge/codes.py`: `python -m docs.make_errors`."""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bridge import codes, errors
from bridge.upstreams.results import CODE_KEY

PAGE: Final = Path(__file__).with_name("errors.md")
_ARGUMENTS: Final = "\n\nArgs:\n"


def page() -> str:
    """The whole page."""
    tree, _, suspension = (inspect.getdoc(errors) or "").partition("\n\n")[2].partition("\n\n")
    parts = [
        "# Errors",
        "<!-- Made by docs/make_errors.py from bridge/errors.py and bridge/codes.py: change those. -->",
        "What a client can meet, and then what the author of a server can.",
        "## In a tool's result",
        "The result has `isError`. Its code is for programs: it stands at the head of the text and in "
        f'`_meta["{CODE_KEY}"]`. A `ToolError` may bring a code of its own. A prompt or a '
        "resource has no such result: there the code stands in the `data.code` of a JSON-RPC error.",
        _table("Code", codes.RESULT_CODES),
        "## As a JSON-RPC error",
        _table("Code", codes.RPC_CODES),
        "## As an HTTP status",
        "On a session that lives, the error of one request rides 200: many clients drop their connection on any other.",
        _table("Status", codes.HTTP_STATUSES),
        "## Exceptions",
        f"```text\n{inspect.cleandoc(tree)}\n```",
        suspension,
        *_exceptions(),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: str, table: Mapping[str, codes.Code] | Mapping[int, codes.Code]) -> str:
    rows = [f"| {head} | Name | When it comes | What to do |", "| --- | --- | --- | --- |"]
    rows += [f"| `{code}` | {about.name} | {about.comes} | {about.remedy} |" for code, about in table.items()]
    return "\n".join(rows)


def _exceptions() -> Iterator[str]:
    for name in errors.__all__:
        about, _, arguments = (inspect.getdoc(getattr(errors, name)) or "").partition(_ARGUMENTS)
        yield f"### `{name}`"
        yield about
        if arguments:
            yield "\n".join(_bullet(line) for line in arguments.splitlines())


def _bullet(line: str) -> str:
    name, _, meaning = line.strip().partition(": ")
    return f"- `{name}`: {meaning}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
