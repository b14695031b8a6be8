"""Tables and files of results."""

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

__all__ = ["TITLES", "save", "show"]

_MCP: Final = f"mcp {version('mcp')}"

TITLES: Final = {
    "bare": "bare ASGI app",
    "mcp": _MCP,
    "bridge": "bridge",
    "bridge-sqlite": "bridge, SQLite",
    "bridge-redis": "bridge, Redis",
    "wrapped": f"bridge around {_MCP}",
    "direct": "no relay",
    "aiohttp": "bare aiohttp relay",
    "bridge-http": "bridge",
    "bridge-stdio": "bridge",
    "fastmcp-http": "FastMCP 4.2.3 proxy",
    "fastmcp-stdio": "FastMCP 4.2.3 proxy",
    "mcp-proxy-http": "mcp-proxy 0.13.0, two",
    "mcp-proxy-stdio": "mcp-proxy 0.13.0",
}
"""How each server or relay is called in a table."""


_RESULTS: Final = Path(__file__).parent / "results"
_PACKAGES: Final = (
    "aiohttp",
    "anyio",
    "cryptography",
    "httptools",
    "mcp",
    "msgspec",
    "pydantic",
    "redis",
    "uvicorn",
    "uvloop",
)


def show(title: str, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table: with rich where it is installed, else plain."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, cells)) for cells in zip(columns, *lines, strict=True)]
        print(title)
        for line in (columns, *lines):
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        return
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < 2 else "right")
    for line in lines:
        table.add_row(*line)
    Console(width=None if os.isatty(1) else 140).print(table)


def save(name: str, setup: dict[str, Any], results: list[dict[str, Any]]) -> Path:
    """Write results with the facts of the machine; no names of hosts or users."""
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "processor": _processor(),
        "python": platform.python_version(),
        "packages": {package: version(package) for package in _PACKAGES},
    }
    _RESULTS.mkdir(exist_ok=True)
    path = _RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": facts, "setup": setup, "results": results}, indent=2) + "\n")
    return path


def _processor() -> str | None:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
