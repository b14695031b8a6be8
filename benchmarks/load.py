"""What makes load: server processes, a pipelining client to prepare with, and wrk to measure with."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from benchmarks.process import LOAD_CORE

__all__ = ["Connection", "Invalid", "Measure", "Reply", "measure", "process"]

_PIPELINED: Final = 64
_SIZE_TOLERANCE: Final = 0.03

# Requests come from a file, each behind its length in six digits, so that any number of them takes no time to load.
_SCRIPT: Final = """
local file = assert(io.open("{path}", "rb"))
local threads = {{}}
laps = 0
local function following()
  local length = file:read(6)
  return length and file:read(tonumber(length))
end
function setup(thread) table.insert(threads, thread) end
function request()
  local raw = following()
  if raw then return raw end
  laps = laps + 1
  file:seek("set")
  return following()
end
function done(summary, latency)
  local e = summary.errors
  print(string.format(
    '{{"requests":%d,"us":%d,"bytes":%d,"p50_us":%d,"p99_us":%d,"refused":%d,"broken":%d,"laps":%d}}',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    e.status, e.connect + e.read + e.write + e.timeout, threads[1]:get("laps")))
end
"""


class Invalid(Exception):
    """A run that measured something else than it says."""


class Reply(NamedTuple):
    """One HTTP reply."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The value of a header."""
        found = re.search(rb"\r\n%s: *([^\r]*)" % name, self.head, re.IGNORECASE)
        return None if found is None else found[1]

    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


class Connection:
    """A blocking HTTP client that sends many requests at once.

    Args:
        port: the server's.
        process: the server's process.
    """

    def __init__(self, port: int, process: int) -> None:
        self.port = port
        self.process = process
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._buffer = b""

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def post(self, body: Any, headers: dict[str, str], path: str = "/mcp") -> bytes:
        """The bytes of a request; nothing is sent."""
        data = json.dumps(body, separators=(",", ":")).encode()
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Content-Length: {len(data)}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + data

    def exchange(self, requests: Sequence[bytes]) -> Iterator[Reply]:
        """Send requests, give their replies in order."""
        for start in range(0, len(requests), _PIPELINED):
            batch = requests[start : start + _PIPELINED]
            self._socket.sendall(b"".join(batch))
            for _ in batch:
                yield self._reply()

    def _reply(self) -> Reply:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            self._receive()
        head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        reply = Reply(int(head[9:12]), head, b"")
        length = reply.header(b"content-length")
        if length is None:
            raise Invalid(f"a reply without a content-length: {head.decode()}")
        while len(self._buffer) < int(length):
            self._receive()
        body, self._buffer = self._buffer[: int(length)], self._buffer[int(length) :]
        return reply._replace(body=body)

    def _receive(self) -> None:
        data = self._socket.recv(1 << 18)
        if not data:
            raise Invalid("the server has closed the connection")
        self._buffer += data


@contextmanager
def process(name: str, *command: str) -> Iterator[Connection]:
    """Run a server in a process of its own, which ends with all its children."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as running:
        try:
            assert running.stdout is not None
            port = running.stdout.readline()
            if not port:
                raise Invalid(f"the server {name} did not start")
            yield Connection(int(port), running.pid)
        finally:
            os.killpg(running.pid, signal.SIGKILL)


class Measure(NamedTuple):
    """What one run measured. The server's own time for a request says most on a machine that others use too."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    server_us: float


def measure(
    connection: Connection,
    requests: Iterable[bytes],
    seconds: int,
    *,
    connections: int,
    once: bool,
    reply_bytes: float,
) -> Measure:
    """Let wrk send requests as fast as they are answered.

    Args:
        connection: to the server.
        requests: what to send, from the top again when all are sent.
        seconds: for how long.
        connections: how many requests are under way at once.
        once: whether no request may be sent twice.
        reply_bytes: how large right replies are on average, head and body.

    Raises:
        Invalid: refusals, broken connections, replies of another size, or too few requests.
    """
    with TemporaryDirectory() as folder:
        path, script = Path(folder, "requests"), Path(folder, "script.lua")
        path.write_bytes(b"".join(b"%06d%s" % (len(raw), raw) for raw in requests))
        script.write_text(_SCRIPT.format(path=path))
        wrk = [str(shutil.which("wrk")), "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script)]
        command = ["taskset", "-c", str(LOAD_CORE), *wrk, f"http://127.0.0.1:{connection.port}/mcp"]
        before = _processor_seconds(connection.process)
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        busy = _processor_seconds(connection.process) - before
    found = json.loads(output.strip().rpartition("\n")[2])
    if found["refused"] or found["broken"]:
        raise Invalid(f"{found['refused']} replies were not 2xx, {found['broken']} connections broke")
    if once and found["laps"]:
        raise Invalid("the requests did not last for the run; raise STATES_PER_SECOND")
    count = max(1, found["requests"])
    size = found["bytes"] / count
    if abs(size / reply_bytes - 1) > _SIZE_TOLERANCE:
        raise Invalid(f"replies had {size:.0f} bytes on average, right ones have {reply_bytes:.0f}")
    rate = found["requests"] / found["us"] * 1e6
    return Measure(rate, found["p50_us"] / 1000, found["p99_us"] / 1000, busy / count * 1e6)


def _processor_seconds(root: int) -> float:
    """The time of a process, and of those of its children that share its core."""
    core = os.sched_getaffinity(root)
    return sum(_own_seconds(each) for each in _family(root) if os.sched_getaffinity(each) == core)


def _own_seconds(one: int) -> float:
    fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _family(root: int) -> Iterator[int]:
    yield root
    for path in Path(f"/proc/{root}/task").glob("*/children"):
        for child in path.read_text().split():
            yield from _family(int(child))
