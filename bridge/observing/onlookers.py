"""Who looks on at one app: nobody, metrics, traces or both. Nobody means that nothing stands around anything."""

from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec

from bridge.asking.routes import RouteName
from bridge.calls import Route
from bridge.eras.ports import Legacy, Modern
from bridge.observing.around import Around, ObservedLegacy, ObservedModern, ObservedRoute, chain
from bridge.observing.store import ObservedStore
from bridge.protocol.clients import ClientProfile
from bridge.stores.base import Store
from bridge.upstreams.base import Upstream
from bridge.upstreams.wrapped import Wrapped

__all__ = ["Onlookers"]


class Onlookers:
    """Puts those who look on around the parts of an app.

    Args:
        store: the store.
        metrics: whether Prometheus is told.

    Raises:
        MissingExtraError: it is, and its package is not installed.
    """

    def __init__(self, store: Store, *, metrics: bool) -> None:
        self.store = store
        self._metrics = None
        if metrics:
            from bridge.observing.metrics import Metrics

            self._metrics = Metrics(store)
            self.store = ObservedStore(store, self._metrics.took)

    def upstream(self, upstream: Upstream) -> Upstream:
        """What runs calls; those of a server behind the bridge carry the trace on."""
        if not (isinstance(upstream, Wrapped) and _is_traced()):
            return upstream
        from bridge.observing.tracing import around_upstream

        return around_upstream(upstream)

    def routes(self, routes: Mapping[RouteName, Route]) -> Mapping[RouteName, Route]:
        """The routes of an era."""
        if self._metrics is None:
            return routes
        return {name: ObservedRoute(route, name, self._metrics.asked) for name, route in routes.items()}

    def eras(self, modern: Modern, legacy: Legacy) -> tuple[Modern, Legacy]:
        """What answers requests."""
        around = self._around()
        if around is None:
            return modern, legacy
        opened: Callable[[ClientProfile], None] = _nothing if self._metrics is None else self._metrics.opened
        return ObservedModern(modern, around), ObservedLegacy(legacy, around, opened)

    def page(self, upstream: Upstream) -> tuple[str, Callable[[], Awaitable[bytes]]] | None:
        """What `/metrics` says: its content type, and what makes it."""
        metrics = self._metrics
        if metrics is None:
            return None
        return metrics.content_type, lambda: metrics.page(upstream.held if isinstance(upstream, Wrapped) else 0)

    def _around(self) -> Around | None:
        counting = None if self._metrics is None else self._metrics.around
        if not _is_traced():
            return counting
        from bridge.observing.tracing import traced

        return traced if counting is None else chain(traced, counting)


def _nothing(profile: ClientProfile) -> None:
    pass


def _is_traced() -> bool:
    """Whether somebody has set a tracer provider, which takes the package."""
    if find_spec("opentelemetry") is None:
        return False
    from bridge.observing.tracing import is_traced

    return is_traced()
