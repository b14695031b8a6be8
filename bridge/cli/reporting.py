"""What the user of a command can mend is said in one line, and the exit code is 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from bridge.errors import BridgeError

__all__ = ["reporting"]

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
        raise typer.Exit(1) from None


def _one_of(error: BaseException) -> BridgeError | None:
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := _one_of(inner)) is not None), None)
    return error if isinstance(error, BridgeError) else None
