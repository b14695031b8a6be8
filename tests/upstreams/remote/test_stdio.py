"""A command as a server: what comes over its pipes, and that it always ends, with everything that it started."""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import request_message
from bridge.upstreams.remote.stdio import StdioWire
from bridge.upstreams.remote.targets import Command
from tests.upstreams.remote.session import SECONDS, Session, session, until

behaviour = pytest.mark.behaviour
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are of POSIX")


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both event loops that the bridge runs on: each has its own way with processes."""
    return "asyncio", {"use_uvloop": request.param}


ECHO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": message["params"]}), flush=True)
"""


def script(source: str, *args: str) -> Command:
    return Command(sys.executable, ("-c", source, *args))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def ended(pid: int) -> None:
    await until(lambda: not alive(pid))


async def pid_of(client: Session) -> int:
    params, _ = await client.told("pid")
    pid: int = params["pid"]
    return pid


TELL_PID = """
import json, os, signal, subprocess, sys, time
def tell(pid):
    print(json.dumps({"jsonrpc": "2.0", "method": "pid", "params": {"pid": pid}}), flush=True)
"""


@behaviour("UPS-2", "UPS-9")
async def test_a_request_is_answered_over_the_pipes() -> None:
    async with session(StdioWire(script(ECHO))) as client:
        assert await client.request("any", {"number": 2**70, "text": "\\u2028 ü\\n"}) == {
            "number": 2**70,
            "text": "\\u2028 ü\\n",
        }
        assert [identity for _, identity in client.heard] == [None]
        assert StdioWire.names_requests is False


async def test_environment_and_folder_are_those_given(tmp_path: Path) -> None:
    source = TELL_PID + "tell([os.environ['GIVEN'], 'PATH' in os.environ, os.getcwd()]); sys.stdin.read()"
    command = Command(sys.executable, ("-c", source), {"GIVEN": "yes"}, str(tmp_path))
    async with session(StdioWire(command)) as client:
        params, _ = await client.told("pid")
    given, path, folder = params["pid"]
    assert (given, path) == ("yes", True)
    assert os.path.samefile(folder, tmp_path)  # noqa: ASYNC240


async def test_messages_larger_than_any_pipe_pass_both_ways_at_once() -> None:
    async with session(StdioWire(script(ECHO))) as client, anyio.create_task_group() as tasks:
        texts = [letter * 3_000_000 for letter in "abcd"]

        async def echo(text: str) -> None:
            assert (await client.request("any", {"text": text}))["text"] == text

        for text in texts:
            tasks.start_soon(echo, text)


async def test_who_sends_waits_while_the_command_does_not_read() -> None:
    async with session(StdioWire(script("import time; time.sleep(60)"))) as client:
        with anyio.move_on_after(0.3) as scope:
            await client.wire.send(request_message(1, "any", {"text": "x" * 1_000_000}))
        assert scope.cancelled_caught


async def test_a_command_that_does_not_exist_is_named() -> None:
    with pytest.raises(UpstreamUnreachable, match="no command 'no-such-command'"):
        async with session(StdioWire(Command("no-such-command"))):
            pass


async def test_a_folder_that_does_not_exist_is_named() -> None:
    with pytest.raises(UpstreamUnreachable, match=r"'/no/such/folder'.*no such folder"):
        async with session(StdioWire(Command(sys.executable, cwd="/no/such/folder"))):
            pass


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("sys.exit(3)", "the command exited with 3"),
        ("os.kill(os.getpid(), 9)", "the command was ended by SIGKILL"),
        ("sys.exit('no database')", "the command exited with 1; the last that it said was: no database"),
    ],
)
async def test_an_exit_in_the_middle_closes_the_wire_with_its_reason(end: str, why: str) -> None:
    source = f'import os, sys\nprint(\'{{"jsonrpc":"2.0","method":"last"}}\', flush=True)\nsys.stdin.readline()\n{end}'
    async with session(StdioWire(script(source))) as client:
        await client.wire.send(request_message(1, "any", {}))
        assert await client.closed() == why
        assert await client.told("last") == ({}, None)
        with pytest.raises(UpstreamUnreachable, match="the command"):
            await client.wire.send(request_message(2, "any", {}))


async def test_what_was_written_before_an_exit_is_all_handed_over() -> None:
    source = 'import os\nos.write(1, b\'{"jsonrpc":"2.0","method":"n"}\\n\' * 2000)'
    async with session(StdioWire(script(source))) as client:
        await client.closed()
        assert len(client.heard) == 2000


async def test_a_send_that_waits_ends_with_the_command() -> None:
    source = "import sys, time, os; sys.stdin.read(10); os._exit(1)"
    async with session(StdioWire(script(source))) as client:
        with pytest.raises(UpstreamLost):
            await client.wire.send(request_message(1, "any", {"text": "x" * 5_000_000}))


async def test_garbage_on_stdout_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    source = "print('Server ready!', flush=True)\nfor _ in range(100): print(b'\\xff\\x00', '[1, 2')\n" + ECHO
    async with session(StdioWire(script(source))) as client:
        assert await client.request("any", {"a": 1}) == {"a": 1}
    complaints = [record for record in caplog.records if "no message" in record.getMessage()]
    assert "Server ready!" in complaints[0].getMessage()
    assert len(complaints) == 20


async def test_its_stderr_goes_to_the_log_line_by_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bridge.upstream.stderr")
    source = "import sys\nprint('one\\ntwo', 'x' * 100000, file=sys.stderr, flush=True)\n" + ECHO
    async with session(StdioWire(script(source))) as client:
        await client.request("any")
    lines = [record.getMessage().partition(": ")[2] for record in caplog.records if "stderr" in record.name]
    assert lines[0] == "one"
    assert lines[1].startswith("two xxx")
    assert len(lines[1]) < 300_000


async def test_a_flood_of_stderr_neither_blocks_it_nor_fills_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bridge.upstream.stderr")
    source = "import sys\nfor n in range(200_000): print('flood', n, file=sys.stderr)\n" + ECHO
    async with session(StdioWire(script(source))) as client:
        assert await client.request("any", {"a": 1}) == {"a": 1}
    assert 0 < len(caplog.records) < 10_000


@pytest.mark.timeout(60)
async def test_a_line_of_65_mib_closes_the_wire_and_ends_the_command() -> None:
    source = TELL_PID + "tell(os.getpid())\nfor _ in range(65): os.write(1, b'x' * 2**20)\ntime.sleep(60)"
    async with session(StdioWire(script(source))) as client:
        pid = await pid_of(client)
        assert await client.closed() == "the command sent a message of more than 64 MiB"
        await ended(pid)


@behaviour("UPS-9")
async def test_closing_waits_for_a_command_that_ends_by_itself() -> None:
    source = TELL_PID + "tell(os.getpid())\nsys.stdin.read()\nopen(sys.argv[1], 'w').write('tidy')"
    place = Path(os.environ.get("TMPDIR", "/tmp")) / f"bridge-test-{os.getpid()}"
    try:
        async with session(StdioWire(script(source, str(place)))) as client:
            await pid_of(client)
        assert place.read_text() == "tidy"
    finally:
        place.unlink(missing_ok=True)


@behaviour("UPS-9")
async def test_a_command_that_ignores_its_stdin_and_term_is_killed() -> None:
    source = TELL_PID + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntell(os.getpid())\nwhile True: time.sleep(60)"
    async with session(StdioWire(script(source))) as client:
        pid = await pid_of(client)
        with anyio.fail_after(8):
            await client.wire.aclose()
    assert not alive(pid)


@behaviour("UPS-9")
@pytest.mark.parametrize("how", ["closed", "exits", "killed"])
async def test_a_grandchild_is_never_left_behind(how: str) -> None:
    source = TELL_PID + (
        "child = subprocess.Popen(['sleep', '300'])\ntell(child.pid)\ntell(os.getpid())\nsys.stdin.readline()"
    )
    async with session(StdioWire(script(source))) as client:
        grandchild = await pid_of(client)
        if how == "exits":
            await client.wire.send(request_message(1, "any", {}))
            await client.closed()
        if how == "killed":
            await client.until(lambda message: message is not client.heard[0][0])
            os.kill(client.heard[1][0].params["pid"], signal.SIGKILL)  # type: ignore[union-attr]
            await client.closed()
    await ended(grandchild)


@behaviour("UPS-9")
async def test_closing_goes_on_when_who_closes_is_cancelled() -> None:
    source = TELL_PID + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntell(os.getpid())\nwhile True: time.sleep(60)"
    async with session(StdioWire(script(source))) as client:
        pid = await pid_of(client)
        closing = asyncio.ensure_future(client.wire.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        await ended(pid)


async def test_a_start_that_is_cancelled_leaves_nothing() -> None:
    for rounds in range(6):
        opening = asyncio.ensure_future(Session(StdioWire(script("import time; time.sleep(300)"))).open())
        for _ in range(rounds):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.wait([opening])
        if not opening.cancelled():
            pytest.skip("it had started already")


async def test_closing_twice_and_closing_what_never_opened_do_nothing() -> None:
    wire = StdioWire(script(ECHO))
    await wire.aclose()
    async with session(StdioWire(script(ECHO))) as client:
        await client.wire.aclose()
        with pytest.raises(UpstreamUnreachable):
            await client.wire.send(request_message(1, "any", {}))


async def test_many_small_messages_pass_fast() -> None:
    source = (
        'import os\nos.write(1, b\'\')\nfor _ in range(100): os.write(1, b\'{"jsonrpc":"2.0","method":"n"}\\n\' * 1000)'
    )
    async with session(StdioWire(script(source))) as client:
        with anyio.fail_after(SECONDS):
            await client.closed()
        assert len(client.heard) == 100_000
