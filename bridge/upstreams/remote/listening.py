"""What a modern server tells beside requests: one `subscriptions/listen` stream, kept open.

Source: basic/patterns/subscriptions of 2026-07-28.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio

from bridge.errors import RemoteError
from bridge.protocol.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Json, Notification, Response
from bridge.upstreams.links import News
from bridge.upstreams.remote.backoff import Backoff
from bridge.upstreams.remote.carriers import Heard
from bridge.upstreams.remote.multiplexing import SUBSCRIPTION_ID
from bridge.upstreams.remote.tasks import Tasks

__all__ = ["MAX_SUBSCRIPTIONS", "Listen", "Listener"]

MAX_SUBSCRIPTIONS: Final = 1000
"""How many resources may be subscribed to on one link."""

_ACKNOWLEDGE_SECONDS: Final = 10.0
_LISTS: Final = {
    "tools": ("toolsListChanged", "notifications/tools/list_changed"),
    "prompts": ("promptsListChanged", "notifications/prompts/list_changed"),
    "resources": ("resourcesListChanged", "notifications/resources/list_changed"),
}
_UPDATED: Final = "notifications/resources/updated"
_log = logging.getLogger("bridge.upstream")

Listen: TypeAlias = Callable[[Json, Heard], Awaitable[Response]]
"""Makes the request `subscriptions/listen` with these params, and returns when its stream is over."""


class Listener:
    """Listens for what a server declares that it tells, and for the resources that are subscribed to.

    Args:
        name: the server's, for the log.
        capabilities: its capabilities.
        listen: makes the request.
        news: takes what comes.
    """

    def __init__(self, name: str, capabilities: Json, listen: Listen, news: News) -> None:
        self._name = name
        self._lists = {kind for kind in _LISTS if _declares(capabilities, kind, "listChanged")}
        self.can_subscribe: Final = _declares(capabilities, "resources", "subscribe")
        self._listen = listen
        self._news = news
        self._uris: dict[str, None] = {}
        self._stream: _Stream | None = None
        self._turn = anyio.Lock()

    @property
    def uris(self) -> int:
        """How many resources are subscribed to."""
        return len(self._uris)

    def start(self) -> None:
        """Begin, where there is something to listen for."""
        self._stream = self._started()

    async def subscribe(self, uri: str) -> None:
        """Listen for a resource as well; return once the server has acknowledged it, or does not."""
        self._uris[uri] = None
        await self._follow()

    async def unsubscribe(self, uri: str) -> None:
        """Listen for a resource no more."""
        self._uris.pop(uri, None)
        await self._follow()

    async def aclose(self) -> None:
        """End the stream."""
        if self._stream is not None:
            await self._stream.aclose()

    async def _follow(self) -> None:
        """Replace the stream by one for what is wanted now. The old one ends later, so that there is no gap."""
        async with self._turn:
            before = self._stream
            if before is not None and before.wanted == self._filter():
                return
            after = self._stream = self._started()
            try:
                if after is not None:
                    with anyio.move_on_after(_ACKNOWLEDGE_SECONDS):
                        await after.settled.wait()
            finally:
                if before is not None:
                    with anyio.CancelScope(shield=True):
                        await before.aclose()

    def _started(self) -> "_Stream | None":
        wanted = self._filter()
        return _Stream(self._name, wanted, self._listen, self._news) if wanted else None

    def _filter(self) -> Json:
        wanted: Json = {_LISTS[kind][0]: True for kind in sorted(self._lists)}
        if self._uris:
            wanted["resourceSubscriptions"] = list(self._uris)
        return wanted


class _Stream:
    """One stream, over all its connections."""

    def __init__(self, name: str, wanted: Json, listen: Listen, news: News) -> None:
        self._name = name
        self.wanted = wanted
        self._listen = listen
        self._news = news
        self._was_open = False
        self.settled = anyio.Event()
        """Set when the server has acknowledged it, or has failed to."""
        self._tasks = Tasks()
        self._tasks.start(self._run(), f"subscriptions of {name}")

    async def aclose(self) -> None:
        await self._tasks.aclose()

    async def _run(self) -> None:
        backoff = Backoff()
        while True:
            backoff.began()
            try:
                response = await self._listen({"notifications": self.wanted}, self._heard)
                if isinstance(response.error, dict) and response.error.get("code") in (
                    METHOD_NOT_FOUND,
                    INVALID_PARAMS,
                ):
                    _log.warning("%s tells no changes: %s", self._name, response.error.get("message"))
                    return
            except RemoteError as error:
                _log.debug("the subscriptions of %s broke: %s", self._name, error)
            finally:
                self.settled.set()
            await backoff.wait()

    async def _heard(self, notification: Notification) -> None:
        method, params = notification.method, notification.params
        if method == "notifications/subscriptions/acknowledged":
            self.settled.set()
            if self._was_open:
                await self._tell_what_may_be_missed()
            self._was_open = True
        elif method == _UPDATED or any(method == told for _, told in _LISTS.values()):
            await self._news(method, _without_subscription(params))

    async def _tell_what_may_be_missed(self) -> None:
        """Whatever is listened for may have changed while no connection was there."""
        for field, method in _LISTS.values():
            if field in self.wanted:
                await self._news(method, {})
        for uri in self.wanted.get("resourceSubscriptions", ()):
            await self._news(_UPDATED, {"uri": uri})


def _declares(capabilities: Json, kind: str, what: str) -> bool:
    declared = capabilities.get(kind)
    return isinstance(declared, dict) and declared.get(what) is True


def _without_subscription(params: Json) -> Json:
    """The params without the id of our request, which nobody else knows."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return params
    rest = {key: value for key, value in meta.items() if key != SUBSCRIPTION_ID}
    return {**params, "_meta": rest} if rest else {key: value for key, value in params.items() if key != "_meta"}
