"""A fleet of help desks: real processes on one store, behind the proxy, that can be killed and started again."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bridge.asking.seal import KeyRing
from bridge.stores import SealedStore, open_store
from tests.operations.processes import await_accepting
from tests.redis_server import free_port

__all__ = ["Fleet", "Node", "fleet"]

REPOSITORY: Final = Path(__file__).parents[2]
_SECRET: Final = "5f" * 32


class Node:
    """One process of `python -m bridge demo`.

    Args:
        folder: where it writes what it complains about.
        url: of the store.
        base_url: where its users reach it: the proxy.
    """

    def __init__(self, folder: Path, url: str, base_url: str) -> None:
        self.port = free_port()
        self.log = folder / f"node-{self.port}.log"
        keys = folder / "keys.txt"
        keys.write_text(_SECRET + "\n")
        keys.chmod(0o600)
        command = [sys.executable, "-m", "bridge", "demo", "--port", str(self.port), "--store", url]
        self._command = [*command, "--key-file", str(keys), "--base-url", base_url, "--log-level", "warning"]
        self._process: subprocess.Popen[str] | None = None

    @property
    def process(self) -> "subprocess.Popen[str]":
        """The process that runs."""
        assert self._process is not None, "the node does not run"
        return self._process

    def start(self) -> None:
        """Start it; it need not listen yet."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                self._command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=log, text=True
            )

    def await_accepting(self) -> None:
        """Wait until it listens."""
        await_accepting(self.process, self.port)

    def kill(self) -> None:
        """End it in the middle of what it does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Tell it to end, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) in (0, -signal.SIGTERM)

    def resident_bytes(self) -> int:
        """What it occupies."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def tracebacks(self) -> list[str]:
        """What went wrong in it."""
        said = self.log.read_text()
        return re.findall(r"Traceback \(most recent call last\):\n(?:[ |+].*\n|\n)*.*", said)


class Fleet:
    """Nodes behind the proxy.

    Args:
        folder: for its files.
        store: the store's URL.
        size: how many nodes.
    """

    def __init__(self, folder: Path, store: str, size: int) -> None:
        self.store = store
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.base_url}/mcp"
        self.nodes = [Node(folder, store, self.base_url) for _ in range(size)]
        self._proxy: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start everything, and wait until it serves."""
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.await_accepting()
        ports = [str(node.port) for node in self.nodes]
        command = [sys.executable, "-m", "tests.fleet.proxy", str(self.port), *ports]
        self._proxy = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        assert self._proxy.stdout is not None
        assert self._proxy.stdout.readline() == "listening\n"

    def end(self) -> None:
        """End everything at once."""
        for process in (self._proxy, *(node._process for node in self.nodes)):
            if process is not None:
                process.kill()
                process.communicate()

    def open_store(self) -> SealedStore:
        """The store, as a node sees it."""
        return SealedStore(open_store(self.store), KeyRing([bytes.fromhex(_SECRET)]))

    def assert_nothing_crashed(self) -> None:
        """No node may have logged an exception."""
        found = [traceback for node in self.nodes for traceback in node.tracebacks()]
        assert found == [], "\n".join(found[:3])


@contextmanager
def fleet(folder: Path, store: str, size: int) -> Iterator[Fleet]:
    """Run a fleet."""
    running = Fleet(folder, store, size)
    try:
        running.start()
        yield running
    finally:
        running.end()
