"""Environments for programs that others wrote, in a cache outside the repository: one each, as they cannot share one.

Those in Python stand in a venv of pip's, those in JavaScript in a private folder of npm's. `python -m tests.peers
install` makes them; a test that needs one makes it at most once, and is skipped where that fails.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

_BRIDGE = (
    "aiohttp",
    "anyio",
    "cryptography",
    "httptools",
    "jsonschema",
    "msgspec",
    "pydantic",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
    "uvloop; sys_platform != 'win32'",
    "websockets",
)
"""What the bridge imports to serve. The bridge itself comes from the checkout, by PYTHONPATH: none here is ever old."""
_ARCHITECTURE = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), "arm64")
_NODE_22 = f"node-{'win' if sys.platform == 'win32' else sys.platform}-{_ARCHITECTURE}@22.23.3"
"""A Node of its own for a peer that needs a newer one than is on PATH: the package `node` would run a script for it."""
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "mcp1": ("mcp[ws]==1.30.0",),
    "mcp2": ("mcp==2.3.0",),
    "fastmcp4": ("fastmcp==4.2.3", "mcp==2.3.0"),
    "bridge-mcp1": ("mcp[ws]==1.30.0", *_BRIDGE),
    "bridge-mcp2": ("mcp==2.3.0", *_BRIDGE),
    "bridge-fastmcp4": ("fastmcp==4.2.3", "mcp==2.3.0", *_BRIDGE),
    "ts1": ("@modelcontextprotocol/sdk@1.32.2",),
    "ts2": ("@modelcontextprotocol/client@2.4.0",),
    "ts2server": ("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2"),
    "everything": ("@modelcontextprotocol/server-everything@2026.8.31",),
    "mcpuse": ("mcp-use@2.5.2",),
    "inspector": ("@modelcontextprotocol/inspector@2.12.0",),
    "mcp-remote": ("mcp-remote@0.15.1",),
    "conformance": ("@modelcontextprotocol/conformance@0.2.0-alpha.12", _NODE_22),
    "axe": ("axe-core@4.14.1",),
}
OF_NPM = frozenset({"ts1", "ts2", "ts2server", "everything", "mcpuse", "inspector", "mcp-remote", "conformance", "axe"})
"""The environments of npm packages; the others are of pip's."""
INSTALL_SECONDS = 100
_STAMP = "complete"


class NotInstalled(Exception):
    """An environment could not be made; the text says why."""


def environment(name: str) -> Path:
    """The Python of an environment, or the folder of one of npm's: `node` runs in it.

    It is made now if it is not there yet; where it cannot be made the test is skipped.
    """
    made = _made_once(name)
    if isinstance(made, NotInstalled):
        pytest.skip(f"the environment of the peer {name} cannot be installed: {made}")
    return made


def install(name: str) -> Path:
    """Make an environment unless it is complete; return its Python, or its folder where it is of npm's.

    Raises:
        NotInstalled: `venv`, `pip` or `npm` failed or took longer than `INSTALL_SECONDS`, or there is no Node.
    """
    if name in OF_NPM:
        node()
    directory = folder(name)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _locked(directory.with_suffix(".lock")):
        if not is_complete(name):
            shutil.rmtree(directory, ignore_errors=True)
            (_make_with_npm if name in OF_NPM else _make_with_pip)(directory, REQUIREMENTS[name])
            (directory / _STAMP).touch()
    return directory if name in OF_NPM else _python(directory)


def node() -> str:
    """The `node` on PATH.

    Raises:
        NotInstalled: there is none.
    """
    return _program("node")


def is_complete(name: str) -> bool:
    """Whether an environment was made to the end."""
    return (folder(name) / _STAMP).exists()


def folder(name: str) -> Path:
    """Where an environment stands; another one for other requirements or another Python."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    about = "\n".join((*REQUIREMENTS[name], *map(str, sys.version_info[:2])))
    return root / "mcp-session-bridge" / "peers" / f"{name}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"


@cache
def _made_once(name: str) -> Path | NotInstalled:
    try:
        return install(name)
    except NotInstalled as reason:
        return reason


def _make_with_pip(directory: Path, requirements: tuple[str, ...]) -> None:
    _run(sys.executable, "-m", "venv", str(directory))
    _run(str(_python(directory)), "-m", "pip", "install", "--quiet", "--no-input", *requirements)


def _make_with_npm(directory: Path, requirements: tuple[str, ...]) -> None:
    directory.mkdir()
    (directory / "package.json").write_text('{"private": true}\n')
    npm = _program("npm")
    _run(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *requirements, cwd=directory)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotInstalled(f"there is no {name} on PATH")
    return found


def _run(*command: str, cwd: Path | None = None) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS, cwd=cwd)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{' '.join(command[1:])} took longer than {INSTALL_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout).strip().splitlines()[-1:]
        raise NotInstalled(f"{' '.join(command[1:])} ended with {error.returncode}: {''.join(last)}") from None


def _python(directory: Path) -> Path:
    return directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time make an environment."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
