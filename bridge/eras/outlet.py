"""What a running call may send to its client meanwhile, as the client's revision has it."""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from bridge.calls import Exchange, Keeper
from bridge.protocol.inbound import LOG_LEVELS
from bridge.protocol.messages import Json, notification
from bridge.protocol.revisions import Revision
from bridge.protocol.shaping import shape_progress

__all__ = ["CallOutlet", "Unheard", "progress_token"]

_WAITING: Final = "waiting for user input"
_TICK: Final = 0.001


def progress_token(params: Json) -> int | str | None:
    """The token under which a request wants to hear of progress, or None."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if type(token) in (int, str) else None


class CallOutlet:
    """Sends a call's progress and logs.

    Progress is one strictly rising sequence, which the tool shares with our own reports that the call waits: what does
    not rise, as when a tool runs again from the top, is not sent.

    Args:
        exchange: the way to the client.
        revision: the client's.
        token: its progress token, or None.
        log_level: the lowest level that it wants, or None for no logs.
    """

    __slots__ = ("_exchange", "_last", "_level", "_revision", "_token")

    def __init__(self, exchange: Exchange, revision: Revision, token: int | str | None, log_level: str | None) -> None:
        self._exchange = exchange
        self._revision = revision
        self._token = token
        self._level = log_level
        self._last = -math.inf

    @property
    def wants_progress(self) -> bool:
        """See `Outlet`."""
        return self._token is not None and self._exchange.can_stream

    @property
    def log_level(self) -> str | None:
        """See `Outlet`."""
        return self._level if self._exchange.can_stream else None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Outlet`."""
        if self._token is None or progress <= self._last or not self._exchange.can_stream:
            return
        self._last = progress
        params: Json = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self._exchange.send(notification("notifications/progress", shape_progress(params, self._revision)))

    async def waiting(self) -> None:
        """See `Outlet`: a report just above the last one, so that the tool's own can still rise."""
        await self.progress(max(self._last, 0.0) + _TICK, None, _WAITING)

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """See `Outlet`."""
        if level not in LOG_LEVELS:
            raise ValueError(f"a log level is one of {', '.join(LOG_LEVELS)}, not {level!r}")
        if self._level is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(self._level):
            return
        if not self._exchange.can_stream:
            return
        params: Json = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        await self._exchange.send(notification("notifications/message", params))

    async def leave(self) -> None:
        """See `Outlet`."""
        await self._exchange.leave()


class Unheard:
    """An exchange with nobody: for a call that goes on because an operator says so. See `Exchange`."""

    can_stream = False
    http: Mapping[str, Any] | None = None
    on_gone: Callable[[], None] | None = None
    on_closing: Callable[[], None] | None = None
    on_delivered: Callable[[], Awaitable[None]] | None = None
    keeper: Keeper | None = None

    async def send(self, message: Json) -> None:
        """See `Exchange`: there is nobody."""

    async def leave(self) -> None:
        """See `Exchange`: there is no stream."""

    def cancel(self) -> None:
        """See `Exchange`: the call has nobody who could leave."""
