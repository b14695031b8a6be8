"""What every run is told, and where its figures are kept."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from tests.redis_server import redis_server

__all__ = ["STORES", "Options", "empty_store", "read", "write"]

REPOSITORY = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"


class Options(msgspec.Struct, frozen=True):
    """How a run is made.

    Args:
        seconds: how long; None: as long as the run needs for the figures that are published.
        only: the store it is for, by its name; None: every one.
    """

    seconds: float | None = None
    only: str | None = None


STORES = ("memory", "sqlite", "redis")


@contextmanager
def empty_store(kind: str) -> Iterator[tuple[Path, str]]:
    """A folder, and the URL of an empty store of that kind."""
    with TemporaryDirectory() as folder:
        if kind != "redis":
            yield Path(folder), "memory" if kind == "memory" else f"sqlite:///{folder}/state.db"
            return
        with redis_server() as url:
            yield Path(folder), url


def write(name: str, figures: Any) -> Path:
    """Keep what a run found, with the facts of the machine; no names of hosts or users."""
    machine = {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine, "figures": figures}, indent=2) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> dict[str, Any] | None:
    """What a run found the last time it was kept; None where it never was."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
