"""The exit codes of every command, in one place: `--help` and `docs/cli.md` show them from here."""

from collections.abc import Mapping
from typing import Final

__all__ = ["CANNOT_START", "NOT_ALL_SERVED", "OK", "SERVING", "USAGE", "epilog", "exit_codes"]

OK: Final = 0
CANNOT_START: Final = 1
"""The target, an option's value or the surroundings cannot work; one line on stderr says which."""

USAGE: Final = 2
"""The command line is not what `--help` says."""

NOT_ALL_SERVED: Final = 3
"""`check` found a kind of client that is not served."""

SERVING: Final = {OK: "a signal ended it", CANNOT_START: "it cannot be served; one line says why, and what to do"}
"""What the commands that serve end with."""

_USAGE: Final = "the command line is not as above"


def exit_codes(codes: Mapping[int, str]) -> dict[int, str]:
    """What each exit code of a command means, that of a wrong command line too."""
    return dict(sorted({**codes, USAGE: _USAGE}.items()))


def epilog(codes: Mapping[int, str], *examples: str) -> str:
    """What stands under a command's `--help`, in Markdown: examples, and what its exit codes mean."""
    shown = ["**Examples**", *(f"- `{example}`" for example in examples)] if examples else []
    listed = ["**Exit codes**", *(f"- {code}: {meaning}" for code, meaning in exit_codes(codes).items())]
    return "\n\n".join([*shown, *listed])
