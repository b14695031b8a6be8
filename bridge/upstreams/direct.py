"""One call that cannot ask in the middle: made in the task of the client's request, and done with it.

So it is with a modern server over HTTP, whose questions are results, and whose reports come on the call's own stream;
and with a tool in this process that is given nothing to ask with.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from bridge.protocol.messages import METHOD_NOT_FOUND, Json
from bridge.upstreams.attempts import attempt, cancelled, timed_out
from bridge.upstreams.base import Call, Failed, Finished
from bridge.upstreams.reach import Links, Reached

__all__ = ["Direct"]


class Direct:
    """A call under way: the `Talk` of its request.

    Args:
        call: the call.
        server: how to call the server in a text.
        links: the ways to the server.
        params: the params of the request.
        seconds: how long it may take.
    """

    is_waiting = False

    def __init__(self, call: Call, server: str, links: Links, params: Json, seconds: float) -> None:
        self._call = call
        self._server = server
        self._links = links
        self._params = params
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._why: Finished | Failed | None = None
        """How it ends once it is given up here."""
        self._cancels = 0
        self.link_name = ""
        """Names the session with the server."""

    async def run(self) -> Finished | Failed:
        """Make the request and return how it ended."""
        self._task = task = asyncio.current_task()
        call = self._call
        try:
            return await attempt(call.request, self._server, self._reach, self._params, self)
        except asyncio.CancelledError:
            if task is None or self._why is None:
                raise
            for _ in range(self._cancels):
                task.uncancel()
            # Somebody else may have cancelled the task as well, and is to be heard.
            if task.cancelling():
                raise
            return self._why

    async def _reach(self) -> Reached:
        caller = self._call.caller
        reached = self._links.at_hand(caller) or await self._links.get(caller)
        self.link_name = reached.name
        return reached

    def end_if_late(self, now: float) -> None:
        """End the call where it has taken longer than it may."""
        if now >= self._deadline:
            self._end(timed_out(self._call.request, self._server, self._seconds))

    def give_up(self) -> None:
        """End the call; its server is told."""
        self._end(cancelled(self._call.request, self._server))

    def _end(self, why: Finished | Failed) -> None:
        """Cancel it, also again: code that is not ours may swallow a cancellation."""
        if self._task is not None:
            self._why = self._why or why
            self._cancels += 1
            self._task.cancel()

    @property
    def wants_progress(self) -> bool:
        """See `Talk`."""
        return self._call.outlet.wants_progress

    @property
    def log_level(self) -> str | None:
        """See `Talk`."""
        return self._call.outlet.log_level

    @property
    def http(self) -> Mapping[str, Any] | None:
        """See `Talk`."""
        return self._call.http

    async def ask(self, method: str, params: Json) -> Failed:
        """See `Talk`: such a server does not."""
        return Failed(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Talk`."""
        await self._call.outlet.progress(progress, total, message)

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """See `Talk`."""
        await self._call.outlet.log(level, data, logger)
