"""The tap as ASGI middleware. What passes is forwarded at once and unchanged; copies are read on the side.

Streamable HTTP of both eras, HTTP+SSE of 2024-11-05 and WebSocket. Responses that have nothing to do with
JSON-RPC (pages, metadata, a 401 of its own kind) pass unjudged.
"""

import codecs
import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .rules import LEGACY, MODERN
from .tap import Conversation, Tap, has_modern_envelope

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Event, Receive, Send], Awaitable[None]]

_UNREADABLE = object()


def tap_asgi(app: App, tap: Tap) -> App:
    """The same app, with `tap` listening to every HTTP exchange and WebSocket."""

    async def tapped(scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await app(scope, receive, send)
            return
        line = _Socket(tap) if scope["type"] == "websocket" else _Exchange(tap, scope)

        async def heard() -> Event:
            event = await receive()
            _guarded(tap, line.heard, event)
            return event

        async def said(event: Event) -> None:
            # Judged first: once the last part is sent, the test may be over.
            _guarded(tap, line.said, event)
            await send(event)

        await app(scope, heard, said)

    return tapped


def _guarded(tap: Tap, watch: Callable[[Event], None], event: Event) -> None:
    """A fault of the tap must not change what the app sees, nor stay hidden."""
    try:
        watch(event)
    except Exception as fault:
        tap.report([f"the tap itself failed: {fault!r}"], repr(event))


class _Socket:
    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._conversation = Conversation(tap)

    def heard(self, event: Event) -> None:
        if event["type"] == "websocket.receive":
            self._conversation.heard(_decoded(event.get("text") or event.get("bytes")))

    def said(self, event: Event) -> None:
        if event["type"] != "websocket.send":
            return
        if event.get("text") is None:
            self._tap.report(["a message that is not a text frame"], repr(event))
            return
        message = _decoded(event["text"])
        if message is _UNREADABLE:
            self._tap.report(["not JSON"], event["text"])
        else:
            self._conversation.said(message)


class _Exchange:
    """One HTTP request and its response."""

    def __init__(self, tap: Tap, scope: Event) -> None:
        self._tap = tap
        self._headers = _headers(scope)
        self._request = bytearray()
        self._response = bytearray()
        self._events = SseReader()
        self._asks = False
        self._starts_session = False
        self._status = 0
        self._media_type = ""
        self._sent_headers: dict[str, str] = {}
        self._conversation = self._known(scope) or Conversation(tap, self._named_revision(), is_whole=False)

    def _known(self, scope: Event) -> Conversation | None:
        by_endpoint = self._tap.endpoints.get(_endpoint(scope["path"], scope.get("query_string", b"").decode()))
        return by_endpoint or self._tap.sessions.get(self._headers.get("mcp-session-id", ""))

    def _named_revision(self) -> str | None:
        named = self._headers.get("mcp-protocol-version")
        return named if named in (*LEGACY, MODERN) else None

    def heard(self, event: Event) -> None:
        if event["type"] != "http.request":
            return
        self._request += event.get("body", b"")
        if event.get("more_body"):
            return
        message = _decoded(bytes(self._request))
        entries = [entry for entry in _entries(message) if isinstance(entry, dict)]
        self._asks = any(_is_json_rpc(entry) and "method" in entry and "id" in entry for entry in entries)
        is_modern = any(has_modern_envelope(entry) for entry in entries)
        self._starts_session = not is_modern and any(entry.get("method") == "initialize" for entry in entries)
        if self._conversation in self._tap.endpoints.values():
            pass  # What is posted there is answered on the stream, whatever it is.
        elif self._starts_session:
            self._conversation = Conversation(self._tap)
        elif is_modern or self._headers.get("mcp-protocol-version") == MODERN:
            self._conversation = Conversation(self._tap, MODERN)
        self._conversation.heard(message)

    def said(self, event: Event) -> None:
        if event["type"] == "http.response.start":
            self._begin(event)
        elif event["type"] == "http.response.body":
            self._go_on(event.get("body", b""), is_last=not event.get("more_body"))

    def _begin(self, event: Event) -> None:
        self._status, self._sent_headers = event["status"], _headers(event)
        self._media_type = self._sent_headers.get("content-type", "").partition(";")[0].strip().lower()
        session_id = self._sent_headers.get("mcp-session-id")
        if session_id and self._starts_session:
            self._tap.sessions[session_id] = self._conversation
        if session_id and self._conversation.revision == MODERN:
            self._report(f"mcp-session-id: a header that {MODERN} does not have")
        if self._is_stream and (self._asks or "mcp-session-id" in self._headers):
            self._check_stream_headers()

    @property
    def _is_stream(self) -> bool:
        return self._media_type == "text/event-stream"

    def _check_stream_headers(self) -> None:
        directives = {word.strip() for word in self._sent_headers.get("cache-control", "").lower().split(",")}
        if not {"no-cache", "no-transform"} <= directives:
            self._report("cache-control: a stream needs no-cache, no-transform")
        if self._sent_headers.get("x-accel-buffering", "").lower() != "no":
            self._report("x-accel-buffering: a stream needs no")

    def _go_on(self, part: bytes, *, is_last: bool) -> None:
        if self._is_stream:
            for event in self._events.feed(part):
                self._stream_event(event)
            return
        self._response += part
        if is_last:
            self._body(bytes(self._response))

    def _stream_event(self, event: "SseEvent") -> None:
        if event.name == "endpoint":  # HTTP+SSE of 2024-11-05: where the client is to post.
            url = urlsplit(event.data)
            self._conversation = Conversation(self._tap)
            self._tap.endpoints[_endpoint(url.path, url.query)] = self._conversation
            self._check_stream_headers()
        elif event.name == "message":
            message = _decoded(event.data)
            if message is not _UNREADABLE:
                self._conversation.said(message)
            elif self._asks or self._conversation.revision:
                self._report(f"an event that is not JSON: {event.data[:300]}")

    def _body(self, body: bytes) -> None:
        if self._status == 202 and body:
            self._report(f"202 with a body: {body[:300]!r}")
        message = _decoded(body)
        is_json = self._media_type == "application/json"
        if any(_is_json_rpc(entry) for entry in _entries(message)):
            if not is_json:
                self._report(f"content-type: {self._media_type!r} on a JSON body")
            self._conversation.said(message)
        elif is_json and message is _UNREADABLE and body:
            self._report(f"content-type: JSON on what is not JSON: {body[:300]!r}")
        elif self._status == 200 and self._asks:
            self._report(f"a request was answered with what is not JSON-RPC: {body[:300]!r}")

    def _report(self, problem: str) -> None:
        shown = f"HTTP {self._status} {self._sent_headers}"
        self._tap.report([problem], shown, revision=self._conversation.revision)


class SseEvent(NamedTuple):
    name: str
    data: str


class SseReader:
    """Reads an event stream as it comes, however it is cut."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._rest = ""
        self._name = ""
        self._data: list[str] = []

    def feed(self, part: bytes) -> Iterator[SseEvent]:
        """The events that this part completes; comments and events without data (priming) are none."""
        text = self._rest + self._decode(part)
        held = "\r" if text.endswith("\r") else ""  # It may be half of a CRLF.
        lines = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = lines.pop() + held
        for line in lines:
            if line:
                self._field(*line.partition(":")[::2])
                continue
            name, data = self._name or "message", "\n".join(self._data)
            self._name, self._data = "", []
            if data:
                yield SseEvent(name, data)

    def _field(self, name: str, value: str) -> None:
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value


def _endpoint(path: str, query: str) -> str:
    return query or path


def _headers(event: Event) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in event.get("headers", ())}


def _entries(message: Any) -> list[Any]:
    return message if isinstance(message, list) else [message]


def _is_json_rpc(entry: Any) -> bool:
    return isinstance(entry, dict) and "jsonrpc" in entry


def _decoded(text: str | bytes | None) -> Any:
    try:
        return json.loads(text or b"")
    except (ValueError, RecursionError):
        return _UNREADABLE
