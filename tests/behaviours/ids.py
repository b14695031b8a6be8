"""Which behaviours are asked for, and which are not yet. Every one that is has a test that names it."""

from typing import Final

__all__ = ["ASKED", "NOT_YET"]


def _ids(family: str, *numbers: int | range) -> set[str]:
    flat = (n for number in numbers for n in (number if isinstance(number, range) else (number,)))
    return {f"{family}-{number}" for number in flat}


ASKED: Final = (
    _ids("ASK", range(1, 7), 12, 14, 17, 20)
    | _ids("ANS", 1, 2, range(4, 9))
    | _ids("MOD", range(1, 11), 13, 14)
    | _ids("LEG", range(1, 6), 7, range(11, 14))
    | _ids("PSH", range(1, 7))
    | _ids("CHT", range(1, 11), 14)
    | _ids("TRN", range(3, 6))
    | _ids("AUT", 1)
)

NOT_YET: Final = (
    _ids("ASK", range(7, 12), 13, 15, 16, 18, 19)
    | _ids("ANS", 3, 9)
    | _ids("MOD", 11, 12, range(15, 18))
    | _ids("LEG", 6, range(8, 11))
    | _ids("PSH", 7, 8)
    | _ids("CHT", range(11, 14), 15)
    | _ids("UPS", range(1, 15))
    | _ids("TRN", 1, 2, 6, 7)
    | _ids("AUT", 2, 3)
    | _ids("APR", range(1, 4))
)
