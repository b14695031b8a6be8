"""What Prometheus is told. Every label has a bound: nothing that a client says makes a series, beyond the first few.

Requests are counted where they are answered; how many sessions and questions there are is asked of the store when
somebody looks, so each process of a fleet tells the same of those. Needs the extra `metrics`.
"""

import math
from typing import Final

import anyio

from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.asking.routes import RouteName
from bridge.calls import Exchange
from bridge.codes import RESULT_CODES, RPC_CODES
from bridge.eras.catalog import CALLS
from bridge.errors import MissingExtraError, StoreError
from bridge.observing.around import Answer, Asked
from bridge.protocol.clients import ClientProfile
from bridge.protocol.messages import Json
from bridge.protocol.revisions import LEGACY
from bridge.stores.base import Store
from bridge.upstreams.results import CODE_KEY

try:
    from prometheus_client import (
        CONTENT_TYPE_LATEST,
        CollectorRegistry,
        Counter,
        Gauge,
        GCCollector,
        Histogram,
        ProcessCollector,
        generate_latest,
    )
except ImportError:
    raise MissingExtraError("metrics=True", "metrics") from None

__all__ = ["Metrics"]

MAX_CLIENTS: Final = 50
"""How many names of clients are told apart; those that come later are `other`."""

_MAX_NAME: Final = 64
_LOOK_SECONDS: Final = 2.0
_OTHER: Final = "other"
_CODES: Final = frozenset([*map(str, RPC_CODES), *RESULT_CODES])
_METHODS: Final = frozenset(
    [
        *("initialize", "ping", "server/discover", "subscriptions/listen", "completion/complete", "logging/setLevel"),
        *("resources/subscribe", "resources/unsubscribe"),
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
    ]
)
_STORE_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0)


class Metrics:
    """One node's metrics.

    Args:
        store: what is asked for the sessions and questions that there are.
    """

    content_type: Final = CONTENT_TYPE_LATEST

    def __init__(self, store: Store) -> None:
        self._store = store
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._calls = _Counts("calls", "Calls, by the route that asked", ("method", "route", "outcome"), registry)
        self._requests = _Counts("requests", "Requests that are no calls", ("method", "outcome"), registry)
        self._rounds = _Counts("rounds", "Calls that brought answers", ("route", "outcome"), registry)
        self._questions = _Counts("questions", "Questions that were asked", ("route",), registry)
        self._errors = _Counts("errors", "Errors, by the code that the client got", ("code",), registry)
        self._opened = _Counts("sessions_opened", "Sessions that were opened", ("revision", "client"), registry)
        self._failures = _Counts("store_errors", "Operations that the store did not do", ("operation",), registry)
        self._took = Histogram(
            "mcp_bridge_store_seconds",
            "How long operations of the store take",
            ("operation",),
            buckets=_STORE_BUCKETS,
            registry=registry,
        )
        self._sessions = Gauge("mcp_bridge_sessions", "Sessions in the store", registry=registry)
        self._open = Gauge("mcp_bridge_open_questions", "Questions in the store", ("route",), registry=registry)
        self._holds = Gauge("mcp_bridge_holds", "Calls suspended in this process", registry=registry)
        self._clients: set[str] = set()
        self._routes: dict[int, str] = {}
        """By the id of the exchange of a request under way: the route on which it asked last."""

    async def around(self, asked: Asked, answer: Answer) -> Json:
        """See `Around`."""
        outcome = "cancelled"
        try:
            reply = await answer()
            outcome = self._outcome(reply)
        except Exception:
            outcome = "failed"
            raise
        finally:
            self._count(asked, outcome)
        return reply

    def _outcome(self, reply: Json) -> str:
        result = reply.get("result")
        if result is None:
            self._error(str(reply["error"]["code"]))
            return "error"
        if result.get("resultType") == "input_required" or PENDING in result.get("_meta", ()):
            return "asked"
        if result.get("isError") is True:
            code = result.get("_meta", {}).get(CODE_KEY)
            if code is not None:
                self._error(str(code))
            return "tool_error"
        return "complete"

    def _error(self, code: str) -> None:
        self._errors.add(code if code in _CODES else _OTHER)

    def _count(self, asked: Asked, outcome: str) -> None:
        method, params = asked.request.method, asked.request.params
        route = self._routes.pop(id(asked.exchange), "none")
        if method not in CALLS:
            self._requests.add(method if method in _METHODS else _OTHER, outcome)
            return
        self._calls.add(method, route, outcome)
        if "requestState" in params:
            self._rounds.add(RouteName.ROUNDS.value, outcome)
        elif params.get("name") == FALLBACK_TOOL_NAME:
            self._rounds.add(RouteName.CHAT.value, outcome)

    def asked(self, exchange: Exchange, route: RouteName, questions: int) -> None:
        """Questions are asked on a route."""
        self._routes[id(exchange)] = route.value
        self._questions.add(route.value, amount=questions)

    def opened(self, profile: ClientProfile) -> None:
        """A client has opened a session."""
        self._opened.add(_known(profile.revision.name), self._client(profile.info.get("name")))

    def _client(self, name: object) -> str:
        if not isinstance(name, str) or not name.isprintable() or len(name) > _MAX_NAME:
            return _OTHER
        if name not in self._clients and len(self._clients) < MAX_CLIENTS:
            self._clients.add(name)
        return name if name in self._clients else _OTHER

    def took(self, operation: str, seconds: float, did: bool) -> None:
        """See `Took`."""
        if did:
            self._took.labels(operation).observe(seconds)
        else:
            self._failures.add(operation)

    async def page(self, holds: int) -> bytes:
        """What there is to tell now, as Prometheus reads it.

        Args:
            holds: how many calls are suspended in this process.
        """
        self._holds.set(holds)
        for gauge, family in (
            (self._sessions, "session"),
            (self._open.labels(RouteName.PUSH.value), "ask"),
            (self._open.labels(RouteName.CHAT.value), "pending"),
        ):
            gauge.set(await self._how_many(family))
        return generate_latest(self.registry)

    async def _how_many(self, family: str) -> float:
        """Not a number, where the store does not say."""
        with anyio.move_on_after(_LOOK_SECONDS):
            try:
                return await self._store.count(family)
            except StoreError:
                return math.nan
        return math.nan


def _known(revision: str) -> str:
    return revision if revision in LEGACY else _OTHER


class _Counts:
    """A counter, whose series are found without the look-up of the library, which takes longer than the rest."""

    def __init__(self, name: str, about: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._counter = Counter(f"mcp_bridge_{name}", about, labels, registry=registry)
        self._series: dict[tuple[str, ...], Counter] = {}

    def add(self, *labels: str, amount: int = 1) -> None:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = self._counter.labels(*labels)
        series.inc(amount)
