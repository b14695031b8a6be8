"""What every run is told, and where its figures are kept."""

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Options", "read", "write"]

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
