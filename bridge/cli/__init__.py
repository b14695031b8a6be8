"""The command `mcp-session-bridge`, also `python -m bridge`."""

from bridge.cli.main import app

__all__ = ["app"]
