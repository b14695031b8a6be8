"""Environments with servers of other generations of the SDK, and what the bridge itself needs beside them."""

import tomllib
from pathlib import Path
from typing import Final

from tests.peers.environments import REQUIREMENTS, environment

__all__ = ["ROOT", "SERVERS", "environment"]

ROOT: Final = Path(__file__).parents[3]
_BRIDGE: Final = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
_TESTS: Final = ("pytest>=8.3", "pytest-timeout>=2.3")

SERVERS: Final = {
    "servers-fastmcp2": ("mcp==1.30.0", "fastmcp==2.14.7", *_BRIDGE, *_TESTS),
    "servers-fastmcp3": ("mcp==1.30.0", "fastmcp==3.4.11", *_BRIDGE, *_TESTS),
    "servers-fastmcp4": ("mcp==2.3.0", "fastmcp==4.2.3", *_BRIDGE, *_TESTS),
}
REQUIREMENTS.update(SERVERS)
