"""Serving with uvicorn: streams end before it waits for connections to close."""

import gc
import socket
from collections.abc import Callable
from math import ceil
from typing import Any, Protocol

import uvicorn
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from bridge.protocol.messages import MAX_BODY_BYTES
from bridge.transports.http1 import HttpProtocol
from bridge.transports.websocket import PING_SECONDS

__all__ = ["Drainable", "Server", "serve", "settings"]

_CLEANUP_SECONDS = 5
"""How long what was cut off may take to clean up, before its task is cancelled once more."""


class Drainable(Protocol):
    """An ASGI app that can end its streams."""

    @property
    def shutdown_seconds(self) -> float:
        """How long what runs may go on once the process is told to end."""
        ...

    async def start(self) -> None:
        """Begin to serve; what it raises ends the process before it listens."""
        ...

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        ...

    async def drain(self) -> None:
        """End streams, so that their clients go elsewhere."""
        ...

    async def stop(self) -> None:
        """End serving: what `start` began."""
        ...


class _WebSocketProtocol(WebSocketsSansIOProtocol):
    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close" and not self.writable.is_set():
            # It would wait behind what the client does not read.
            self.transport.abort()
            return
        try:
            await super().send(message)
        except RuntimeError:
            if not self.close_sent:
                raise
            # The connection broke a rule, or did not answer, and the app has not heard of it yet.
            raise ClientDisconnected from None


class Server(uvicorn.Server):
    """uvicorn, for an app that starts before it listens, and ends its streams before connections are waited for.

    Args:
        config: see `settings`.
        app: the app.
        started: told the server's URL once it listens.
    """

    def __init__(self, config: uvicorn.Config, app: Drainable, started: Callable[[str], object] | None = None) -> None:
        super().__init__(config)
        self._app = app
        self._told = started

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, and serve it until a signal ends it."""
        await self._app.start()
        # What is there now stays: a collection that looks at all of it takes 17 ms out of some calls' time.
        gc.collect()
        gc.freeze()
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        if self._told is not None and self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._told(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, then connections."""
        for server in self.servers:
            server.close()
        await self._app.drain()
        await super().shutdown(sockets)


def settings(app: Drainable, **options: Any) -> uvicorn.Config:
    """How uvicorn serves a bridge; `options` are uvicorn's own, over these."""
    defaults: dict[str, Any] = {
        "http": HttpProtocol,
        "ws": _WebSocketProtocol,
        "ws_max_size": MAX_BODY_BYTES,
        "ws_ping_interval": PING_SECONDS,
        "ws_ping_timeout": None,
        "ws_per_message_deflate": False,
        "loop": "uvloop",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": ceil(app.shutdown_seconds) + _CLEANUP_SECONDS,
    }
    return uvicorn.Config(app, **{**defaults, **options})


def serve(app: Drainable, host: str, port: int, *, started: Callable[[str], object] | None = None) -> None:
    """Serve an app until a signal ends it.

    Args:
        app: the app.
        host: the address to bind.
        port: the TCP port; 0 for a free one.
        started: told the server's URL once it listens.
    """
    Server(settings(app, host=host, port=port), app, started).run()
