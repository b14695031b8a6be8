"""What one message of a server may take, and how one is read from its bytes. Every transport uses this one door."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from bridge.errors import ProtocolError
from bridge.protocol.messages import Invalid, Message, RequestId, decode
from bridge.upstreams.wires import Receive

__all__ = ["MAX_MESSAGE_BYTES", "Complaints", "hand_over"]

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""A server is trusted with more than a client: what it sends was asked for."""

_SHOWN_COMPLAINTS: Final = 20
_SHOWN_CHARACTERS: Final = 200
_log = logging.getLogger("bridge.upstream")


class Complaints:
    """Logs what came from one server and is no message: the first of it, and each cut short.

    Args:
        name: the server's.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._made = 0

    def make(self, what: str, data: bytes) -> None:
        """Log that something was skipped, and why."""
        self._made += 1
        if self._made <= _SHOWN_COMPLAINTS:
            text = data[:_SHOWN_CHARACTERS].decode(errors="replace")
            last = "; no more of this kind is logged" if self._made == _SHOWN_COMPLAINTS else ""
            _log.warning("%s sent what is no message, skipped: %s: %r%s", self._name, what, text, last)


async def hand_over(
    data: bytes, identity: RequestId | None, receive: Receive, complaints: Complaints
) -> tuple[Message, ...]:
    """Read a message, or a batch of them, and hand it over.

    Args:
        data: the bytes.
        identity: the request with whose stream it came, or None.
        receive: takes it. What that raises is logged, so that one bad message ends no connection.
        complaints: hears of what is none.

    Returns:
        What was handed over.
    """
    try:
        found = decode(data, MAX_MESSAGE_BYTES)
    except ProtocolError as error:
        complaints.make(error.message, data)
        return ()
    messages = tuple(found) if isinstance(found, list) else (found,)
    for message in messages:
        if isinstance(message, Invalid):
            complaints.make(message.reason, data)
        await _guarded(receive, message, identity)
    return messages


async def _guarded(
    receive: Callable[[Message, RequestId | None], Awaitable[None]], message: Message, identity: RequestId | None
) -> None:
    try:
        await receive(message, identity)
    except Exception:
        _log.exception("a message of a wrapped server could not be taken")
