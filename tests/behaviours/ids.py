"""Which behaviours are asked for, and which are not yet. Every one that is has a test that names it."""

from typing import Final

__all__ = ["ASKED", "NOT_YET"]


def _ids(family: str, *numbers: int | range) -> set[str]:
    flat = (n for number in numbers for n in (number if isinstance(number, range) else (number,)))
    return {f"{family}-{number}" for number in flat}


ASKED: Final = (
    _ids("ASK", range(1, 21))
    | _ids("ANS", range(1, 10))
    | _ids("MOD", range(1, 18))
    | _ids("LEG", range(1, 14))
    | _ids("PSH", range(1, 9))
    | _ids("CHT", range(1, 16))
    | _ids("UPS", range(1, 15))
    | _ids("TRN", range(1, 8))
    | _ids("AUT", 1, 3)
)

NOT_YET: Final = _ids("AUT", 2) | _ids("APR", range(1, 4))
