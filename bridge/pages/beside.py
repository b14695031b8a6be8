"""Pages beside what serves MCP: some paths are theirs, and everything else is served as it was."""

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette

from bridge.transports.uvicorn import Drainable

__all__ = ["Beside"]


class Beside:
    """An ASGI app with pages.

    Args:
        app: what serves MCP.
        pages: the pages.
        has: whether a path is theirs.
    """

    def __init__(self, app: Drainable, pages: Starlette, has: Callable[[str], bool]) -> None:
        self._app = app
        self._pages = pages
        self._has = has

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        is_page = scope["type"] == "http" and self._has(scope["path"])
        await (self._pages if is_page else self._app)(scope, receive, send)

    @property
    def shutdown_seconds(self) -> float:
        """See `Drainable`."""
        return self._app.shutdown_seconds

    async def start(self) -> None:
        """See `Drainable`."""
        await self._app.start()

    async def drain(self) -> None:
        """See `Drainable`."""
        await self._app.drain()

    async def stop(self) -> None:
        """See `Drainable`."""
        await self._app.stop()
