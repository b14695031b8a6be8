"""Reads server-sent events out of the bytes of a stream. Pure.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation.
"""

from typing import Final

import msgspec

from bridge.errors import ProtocolError
from bridge.protocol.messages import PARSE_ERROR

__all__ = ["Event", "EventReader"]

_MAX_RETRY_SECONDS: Final = 300.0


class Event(msgspec.Struct, frozen=True):
    """One event.

    Args:
        kind: its `event` field; `message` where it has none.
        data: its data, lines joined by newlines. An event without any only moves the id on, and is not returned.
    """

    kind: str
    data: bytes


class EventReader:
    """What one stream has said so far, over all its connections.

    Args:
        max_bytes: how large an event may be.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.last_id = ""
        """The id to go on from when the connection breaks; empty where that cannot be done."""
        self.retry_seconds: float | None = None
        """How long the server wants to be left alone before a reconnect."""
        self.reconnect()

    def reconnect(self) -> None:
        """Forget what was left of an event when its connection broke."""
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._ended_in_cr = False
        self._is_first = True
        self._kind = ""
        self._id: str | None = None
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete now.

        Raises:
            ProtocolError: one that is larger than it may be.
        """
        lines = self._lines(data)
        events: list[Event] = []
        for line in lines:
            if line:
                self._field(line)
            elif (event := self._dispatch()) is not None:
                events.append(event)
        if self._held_bytes > self._max_bytes:
            raise ProtocolError(PARSE_ERROR, f"an event is larger than {self._max_bytes} bytes")
        return events

    def _lines(self, data: bytes) -> list[bytes]:
        if self._ended_in_cr and data.startswith(b"\n"):
            data = data[1:]
        self._ended_in_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._is_first and data:
            self._is_first = False
            data = data.removeprefix(b"\xef\xbb\xbf")
        self._held_bytes += len(data)
        first, *others = data.split(b"\n")
        # Pieces are joined once: a large event comes in many.
        self._pieces.append(first)
        if not others:
            return []
        lines = [b"".join(self._pieces), *others[:-1]]
        self._pieces = [others[-1]]
        return lines

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit():
            self.retry_seconds = min(int(value[:9]) / 1000, _MAX_RETRY_SECONDS)

    def _dispatch(self) -> Event | None:
        kind, data, self._kind, self._data = self._kind, self._data, "", []
        self._held_bytes = len(self._pieces[0])
        if self._id is not None:
            # Only now: what comes before the blank line may be cut off, and must then come again.
            self.last_id, self._id = self._id, None
        joined = b"\n".join(data)
        return Event(kind or "message", joined) if joined else None
