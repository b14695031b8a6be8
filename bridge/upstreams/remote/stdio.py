"""A `Wire` over the stdin and stdout of a child process, one JSON message a line; its stderr goes to the log.

Source: basic/transports#stdio of 2025-11-25 and before, basic/transports/stdio of 2026-07-28.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import Json, encode
from bridge.upstreams.remote.child import Child
from bridge.upstreams.remote.limits import MAX_MESSAGE_BYTES, Complaints, hand_over
from bridge.upstreams.remote.targets import Command, name_of
from bridge.upstreams.remote.tasks import Tasks
from bridge.upstreams.wires import Closed, Receive

__all__ = ["StdioWire"]

_LOGGED_PER_SECOND: Final = 200
_log = logging.getLogger("bridge.upstream.stderr")


class StdioWire:
    """A `Wire` to a command, which lives as long as the wire.

    Args:
        command: what is run.
    """

    names_requests: bool = False

    def __init__(self, command: Command) -> None:
        self._name = name_of(command)
        self._complaints = Complaints(self._name)
        self._child = Child(command, MAX_MESSAGE_BYTES, _Log(self._name).take)
        self.spoke = self._child.spoke
        """Set with the first output of the command."""
        self._tasks = Tasks()
        self._why_closed: str | None = "the command was not started"

    async def open(self, receive: Receive, closed: Closed) -> None:
        """See `Wire`: start the command."""
        await self._child.start()
        self._why_closed = None
        self._tasks.start(self._read(receive, closed), f"output of {self._name}")

    async def send(self, message: Json, http: Mapping[str, Any] | None = None) -> None:
        """See `Wire`: return once the message is written, or buffered for a command that reads."""
        if self._why_closed is not None:
            raise UpstreamUnreachable(self._why_closed)
        try:
            await self._child.write(encode(message))
        except BrokenPipeError:
            raise UpstreamUnreachable(self._why_closed or "the command takes no more messages") from None
        except OSError:
            raise UpstreamLost(self._why_closed or "the command stopped reading") from None

    async def initialized(self, revision: str) -> None:
        """See `Wire`: nothing changes here."""

    async def listen(self) -> None:
        """See `Wire`: everything comes the one way."""

    async def aclose(self) -> None:
        """See `Wire`: close its stdin, wait, TERM, wait, KILL; always the whole process group."""
        self._why_closed = self._why_closed or "the wire was closed"
        try:
            await self._child.aclose()
        finally:
            await self._tasks.aclose()

    async def _read(self, receive: Receive, closed: Closed) -> None:
        why = await self._read_lines(receive) or await self._child.why_ended()
        if self._why_closed is None:
            self._why_closed = why
            closed(why)
        await self._child.aclose()

    async def _read_lines(self, receive: Receive) -> str | None:
        """Hand over line by line, until the end; return why no more can be read, where it is not the end."""
        while (lines := await self._child.read()) is not None:
            for line in lines:
                if len(line) > MAX_MESSAGE_BYTES:
                    # Whose reply it was cannot be told, and somebody waits for it.
                    return f"the command sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB"
                await hand_over(line, None, receive, self._complaints)
        return None


class _Log:
    """The stderr of a command in the log: so many lines a second, of the others their number."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._second = 0
        self._lines = 0

    def take(self, line: str) -> None:
        second = int(time.monotonic())
        if second != self._second:
            if self._lines > _LOGGED_PER_SECOND:
                _log.warning("%s: %d lines were not logged", self._name, self._lines - _LOGGED_PER_SECOND)
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= _LOGGED_PER_SECOND:
            _log.info("%s: %s", self._name, line)
