"""Processes that are ended with all that they started, and the wait for their ports."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

START_SECONDS = 30
_END_SECONDS = 5
_POLL_SECONDS = 0.02
_LAST_LINES = 3
_PR_SET_CHILD_SUBREAPER = 36


class DidNotStart(Exception):
    """A server did not come up; the text says what it printed."""


def free_port() -> int:
    """A TCP port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(command: Sequence[str], port: int, cwd: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Run a server while the context is open.

    Raises:
        DidNotStart: it ended, or did not listen within `START_SECONDS`.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            problem = _await_port(process, port)
            if problem is not None:
                said.seek(0)
                last = " / ".join(line.strip() for line in said.read().splitlines()[-_LAST_LINES:] if line.strip())
                raise DidNotStart(f"it {problem}, saying: {last} [{' '.join(command)}]")
            yield
        finally:
            end(process)


def end(process: "subprocess.Popen[Any]") -> None:
    """End a process and its group, kindly at first."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)


@contextmanager
def no_orphans() -> Iterator[None]:
    """End, at the end, what processes left behind outside of their groups, as SDKs start their children.

    Only Linux can tell.
    """
    if sys.platform != "linux":
        yield
        return
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(int(child), signal.SIGKILL)
                os.waitpid(int(child), 0)


def _await_port(process: "subprocess.Popen[Any]", port: int) -> str | None:
    """Wait until somebody listens; return what is wrong instead."""
    gives_up_at = time.monotonic() + START_SECONDS
    while time.monotonic() < gives_up_at:
        if process.poll() is not None:
            return f"ended with {process.returncode}"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(_POLL_SECONDS)
        else:
            return None
    return f"did not listen within {START_SECONDS} s"
