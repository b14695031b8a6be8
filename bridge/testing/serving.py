"""A server under test as an app that is served, and watched where that is wanted."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from bridge.app import Bridge
from bridge.application import Application
from bridge.testing.watching import Watched

__all__ = ["bridge_of", "serving", "watching"]


def bridge_of(target: Any) -> Bridge:
    """The bridge that a test hands over, or one that wraps the server that it hands over.

    Raises:
        ConfigurationError: it is neither.
        MissingExtraError: what it is needs a package that is not installed.
    """
    return target if isinstance(target, Bridge) else Bridge.wrap(target)


@asynccontextmanager
async def serving(bridge: Bridge) -> AsyncIterator[Application]:
    """Serve a bridge as one node while the context is open."""
    app = bridge.asgi()
    async with app.lifespan():
        yield app


@asynccontextmanager
async def watching(bridge: Bridge, mark: Callable[[], int]) -> AsyncIterator[tuple[Application, Watched]]:
    """Likewise, and note what runs behind it.

    Args:
        bridge: what is served.
        mark: how many effects there are by now.
    """
    app = bridge.asgi()
    app.upstream, watched = Watched.around(app.upstream, mark)
    async with app.lifespan():
        yield app, watched
