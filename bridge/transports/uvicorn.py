"""Serving with uvicorn, whose shutdown waits for open connections: so our streams end first."""

import socket
from typing import Protocol

import uvicorn

__all__ = ["Drainable", "serve"]

_GRACE_SECONDS = 10


class Drainable(Protocol):
    """An app that can end its streams."""

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


def serve(app: Drainable, host: str, port: int) -> None:
    """Serve an app until a signal ends it."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, app).run()
