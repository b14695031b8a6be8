"""One node in a process of its own on one store, and what both occupy."""

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis

from benchmarks.load import Connection
from tests.operations.processes import serving

__all__ = ["LEGACY", "Node", "call", "node", "opened"]

LEGACY = "2025-11-25"
_SERVED = ("bridge", "serve", "tests/load/server.py:bridge", "--port")


class Node:
    """A node that runs.

    Args:
        pid: its process.
        port: where it listens.
        store: the URL of its store.
    """

    def __init__(self, pid: int, port: int, store: str) -> None:
        self.pid = pid
        self._port = port
        self._store = store
        self.connection = self.connect()

    def connect_again(self) -> None:
        """Get a connection in place of one that was idle for so long that the node has closed it."""
        self.connection.close()
        self.connection = self.connect()

    def connect(self) -> Connection:
        """One more connection to it."""
        return Connection(self._port, self.pid)

    @property
    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def processor_us(self) -> float:
        """How long its threads have run."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1000

    def size(self) -> dict[str, int]:
        """What it occupies now: bytes, file descriptors, tasks, and keys of the store."""
        (session,) = opened(self.connection, 1, {})
        own = call(self.connection, session, 0, "size", {})["structuredContent"]
        return {
            "resident_bytes": self.resident_bytes,
            "descriptors": self.descriptors,
            "tasks": own["tasks"],
            "keys": own["keys"] if self._store == "memory" else _keys(self._store),
        }


@contextmanager
def node(store: str, *, idle_seconds: float = 3600, patience_seconds: float = 10) -> Iterator[Node]:
    """Run a node on a store."""
    given = {
        "LOAD_STORE": store,
        "LOAD_IDLE_SECONDS": str(idle_seconds),
        "LOAD_STORE_PATIENCE_SECONDS": str(patience_seconds),
    }
    with serving(*_SERVED, after=("--log-level", "error"), **given) as server:
        running = Node(server.process.pid, int(str(urlsplit(server.url).port)), store)
        try:
            yield running
        finally:
            running.connection.close()


def opened(connection: Connection, count: int, capabilities: dict[str, Any]) -> list[dict[str, str]]:
    """Open legacy sessions, many at once; return the headers of each."""
    params = {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": {"name": "load", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    sessions = []
    for reply in connection.exchange([connection.post(hello, {})] * count):
        identity = reply.header(b"mcp-session-id")
        assert reply.status == 200, reply.body
        assert identity is not None
        sessions.append({"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": identity.decode()})
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for reply in connection.exchange([connection.post(ready, session) for session in sessions]):
        assert reply.status == 202, reply.body
    return sessions


def call(
    connection: Connection, session: dict[str, str], identity: int, tool: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Call a tool; return its result."""
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}
    (reply,) = connection.exchange([connection.post(body, session)])
    assert reply.status == 200, reply.body
    result: dict[str, Any] = reply.json()["result"]
    return result


def _keys(store: str) -> int:
    if store.startswith("redis:"):
        with redis.Redis.from_url(store) as client:
            return int(client.dbsize())  # type: ignore[arg-type] - the library types it for both of its clients
    db = sqlite3.connect(f"file:{store.removeprefix('sqlite:///')}?mode=ro", uri=True)
    try:
        (count,) = db.execute("SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM logs)").fetchone()
        return int(count)
    finally:
        db.close()
