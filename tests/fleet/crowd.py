"""Many conversations of real clients at once: a process for each kind of client, in its own environment."""

import json
import selectors
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tests.fleet.conversations import Conversation
from tests.peers.driving import CLIENTS, Outcome, driver_command
from tests.peers.environments import environment

__all__ = ["KINDS", "Crowd", "Told"]

KINDS: Final = ("mcp1-push", "mcp1-chat", "mcp2-push", "mcp2-chat", "mcp2-modern")


class Told(NamedTuple):
    """What one client was told.

    Args:
        kind: of client.
        conversation: what it was to do.
        calls: what came of its calls, as far as it came.
        failed: why it could not go on; None where it came to its end.
    """

    kind: str
    conversation: Conversation
    calls: list[Outcome]
    failed: str | None


class Crowd:
    """Clients that talk all at once.

    Args:
        url: where.
        conversations: what they do; the kinds of client take turns.
        call_seconds: how long a call may take.
        seconds: how long a conversation may take.
        pause_seconds: how long each conversation waits between its calls.
    """

    def __init__(
        self,
        url: str,
        conversations: Sequence[Conversation],
        *,
        call_seconds: float = 60,
        seconds: float = 120,
        pause_seconds: float = 0,
    ) -> None:
        self._seconds = seconds
        self._of = {kind: conversations[start :: len(KINDS)] for start, kind in enumerate(KINDS)}
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the processes
        self._processes: dict[str, subprocess.Popen[str]] = {}
        for kind, planned in self._of.items():
            plans = [_plan(url, kind, each, call_seconds, seconds, pause_seconds) for each in planned]
            if plans:
                self._processes[kind] = self._start(kind, plans)

    def _start(self, kind: str, plans: list[dict[str, Any]]) -> "subprocess.Popen[str]":
        name = CLIENTS[kind].name
        process = subprocess.Popen(
            driver_command(name, environment(name)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            bufsize=1,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps({"crowd": plans}) + "\n")
        process.stdin.flush()
        return process

    def is_over(self) -> bool:
        """Whether every client has ended."""
        return all(process.poll() is not None for process in self._processes.values())

    def told(self) -> list[Told]:
        """Wait for all of them, and return what each was told."""
        found: list[Told] = []
        with selectors.DefaultSelector() as ready:
            for kind, process in self._processes.items():
                ready.register(process.stdout, selectors.EVENT_READ, kind)  # type: ignore[arg-type]
            gives_up_at = time.monotonic() + self._seconds + 30
            while ready.get_map():
                assert time.monotonic() < gives_up_at, "the clients do not end"
                for key, _ in ready.select(1):
                    line = self._processes[key.data].stdout.readline()  # type: ignore[union-attr]
                    if not line:
                        ready.unregister(key.fileobj)
                    elif (over := json.loads(line).get("over")) is not None:
                        found.append(_told(key.data, self._of[key.data][over["at"]], over))
        missing = sum(map(len, self._of.values())) - len(found)
        self._complaints.seek(0)
        assert not missing, f"{missing} clients said nothing at the end:\n{self._complaints.read()[-4000:]}"
        return found

    def end(self) -> None:
        """Let all go."""
        for process in self._processes.values():
            process.kill()
            process.communicate()
        self._complaints.close()


def _plan(
    url: str, kind: str, planned: Conversation, call_seconds: float, seconds: float, pause_seconds: float
) -> dict[str, Any]:
    peer = CLIENTS[kind]
    plan = {
        "url": url,
        "child": None,
        "transport": None,
        "mode": peer.mode,
        "can_be_asked": peer.can_be_asked,
        "steps": [[deed.call._asdict()] for deed in planned.deeds],
        "expected_notifications": (),
        "call_seconds": call_seconds,
        "seconds": seconds,
        "pause_seconds": pause_seconds,
    }
    made: dict[str, Any] = msgspec.to_builtins(plan)
    return made


def _told(kind: str, planned: Conversation, over: dict[str, Any]) -> Told:
    calls = [msgspec.convert(each, Outcome) for each in over["report"]["calls"]]
    return Told(kind, planned, calls, over["failed"])
