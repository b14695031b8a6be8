"""Running a driver: the plan it gets, and what it reports. `drivers/plan.py` is the other side."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from tests.peers.environments import OF_NPM, environment, node

FALLBACK_TOOL = "sendElicitationResult"
_DRIVERS = Path(__file__).parent / "drivers"
_DRIVER_OF = {
    "mcp1": "mcp1_client.py",
    "mcp2": "mcp2_client.py",
    "fastmcp4": "fastmcp4_client.py",
    "ts1": "driver_ts1.mjs",
    "ts2": "driver_ts2.mjs",
}
_IMPORT_FROM_HERE = "import(process.argv[1]).then((driver) => driver.main((name) => import(name)))"
"""A module's imports are looked for beside its file; those of `node --eval`, in the folder where it runs."""
_EXIT_SECONDS = 10
STDIO = "stdio"
_CHILD = {
    "command": sys.executable,
    "args": ["-m", "bridge", "demo", "--stdio"],
    "cwd": str(Path(__file__).parents[2]),
}

Json = dict[str, Any]


class Peer(NamedTuple):
    """A real client: which program, in which mode, whether it has a callback for questions, and what it speaks over."""

    name: Literal["mcp1", "mcp2", "fastmcp4", "ts1", "ts2"]
    mode: Literal["legacy", "auto", "2026-07-28"] = "legacy"
    can_be_asked: bool = True
    transport: Literal["http", "sse", "ws"] | None = None
    """None: Streamable HTTP, or stdio where it starts the server itself."""


CLIENTS = {
    "mcp1-push": Peer("mcp1"),
    "mcp1-chat": Peer("mcp1", can_be_asked=False),
    "mcp2-push": Peer("mcp2"),
    "mcp2-chat": Peer("mcp2", can_be_asked=False),
    "mcp2-modern": Peer("mcp2", "2026-07-28"),
    "fastmcp4-push": Peer("fastmcp4"),
    "fastmcp4-chat": Peer("fastmcp4", can_be_asked=False),
    "fastmcp4-modern": Peer("fastmcp4", "2026-07-28"),
    "ts1-push": Peer("ts1"),
    "ts1-chat": Peer("ts1", can_be_asked=False),
    "ts2-push": Peer("ts2"),
    "ts2-chat": Peer("ts2", can_be_asked=False),
    "ts2-modern": Peer("ts2", "2026-07-28"),
}
"""Each kind of client, named by the program and by how it is asked."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=False):
    """What the user says to one question.

    Args:
        action: accept, decline or cancel.
        content: what is in the form.
        error: a JSON-RPC error code instead of all that.
        about: a part of the question's message, where several questions are open.
        wait: the name under which the answer is held back until `Driver.release`.
        times: how often a model passes it on, at once.
        press: whether the user presses the button of the page that is shown first.
    """

    action: str | None = None
    content: Any = msgspec.UNSET
    error: int | msgspec.UnsetType = msgspec.UNSET
    about: str = ""
    wait: str = ""
    times: int = 1
    press: bool = False


def accept(
    content: Any = msgspec.UNSET, *, about: str = "", wait: str = "", times: int = 1, press: bool = False
) -> Answer:
    return Answer("accept", content, about=about, wait=wait, times=times, press=press)


def fails(code: int) -> Answer:
    """The client answers with a JSON-RPC error."""
    return Answer(error=code)


DECLINE = Answer("decline")
CANCEL = Answer("cancel")
TICKED = accept({"confirm": True})
UNTICKED = accept({"confirm": False})
UNFIT = [accept(content) for content in ({"confirm": "true"}, {"confirm": None}, {"other": True}, {}, None)]
"""Answers that do not fit a box to tick."""


class Call(NamedTuple):
    """A call of a tool to make, and the answers to its questions; or, named by its method, another request."""

    name: str
    arguments: Json = {}  # noqa: RUF012 - a NamedTuple's default
    answers: tuple[Answer, ...] = ()


def call(name: str, *answers: Answer, **arguments: Any) -> Call:
    return Call(name, arguments, answers)


HISTORY = call("history")
PROMPTS, RESOURCES, TEMPLATES = Call("prompts/list"), Call("resources/list"), Call("resources/templates/list")


def get_prompt(name: str, *answers: Answer, **arguments: str) -> Call:
    return Call("prompts/get", {"name": name, "arguments": arguments}, answers)


def read(uri: str, *answers: Answer) -> Call:
    return Call("resources/read", {"uri": uri}, answers)


class Outcome(msgspec.Struct, frozen=True):
    """What came of a call.

    Args:
        name: of the tool.
        questions: each with `message`, `requestedSchema`, `url`, and `by`: form or chat.
        refusals: what a model was told of answers that do not fit.
        again: the results of an answer that a model passed on more than once.
        result: as on the wire.
        error: `code`, `message` and `data`, or what the SDK raised as `message`.
    """

    name: str
    questions: list[Json]
    refusals: list[str]
    again: list[Json]
    result: Json | None
    error: Json | None

    @property
    def value(self) -> Any:
        """The result's structured content; a list without the object that legacy revisions want around it."""
        assert self.error is None, self.error
        assert self.result is not None
        content = self.result.get("structuredContent")
        return content["result"] if isinstance(content, dict) and content.keys() == {"result"} else content

    @property
    def text(self) -> str:
        assert self.result is not None, self.error
        return "\n".join(block["text"] for block in self.result["content"])

    @property
    def is_error(self) -> bool:
        assert self.result is not None, self.error
        return self.result.get("isError") is True

    @property
    def code(self) -> str | None:
        """The bridge's own code of an error."""
        assert self.result is not None, self.error
        code: str | None = self.result.get("_meta", {}).get("mcp-session-bridge/code")
        return code

    @property
    def messages(self) -> list[str]:
        return [question["message"] for question in self.questions]

    @property
    def asked_by(self) -> list[str]:
        return [question["by"] for question in self.questions]


def effects(before: Outcome, after: Outcome) -> list[str]:
    """What a second look at the history shows more than the first."""
    known = len(before.value)
    assert after.value[:known] == before.value
    more: list[str] = after.value[known:]
    return more


class Report(msgspec.Struct, frozen=True):
    """All that a driver saw."""

    revision: str
    tools: list[Json]
    calls: list[Outcome]
    notifications: list[str]
    tools_afterwards: list[Json]
    errors: list[str]

    @property
    def tool_names(self) -> list[str]:
        return [tool["name"] for tool in self.tools]

    @property
    def tool_names_afterwards(self) -> list[str]:
        return [tool["name"] for tool in self.tools_afterwards]


class Driver:
    """A driver under way."""

    def __init__(self, process: "subprocess.Popen[str]", complaints: Any) -> None:
        self._process = process
        self._complaints = complaints
        self.is_abandoned = False

    def asked(self) -> Json:
        """Wait until the next question is shown: its `message`, `url`, and its `elicitId` where the chat asks."""
        shown: Json = self._read("asked")
        return shown

    def ended(self) -> Json:
        """Wait until the next call is over: its `name` and `arguments`."""
        over: Json = self._read("ended")
        return over

    def release(self, wait: str) -> None:
        """Let an answer go out."""
        assert self._process.stdin is not None
        self._process.stdin.write(wait + "\n")
        self._process.stdin.flush()

    def report(self) -> Report:
        """Wait for the end, past all questions."""
        report = msgspec.convert(self._read("report"), Report)
        assert report.errors == [], report.errors
        return report

    def abandon(self) -> None:
        """Let it go down with its calls, as a host does that is closed."""
        self.is_abandoned = True
        self._process.kill()
        self._process.wait()

    def _read(self, kind: str) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if kind in said:
                return said[kind]
            assert "report" not in said, f"the plan was over before {kind!r}: {line}"
        self._complaints.seek(0)
        raise AssertionError(f"the driver ended before {kind!r}:\n{self._complaints.read()}")


@contextmanager
def driver(
    peer: Peer, url: str, *steps: Call | tuple[Call, ...], expects: tuple[str, ...] = (), call_seconds: float = 20
) -> Iterator[Driver]:
    """Start a driver.

    Args:
        peer: who is driven.
        url: the server; `STDIO` for a help desk that the driver starts itself.
        steps: calls to make one after the other; those of a plain tuple at once.
        expects: notifications to wait for at the end.
        call_seconds: how long a call may take, its questions included; then its error says `TimeoutError`.
    """
    at_once = [(step,) if isinstance(step, Call) else step for step in steps]
    plan = {
        "url": url,
        "child": _CHILD if url == STDIO else None,
        "transport": peer.transport,
        "mode": peer.mode,
        "can_be_asked": peer.can_be_asked,
        "steps": [[each._asdict() for each in step] for step in at_once],
        "expected_notifications": expects,
        "call_seconds": call_seconds,
    }
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            driver_command(peer.name, environment(peer.name)),
            cwd=environment(peer.name) if peer.name in OF_NPM else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            bufsize=1,
        )
        try:
            driver = Driver(process, complaints)
            driver.release(msgspec.json.encode(plan).decode())
            yield driver
            assert driver.is_abandoned or process.wait(_EXIT_SECONDS) == 0
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.communicate()


def driver_command(name: str, runs_in: Path) -> list[str]:
    """What starts the driver of a program in its environment."""
    driver = _DRIVERS / _DRIVER_OF[name]
    if name in OF_NPM:
        return [node(), "--eval", _IMPORT_FROM_HERE, driver.as_uri()]
    return [str(runs_in), str(driver)]


def drive(peer: Peer, url: str, *steps: Call | tuple[Call, ...], expects: tuple[str, ...] = ()) -> Report:
    """Run a driver to its end."""
    with driver(peer, url, *steps, expects=expects) as running:
        return running.report()
