"""A bridge in a process of its own that tells what it occupies: `python -m tests.load.server STORE [IDLE_SECONDS]`.

It prints its port on a line once it listens.
"""

import asyncio
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from bridge import Bridge, Context
from bridge.keys import random_keys
from bridge.sessions import SessionLimits
from bridge.transports.uvicorn import Server, settings


class Facts(msgspec.Struct, frozen=True):
    """What a node occupies, and what is in its store."""

    resident_bytes: int
    descriptors: int
    tasks: int
    sessions: int
    pending: int


def made(store: str, idle_seconds: float | None) -> Bridge:
    """A bridge with a tool that answers and one that asks."""
    limits = SessionLimits(idle_seconds=idle_seconds)
    bridge = Bridge("load", elicitation=True, store=store, keys=random_keys(), sessions=limits)

    @bridge.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @bridge.tool
    async def ask(about: str, ctx: Context) -> bool:
        """Ask."""
        return (await ctx.elicit(f"{about}?", bool)).content is True

    return bridge


class Telling:
    """The bridge, `/facts`, and `/processor`: the seconds that the process has worked."""

    def __init__(self, bridge: Bridge) -> None:
        self._store = bridge.store
        self._app = bridge.asgi()
        self.start, self.drain = self._app.start, self._app.drain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        if scope.get("path") == "/processor":
            await _say(send, str(time.process_time()).encode())
            return
        if scope.get("path") != "/facts":
            await self._app(scope, receive, send)
            return
        facts = Facts(
            resident_bytes=_resident_bytes(),
            descriptors=len(os.listdir("/proc/self/fd")),
            tasks=len(asyncio.all_tasks()),
            sessions=await self._store.count("session"),
            pending=await self._store.count("pending"),
        )
        await _say(send, msgspec.json.encode(facts))


async def _say(send: Any, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def _resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main(store: str, idle_seconds: str | None = None) -> None:
    """Serve until terminated."""
    app = Telling(made(store, None if idle_seconds is None else float(idle_seconds)))
    config = settings(app, host="127.0.0.1", port=0, timeout_keep_alive=60)
    Server(config, app, started=lambda url: print(url.rpartition(":")[2], flush=True)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
