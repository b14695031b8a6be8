"""What can be wrapped from outside: a command that speaks over its stdin and stdout, or a URL. Knows no transport."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import msgspec

from bridge.errors import ConfigurationError

__all__ = ["HTTP_SCHEMES", "WEBSOCKET_SCHEMES", "Command", "Target", "Url", "name_of", "without_secrets"]

HTTP_SCHEMES: Final = frozenset({"http", "https"})
WEBSOCKET_SCHEMES: Final = frozenset({"ws", "wss"})


class Command(msgspec.Struct, frozen=True):
    """A server that is started as a child process.

    Args:
        command: a program on PATH, or a path to one.
        args: its arguments.
        env: environment variables, besides those that this process has.
        cwd: the folder that it starts in; None: this process's.

    Raises:
        ConfigurationError: arguments that are no tuple of words.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None

    def __post_init__(self) -> None:
        words: object = self.args
        if isinstance(words, str):
            raise ConfigurationError(f"the arguments of {self.command} are a tuple of words: ({self.args!r},)")


class Url(msgspec.Struct, frozen=True):
    """A server at an http, https, ws or wss URL.

    Args:
        url: the URL of its MCP endpoint.

    Raises:
        ConfigurationError: a URL that cannot be one.
    """

    url: str

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            parts.port  # noqa: B018 - looking is what checks it
        except ValueError as error:
            raise ConfigurationError(f"{self.url!r} is no URL: {error}") from None
        if parts.scheme not in HTTP_SCHEMES | WEBSOCKET_SCHEMES or not parts.hostname:
            raise ConfigurationError(
                f"{without_secrets(self.url)!r} is no URL of an MCP server: give one that begins with"
                " http://, https://, ws:// or wss:// and names a host"
            )

    @property
    def is_http(self) -> bool:
        """Whether it is reached by HTTP; by WebSocket otherwise."""
        return urlsplit(self.url).scheme in HTTP_SCHEMES


Target: TypeAlias = Command | Url


def name_of(target: Target) -> str:
    """How to call a target in a log: a command's base name, a URL without credentials."""
    if isinstance(target, Command):
        return PurePath(target.command).name or target.command
    return without_secrets(target.url)


def without_secrets(url: str) -> str:
    """A URL without what may be secret in it: user, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
