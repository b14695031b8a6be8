"""A server in a process of its own that says what it does, and clients at its sockets."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.behaviours.talking import META, hello, request
from tests.redis_server import free_port

__all__ = ["EVENTS", "HOW", "JSON", "Server", "await_accepting", "last_event", "modern", "open_session", "serving"]

REPOSITORY = Path(__file__).parents[2]
START_SECONDS = 40
JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
HOW = {
    "bridge": ("bridge", "serve", "tests/operations/slow_server.py:bridge", "--port"),
    "uvicorn": ("uvicorn", "tests.operations.slow_server:app", "--log-level", "warning", "--port"),
}


class Server:
    """A process that serves, and what it has printed."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"

    def says(self, word: str) -> None:
        """Wait for a line on its stdout."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == word:
                return
        raise AssertionError(f"it ended without saying {word!r}")

    def terminate(self) -> float:
        """Tell it to end; return when that was."""
        self.process.send_signal(signal.SIGTERM)
        return time.monotonic()

    def left(self, within_seconds: float) -> None:
        """It has to be gone by then, without a complaint."""
        assert self.process.wait(within_seconds) in (0, -signal.SIGTERM)
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        assert "Traceback" not in said, said


@contextmanager
def serving(*module: str, after: tuple[str, ...] = (), **environment: str) -> Iterator[Server]:
    """Run a module of Python that listens on the port that is given to it as an argument, before `after`."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", *module, str(port), *after],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        await_accepting(process, port)
        yield Server(process, port)
    finally:
        process.kill()
        process.communicate()


def await_accepting(process: "subprocess.Popen[str]", port: int) -> None:
    gives_up_at = time.monotonic() + START_SECONDS
    while time.monotonic() < gives_up_at:
        if process.poll() is not None:
            raise AssertionError(f"the server ended at once: {process.communicate()[1]}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise AssertionError(f"the server did not accept within {START_SECONDS} s")


def modern(identity: int, tool: str, arguments: dict[str, Any], **params: Any) -> dict[str, Any]:
    """What a modern client posts for a call: keyword arguments of aiohttp."""
    headers = {**JSON, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
    body = request(identity, "tools/call", {"name": tool, "arguments": arguments, "_meta": META, **params})
    return {"json": body, "headers": headers}


async def open_session(http: aiohttp.ClientSession, url: str, revision: str, **capabilities: Any) -> dict[str, str]:
    """Begin a legacy session; return the headers of what follows."""
    async with http.post(url, json=request(0, "initialize", hello(revision, **capabilities)), headers=JSON) as reply:
        assert reply.status == 200
        headers = {**JSON, "Mcp-Session-Id": reply.headers["Mcp-Session-Id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with http.post(url, json=ready, headers=headers) as reply:
        assert reply.status == 202
    return headers


def last_event(stream: bytes) -> tuple[str, int]:
    """The last event id of a stream that has ended, and after how many milliseconds to come back."""
    ids = re.findall(rb"^id: (\S+)$", stream, re.MULTILINE)
    retry = re.findall(rb"^retry: (\d+)$", stream, re.MULTILINE)
    assert stream.endswith(b"\n\n")
    return ids[-1].decode(), int(retry[-1])
