"""Sessions that are opened and abandoned, 200 a second: what the node and its store occupy levels off."""

import time
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from tests.load.nodes import Node, call, node, opened
from tests.load.runs import STORES, Options, empty_store

__all__ = ["abandoned", "run"]

PER_SECOND = 200
TICKS_PER_SECOND = 10
DEFAULT_SECONDS = 180.0
CLIENT = {"elicitation": {}}

GROWS_BY = 1.1
"""At most by how much the mean of the last third may be above that of the second; the first is for filling up."""

SLACK = {"resident_bytes": 4 << 20, "descriptors": 5, "tasks": 5, "keys": 100}
"""What may come and go by chance beside it."""


def run(options: Options) -> list[dict[str, Any]]:
    """Make the run, which the stores share; raise AssertionError where something does not level off."""
    stores = [store for store in STORES if options.only in (None, store)]
    return [abandoned(store, (options.seconds or DEFAULT_SECONDS) / len(stores)) for store in stores]


def abandoned(store: str, seconds: float) -> dict[str, Any]:
    """Open sessions on one kind of store for so long.

    Returns:
        The means of what was occupied in each third of that time.

    Raises:
        AssertionError: something does not level off, or the rate was not kept.
    """
    idle_seconds = seconds / 10
    with empty_store(store) as (_, url), node(url, idle_seconds=idle_seconds, patience_seconds=idle_seconds) as running:
        sizes = list(_sizes(running, seconds))
    thirds = [sizes[len(sizes) * i // 3 : len(sizes) * (i + 1) // 3] for i in range(3)]
    means = [{name: round(mean(size[name] for size in third)) for name in SLACK} for third in thirds]
    growing = [name for name in SLACK if not _levels_off([means[1][name], means[2][name]], SLACK[name])]
    opened_count = sizes[-1]["opened"]
    assert not growing, f"{store}: {growing} still grow: {means}"
    return {"store": store, "seconds": seconds, "idle_seconds": idle_seconds, "opened": opened_count, "thirds": means}


def _levels_off(means: Sequence[float], slack: float) -> bool:
    """Whether what was measured later is not above what was before, but for chance."""
    before, after = means
    return after <= before * GROWS_BY + slack


def _sizes(running: Node, seconds: float) -> Iterator[dict[str, int]]:
    """Open sessions at a steady rate, and say once a second what is occupied."""
    began = time.monotonic()
    for tick in range(int(seconds * TICKS_PER_SECOND)):
        time.sleep(max(0.0, began + tick / TICKS_PER_SECOND - time.monotonic()))
        _abandon(running)
        if tick % TICKS_PER_SECOND == TICKS_PER_SECOND - 1:
            sessions = (tick + 1) * PER_SECOND // TICKS_PER_SECOND
            yield {**running.size(), "opened": sessions}
    assert time.monotonic() - began < seconds * 1.1, "the node is too slow for the rate"


def _abandon(running: Node) -> None:
    """Open sessions over a connection of their own, call with one in four, and go away without a word."""
    connection = running.connect()
    sessions = opened(connection, PER_SECOND // TICKS_PER_SECOND, CLIENT)
    for number, session in enumerate(sessions[::4]):
        assert call(connection, session, number, "add", {"a": 2, "b": 3})["content"][0]["text"] == "5"
    connection.close()
