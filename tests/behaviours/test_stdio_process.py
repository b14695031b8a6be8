"""stdio in a process of its own: what reaches its stdout, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.behaviours.pipes import META, hello, request
from tests.wiretap import Conversation, Tap

behaviour = pytest.mark.behaviour

REPOSITORY = Path(__file__).parents[2]
EXIT_SECONDS = 15
ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": ""}
DEMO = [sys.executable, "-m", "bridge", "demo", "--stdio"]

NOISY = """
import ctypes, os, subprocess, sys
print("noise: before it serves")
from bridge import Bridge
bridge = Bridge("noisy")

@bridge.tool
def shout() -> str:
    print("noise: print")
    sys.__stdout__.write("noise: the first sys.stdout\\n")
    sys.stdout.flush()
    os.write(1, b"noise: descriptor 1\\n")
    ctypes.CDLL(None).puts(b"noise: the C library")
    subprocess.run(["echo", "noise: a child"], check=True)
    return sys.stdin.read() + subprocess.run(["cat"], stdout=subprocess.PIPE, text=True, check=True).stdout

bridge.run_stdio()
"""


class Process:
    """A server, and the client that started it."""

    def __init__(self, process: "subprocess.Popen[bytes]", tap: Tap, complaints: Any) -> None:
        self.process = process
        self._conversation = Conversation(tap)
        self._complaints = complaints

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self._conversation.heard(message)
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def next(self) -> Any:
        """The next message; None at the end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return None
        message = json.loads(line)
        self._conversation.said(message)
        return message

    def initialize(self) -> None:
        self.send(request("init", "initialize", hello(elicitation={})))
        assert self.next()["id"] == "init"
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, identity: Any = 1, **arguments: Any) -> None:
        self.send(request(identity, "tools/call", {"name": tool, "arguments": arguments}))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def exit_code(self) -> int:
        return self.process.wait(EXIT_SECONDS)

    def complaints(self) -> str:
        """What is on stderr."""
        self._complaints.seek(0)
        text: str = self._complaints.read().decode()
        return text


@contextmanager
def started(command: list[str], tap: Tap) -> Iterator[Process]:
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            command, cwd=REPOSITORY, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints
        ) as process,
    ):
        try:
            yield Process(process, tap, complaints)
        finally:
            process.kill()


@pytest.fixture
def demo(tap: Tap) -> Iterator[Process]:
    """The help desk."""
    with started(DEMO, tap) as process:
        yield process


@behaviour("TRN-7")
@pytest.mark.skipif(sys.platform == "win32", reason="it uses the C library of a POSIX system")
def test_nothing_but_the_protocol_reaches_stdout(tap: Tap) -> None:
    with started([sys.executable, "-c", NOISY], tap) as noisy:
        noisy.initialize()
        noisy.call("shout")
        # Nor does what it starts read what the client sends.
        assert noisy.next()["result"]["content"] == [{"type": "text", "text": ""}]
        noisy.close()
        assert noisy.next() is None
        assert noisy.exit_code() == 0
        said = noisy.complaints()
        for what in ("before it serves", "print", "the first sys.stdout", "descriptor 1", "the C library", "a child"):
            assert f"noise: {what}\n" in said


@behaviour("TRN-1", "TRN-6")
def test_the_demo_serves_both_eras_until_stdin_ends(demo: Process) -> None:
    demo.initialize()
    demo.call("history")
    assert demo.next()["result"]["structuredContent"] == {"result": []}
    demo.send(request(2, "tools/call", {"name": "close_ticket", "arguments": {"id": "T-1"}, "_meta": META}))
    assert demo.next()["result"]["resultType"] == "input_required"
    demo.close()
    assert demo.next() is None
    assert demo.exit_code() == 0
    assert demo.complaints() == ""


@behaviour("TRN-6")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_it_and_what_waits_for_a_person_is_told(demo: Process, number: signal.Signals) -> None:
    demo.initialize()
    demo.call("close_ticket", id="T-1")
    assert demo.next()["method"] == "elicitation/create"
    demo.process.send_signal(number)
    assert "shutting down" in demo.next()["error"]["message"]
    assert demo.next() is None
    assert demo.exit_code() == 0
    assert demo.complaints() == ""


def test_a_cancelled_call_gets_nothing_more(demo: Process) -> None:
    demo.initialize()
    demo.call("close_ticket", id="T-1")
    question = demo.next()
    demo.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    answer = {"action": "accept", "content": {"confirm": True}}
    demo.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    demo.call("history", identity=2)
    reply = demo.next()
    assert (reply["id"], reply["result"]["structuredContent"]) == (2, {"result": []})


@behaviour("TRN-1")
def test_it_can_be_given_files(tmp_path: Path, tap: Tap) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    messages = [request(0, "initialize", hello()), *(request(n, "tools/list") for n in range(1, 51))]
    asked.write_text("\n".join(map(json.dumps, messages)))
    with asked.open("rb") as stdin, answered.open("wb") as stdout:
        subprocess.run(DEMO, cwd=REPOSITORY, stdin=stdin, stdout=stdout, timeout=EXIT_SECONDS * 2, check=True)
    conversation = Conversation(tap)
    conversation.heard(messages)
    replies = [json.loads(line) for line in answered.read_text().splitlines()]
    for reply in replies:
        conversation.said(reply)
    assert sorted(reply["id"] for reply in replies) == list(range(51))


@behaviour("TRN-6")
def test_a_client_that_goes_without_a_word_is_noticed(demo: Process) -> None:
    demo.initialize()
    demo.call("close_ticket", id="T-1")
    demo.next()
    assert demo.process.stdout is not None
    demo.process.stdout.close()
    demo.send(request(2, "ping"))
    assert demo.exit_code() == 0
