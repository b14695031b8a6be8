"""A client of 2024-11-05, written by hand over plain HTTP: it POSTs, reads replies, and can be asked in the chat only.

No SDK is behind it, so what it sends is what a client of that time sends: no `MCP-Protocol-Version`, no capabilities.
See `plan.py`.
"""

import asyncio
import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

from plan import Json, OnProgress, Plan, drive

_SECONDS = 20
_UNKNOWN: Json = {"code": -32601, "message": "Method not found"}
"""What it says to whatever a server asks it: its revision knows no elicitation."""


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.error = error


class Session:
    """One session, each request on a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._id: str | None = None
        self._last_id = 0

    def open(self) -> str:
        """Initialize; return the revision."""
        about = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        revision: str = self.request("initialize", about)["protocolVersion"]
        self._send("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}).read()
        return revision

    def close(self) -> None:
        """End it, where the server gave it an id."""
        if self._id is not None:
            self._send("DELETE").read()

    def request(self, method: str, params: Json, moved: OnProgress = None) -> Json:
        """Make a request; return its result."""
        self._last_id += 1
        if moved is not None:
            params = {**params, "_meta": {"progressToken": self._last_id}}
        response = self._send("POST", {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        for message in _messages(response):
            if message.get("method") == "notifications/progress" and moved is not None:
                assert message["params"]["progressToken"] == self._last_id
                moved(message["params"]["progress"])
            if "method" in message and "id" in message:
                self._send("POST", {"jsonrpc": "2.0", "id": message["id"], "error": _UNKNOWN}).read()
                continue
            if "error" in message:
                raise Refused(message["error"])
            if message.get("id") == self._last_id and "result" in message:
                result: Json = message["result"]
                return result
        raise ConnectionError(f"HTTP {response.status} without a reply to {method}")

    def _send(self, verb: str, message: Json | None = None) -> HTTPResponse:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._id is not None:
            headers["Mcp-Session-Id"] = self._id
        connection = HTTPConnection(self._url.hostname or "", self._url.port, timeout=_SECONDS)
        connection.request(verb, self._url.path, None if message is None else json.dumps(message), headers)
        response = connection.getresponse()
        self._id = response.headers.get("Mcp-Session-Id") or self._id
        return response


def _messages(response: HTTPResponse) -> Iterator[Any]:
    """What is in a response: one message, or the events of a stream."""
    if response.headers.get_content_type() == "text/event-stream":
        for line in response:
            if line.startswith(b"data:") and line[5:].strip():
                yield json.loads(line[5:])
    elif body := response.read():
        yield json.loads(body)


async def converse(plan: Plan) -> None:
    """Follow a plan over one session."""
    session = Session(plan.url)
    plan.report["revision"] = await asyncio.to_thread(session.open)

    async def list_tools() -> list[Json]:
        tools: list[Json] = (await request("tools/list", {}))["tools"]
        return tools

    async def call_tool(name: str, arguments: Json, moved: OnProgress) -> Json:
        params = {"name": name, "arguments": arguments}
        return await asyncio.to_thread(session.request, "tools/call", params, moved)

    async def request(method: str, params: Json) -> Json:
        return await asyncio.to_thread(session.request, method, params)

    await plan.run(list_tools, call_tool, request, _error)
    await asyncio.to_thread(session.close)


def _error(error: Exception) -> Json:
    return error.error if isinstance(error, Refused) else {"message": repr(error)}


if __name__ == "__main__":
    drive(converse)
