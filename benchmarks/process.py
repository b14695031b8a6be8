"""What every process that is measured does: it keeps to one core, listens, and prints its port on a line.

It runs in the environments of other programs too, so it imports nothing that they do not have.
"""

import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import uvicorn

__all__ = ["LOAD_CORE", "OPTIONS", "SERVER_CORE", "App", "keep_to", "listener", "serve"]

App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

SERVER_CORE: Final = 0
"""The core of what is measured."""

LOAD_CORE: Final = 1
"""The core of whatever makes load, and of the server behind a relay."""

OPTIONS: Final[dict[str, Any]] = {
    "loop": "uvloop",
    "log_level": "error",
    "access_log": False,
    "server_header": False,
    "timeout_keep_alive": 3600,
}
"""Uvicorn's options, the same for all."""


def keep_to(core: int) -> None:
    """Run on one core from now on, with all children."""
    os.sched_setaffinity(0, {core})


def listener() -> socket.socket:
    """A socket that connections can be made to on a free port."""
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(256)
    return made


def serve(app: App, config: uvicorn.Config | None = None) -> None:
    """Serve an app until terminated; by default as uvicorn is fastest."""
    listening = listener()
    print(listening.getsockname()[1], flush=True)
    config = config or uvicorn.Config(app, http="httptools", **OPTIONS)
    uvicorn.Server(config).run(sockets=[listening])
