"""What the user of a command can mend is said in one line, with a hint on the next; the exit code is 1."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console

from bridge.errors import (
    BridgeError,
    ConfigurationError,
    MissingExtraError,
    StoreFull,
    StoreUnavailable,
    UpstreamLost,
    UpstreamUnreachable,
)

__all__ = ["hint_for", "reporting"]

_HINTS: Final[tuple[tuple[type[BridgeError], str | None], ...]] = (
    (MissingExtraError, None),
    (UpstreamUnreachable, "start the server behind by itself, and see what it says; then try again"),
    (UpstreamLost, "run the server behind by itself, and see why it ends"),
    (StoreUnavailable, "is the store running, and is --store its URL? --store memory needs none"),
    (StoreFull, "make room where --store points, or name another"),
    (ConfigurationError, "--help after the command lists what it takes"),
)
"""The first that fits counts."""

_err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def reporting() -> Iterator[None]:
    """Run a command, and report how it failed.

    Raises:
        Exit: the command failed in a way that was reported.
    """
    try:
        yield
    except (BridgeError, BaseExceptionGroup) as error:
        found = _one_of(error)
        if found is None:
            raise
        _err.print(f"error: {found}")
        if (hint := hint_for(found)) is not None:
            _err.print(f"hint: {hint}")
        raise typer.Exit(1) from None


def hint_for(error: BridgeError) -> str | None:
    """What to try next, where the error itself does not say it; None where it does."""
    return next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)


def _one_of(error: BaseException) -> BridgeError | None:
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := _one_of(inner)) is not None), None)
    return error if isinstance(error, BridgeError) else None
