"""What went over the wire in a test, as a text to compare: messages in order, without what differs from run to run."""

import re
from collections.abc import Awaitable, Callable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from bridge.protocol.messages import Json

__all__ = ["MAX_EXCHANGES", "Exchange", "Wire", "WireChanged"]

App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

MAX_EXCHANGES: Final = 10_000
"""How many HTTP exchanges of one test are kept."""

_NAMES: Final = {"requestState": "state", "elicitId": "elicit-id", "elicitationId": "elicitation-id"}
"""What is random on the wire, and what stands for it in the text."""

_FIRST: Final = ("jsonrpc", "id", "method")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC|[+-]\d\d:\d\d)?")


class WireChanged(AssertionError):
    """What went over the wire is not what was saved. The text has the difference."""


class Exchange(msgspec.Struct):
    """One HTTP request, and what came in reply.

    Args:
        method: the HTTP method.
        sent: its body, where that is JSON.
        status: of the reply; 0 until it comes.
        received: the messages of the reply: of a JSON body, or of a stream.
    """

    method: str
    sent: Any = None
    status: int = 0
    received: list[Any] = msgspec.field(default_factory=list)


class Wire:
    """Listens to an ASGI app. Exchanges stand in the order of their requests, each with all that came in reply."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def around(self, app: App) -> App:
        """The same app, listened to."""

        async def heard(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or len(self.exchanges) >= MAX_EXCHANGES:
                await app(scope, receive, send)
                return
            exchange, body, reply = Exchange(scope["method"]), bytearray(), bytearray()
            self.exchanges.append(exchange)

            async def take() -> Any:
                event = await receive()
                if event["type"] == "http.request":
                    body.extend(event.get("body", b""))
                    exchange.sent = _decoded(bytes(body))
                return event

            async def give(event: Any) -> None:
                if event["type"] == "http.response.start":
                    exchange.status = event["status"]
                else:
                    reply.extend(event.get("body", b""))
                    exchange.received = list(_messages(bytes(reply)))
                await send(event)

            await app(scope, take, give)

        return heard

    def text(self) -> str:
        """Everything that went over the wire so far, to be compared: ids, sealed states and times replaced by names."""
        seen = _Seen()
        for exchange in self.exchanges:
            seen.note(exchange.sent)
            seen.note(exchange.received)
        return "\n".join(line for exchange in self.exchanges for line in _lines(exchange, seen)) + "\n"

    def check(self, saved: Path) -> None:
        """Compare with what was saved.

        Raises:
            WireChanged: it differs, or nothing was saved.
        """
        now = self.text()
        if not saved.exists():
            raise WireChanged(f"no wire is saved in {saved}: run pytest with --mcp-update to write it, and read it")
        before = saved.read_text()
        if before != now:
            diff = unified_diff(before.splitlines(), now.splitlines(), str(saved), "this test", lineterm="", n=4)
            changed = "\n".join(diff)
            raise WireChanged(f"the wire differs from {saved} (if that is meant: pytest --mcp-update)\n{changed}")


class _Seen:
    """Names for what is random, numbered in the order in which it came."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._ids: dict[tuple[bool, str], Any] = {}

    def note(self, value: Any) -> None:
        """Name every random text in a JSON value."""
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in _NAMES and isinstance(inner, str) and inner not in self._names:
                    kind = _NAMES[key]
                    self._counts[kind] = self._counts.get(kind, 0) + 1
                    self._names[inner] = f"<{kind} {self._counts[kind]}>"
                self.note(inner)
        elif isinstance(value, list):
            for inner in value:
                self.note(inner)

    def message(self, message: Any, *, from_client: bool) -> Any:
        """A message with names in place of what is random, its id numbered for the side that made it."""
        plain = self._plain(message)
        if not isinstance(plain, dict):
            return plain
        if "id" in plain:
            plain["id"] = self._id(plain["id"], from_client is ("method" in plain))
        return {name: plain[name] for name in (*_FIRST, *plain) if name in plain}

    def _id(self, given: Any, of_client: bool) -> Any:
        number = sum(mine is of_client for mine, _ in self._ids) + 1
        return self._ids.setdefault((of_client, repr(given)), number if of_client else f"server-{number}")

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._plain(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._plain(inner) for inner in value]
        if not isinstance(value, str):
            return value
        for text in sorted(self._names, key=len, reverse=True):
            value = value.replace(text, self._names[text])
        return _TIME.sub("<time>", value)


def _lines(exchange: Exchange, seen: _Seen) -> Iterator[str]:
    what = exchange.sent.get("method", "response") if isinstance(exchange.sent, dict) else ""
    yield f"=== {exchange.method} {what}".rstrip()
    if exchange.sent is not None:
        yield from _json(seen.message(exchange.sent, from_client=True))
    yield f"--- {exchange.status}"
    for message in exchange.received:
        yield from _json(seen.message(message, from_client=False))


def _json(value: Any) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode().splitlines()


def _decoded(body: bytes) -> Any:
    try:
        decoded: Json = msgspec.json.decode(body)
        return decoded
    except msgspec.DecodeError:
        return None


def _messages(reply: bytes) -> Iterator[Any]:
    whole = _decoded(reply)
    if whole is not None:
        yield whole
        return
    for line in reply.splitlines():
        if line.startswith(b"data:") and (message := _decoded(line.removeprefix(b"data:").strip())) is not None:
            yield message
