"""`keys`: the file of a key ring is made, rotated and listed; and which ring a command seals with."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bridge.asking.seal import KeyRing
from bridge.cli.reporting import reporting
from bridge.errors import ConfigurationError
from bridge.keys import (
    ENVIRONMENT,
    KeyLine,
    keys_beside,
    keys_from_environment,
    list_keys,
    load_keys,
    make_key_file,
    rotate_key_file,
)

__all__ = ["RANDOM_KEY", "KeyFile", "app", "choose_keys"]

KeyFile = Annotated[
    Path | None,
    typer.Option(
        help=f"Secrets that seal what travels and what is stored; see `keys new`. By default {ENVIRONMENT}, else with "
        "SQLite a file beside its own, in memory a random secret."
    ),
]
"""The option of every command that serves."""

RANDOM_KEY: Final = "A random key seals open questions: after a restart modern clients have to call again."
"""What there is to say where nothing was chosen."""

_SHARED: Final = ("redis", "valkey", "unix")
"""How the schemes of stores begin that several machines share."""

_out = Console(highlight=False, soft_wrap=True, markup=False)
_File = Annotated[Path, typer.Argument(help="The key file.")]

app = typer.Typer(help="Make and rotate the secrets that seal.", no_args_is_help=True)


def choose_keys(key_file: Path | None, store: str) -> KeyRing | None:
    """The ring that a command seals with.

    Args:
        key_file: what the user named.
        store: the URL of the store.

    Returns:
        The ring, or None where nobody but this process needs it.

    Raises:
        ConfigurationError: none can be read, or the store is one of a fleet, whose nodes have to share a ring.
    """
    chosen = keys_from_environment() if key_file is None else load_keys(key_file)
    scheme, _, rest = store.partition("://")
    if chosen is not None:
        return chosen
    if scheme == "sqlite" and len(rest) > 1:
        return keys_beside(rest[1:])
    if scheme.startswith(_SHARED):
        raise ConfigurationError(
            f"nodes that share a {scheme} store share their keys: make a file with 'python -m bridge keys new FILE' "
            f"and give each node --key-file FILE, or its secrets in {ENVIRONMENT}"
        )
    return None


@app.command("new")
def _new(file: _File) -> None:
    """Make a key file with one new secret, which only its owner can read."""
    with reporting():
        _show([make_key_file(file)])


@app.command("rotate")
def _rotate(
    file: _File,
    keep: Annotated[int, typer.Option(help="How many older secrets go on opening.", min=0)] = 3,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Add a secret that opens now and seals only from the next rotation on.")
    ] = False,
) -> None:
    """Put a new secret first, or the one that was prepared; nodes read it when they start.

    On several nodes: rotate --prepare, restart them one by one, rotate, restart them again. So none of them ever meets
    what it cannot open.
    """
    with reporting():
        _show(rotate_key_file(file, keep=keep, prepare=prepare))


@app.command("list")
def _list(file: _File) -> None:
    """Show what a key file holds, without the secrets."""
    with reporting():
        _show(list_keys(file))


def _show(keys: list[KeyLine]) -> None:
    for key in keys:
        does = "seals and opens" if key.seals else "opens"
        _out.print(f"{key.id}  {does:<15}  {key.note}".rstrip())
