"""The command, as a user runs it."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from bridge import __version__
from bridge.demo.helpdesk import make
from docs.make_cli import PAGE, page

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


def bridge(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bridge", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=folder, env={**os.environ, **HERE}
    )


HERE = {"PYTHONPATH": str(Path(__file__).parent.parent)}
TARGETS = {
    "no-target": ([], "Missing argument"),
    "no-file": (["nowhere.py:mcp"], "there is no file nowhere.py"),
    "no-module": (["nowhere:mcp"], "there is no module nowhere"),
    "no-attribute": (["target.py:nothing"], "target.py has no attribute 'nothing'; it has served"),
    "no-server": (["target.py:number"], "builtins.int is no server that can be wrapped"),
    "broken": (["broken.py:x"], "broken.py cannot be imported: ZeroDivisionError: division by zero"),
    "no-form": (["target.py"], "give file.py:attribute, module:attribute, a URL, or -- and a command"),
    "two": (["target.py:served", "more"], "a command stands after --"),
    "no-scheme": (["ftp://example.com"], "is no URL of an MCP server"),
    "refused": (["http://127.0.0.1:9/mcp"], "http://127.0.0.1:9/mcp"),
    "no-command": (["--", "no-such-command"], "no-such-command"),
    "exits": (["--", sys.executable, "-c", "raise SystemExit(3)"], "exited with 3"),
    "no-mcp": (["--", sys.executable, "-c", "print('hello'); input()"], sys.executable.rpartition("/")[2]),
    "header": (["http://127.0.0.1:9/mcp", "--header", "nonsense"], "--header wants 'Name: value'"),
    "set-up": (["target.py:served", "--resume", "rerun"], "--resume cannot be"),
}


@pytest.mark.parametrize(("arguments", "said"), TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("command", ["serve", "stdio"])
@behaviour("UPS-2")
def test_what_cannot_be_wrapped_is_said_in_one_line(
    tmp_path: Path, command: str, arguments: list[str], said: str
) -> None:
    (tmp_path / "target.py").write_text("from bridge import Bridge\nserved = Bridge('b')\nnumber = 3\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    ran = bridge(command, *arguments, folder=tmp_path)
    assert ran.returncode == (2 if said == "Missing argument" else 1)
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    last = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert len(last) == (0 if ran.returncode == 2 else 1)


@behaviour("UPS-2", "TRN-7")
def test_stdio_serves_what_a_command_serves(tmp_path: Path) -> None:
    server = str(Path(__file__).parent / "upstreams" / "plain_server.py")
    command = [sys.executable, "-m", "bridge", "stdio", "--", sys.executable, server, str(tmp_path / "journal")]
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    said = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {}}},
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            for message in said:
                running.stdin.write(json.dumps(message) + "\n")
            replies = [json.loads(running.stdout.readline()) for _ in range(2)]
            running.stdin.close()
            assert running.wait(20) == 0
        finally:
            running.kill()
    assert replies[0]["result"]["serverInfo"]["name"] == "plain"
    assert replies[1]["result"]["content"][0]["text"] == "echo"


def run(*arguments: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bridge", *arguments]
    given = {**os.environ, **HERE, "COLUMNS": "110", **surroundings}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=given)


COMMANDS = ("demo", "serve", "stdio", "check", "keys")


def test_without_a_command_it_explains_itself() -> None:
    ran = run()
    assert ran.returncode == 0
    assert ran.stdout == run("--help").stdout
    for name in COMMANDS:
        assert f" {name} " in ran.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_its_exit_codes_mean(name: str) -> None:
    ran = run(name, "--help")
    assert ran.returncode == 0
    assert "Exit codes" in ran.stdout
    assert "2: the command line is not as above" in ran.stdout


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"{__version__}\n"


def test_the_shell_completes_commands_and_options() -> None:
    script = "from bridge.cli import app; app(prog_name='mcp-session-bridge')"

    def completed(words: str, count: int) -> list[str]:
        given = {**os.environ, **HERE, "COMP_WORDS": words, "COMP_CWORD": str(count)}
        given["_MCP_SESSION_BRIDGE_COMPLETE"] = "complete_bash"
        ran = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=given
        )
        return ran.stdout.split()

    assert completed("mcp-session-bridge ch", 1) == ["check"]
    assert "--console-token-file" in completed("mcp-session-bridge serve --con", 2)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["serve", "nowhere.py:mcp"], "--help after the command lists what it takes"),
        (["serve", "http://127.0.0.1:9/mcp", "--store", "memory"], "start the server behind by itself"),
        (["check", "http://127.0.0.1:9/mcp"], "start the server behind by itself"),
        (["demo", "--store", "carrier-pigeon://x"], "--help after the command lists what it takes"),
    ],
)
def test_an_error_is_one_line_and_a_hint_is_the_next(arguments: list[str], hint: str) -> None:
    ran = run(*arguments)
    assert ran.returncode == 1
    error, hinted = [line for line in ran.stderr.splitlines() if line.startswith(("error: ", "hint: "))]
    assert error.startswith("error: ")
    assert hinted.startswith(f"hint: {hint}")


def test_the_page_about_the_command_line_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == page(), "run python -m docs.make_cli"


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (["--console"], "", "--console needs a token, also on loopback"),
        (["--console"], "short", "a console token has at least 20 characters, not 5"),
        (["--console-token-file", "/nowhere/token"], "", "the console token cannot be read from /nowhere/token"),
    ],
)
def test_a_console_is_not_served_without_a_token_that_nobody_guesses(
    arguments: list[str], token: str, said: str
) -> None:
    ran = run("serve", "bridge.demo.helpdesk:bridge", *arguments, MCP_SESSION_BRIDGE_CONSOLE_TOKEN=token)
    assert ran.returncode == 1
    assert said in ran.stderr
