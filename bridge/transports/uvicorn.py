"""Serving with uvicorn: streams end before it waits for connections to close."""

import socket
from typing import Any, Protocol

import uvicorn

from bridge.transports.http1 import HttpProtocol

__all__ = ["Drainable", "serve", "settings"]

_GRACE_SECONDS = 10


class Drainable(Protocol):
    """An ASGI app that can end its streams."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        ...

    async def drain(self) -> None:
        """End streams, so that their clients go elsewhere."""
        ...


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Drainable) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._app.drain()
        await super().shutdown(sockets)


def settings(app: Drainable, **options: Any) -> uvicorn.Config:
    """How uvicorn serves a bridge; `options` are uvicorn's own, over these."""
    defaults: dict[str, Any] = {
        "http": HttpProtocol,
        "loop": "uvloop",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": _GRACE_SECONDS,
    }
    return uvicorn.Config(app, **{**defaults, **options})


def serve(app: Drainable, host: str, port: int) -> None:
    """Serve an app until a signal ends it."""
    _Server(settings(app, host=host, port=port), app).run()
