"""What a request under way hears, for tests of modern links."""

import asyncio
from typing import Any

from bridge.upstreams.links import Hello

__all__ = ["HELLO", "Heard", "News"]

HELLO = Hello(capabilities={"elicitation": {"form": {}, "url": {}}}, info={"name": "bridge", "version": "1"})


class Heard:
    """A `Talk` that takes note."""

    http = None
    is_waiting = False

    def __init__(self, *, wants_progress: bool = False, log_level: str | None = None) -> None:
        self.wants_progress = wants_progress
        self.log_level = log_level
        self.progressed: list[tuple[float, float | None, str | None]] = []
        self.logged: list[tuple[str, Any, str | None]] = []

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        raise AssertionError("a modern server asks in its results")

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progressed.append((progress, total, message))

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        self.logged.append((level, data, logger))


class News:
    """News that take note, and can be waited for."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    async def __call__(self, method: str, params: dict[str, Any]) -> None:
        self.heard.put_nowait((method, params))
