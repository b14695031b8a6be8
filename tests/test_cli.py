"""The command, as a user runs it."""

import re
import socket
import subprocess
import sys
import time
from urllib.request import Request, urlopen

import pytest

from bridge.demo.helpdesk import make

behaviour = pytest.mark.behaviour


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bridge", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "--no-auth"),
        (["--store", "carrier-pigeon://x"], "carrier-pigeon"),
        (["--key-file", "/nowhere/keys"], "/nowhere/keys"),
    ],
    ids=["exposed", "store", "keys"],
)
@behaviour("AUT-3")
def test_what_cannot_be_served_is_said_in_one_line(arguments: list[str], said: str) -> None:
    ran = demo(*arguments)
    assert ran.returncode == 1
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


@behaviour("AUT-3")
def test_the_demo_serves_a_named_host_where_that_is_allowed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bridge", "demo", "--host", "0.0.0.0", "--port", str(port), "--no-auth"]
    command += ["--allow-host", "desk.example", "--base-url", "https://desk.example/", "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1) as server:
        assert server.stdout is not None
        try:
            assert "https://desk.example/mcp" in server.stdout.readline()
            curl = ""
            while "-d '" not in curl:
                line = server.stdout.readline()
                assert line, "it ended"
                curl += line
            headers = dict(re.findall(r"-H '([^:]+): ([^']*)'", curl))
            body = re.search(r"-d '(.*)'", curl)
            assert body is not None
            request = Request(
                f"http://127.0.0.1:{port}/mcp", body[1].encode(), {**headers, "Host": "desk.example"}, method="POST"
            )
            assert b"Close" in wait_for(request)
        finally:
            server.terminate()
            server.communicate(timeout=20)


def wait_for(request: Request) -> bytes:
    """Send a request as soon as somebody listens."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            with urlopen(request, timeout=5) as reply:
                answer: bytes = reply.read()
                return answer
        except ConnectionRefusedError:
            continue
        except OSError as error:
            if not isinstance(getattr(error, "reason", None), ConnectionRefusedError):
                raise
    raise AssertionError("nobody listens")


def test_the_demo_takes_the_options_of_a_bridge() -> None:
    assert make(allowed_hosts=("desk.example",)).options.allowed_hosts == ("desk.example",)
