"""What a server of `mcp` 2.x publishes: it hands changes only to whoever listens, in the modern era.

One stream is kept for the changed lists, and one for each resource that somebody watches, for all links together: the
SDK limits their number. Source: server/utilities/subscriptions of 2026-07-28.
"""

import asyncio
import logging
from typing import Final

from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from bridge.protocol.messages import INTERNAL_ERROR, Json
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.links import Hello, News
from bridge.upstreams.sdk.living import end
from bridge.upstreams.sdk.v2_drives import ModernDrive, Running
from bridge.upstreams.sdk.v2_exchange import Exchange

__all__ = ["LISTEN", "Listening"]

LISTEN: Final = "subscriptions/listen"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_LISTS: Final = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
_NOBODY: Final = Hello(capabilities={}, info={"name": "mcp-session-bridge", "version": "0"})
_log = logging.getLogger("bridge.upstream")


class _Stream:
    """One stream of changes, and who wants to hear of them.

    Args:
        running: the server.
        wanted: the changes.
    """

    def __init__(self, running: Running, wanted: Json) -> None:
        self.members: dict[object, News] = {}
        self._running = running
        self._wanted = wanted
        self._opened: asyncio.Future[Failed | None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._listen(), name=f"listening to {running.low.name}")

    @property
    def is_open(self) -> bool:
        return not self._task.done()

    async def opened(self) -> Failed | None:
        """Wait until the server has taken it, or return why it has not."""
        return await asyncio.shield(self._opened)

    async def aclose(self) -> None:
        self._task.cancel()
        await end(self._task, grace_seconds=1.0)

    async def _listen(self) -> None:
        drive = ModernDrive(self._running, _NOBODY)
        exchange = Exchange(1, None, self._heard)
        connection = drive.connection(LISTEN, exchange)
        params = drive.params({"notifications": self._wanted}, 1, None)
        reason = Failed(INTERNAL_ERROR, "the server has ended the stream")
        try:
            await self._running.request(connection, exchange, LISTEN, params)
        except Exception as error:
            known = handler_exception_to_error_data(error)
            reason = Failed(INTERNAL_ERROR, str(error)) if known is None else Failed(known.code, known.message)
        finally:
            await drive.ended(connection)
            if not self._opened.done():
                self._opened.set_result(reason)
        _log.warning("%s publishes no more changes: %s", self._running.low.name, reason.message)

    async def _heard(self, method: str, params: Json) -> None:
        if method == _ACKNOWLEDGED:
            if not self._opened.done():
                self._opened.set_result(None)
            return
        # The id is that of our own stream, and says nothing to anybody else.
        meta = {
            key: value for key, value in (params.pop("_meta", None) or {}).items() if key != SUBSCRIPTION_ID_META_KEY
        }
        if meta:
            params["_meta"] = meta
        for news in list(self.members.values()):
            await news(method, params)


class Listening:
    """All streams of one server.

    Args:
        running: the server.
    """

    def __init__(self, running: Running) -> None:
        self._running = running
        self._lists: _Stream | None = None
        self._watched: dict[str, _Stream] = {}

    async def start(self) -> None:
        """Listen to changed lists, from before the first link."""
        self._lists = _Stream(self._running, dict(_LISTS))
        await self._lists.opened()

    def join(self, link: object, news: News) -> None:
        """Tell a link of changed lists from now on."""
        if self._lists is not None:
            self._lists.members[link] = news

    async def leave(self, link: object) -> None:
        """Tell a link nothing more."""
        if self._lists is not None:
            self._lists.members.pop(link, None)
        for uri in [uri for uri, stream in self._watched.items() if link in stream.members]:
            await self.unwatch(link, uri)

    async def watch(self, link: object, news: News, uri: str) -> Finished | Failed:
        """Tell a link whenever a resource has changed, from now on."""
        stream = self._watched.get(uri)
        if stream is None or not stream.is_open:
            stream = self._watched[uri] = _Stream(self._running, {"resourceSubscriptions": [uri]})
        stream.members[link] = news
        refused = await stream.opened()
        if refused is None:
            return Finished({})
        if self._watched.get(uri) is stream:
            del self._watched[uri]
        return refused

    async def unwatch(self, link: object, uri: str) -> Finished:
        """Tell a link no more of a resource."""
        stream = self._watched.get(uri)
        if stream is not None:
            stream.members.pop(link, None)
            if not stream.members:
                del self._watched[uri]
                await stream.aclose()
        return Finished({})

    async def aclose(self) -> None:
        """End all streams."""
        streams = [*self._watched.values(), *([] if self._lists is None else [self._lists])]
        self._watched.clear()
        self._lists = None
        for stream in streams:
            await stream.aclose()
