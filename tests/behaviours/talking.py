"""What a client says on a connection that carries whole messages, however they are carried.

Every message that it gets is held against the revision that it comes under.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.wiretap import Conversation, Tap

__all__ = ["META", "SECONDS", "Json", "Talker", "hello", "is_reply", "request", "said"]

SECONDS = 10

Json = dict[str, Any]

META: Json = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
"""What a modern client says of itself in each request."""


def hello(revision: str = "2025-11-25", **capabilities: Any) -> Json:
    """The params of `initialize`."""
    return {
        "protocolVersion": revision,
        "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"},
    }


def request(identity: Any, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}}


def said(reply: Json) -> str:
    """The text of a call's result."""
    text: str = reply["result"]["content"][0]["text"]
    return text


def is_reply(identity: Any) -> Callable[[Json], bool]:
    """Whether a message answers the request with this id, its type counted."""

    def check(message: Json) -> bool:
        found = message.get("id")
        return "method" not in message and type(found) is type(identity) and found == identity

    return check


class Talker:
    """Says things, and reads when it is told to.

    Args:
        tap: judges what the server sends.
    """

    def __init__(self, tap: Tap) -> None:
        self._conversation = Conversation(tap)
        self._ids = count(1)
        self.heard: list[Json] = []
        """Messages that were read on the way to another one, oldest first."""

    async def send(self, *messages: Any) -> None:
        """Send messages; bytes go as they are."""
        raise NotImplementedError

    async def next(self) -> Json | None:
        """The next message; None at the end."""
        raise NotImplementedError

    async def notify(self, method: str, params: Json | None = None) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def until(self, wanted: Callable[[Json], bool]) -> Json:
        """The first message that is wanted; those before it go to `heard`."""
        for message in self.heard:
            if wanted(message):
                self.heard.remove(message)
                return message
        while (message := await self.next()) is not None:
            if wanted(message):
                return message
            self.heard.append(message)
        raise AssertionError(f"it did not come; there were {self.heard}")

    async def reply(self, identity: Any) -> Json:
        """The reply to a request."""
        return await self.until(is_reply(identity))

    async def notification(self, method: str) -> Json:
        """The params of the next notification of a kind."""
        params: Json = (await self.until(lambda m: m.get("method") == method)).get("params", {})
        return params

    async def ask(self, method: str, params: Json | None = None) -> Json:
        """Make a request; return its whole reply."""
        identity = f"c{next(self._ids)}"
        await self.send(request(identity, method, params))
        return await self.reply(identity)

    async def initialize(self, revision: str = "2025-11-25", **capabilities: Any) -> Json:
        """Open the session; return the result of `initialize`."""
        reply = await self.ask("initialize", hello(revision, **capabilities))
        await self.notify("notifications/initialized")
        result: Json = reply["result"]
        return result

    async def start(self, identity: Any, tool: str, meta: Json | None = None, /, **arguments: Any) -> None:
        """Call a tool, and do not wait for it."""
        await self.send(request(identity, "tools/call", _call(tool, arguments, meta)))

    async def call(self, tool: str, meta: Json | None = None, /, **arguments: Any) -> Json:
        """Call a tool; return its result."""
        reply = await self.ask("tools/call", _call(tool, arguments, meta))
        assert "result" in reply, reply
        result: Json = reply["result"]
        return result

    async def question(self) -> Json:
        """The next `elicitation/create`."""
        return await self.until(lambda message: message.get("method") == "elicitation/create")

    async def answer(self, question: Json, content: Json) -> None:
        """Accept a question."""
        await self.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}})


def _call(tool: str, arguments: Json, meta: Json | None) -> Json:
    params: Json = {"name": tool, "arguments": arguments}
    return params if meta is None else {**params, "_meta": meta}
