"""Nodes of one fleet, in one process: some are lost."""

from contextlib import AsyncExitStack
from typing import Any

import pytest

from bridge import Bridge
from bridge.application import Application
from tests.wiretap import Tap, tap_asgi

__all__ = ["Fleet"]


class Fleet:
    """Nodes that share a store, for as long as a stack is open."""

    def __init__(self, tap: Tap, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
        self._tap = tap
        self._stack = stack
        self._monkeypatch = monkeypatch

    async def node(self, bridge: Bridge) -> tuple[Application, Any]:
        """One more node: the app, and the same app behind the wire tap."""
        app = bridge.asgi()
        await self._stack.enter_async_context(app.lifespan())
        return app, tap_asgi(app, self._tap)

    def silence(self, app: Application) -> None:
        """Let a node renew its lease no more: it counts as lost, though it still does what it was doing."""

        async def renew() -> None:
            pass

        self._monkeypatch.setattr(app.node, "_renew", renew)
