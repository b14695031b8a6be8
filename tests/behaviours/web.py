"""A bridge over real sockets, served as `Bridge.run` and `Bridge.run_websocket` do it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bridge import Bridge
from bridge.transports.uvicorn import Server, settings
from bridge.transports.websocket_server import WebSocketServer

__all__ = ["Served", "served_by_uvicorn", "served_by_websockets"]

_SECONDS = 10


class Served:
    """A server under way.

    Args:
        url: its URL.
        shut_down: does what a signal does.
    """

    def __init__(self, url: str, shut_down: Callable[[], None]) -> None:
        self.url = url
        self.shut_down = shut_down
        self.ended = anyio.Event()


@asynccontextmanager
async def served_by_uvicorn(bridge: Bridge, **options: Any) -> AsyncIterator[Served]:
    """Serve a bridge on a free port, until the context ends."""
    app = bridge.asgi()

    async def serve(started: Callable[[str], None]) -> None:
        nonlocal server
        server = Server(settings(app, port=0, **options), app, started)
        await server.serve()

    def shut_down() -> None:
        server.should_exit = True

    server: Any = None
    async with _under_way(serve, shut_down) as served:
        yield served


@asynccontextmanager
async def served_by_websockets(bridge: Bridge) -> AsyncIterator[Served]:
    """Serve a bridge over WebSocket alone, on a free port, until the context ends."""
    app = bridge.asgi()

    async def serve(started: Callable[[str], None]) -> None:
        async with app.lifespan():
            await WebSocketServer(app.parts).serve("127.0.0.1", 0, started)

    async with _under_way(serve, lambda: app.node.closing.set()) as served:
        yield served


@asynccontextmanager
async def _under_way(
    serve: Callable[[Callable[[str], None]], Awaitable[None]], shut_down: Callable[[], None]
) -> AsyncIterator[Served]:
    urls: list[str] = []
    listens = anyio.Event()

    def started(url: str) -> None:
        urls.append(url)
        listens.set()

    async def run() -> None:
        await serve(started)
        served.ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(_SECONDS):
            await listens.wait()
        served = Served(urls[0], shut_down)
        yield served
        shut_down()
        with anyio.fail_after(_SECONDS):
            await served.ended.wait()
