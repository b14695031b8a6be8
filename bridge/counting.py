"""What happened in each of the last sixty minutes, counted by every node, in the store for who looks at all of them.

Each node keeps one record of its own, of bounded size, and writes it every few seconds where something has changed.
It is for looking at: what a node had not written yet when it was lost is lost.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import anyio
import msgspec

from bridge.asking.question import Question
from bridge.asking.routes import ClientRule, RouteName
from bridge.calls import Calls, Round, Route
from bridge.claims import Claims, Ending, InputRequired, Released
from bridge.errors import StoreError
from bridge.node import Node
from bridge.stores.base import Store
from bridge.upstreams.base import AskingRules, Finished, Upstream

__all__ = ["MINUTES", "NAMES", "CountedCalls", "CountedRoute", "Counts", "Hour", "Name", "read_hour"]

MINUTES: Final = 60

Name: TypeAlias = Literal["sessions", "calls", "rounds", "pushed", "chatted", "refused", "errors"]

NAMES: Final[tuple[Name, ...]] = ("sessions", "calls", "rounds", "pushed", "chatted", "refused", "errors")
"""What is counted: sessions that were opened, calls that ran (again, too), questions by the route that they took, and
calls that ended with an error."""

_FAMILY: Final = "counts"
_FLUSH_SECONDS: Final = 2.0
_ALIVE_SECONDS: Final = 30.0
_MAX_NODES: Final = 256
_log = logging.getLogger("bridge.counting")

_BY_ROUTE: Final[Mapping[RouteName, Name]] = {
    RouteName.ROUNDS: "rounds",
    RouteName.PUSH: "pushed",
    RouteName.CHAT: "chatted",
    RouteName.REFUSE: "refused",
}


class _Kept(msgspec.Struct, array_like=True):
    """What a node writes: its calls that are suspended now, when that was, and its minutes, each with its counts."""

    held: int
    at: float
    minutes: dict[int, dict[str, int]]


class Hour(msgspec.Struct, frozen=True, kw_only=True):
    """The last sixty minutes of all nodes.

    Args:
        minutes: for each name, a count for each minute, the oldest first.
        held: how many calls of wrapped servers are suspended, on nodes that live.
        nodes: how many nodes have written lately.
    """

    minutes: dict[str, list[int]]
    held: int
    nodes: int

    def total(self, name: str) -> int:
        """How often it happened in the hour."""
        return sum(self.minutes[name])


class Counts:
    """What this node has counted.

    Args:
        node: the process.
        held: how many calls are suspended here.
        clock: seconds since the epoch.
    """

    def __init__(self, node: Node, held: Callable[[], int], clock: Callable[[], float] = time.time) -> None:
        self._node = node
        self._held = held
        self._clock = clock
        self._minutes: dict[int, Counter[str]] = {}
        self._changed = True

    def add(self, name: Name, number: int = 1) -> None:
        """Count something that has just happened."""
        minute = int(self._clock()) // 60
        counter = self._minutes.get(minute)
        if counter is None:
            counter = self._minutes[minute] = Counter()
            for old in [known for known in self._minutes if known <= minute - MINUTES]:
                del self._minutes[old]
        counter[name] += number
        self._changed = True

    def start(self) -> None:
        """Begin to write, for as long as the node runs."""
        self._node.spawn(self._write)

    async def flush(self) -> None:
        """Write what has been counted."""
        kept = _Kept(self._held(), self._clock(), {minute: dict(count) for minute, count in self._minutes.items()})
        key = f"{_FAMILY}/{self._node.id}"
        await self._node.store.put(key, msgspec.msgpack.encode(kept), ttl_seconds=(MINUTES + 1) * 60)

    async def _write(self) -> None:
        written_at = 0.0
        while True:
            if self._changed or self._clock() - written_at > _ALIVE_SECONDS / 2:
                self._changed, written_at = False, self._clock()
                try:
                    await self.flush()
                except StoreError as error:
                    _log.warning("counts are not written at the moment: %s", error)
            await anyio.sleep(_FLUSH_SECONDS)


class CountedRoute:
    """A route, the questions on which are counted."""

    def __init__(self, route: Route, name: RouteName, counts: Counts) -> None:
        self._route = route
        self._name: Name = _BY_ROUTE[name]
        self._counts = counts

    async def ask(self, current: Round, questions: list[Question]) -> Ending | None:
        """See `Route`."""
        self._counts.add(self._name, len(questions))
        return await self._route.ask(current, questions)


class CountedCalls(Calls):
    """The loop, the runs of which are counted.

    Args:
        counts: where; for the rest see `Calls`.
    """

    def __init__(
        self,
        counts: Counts,
        upstream: Upstream,
        claims: Claims,
        routes: Mapping[RouteName, Route],
        *,
        rules: AskingRules,
        client_rules: Sequence[ClientRule] = (),
    ) -> None:
        counted = {name: CountedRoute(route, name, counts) for name, route in routes.items()}
        super().__init__(upstream, claims, counted, rules=rules, client_rules=client_rules)
        self._counts = counts

    async def run(self, current: Round) -> Ending | Released:
        """See `Calls`."""
        ending = await super().run(current)
        self._counts.add("calls")
        if _is_error(ending):
            self._counts.add("errors")
        return ending


def _is_error(ending: Ending | Released) -> bool:
    if isinstance(ending, Finished):
        return ending.result.get("isError") is True
    return not isinstance(ending, InputRequired)


async def read_hour(store: Store, now: float) -> Hour:
    """Add up what all nodes have written of the last sixty minutes."""
    last = int(now) // 60
    minutes: dict[str, list[int]] = {name: [0] * MINUTES for name in NAMES}
    held = nodes = 0
    for key in await store.scan(_FAMILY, limit=_MAX_NODES):
        stored = await store.get(key)
        if stored is None:
            continue
        kept = _kept_decoder.decode(stored.value)
        if now - kept.at <= _ALIVE_SECONDS:
            held, nodes = held + kept.held, nodes + 1
        for minute, counts in kept.minutes.items():
            position = MINUTES - 1 - (last - minute)
            if 0 <= position < MINUTES:
                for name, number in counts.items():
                    if name in minutes:
                        minutes[name][position] += number
    return Hour(minutes=minutes, held=held, nodes=nodes)


_kept_decoder: Final = msgspec.msgpack.Decoder(_Kept, strict=False)
