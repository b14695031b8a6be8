"""A child process with its pipes: started in a process group of its own, read and written without blocking, and
ended with everything that it started. Knows no protocol.

Source: basic/transports/stdio#shutdown of 2026-07-28.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import anyio

from bridge.errors import UpstreamUnreachable
from bridge.protocol.lines import LineSplitter
from bridge.upstreams.remote.targets import Command, name_of

__all__ = ["Child"]

_CLOSE_SECONDS: Final = 2.0
"""How long a child may take to end by itself once its stdin is closed."""

_TERM_SECONDS: Final = 2.0
_KILL_SECONDS: Final = 2.0
_EXIT_SECONDS: Final = 1.0
"""How long after the end of its output a child may take to exit."""

_OUTPUT_SECONDS: Final = 1.0
"""How long its output may stay open when nobody is left in its group."""

_LOOK_SECONDS: Final = 0.02
_QUEUED_BYTES: Final = 1024 * 1024
_STDERR_LINE_BYTES: Final = 8 * 1024
_LAST_WORDS: Final = 200
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Child(asyncio.SubprocessProtocol):
    """One child process.

    Args:
        command: what is run.
        max_line_bytes: of a longer line of its stdout the beginning comes, longer than this.
        heard: takes each line of its stderr.
    """

    def __init__(self, command: Command, max_line_bytes: int, heard: Callable[[str], None]) -> None:
        self._command = command
        self._heard = heard
        self._transport: asyncio.SubprocessTransport | None = None
        self._group = 0
        self._ending: asyncio.Task[None] | None = None
        self._output = LineSplitter(max_line_bytes)
        self._errors = LineSplitter(_STDERR_LINE_BYTES)
        self._lines: list[bytes] = []
        self._queued_bytes = 0
        self._stirred = asyncio.Event()
        self._output_ended = asyncio.Event()
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._stdin_lost = False
        self._last_words = ""
        self.spoke = asyncio.Event()
        """Set with its first output, on stdout or stderr."""

    async def start(self) -> None:
        """Start it.

        Raises:
            UpstreamUnreachable: it cannot be started.
        """
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        loop, command = asyncio.get_running_loop(), self._command
        starting = asyncio.ensure_future(
            loop.subprocess_exec(
                lambda: self,
                command.command,
                *command.args,
                env={**os.environ, **command.env},
                cwd=command.cwd,
                **options,
            )
        )
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # It is there or will be at once, and nobody else knows of it.
            starting.add_done_callback(self._end_unwanted)
            raise
        except (OSError, ValueError) as error:
            raise UpstreamUnreachable(self._why_not_started(error)) from None
        self._writable.set()

    async def read(self) -> list[bytes] | None:
        """Return the lines of its stdout that have come, at least one; None at the end."""
        while not self._lines:
            if self._output_ended.is_set():
                return None
            self._stirred.clear()
            await self._stirred.wait()
        lines, self._lines, self._queued_bytes = self._lines, [], 0
        if (pipe := self._pipe(_STDOUT)) is not None and not self._output_ended.is_set():
            pipe.resume_reading()
        return lines

    async def write(self, line: bytes) -> None:
        """Write a line to its stdin; wait while it does not read. Cancelled, the line still goes.

        Raises:
            BrokenPipeError: it takes nothing any more, and did not get this line.
            ConnectionResetError: it stopped to read, and may have got it.
        """
        pipe = self._pipe(_STDIN)
        if pipe is None or self._stdin_lost or self._ending is not None or pipe.is_closing():
            raise BrokenPipeError
        pipe.write(line + b"\n")
        await self._writable.wait()
        if self._stdin_lost:
            raise ConnectionResetError

    async def why_ended(self) -> str:
        """How it ended, once its output has; what it said last on stderr included."""
        with anyio.move_on_after(_EXIT_SECONDS):
            await self._exited.wait()
        code = self._transport.get_returncode() if self._transport is not None else None
        if code is None:
            return "the command closed its output"
        how = f"exited with {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        last_words = f"; the last that it said was: {self._last_words}" if self._last_words else ""
        return f"the command {how}{last_words}"

    async def aclose(self) -> None:
        """End it and all that is left of its process group, in bounded time. That goes on where this is cancelled."""
        if self._transport is None:
            return
        await asyncio.shield(self._end_soon())

    def _end_soon(self) -> "asyncio.Task[None]":
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(), name="end of a command")
        return self._ending

    def _end_unwanted(self, starting: "asyncio.Future[Any]") -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._end_soon()

    async def _end(self) -> None:
        assert self._transport is not None
        try:
            if (stdin := self._pipe(_STDIN)) is not None:
                stdin.close()
            await self._gone_within(_CLOSE_SECONDS, children_too=False)
            for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (_KILL, _KILL_SECONDS)):
                if self._signal(number):
                    await self._gone_within(seconds, children_too=True)
            with anyio.move_on_after(_OUTPUT_SECONDS):
                await self._output_ended.wait()
        finally:
            # Also where the loop itself is ending, which leaves no time.
            self._signal(_KILL)
            self._transport.close()

    async def _gone_within(self, seconds: float, *, children_too: bool) -> None:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
            while children_too and self._signal(0):  # noqa: ASYNC110 - nobody tells when a grandchild has ended
                await anyio.sleep(_LOOK_SECONDS)

    def _signal(self, number: int) -> bool:
        """Send a signal to the whole group, which the child led; return whether anybody is left in it."""
        assert self._transport is not None
        if sys.platform == "win32":
            if number and not self._exited.is_set():
                self._transport.terminate()
            return not self._exited.is_set()
        try:
            os.killpg(self._group, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _why_not_started(self, error: Exception) -> str:
        command, folder = self._command.command, self._command.cwd
        if folder is not None and not os.path.isdir(folder):
            return f"the command {command!r} cannot be started in {folder!r}: there is no such folder"
        if isinstance(error, FileNotFoundError):
            return f"there is no command {command!r}: install {name_of(self._command)}, or give its full path"
        return f"the command {command!r} cannot be started: {error}"

    def _pipe(self, number: int) -> Any:
        return None if self._transport is None else self._transport.get_pipe_transport(number)

    # What follows is called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is one too, and does not say so.
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._group = self._transport.get_pid() or 0

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.spoke.set()
        if fd == _STDERR:
            self._hear(self._errors.feed(data))
            return
        self._take(self._output.feed(data))
        self._queued_bytes += len(data)
        if self._lines and self._queued_bytes > _QUEUED_BYTES:
            self._pipe(_STDOUT).pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _STDIN:
            self._stdin_lost = True
            self._writable.set()
        elif fd == _STDERR:
            self._hear(self._errors.end())
        else:
            self._take(self._output.end())
            self._output_ended.set()
            self._stirred.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def process_exited(self) -> None:
        self._exited.set()
        # What it started and left behind goes too: at once, as long as the number of its group means this group.
        self._end_soon()

    def _take(self, lines: list[bytes]) -> None:
        self._lines += lines
        if lines:
            self._stirred.set()

    def _hear(self, lines: list[bytes]) -> None:
        for line in lines:
            text = line.decode(errors="replace").rstrip()
            self._last_words = text[:_LAST_WORDS]
            self._heard(text)


_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
