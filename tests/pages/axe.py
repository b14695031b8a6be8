"""axe-core in a page: what it finds that keeps somebody out. The page is opened with `bypass_csp`, which lets it in."""

from functools import cache
from typing import Any

from tests.pages.browser import unless_in_ci
from tests.peers.environments import NotInstalled, install

__all__ = ["serious_faults"]


@cache
def _source() -> str:
    """The source of axe-core."""
    try:
        folder = install("axe")
    except NotInstalled as reason:
        unless_in_ci(f"axe-core cannot be installed: {reason}")
        raise
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def serious_faults(page: Any) -> list[tuple[str, str, list[Any]]]:
    """The faults that axe-core calls serious or critical: its word for how bad, its rule, and where.

    Args:
        page: what a browser shows.
    """
    page.evaluate(_source())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (fault["impact"], fault["id"], [node["target"] for node in fault["nodes"]])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]
