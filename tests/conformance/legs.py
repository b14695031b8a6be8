"""The legs of the run: where the bridge stands, what visits it, and what is known not to pass, with the reason."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from tests.conformance.suite import REPOSITORY
from tests.matrix.processes import free_port, serving
from tests.peers.environments import install

__all__ = ["LEGS", "Leg", "NotPassed"]

_HERE = Path(__file__).parent
_HERE_ENV = {"PYTHONPATH": str(REPOSITORY)}
NotPassed = dict[str, str]
"""For each scenario that does not pass, the reason."""

_OLD_CHAT = (
    "by the table of routes, 'legacy, any other' (than from 2025-06-18 on) is asked by chat: this revision has no "
    "`elicitation/create`, so the call ends with a result that tells the model what to ask."
)
_OLD_AUDIO = "LEG-10: 'before 2025-03-26 no tool annotations, audio (a text instead)'."


class Leg(msgspec.Struct, frozen=True, kw_only=True):
    """One leg.

    Args:
        name: on the command line.
        title: for people.
        side: what the bridge is to the suite.
        revision: of what the scenarios are.
        count: how many there are.
        start: starts what is visited, and gives its URL; None where the bridge is the visitor.
        scenarios: which ones, where not all.
        driver: the revision of the client in front of the bridge that is a visitor.
        not_passed: what is known not to pass.
        without: how many pass without the bridge, where that is another leg's figure.
        bare: whether there is no bridge in it: its figure is told, and nothing is asked of it.
    """

    name: str
    title: str
    side: Literal["server", "client"] = "server"
    revision: str
    count: int
    start: Callable[[], AbstractContextManager[str]] | None = None
    scenarios: tuple[str, ...] = ()
    driver: str = ""
    not_passed: NotPassed = {}
    without: str = ""
    bare: bool = False


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


@contextmanager
def _bridge(target: str, **env: str) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "bridge", "serve", "--port", str(port), "--log-level", "warning", target]
    with serving(command, port, REPOSITORY, {**_HERE_ENV, **env}):
        yield _url(port)


def _native() -> AbstractContextManager[str]:
    return _bridge("examples/everything.py:bridge")


def _forced(revision: str) -> Callable[[], AbstractContextManager[str]]:
    """The native server behind a proxy that makes every handshake one of an older revision."""

    @contextmanager
    def start() -> Iterator[str]:
        with _native() as url:
            port, target = free_port(), url.rpartition(":")[2].removesuffix("/mcp")
            command = [sys.executable, str(_HERE / "verproxy.py"), str(port), target, revision]
            with serving(command, port, REPOSITORY, {}):
                yield _url(port)

    return start


def _alone(environment: str) -> Callable[[], AbstractContextManager[str]]:
    """A server of an official SDK, on its own."""

    @contextmanager
    def start() -> Iterator[str]:
        port = free_port()
        command = [str(install(environment)), str(_HERE / "servers" / f"{environment}.py"), str(port)]
        with serving(command, port, REPOSITORY, {}):
            yield _url(port)

    return start


def _wrapped(environment: str) -> Callable[[], AbstractContextManager[str]]:
    """The bridge in front of it."""

    @contextmanager
    def start() -> Iterator[str]:
        with ExitStack() as stack:
            upstream = stack.enter_context(_alone(environment)())
            yield stack.enter_context(_bridge("tests/conformance/servers/behind.py:bridge", UPSTREAM=upstream))

    return start


_OF_2025_06 = ("initialize", "tools_call")
_OF_2025_11 = (
    "elicitation-sep1034-client-defaults",
    "initialize",
    "json-schema-2020-12-preservation",
    "sse-retry",
    "tools_call",
)
_OF_2026_07 = (
    "http-custom-headers",
    "http-invalid-tool-headers",
    "http-standard-headers",
    "json-schema-2020-12-preservation",
    "json-schema-ref-no-deref",
    "request-metadata",
    "sep-2322-client-request-state",
    "tools_call",
)

LEGS: tuple[Leg, ...] = (
    Leg(name="native-2025-06-18", title="native server", revision="2025-06-18", count=27, start=_native),
    Leg(name="native-2025-11-25", title="native server", revision="2025-11-25", count=33, start=_native),
    Leg(
        name="native-2026-07-28",
        title="native server",
        revision="2026-07-28",
        count=40,
        start=_native,
    ),
    Leg(
        name="forced-2025-06-18",
        title="native server, every handshake one of 2025-06-18",
        revision="2025-06-18",
        count=27,
        start=_forced("2025-06-18"),
    ),
    Leg(
        name="forced-2025-03-26",
        title="native server, every handshake one of 2025-03-26",
        revision="2025-06-18",
        count=27,
        start=_forced("2025-03-26"),
        not_passed={"tools-call-elicitation": _OLD_CHAT},
    ),
    Leg(
        name="forced-2024-11-05",
        title="native server, every handshake one of 2024-11-05",
        revision="2025-06-18",
        count=27,
        start=_forced("2024-11-05"),
        not_passed={"tools-call-audio": _OLD_AUDIO, "tools-call-elicitation": _OLD_CHAT},
    ),
    Leg(
        name="legacy-alone",
        title="mcp 1.30.0, which knows no later revision than 2025-11-25, without the bridge",
        revision="2026-07-28",
        count=40,
        start=_alone("mcp1"),
        bare=True,
    ),
    Leg(
        name="legacy-wrapped",
        title="the bridge in front of mcp 1.30.0, which knows no later revision than 2025-11-25",
        revision="2026-07-28",
        count=40,
        start=_wrapped("mcp1"),
        without="legacy-alone",
    ),
    Leg(
        name="modern-alone",
        title="mcp 2.3.0, serving 2026-07-28 only, without the bridge",
        revision="2025-11-25",
        count=33,
        start=_alone("mcp2"),
        bare=True,
    ),
    Leg(
        name="modern-wrapped",
        title="the bridge in front of mcp 2.3.0, serving 2026-07-28 only",
        revision="2025-11-25",
        count=33,
        start=_wrapped("mcp2"),
        without="modern-alone",
    ),
    Leg(
        name="client-2025-06-18",
        title="the bridge as a client, a client of 2026-07-28 in front of it",
        side="client",
        revision="2025-06-18",
        count=2,
        scenarios=_OF_2025_06,
        driver="2026-07-28",
    ),
    Leg(
        name="client-2025-11-25",
        title="the bridge as a client, a client of 2026-07-28 in front of it",
        side="client",
        revision="2025-11-25",
        count=5,
        scenarios=_OF_2025_11,
        driver="2026-07-28",
    ),
    Leg(
        name="client-2026-07-28",
        title="the bridge as a client, a client of 2025-11-25 in front of it",
        side="client",
        revision="2026-07-28",
        count=8,
        scenarios=_OF_2026_07,
        driver="2025-11-25",
    ),
)
