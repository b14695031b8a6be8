"""The pages that a command serves beside MCP: which were asked for, and with which token."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bridge import __version__
from bridge.app import Application, Bridge
from bridge.errors import ConfigurationError

if TYPE_CHECKING:
    from bridge.transports.uvicorn import Drainable

__all__ = ["TOKEN_ENVIRONMENT", "Pages", "console_token", "with_pages"]

TOKEN_ENVIRONMENT: Final = "MCP_SESSION_BRIDGE_CONSOLE_TOKEN"


class Pages(msgspec.Struct, frozen=True):
    """What is served beside MCP.

    Args:
        playground: the page at `/`, on which a person plays every kind of client.
        console: the page at `/console`.
        token: who has it may look at the console, and at `/explain`, which is served where there is one.
    """

    playground: bool
    console: bool
    token: str | None

    def __post_init__(self) -> None:
        if self.console and self.token is None:
            raise ConfigurationError(
                "--console needs a token, also on loopback, since a proxy may stand before it: give "
                f"--console-token-file FILE, or {TOKEN_ENVIRONMENT} in the environment"
            )

    def told(self, url: str) -> list[str]:
        """What there is to say of them once the server is at a URL."""
        lines = [f"Its playground is at {url}/"] if self.playground else []
        lines += [f"Its console is at {url}/console"] if self.console else []
        return lines + ([f"Why each client is asked as it is: {url}/explain"] if self.token is not None else [])


def console_token(file: Path | None) -> str | None:
    """The token of the console: from a file, else from the environment, else none.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    if file is None:
        return os.environ.get(TOKEN_ENVIRONMENT) or None
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the console token cannot be read from {file}: {error}") from None


def with_pages(bridge: Bridge, app: Application, pages: Pages) -> "Drainable":
    """Wrap an app in the pages that were asked for.

    Args:
        bridge: what is served.
        app: its app, not started.
        pages: what was asked for.

    Raises:
        ConfigurationError: a page that cannot be served.
    """
    served: Drainable = app
    if pages.token is not None:
        from bridge.pages.console import Console
        from bridge.pages.door import Door
        from bridge.pages.explain import Explain

        door = Door(pages.token)
        served = Explain(served, bridge.store, bridge.options, door)
        served = Console(served, app, door) if pages.console else served
    return _with_playground(bridge, app, served) if pages.playground else served


def _with_playground(bridge: Bridge, app: Application, served: "Drainable") -> "Drainable":
    from bridge.pages import Playground, PlaygroundRules

    if "http" not in bridge.options.transports:
        raise ConfigurationError('--playground needs Streamable HTTP: "http" is not among the transports of the bridge')
    return Playground(served, bridge.options, bridge.keys, PlaygroundRules(title=lambda: app.name, version=__version__))
