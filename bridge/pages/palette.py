"""The colours and letters that all pages have in common."""

from functools import cache
from importlib.resources import files

__all__ = ["with_palette"]


def with_palette(sheet: bytes) -> bytes:
    """A style sheet as it is sent: the colours first that it names."""
    return _palette() + sheet


@cache
def _palette() -> bytes:
    return (files("bridge.pages") / "palette.css").read_bytes()
