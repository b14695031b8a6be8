"""The help desk in a process of its own, over a real socket."""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]
_START_SECONDS = 20
_EXIT_SECONDS = 8
_EXPECTED_COMPLAINT = "A random key seals"


@contextmanager
def demo_server() -> Iterator[int]:
    """Serve a new help desk; yield its port. At the end it has to leave when told to, and without a complaint."""
    port = free_port()
    command = [sys.executable, "-m", "bridge", "demo", "--port", str(port), "--log-level", "warning"]
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
        process = subprocess.Popen(command, cwd=_REPOSITORY, stdout=said, stderr=complained, text=True)
        try:
            await_accepting(process, port)
            yield port
            process.send_signal(signal.SIGTERM)
            # uvicorn shuts down and then raises the signal again, as a shell expects of it.
            assert process.wait(_EXIT_SECONDS) in (0, -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        assert said.read().startswith(f"The help desk serves http://127.0.0.1:{port}/mcp")
        complained.seek(0)
        complaints = [line for line in complained if not line.startswith(_EXPECTED_COMPLAINT)]
        assert complaints == [], "".join(complaints)


def await_accepting(process: "subprocess.Popen[str]", port: int) -> None:
    gives_up_at = time.monotonic() + _START_SECONDS
    while time.monotonic() < gives_up_at:
        assert process.poll() is None, "the server ended at once"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise AssertionError(f"the server did not accept within {_START_SECONDS} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
