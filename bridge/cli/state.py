"""Where a command keeps its state when the user named no store: one file a user, in which each target has its part."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bridge.stores import Store
from bridge.stores.space import Space
from bridge.stores.sqlite import SqliteStore

__all__ = ["STORE_HELP", "default_file", "default_store"]

STORE_HELP: Final = (
    "Where sessions and open questions live: memory, sqlite:///path or redis://host. By default a file, so that they "
    "outlive a restart: mcp-session-bridge/state.db in $XDG_STATE_HOME, else in ~/.local/state; in it, each target has "
    "sessions of its own."
)


def default_file() -> Path:
    """The file, which need not be there yet. As the XDG specification says, a relative folder does not count."""
    folder = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not folder.is_absolute():
        folder = Path.home() / ".local" / "state"
    return folder / "mcp-session-bridge" / "state.db"


def default_store(target: Sequence[str], *, is_command: bool) -> Store:
    """The part of the file that belongs to a target: to every process that serves the same one.

    Args:
        target: as it stands on the command line.
        is_command: whether it is a command.

    Raises:
        ConfigurationError, StoreError: the file cannot be opened.
    """
    return Space(SqliteStore(default_file()), _space_of(target, is_command=is_command))


def _space_of(target: Sequence[str], *, is_command: bool) -> str:
    """A name for a target, another one for another: a module or command is another one in another folder."""
    if is_command:
        words = ["command", str(Path.cwd()), *target]
    elif "://" in target[0]:
        words = ["url", target[0]]
    else:
        place, _, attribute = target[0].rpartition(":")
        where = Path(place).resolve() if place.endswith(".py") else Path.cwd() / place
        words = ["object", str(where), attribute]
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:16]
