"""Environments for programs that others wrote, in a cache outside the repository: one each, as they cannot share one.

`python -m tests.peers install` makes them; a test that needs one makes it at most once, and
is skipped where that fails.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "mcp1": ("mcp==1.30.0",),
    "mcp2": ("mcp==2.3.0",),
}
INSTALL_SECONDS = 100
_STAMP = "complete"


class NotInstalled(Exception):
    """An environment could not be made; the text says why."""


def environment(name: str) -> Path:
    """The Python of an environment, made now if it is not there yet; where it cannot be made the test is skipped."""
    made = _made_once(name)
    if isinstance(made, NotInstalled):
        pytest.skip(f"the environment of the peer {name} cannot be installed: {made}")
    return made


def install(name: str) -> Path:
    """Make an environment unless it is complete; return its Python.

    Raises:
        NotInstalled: `venv` or `pip` failed, or took longer than `INSTALL_SECONDS`.
    """
    directory = folder(name)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _locked(directory.with_suffix(".lock")):
        if not is_complete(name):
            shutil.rmtree(directory, ignore_errors=True)
            python = _python(directory)
            _run(sys.executable, "-m", "venv", str(directory))
            _run(str(python), "-m", "pip", "install", "--quiet", "--no-input", *REQUIREMENTS[name])
            (directory / _STAMP).touch()
    return _python(directory)


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


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
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
