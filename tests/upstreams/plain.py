"""The plain server, as tests start it, and what it did."""

import sys
from pathlib import Path
from typing import Any

import anyio

from bridge import Bridge
from bridge.upstreams.targets import Command, ServerOptions
from bridge.upstreams.wrapped import WrapRules

PLAIN = str(Path(__file__).parent / "plain_server.py")


class Plain:
    """The plain server, and what it did."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self._journal = folder / "journal"
        self.words = [sys.executable, PLAIN, str(self._journal), *flags]
        self.command = Command(self.words[0], tuple(self.words[1:]))

    def bridge(self, rules: WrapRules | None = None, server: ServerOptions | None = None, **options: Any) -> Bridge:
        return Bridge.wrap(self.command, rules=rules, server=server, **options)

    @property
    def lines(self) -> list[str]:
        """All that it wrote."""
        return self._journal.read_text().splitlines() if self._journal.exists() else []

    @property
    def effects(self) -> list[str]:
        return [line for line in self.lines if not line.startswith(("initialize", "ended", "cancelled"))]

    async def wrote(self, beginning: str, times: int = 1) -> None:
        """Wait until it has written a line that begins so."""
        with anyio.fail_after(20):
            while sum(line.startswith(beginning) for line in self.lines) < times:  # noqa: ASYNC110
                await anyio.sleep(0.01)  # a file tells nobody of its lines
