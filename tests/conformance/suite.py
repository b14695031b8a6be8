"""The suite itself: a program in JavaScript, what it is told, and what it says of each scenario."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tests.peers.environments import install

__all__ = ["PACKAGE", "REPOSITORY", "Scenario", "SuiteFailed", "read_checks", "run_client_suite", "run_server_suite"]

PACKAGE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REPOSITORY = Path(__file__).parents[2]
SUITE_SECONDS = 60
SCENARIO_MS = 15_000
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


class SuiteFailed(Exception):
    """The suite did not come to its end; the text says what it printed."""


class _Check(msgspec.Struct, rename="camel"):
    """One line of a scenario's `checks.json`."""

    id: str
    status: Literal["SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"]
    error_message: str | None = None


class Scenario(msgspec.Struct, frozen=True):
    """What came of one scenario.

    Args:
        name: as the suite calls it.
        failures: what failed, and what could not be tried.
        warnings: what the suite would rather have otherwise.
    """

    name: str
    failures: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether everything was tried and nothing failed."""
        return not self.failures


def run_server_suite(url: str, revision: str) -> list[Scenario]:
    """Visit a server.

    Args:
        url: where it is.
        revision: of what the scenarios are; the suite's client asks for 2025-11-25 whatever stands here.

    Raises:
        SuiteFailed: the suite itself broke down, or took too long.
    """
    return _run(("server", "--url", url, "--suite", "all", "--spec-version", revision), frozenset())


def run_client_suite(
    command: Sequence[str], revision: str, scenarios: Sequence[str], may_skip: frozenset[str]
) -> list[Scenario]:
    """Be visited by a client, once for each scenario.

    Args:
        command: starts the client; the URL of the suite's server follows it.
        revision: of what the scenarios are.
        scenarios: which ones.
        may_skip: the scenarios in which not everything has to be tried.

    Raises:
        SuiteFailed: the suite itself broke down, or took too long.
    """
    found: list[Scenario] = []
    for name in scenarios:
        told = ("client", "--command", " ".join(command), "--scenario", name, "--spec-version", revision)
        found += _run((*told, "--timeout", str(SCENARIO_MS)), may_skip, name)
    return found


def _run(told: Sequence[str], may_skip: frozenset[str], only: str | None = None) -> list[Scenario]:
    folder = install("conformance")
    program = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    node = folder / "node_modules/.bin/node"
    with tempfile.TemporaryDirectory() as out:
        command = [str(node), str(program), *told, "--output-dir", out]
        try:
            ended = subprocess.run(
                command, cwd=REPOSITORY, env=_environment(), capture_output=True, text=True, timeout=SUITE_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise SuiteFailed(f"the suite took longer than {SUITE_SECONDS} s: {' '.join(told)}") from None
        found = [read_checks(path, may_skip, only) for path in Path(out).rglob("checks.json")]
    if not found:
        last = " / ".join((ended.stderr or ended.stdout).strip().splitlines()[-3:])
        raise SuiteFailed(f"the suite came to nothing, saying: {last} [{' '.join(told)}]")
    return sorted(found, key=lambda scenario: scenario.name)


def _environment() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHON": sys.executable}


def read_checks(path: Path, may_skip: frozenset[str], only: str | None) -> Scenario:
    name = only or _STAMP.sub("", path.parent.name).removeprefix("server-")
    checks = msgspec.json.decode(path.read_bytes(), type=list[_Check])
    wrong = {"FAILURE"} if name in may_skip else {"FAILURE", "SKIPPED"}
    return Scenario(
        name,
        tuple(_said(check) for check in checks if check.status in wrong),
        tuple(_said(check) for check in checks if check.status == "WARNING"),
    )


def _said(check: _Check) -> str:
    return f"{check.id}: {check.error_message or check.status.lower()}"
