"""What is asked of the servers: for each row of the table its requests, and what a right reply to one is."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from benchmarks.load import Connection, Invalid

__all__ = ["RELAYED", "SAMPLES", "SERVED", "STORED", "Row", "open_sessions", "prepare"]

CONNECTIONS: Final = 16
RELAYED_CONNECTIONS: Final = 8

SAMPLES: Final = 200
"""How many replies are read before each run; they warm the server up too."""

STATES_PER_SECOND: Final = {"mcp": 4_000, "bridge": 20_000}
"""How many answered rounds are prepared for each second: above what the server can do."""

_MODERN: Final = "2026-07-28"
_LEGACY: Final = "2025-11-25"
_CLIENT: Final = {"name": "benchmarks", "version": "1"}
_CAPABILITIES: Final[dict[str, Any]] = {"elicitation": {"form": {}}}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": _MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": _CAPABILITIES,
}
_ADD: Final = {"name": "add", "arguments": {"a": 2, "b": 3}}


class Row(NamedTuple):
    """One row: `requests(connection, count)` makes at least `count`; `once` says that each can be sent once only."""

    name: str
    servers: tuple[str, ...]
    requests: Callable[[Connection, int], list[bytes]]
    is_right: Callable[[Any], bool]
    once: bool = False
    connections: int = CONNECTIONS


def prepare(row: Row, server: str, connection: Connection, seconds: int) -> tuple[list[bytes], float]:
    """Make the requests of a row, and check the replies to the first of them.

    Returns:
        The requests to measure with, and how large a right reply is, head and body.
    """
    count = SAMPLES + (STATES_PER_SECOND[server.partition("-")[0]] * seconds if row.once else 0)
    requests = row.requests(connection, count)
    samples = list(connection.exchange(requests[:SAMPLES]))
    for reply in samples:
        if reply.status != 200 or not row.is_right(reply.json().get("result", {})):
            raise Invalid(f"{server} got {row.name} wrong: {reply.status} {reply.body.decode()}")
    size = sum(len(reply.head) + 4 + len(reply.body) for reply in samples) / len(samples)
    return requests[SAMPLES:] if row.once else requests, size


def open_sessions(connection: Connection, count: int) -> list[dict[str, str]]:
    """Open legacy sessions; return the headers of each."""
    params = {"protocolVersion": _LEGACY, "capabilities": _CAPABILITIES, "clientInfo": _CLIENT}
    initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    sessions = []
    for reply in connection.exchange([connection.post(initialize, {})] * count):
        session_id = reply.header(b"mcp-session-id")
        if reply.status != 200 or session_id is None:
            raise Invalid(f"no session was opened: {reply.status} {reply.body.decode()}")
        sessions.append({"MCP-Protocol-Version": _LEGACY, "Mcp-Session-Id": session_id.decode()})
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for reply in connection.exchange([connection.post(initialized, session) for session in sessions]):
        if reply.status != 202:
            raise Invalid(f"a notification was not taken: {reply.status} {reply.body.decode()}")
    return sessions


def _modern(connection: Connection, number: int, params: dict[str, Any]) -> bytes:
    headers = {"MCP-Protocol-Version": _MODERN, "Mcp-Method": "tools/call", "Mcp-Name": params["name"]}
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {**params, "_meta": _META}}
    return connection.post(body, headers)


def _modern_calls(connection: Connection, count: int) -> list[bytes]:
    return [_modern(connection, number, _ADD) for number in range(1000, 1000 + count)]


def _legacy_calls(connection: Connection, count: int, *, sessions_count: int = CONNECTIONS) -> list[bytes]:
    """As many sessions as connections. Ids differ, since one session may not use one twice at a time."""
    sessions = open_sessions(connection, sessions_count)
    return [
        connection.post(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": _ADD}, sessions[number % len(sessions)]
        )
        for number in range(1000, 1000 + count)
    ]


def _close(number: int) -> dict[str, Any]:
    return {"name": "close_ticket", "arguments": {"id": f"T-{number}"}}


def _first_rounds(connection: Connection, count: int) -> list[bytes]:
    return [_modern(connection, number, _close(number)) for number in range(100_000, 100_000 + count)]


def _answered_rounds(connection: Connection, count: int) -> list[bytes]:
    """Each from a first round of its own: a round that was answered before would only give its stored result."""
    requests = []
    for number, reply in enumerate(connection.exchange(_first_rounds(connection, count)), 100_000):
        asked = reply.json()["result"]
        answer = {"action": "accept", "content": {"confirm": True}}
        responses = dict.fromkeys(asked["inputRequests"], answer)
        params = {**_close(number), "inputResponses": responses, "requestState": asked["requestState"]}
        requests.append(_modern(connection, number, params))
    return requests


def _is_sum(result: Any) -> bool:
    return bool(result.get("content") == [{"type": "text", "text": "5"}])


def _is_question(result: Any) -> bool:
    return result.get("resultType") == "input_required" and bool(result["requestState"])


def _is_closed(result: Any) -> bool:
    return bool(result.get("structuredContent") == {"closed": True})


SERVED: Final = (
    Row("modern call", ("bare", "mcp", "bridge", "wrapped"), _modern_calls, _is_sum),
    Row("legacy session call", ("mcp", "bridge", "wrapped"), _legacy_calls, _is_sum),
    Row("question, first round", ("mcp", "bridge"), _first_rounds, _is_question),
    Row("question, answered round", ("mcp", "bridge"), _answered_rounds, _is_closed, once=True),
)
"""What one process answers by itself."""

_IN_EACH_STORE: Final = ("mcp", "bridge", "bridge-sqlite", "bridge-redis")

STORED: Final = tuple(
    row._replace(name=f"{row.name}, by store", servers=_IN_EACH_STORE) for row in SERVED if row.servers[0] != "bare"
)
"""The same by where sessions and rounds are kept; the SDK keeps them in its process."""

_few_legacy_calls: Final = partial(_legacy_calls, sessions_count=RELAYED_CONNECTIONS)

RELAYED: Final = (
    Row(
        "relayed call",
        ("direct", "aiohttp", "bridge-http", "fastmcp-http"),
        _modern_calls,
        _is_sum,
        connections=RELAYED_CONNECTIONS,
    ),
    Row(
        "relayed session",
        ("bridge-http", "fastmcp-http", "mcp-proxy-http"),
        _few_legacy_calls,
        _is_sum,
        connections=RELAYED_CONNECTIONS,
    ),
    Row(
        "relayed to stdio",
        ("bridge-stdio", "fastmcp-stdio", "mcp-proxy-stdio"),
        _few_legacy_calls,
        _is_sum,
        connections=RELAYED_CONNECTIONS,
    ),
)
"""What a relay hands on to the bare server, which shares the core of the load: modern calls, and those of sessions."""
