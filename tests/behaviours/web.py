"""A bridge over real sockets, served by uvicorn as `Bridge.run` does it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from bridge import Bridge
from bridge.transports.uvicorn import _Server, settings

__all__ = ["Served", "served_by_uvicorn"]

_SECONDS = 10


class Served:
    """A server under way.

    Args:
        url: its `http://host:port`.
    """

    def __init__(self, server: Any, url: str) -> None:
        self._server = server
        self.url = url
        self.ended = anyio.Event()

    def shut_down(self) -> None:
        """Do what a signal does."""
        self._server.should_exit = True


@asynccontextmanager
async def served_by_uvicorn(bridge: Bridge, **options: Any) -> AsyncIterator[Served]:
    """Serve a bridge on a free port, until the context ends."""
    app = bridge.asgi()
    urls: list[str] = []
    listens = anyio.Event()

    def started(url: str) -> None:
        urls.append(url)
        listens.set()

    server = _Server(settings(app, port=0, **options), app, started)
    async with anyio.create_task_group() as tasks:

        async def serve() -> None:
            await server.serve()
            served.ended.set()

        tasks.start_soon(serve)
        with anyio.fail_after(_SECONDS):
            await listens.wait()
        served = Served(server, urls[0])
        yield served
        served.shut_down()
        with anyio.fail_after(_SECONDS):
            await served.ended.wait()
