"""The exit codes of every command, in one place: `--help` and `docs/cli.md` show them from here."""

from collections.abc import Mapping
from typing import Final

__all__ = ["CANNOT_START", "NOT_ALL_SERVED", "OK", "USAGE", "epilog"]

OK: Final = 0
CANNOT_START: Final = 1
"""The target, an option's value or the surroundings cannot work; one line on stderr says which."""

USAGE: Final = 2
"""The command line is not what `--help` says."""

NOT_ALL_SERVED: Final = 3
"""`check` found a kind of client that is not served."""

_USAGE: Final = "the command line is not as above"


def epilog(codes: Mapping[int, str]) -> str:
    """What stands under a command's `--help`: what its exit codes mean, beside that of a wrong command line."""
    lines = sorted({**codes, USAGE: _USAGE}.items())
    return "\n\n".join(["Exit codes:", *(f"  {code}  {meaning}" for code, meaning in lines)])
