"""What the load talks to, and how: a server in a process, and bare requests of a legacy client."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from tests.behaviours.talking import request
from tests.load.server import Facts
from tests.operations.processes import open_session

__all__ = ["call", "chat_session", "facts", "processor_seconds", "server"]

REPOSITORY = Path(__file__).parents[2]


@contextmanager
def server(store: str, *idle_seconds: str) -> Iterator[str]:
    """Run a server on a store; yield its URL."""
    command = [sys.executable, "-m", "tests.load.server", store, *idle_seconds]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def facts(http: aiohttp.ClientSession, url: str) -> Facts:
    """What the server occupies now."""
    async with http.get(f"{url}/facts") as reply:
        return msgspec.json.decode(await reply.read(), type=Facts)


async def processor_seconds(http: aiohttp.ClientSession, url: str) -> float:
    """How long the server has worked."""
    async with http.get(f"{url}/processor") as reply:
        return float(await reply.read())


async def chat_session(http: aiohttp.ClientSession, url: str) -> dict[str, str]:
    """Open a session of a client that can be asked in the chat only; return its headers."""
    return await open_session(http, f"{url}/mcp", "2025-11-25")


async def call(
    http: aiohttp.ClientSession, url: str, session: dict[str, str], identity: int, name: str, **arguments: Any
) -> dict[str, Any]:
    """Call a tool; return its result."""
    body = request(identity, "tools/call", {"name": name, "arguments": arguments})
    async with http.post(f"{url}/mcp", json=body, headers=session) as reply:
        assert reply.status == 200, await reply.text()
        result: dict[str, Any] = (await reply.json(content_type=None))["result"]
        return result
