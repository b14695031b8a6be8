"""The console: what goes on in a fleet, for who runs it."""

from bridge.pages.console.app import CONSOLE_PATH, Console

__all__ = ["CONSOLE_PATH", "Console"]
