"""Writes `cli.md` from the commands themselves: `python -m docs.make_cli`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer.main

from bridge.cli import app

PAGE: Final = Path(__file__).with_name("cli.md")
_EVERYWHERE: Final = frozenset({"help", "install_completion", "show_completion"})
_COMPLETION: Final = """\
The shell completes commands and options once it is told to: `mcp-session-bridge --install-completion`, for bash, zsh,
fish and PowerShell. What goes wrong is said on stderr, in one line that begins with `error:`, and what to try next in
one that begins with `hint:`. Logs go to stderr too."""


def page() -> str:
    """The whole page."""
    root: Any = typer.main.get_command(app)
    parts = [
        "# The command line",
        "<!-- Made by docs/make_cli.py from bridge/cli/: change that. -->",
        "`python -m bridge`, or `mcp-session-bridge` where the package is installed.",
        _flat(root.help),
        _COMPLETION,
        *(part for name, command in root.commands.items() for part in _command(name, command)),
    ]
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## `{name}`"
    yield _flat(command.help)
    for inner, below in getattr(command, "commands", {}).items():
        yield f"`{name} {inner}`: {_flat(below.help)}"
        yield from _options(below)
    yield from _options(command)
    if command.epilog:
        yield _list(command.epilog)


def _options(command: Any) -> Iterator[str]:
    rows = [
        f"| {_names(option)} | {_cell(option.help or '')} | {_default(option)} |"
        for option in command.params
        if option.name not in _EVERYWHERE
    ]
    if rows:
        yield "\n".join(["| | What it is | By default |", "| --- | --- | --- |", *rows])


def _names(option: Any) -> str:
    if option.param_type_name == "argument":
        return f"`{(option.metavar or option.name).upper().strip('{}.[]')}`"
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def _default(option: Any) -> str:
    default = option.default
    if (
        default is None
        or default is False
        or default == ""
        or callable(default)
        or option.param_type_name == "argument"
    ):
        return ""
    return "yes" if default is True else f"`{default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _flat(text: str) -> str:
    """Paragraphs, each in one line."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))


def _list(epilog: str) -> str:
    """An epilog, its lists tight."""
    return re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", epilog)


if __name__ == "__main__":
    PAGE.write_text(page())
