"""The clients of the matrix: what each is, and its driver, one process that visits all servers."""

import json
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal, TextIO

import msgspec

from tests.matrix.processes import end
from tests.matrix.profiles import Json, Profile
from tests.matrix.servers import TRANSPORTS, Place, Transport
from tests.peers.driving import driver_command
from tests.peers.environments import OF_NPM, install, node

Asked = Literal["form", "chat", "refused", "once"]
"""How a client is asked through the bridge: by a form; in the chat; not at all, which it is told; or in the chat by a
session that is over before anybody can answer."""
_CALL_SECONDS = 15
_VISIT_SECONDS = 60
_EXIT_SECONDS = 3
_INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
_REMOTE = "node_modules/mcp-remote/dist/proxy.js"
_DRIVERS = Path(__file__).parents[1] / "peers" / "drivers"


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A client of the matrix.

    Args:
        name: in short.
        title: for people.
        program: its driver.
        mode: the era that it speaks, where it can choose.
        can_be_asked: whether it declares `elicitation`.
        asked: how the bridge asks it.
        transports: what it can speak.
        over: by what it reaches the bridge.
        shows_progress: over what it shows all progress. The clients in TypeScript lose what arrives together with the
            result, over HTTP+SSE and stdio: they look up who is told of progress only after they have read on.
        through_remote: whether it starts mcp-remote, as its server over stdio.
    """

    name: str
    title: str
    program: Literal["mcp1", "mcp2", "fastmcp4", "ts1", "ts2", "raw", "inspector"]
    asked: Asked
    mode: Literal["legacy", "auto", "2026-07-28"] = "legacy"
    can_be_asked: bool = True
    transports: tuple[Transport, ...] = ("http", "sse", "stdio")
    over: Transport = "http"
    shows_progress: tuple[Transport, ...] = ("http", "sse", "ws", "stdio")
    through_remote: bool = False


_MODERN: Literal["2026-07-28"] = "2026-07-28"
_MCP1: tuple[Transport, ...] = ("http", "sse", "ws")
CLIENTS: tuple[Client, ...] = (
    Client(name="mcp2-modern", title="mcp 2.3.0, 2026-07-28, shows forms", program="mcp2", mode=_MODERN, asked="form"),
    Client(
        name="mcp2-silent",
        title="mcp 2.3.0, 2026-07-28, without elicitation",
        program="mcp2",
        mode=_MODERN,
        can_be_asked=False,
        asked="refused",
    ),
    Client(name="mcp2-legacy", title="mcp 2.3.0, legacy, with a callback", program="mcp2", asked="form"),
    Client(
        name="mcp1-http",
        title="mcp 1.30.0 over HTTP, with a callback",
        program="mcp1",
        asked="form",
        transports=_MCP1,
    ),
    Client(
        name="mcp1-http-chat",
        title="mcp 1.30.0 over HTTP, chat",
        program="mcp1",
        can_be_asked=False,
        asked="chat",
        transports=_MCP1,
    ),
    *(
        Client(
            name=f"mcp1-{transport}{'' if can_be_asked else '-chat'}",
            title=f"mcp 1.30.0 over {TRANSPORTS[transport]}, {'with a callback' if can_be_asked else 'chat'}",
            program="mcp1",
            can_be_asked=can_be_asked,
            asked="form" if can_be_asked else "chat",
            transports=(transport,),
            over=transport,
        )
        for transport in ("stdio", "sse", "ws")
        for can_be_asked in (True, False)
    ),
    Client(name="fastmcp4", title="FastMCP 4.2.3, either era", program="fastmcp4", mode="auto", asked="form"),
    Client(
        name="ts1",
        title="@modelcontextprotocol/sdk 1.32.2",
        program="ts1",
        asked="form",
        shows_progress=("http",),
    ),
    Client(
        name="ts2",
        title="@modelcontextprotocol/client 2.4.0, either era",
        program="ts2",
        mode="auto",
        asked="form",
        shows_progress=("http",),
    ),
    Client(
        name="mcp-remote",
        title="mcp-remote 0.15.1, started by mcp 1.30.0 over stdio",
        program="mcp1",
        asked="form",
        transports=("http", "sse"),
        through_remote=True,
    ),
    Client(
        name="inspector",
        title="Inspector 2.12.0, its command line",
        program="inspector",
        can_be_asked=False,
        asked="once",
        shows_progress=(),
    ),
    Client(
        name="raw",
        title="2024-11-05 by hand, chat",
        program="raw",
        can_be_asked=False,
        asked="chat",
        transports=("http",),
    ),
)


class Driver:
    """The process that drives one client. It is started when it is first needed, and again after it hung or died."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._busy = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._complaints: TextIO = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - lives as long as it

    @property
    def is_busy(self) -> bool:
        """Whether it visits a server right now."""
        return self._busy.locked()

    def visit(self, place: Place, profile: Profile) -> Json:
        """Make all calls at one server; return `report`, or `failed` and why."""
        with self._busy:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            overdue = threading.Timer(_VISIT_SECONDS + _EXIT_SECONDS, end, (process,))
            overdue.start()
            try:
                process.stdin.write(json.dumps(_plan(self.client, place, profile)) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    said: Json = json.loads(line)
                    if "report" in said or "failed" in said:
                        return said
            except BrokenPipeError:
                pass
            finally:
                overdue.cancel()
            self.close()
            self._complaints.seek(0)
            return {"failed": f"the client ended: {''.join(self._complaints.read().strip().splitlines()[-1:])}"}

    def close(self) -> None:
        """Let it go; it ends by itself when there is nothing more to read."""
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(subprocess.TimeoutExpired, BrokenPipeError, ValueError):
                self._process.communicate(timeout=_EXIT_SECONDS)
            end(self._process)
            self._process = None

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            self._complaints.seek(0)
            self._complaints.truncate()
            command, cwd = _command(self.client)
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                text=True,
                bufsize=1,
                start_new_session=True,
            )
        return self._process


def _command(client: Client) -> tuple[list[str], Path | None]:
    if client.program == "raw":
        return [sys.executable, str(_DRIVERS / "raw_client.py")], None
    if client.program == "inspector":
        command_line = [node(), str(install("inspector") / _INSPECTOR), "--cli"]
        return [sys.executable, str(_DRIVERS / "inspector_client.py"), *command_line], None
    installed = install(client.program)
    return driver_command(client.program, installed), installed if client.program in OF_NPM else None


def _plan(client: Client, place: Place, profile: Profile) -> Json:
    if client.through_remote:
        place = Place("stdio", child={"command": node(), "args": [str(install("mcp-remote") / _REMOTE), place.url]})
    # Whose session is over after the first question has nobody to give a second answer to.
    answered = 1 if client.asked == "once" else None
    steps = [
        {
            "name": step.tool,
            "arguments": step.arguments,
            "answers": [{"about": "", "wait": "", "times": 1, **answer} for answer in step.answers[:answered]],
            "steps": step.steps if place.transport in client.shows_progress else 0,
        }
        for step in profile.steps.values()
    ]
    lists: list[Json] = [
        {"name": method, "arguments": {}, "answers": []} for method in ("resources/list", "prompts/list")
    ]
    return {
        **place._asdict(),
        "mode": client.mode,
        "can_be_asked": client.can_be_asked,
        "steps": [[call] for call in (*lists, *steps)],
        "expected_notifications": [],
        "call_seconds": _CALL_SECONDS,
        "seconds": _VISIT_SECONDS,
        "more_follow": True,
    }
