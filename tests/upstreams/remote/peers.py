"""Real servers for these tests: the script of `peer_server.py`, run by the Python of an SDK."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import websockets

from bridge.upstreams.remote.targets import Command
from tests.peers.demo_server import await_accepting, free_port
from tests.peers.environments import environment

__all__ = ["command", "serving"]

_SCRIPT = Path(__file__).with_name("peer_server.py")
_PATHS = {"streamable": "http://127.0.0.1:{}/mcp", "sse": "http://127.0.0.1:{}/sse", "websocket": "ws://127.0.0.1:{}/"}


def python(sdk: str) -> str:
    """The Python that has an SDK: `mcp1` in an environment of its own, `mcp2` in this one."""
    return sys.executable if sdk == "mcp2" else str(environment(sdk))


def command(sdk: str) -> Command:
    """The server over stdio."""
    return Command(python(sdk), (str(_SCRIPT), "stdio"))


@contextmanager
def serving(sdk: str, transport: str) -> Iterator[str]:
    """The server at a URL, for the block."""
    port = free_port()
    with tempfile.TemporaryDirectory() as extra:
        # mcp 1.30 does not bring what uvicorn needs for a WebSocket.
        Path(extra, "websockets").symlink_to(Path(websockets.__file__).parent)
        process = subprocess.Popen(
            [python(sdk), str(_SCRIPT), transport, str(port)], env={**os.environ, "PYTHONPATH": extra}
        )
        try:
            await_accepting(process, port)
            yield _PATHS[transport].format(port)
        finally:
            process.kill()
            process.wait()
