"""Counts by the minute: bounded, and added up over nodes."""

from typing import Any

from bridge.counting import MINUTES, Counts, read_hour
from bridge.node import Node
from bridge.stores import MemoryStore, Store


class Clock:
    def __init__(self) -> None:
        self.now = 60.0 * 1_000_000

    def __call__(self) -> float:
        return self.now


def counts(store: Store, clock: Clock, name: str, held: int = 0) -> Counts:
    node: Any = Node(store)
    node.id = name
    return Counts(node, lambda: held, clock)


async def test_what_happened_stands_in_its_minute(store: Store) -> None:
    clock = Clock()
    one, other = counts(store, clock, "one", 2), counts(store, clock, "other", 3)
    one.add("calls")
    clock.now += 60 * 5
    one.add("calls", 2)
    other.add("calls")
    await one.flush()
    await other.flush()
    hour = await read_hour(store, clock.now)
    assert hour.minutes["calls"] == [0] * 54 + [1, 0, 0, 0, 0, 3]
    assert (hour.total("calls"), hour.held, hour.nodes) == (4, 5, 2)


async def test_what_is_kept_is_the_last_hour_alone(store: Store) -> None:
    clock = Clock()
    one = counts(store, clock, "one")
    for _ in range(3 * MINUTES):
        one.add("errors")
        clock.now += 60
    assert len(one._minutes) == MINUTES
    await one.flush()
    assert (await read_hour(store, clock.now)).total("errors") == MINUTES - 1


async def test_what_a_node_that_is_gone_held_does_not_count_and_what_it_did_does() -> None:
    store, clock = MemoryStore(), Clock()
    lost = counts(store, clock, "lost", 7)
    lost.add("sessions")
    await lost.flush()
    clock.now += 120
    hour = await read_hour(store, clock.now)
    assert (hour.held, hour.nodes, hour.total("sessions")) == (0, 0, 1)


async def test_an_hour_in_which_nothing_happened_is_empty(store: Store) -> None:
    hour = await read_hour(store, 1e9)
    assert (hour.held, hour.nodes) == (0, 0)
    assert all(not any(minutes) for minutes in hour.minutes.values())
