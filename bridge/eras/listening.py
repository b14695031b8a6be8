"""`subscriptions/listen`: how a modern client hears of changes, for as long as its request is under way.

Source: basic/patterns/subscriptions of 2026-07-28.
"""

from collections import Counter
from typing import Final

import anyio
import msgspec

from bridge.calls import Client, Exchange
from bridge.protocol.messages import INVALID_PARAMS, INVALID_REQUEST, Json, Request, RequestId, notification
from bridge.publishing import Change, Publisher
from bridge.upstreams.base import Failed, Finished, Upstream

__all__ = ["LISTEN", "Listening", "announced"]

LISTEN: Final = "subscriptions/listen"
MAX_SUBSCRIPTIONS: Final = 1000
"""How many resources one stream may be for."""

_RENEW_SECONDS: Final = 300.0
_CLEANUP_SECONDS: Final = 5.0
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
_LISTS: Final = {
    "toolsListChanged": Change("tools"),
    "promptsListChanged": Change("prompts"),
    "resourcesListChanged": Change("resources"),
}
_DECLARED: Final = ("listChanged", "subscribe")


def announced(capabilities: Json) -> Json:
    """What of a server's capabilities modern clients are told: that it has them, and what it tells changes of."""
    return {name: {key: True for key in _DECLARED if _declares(capabilities, name, key)} for name in capabilities}


class Listening:
    """Serves the streams of changes.

    Args:
        upstream: whose changes they are.
        publisher: where they are heard of.
    """

    def __init__(self, upstream: Upstream, publisher: Publisher) -> None:
        self._upstream = upstream
        self._publisher = publisher
        self._watched: Counter[str] = Counter()
        """How many streams are for a resource. The upstream is told of each, since a client may have its own way to it,
        but of the end of the last one only, since others may share that way."""

    async def serve(self, request: Request, client: Client, exchange: Exchange) -> Finished | Failed:
        """Tell a client of changes until it leaves, or the server ends it.

        Args:
            request: the request, whose id names the subscription.
            client: who made it.
            exchange: the way back.

        Returns:
            What says that the stream has ended in good order, or why it never began.
        """
        wanted = _read(request.params.get("notifications"))
        if isinstance(wanted, Failed):
            return wanted
        if not exchange.can_stream:
            return Failed(INVALID_REQUEST, f"{LISTEN} gives a stream: Accept must allow text/event-stream")
        stream = _Stream(request.id, exchange, wanted)
        exchange.on_closing = stream.closing.set
        watched: list[str] = []
        # From here on nothing is missed: what changes before the acknowledgement is told after it.
        stop = self._publisher.listen(stream.take)
        try:
            honoured = await self._honour(wanted, client, watched)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_reached, watched, client)
                await stream.run(honoured, self._publisher.closing)
                tasks.cancel_scope.cancel()
        finally:
            stop()
            with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
                for uri in watched:
                    await self._unwatch(uri, client)
        return Finished({"_meta": {_SUBSCRIPTION: request.id}})

    async def _honour(self, wanted: Json, client: Client, watched: list[str]) -> Json:
        """What of the filter the server can tell of; what is watched for it goes into `watched`."""
        await self._upstream.relay(LISTEN, {}, client)
        capabilities = self._upstream.capabilities
        honoured: Json = {
            field: True
            for field, change in _LISTS.items()
            if wanted.get(field) and _declares(capabilities, change.kind, "listChanged")
        }
        if not _declares(capabilities, "resources", "subscribe"):
            return honoured
        for uri in dict.fromkeys(wanted.get("resourceSubscriptions", ())):
            await self._watch(uri, client, watched)
        return {**honoured, "resourceSubscriptions": list(watched)} if watched else honoured

    async def _keep_reached(self, watched: list[str], client: Client) -> None:
        """The way to a server behind the bridge may break, or end for being idle, while somebody listens."""
        while True:
            await anyio.sleep(_RENEW_SECONDS)
            await self._upstream.relay(LISTEN, {}, client)
            for uri in watched:
                await self._upstream.relay("resources/subscribe", {"uri": uri}, client)

    async def _watch(self, uri: str, client: Client, watched: list[str]) -> None:
        self._watched[uri] += 1
        watched.append(uri)
        if isinstance(await self._upstream.relay("resources/subscribe", {"uri": uri}, client), Failed):
            watched.remove(uri)
            self._forget(uri)

    async def _unwatch(self, uri: str, client: Client) -> None:
        if self._forget(uri):
            await self._upstream.relay("resources/unsubscribe", {"uri": uri}, client)

    def _forget(self, uri: str) -> bool:
        """One stream less is for a resource; return whether it was the last."""
        self._watched[uri] -= 1
        if self._watched[uri] > 0:
            return False
        del self._watched[uri]
        return True


class _Stream:
    """One client's stream. What it was not told yet is kept once, however often it changed."""

    def __init__(self, identity: RequestId, exchange: Exchange, wanted: Json) -> None:
        self._meta: Json = {_SUBSCRIPTION: identity}
        self._exchange = exchange
        self._told = _changes(wanted)
        self._pending: dict[Change, None] = {}
        self._news = anyio.Event()
        self.closing = anyio.Event()
        """Set when the server ends the stream."""

    async def take(self, change: Change) -> None:
        """Keep a change until it can be told; see `Publisher`."""
        if change in self._told:
            self._pending[change] = None
            self._news.set()

    async def run(self, honoured: Json, node_closing: anyio.Event) -> None:
        """Acknowledge what is honoured, and tell of changes until the server ends it."""
        self._told = _changes(honoured)
        await self._send("notifications/subscriptions/acknowledged", {"notifications": honoured})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell)
            tasks.start_soon(self._close_with, node_closing)
            await self.closing.wait()
            tasks.cancel_scope.cancel()

    async def _close_with(self, node_closing: anyio.Event) -> None:
        await node_closing.wait()
        self.closing.set()

    async def _tell(self) -> None:
        while True:
            self._news = anyio.Event()
            pending, self._pending = self._pending, {}
            for change in pending:
                if change in self._told:
                    message = change.message()
                    await self._send(message["method"], message.get("params", {}))
            if not self._pending:
                await self._news.wait()

    async def _send(self, method: str, params: Json) -> None:
        await self._exchange.send(notification(method, {**params, "_meta": self._meta}))


def _changes(filter_: Json) -> frozenset[Change]:
    lists = [change for field, change in _LISTS.items() if filter_.get(field)]
    return frozenset([*lists, *(Change("resource", uri) for uri in filter_.get("resourceSubscriptions", ()))])


def _declares(capabilities: Json, kind: str, what: str) -> bool:
    declared = capabilities.get(kind)
    return isinstance(declared, dict) and declared.get(what) is True


class _Filter(msgspec.Struct):
    toolsListChanged: bool = False  # noqa: N815 - as on the wire
    promptsListChanged: bool = False  # noqa: N815
    resourcesListChanged: bool = False  # noqa: N815
    resourceSubscriptions: list[str] = []  # noqa: N815


def _read(given: object) -> Json | Failed:
    """The filter of a request, or why it is none."""
    try:
        wanted: Json = msgspec.to_builtins(msgspec.convert(given, _Filter))
    except msgspec.ValidationError as error:
        return Failed(INVALID_PARAMS, f"{LISTEN} needs notifications (an object): {error}")
    if len(wanted["resourceSubscriptions"]) > MAX_SUBSCRIPTIONS:
        return Failed(INVALID_PARAMS, f"A stream may be for at most {MAX_SUBSCRIPTIONS} resources")
    return wanted
