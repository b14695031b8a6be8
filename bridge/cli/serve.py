"""`serve` and `stdio`: a server that exists, or a bridge, served to clients of every revision."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import typer
from rich.console import Console
from typer.core import TyperCommand

from bridge.app import Bridge, check_exposure
from bridge.cli.keys import RANDOM_KEY, KeyFile, choose_keys
from bridge.cli.loading import load_target, read_headers
from bridge.cli.logs import log_to_stderr
from bridge.cli.options import (
    AllowHost,
    AllowOrigin,
    Concurrent,
    ConsolePage,
    ConsoleTokenFile,
    Fallback,
    Header,
    Health,
    Host,
    LogLevel,
    Metrics,
    Name,
    NoAuth,
    PlaygroundPage,
    Port,
    Processes,
    Protocol,
    Repeatable,
    Resume,
    Shared,
    ShutdownSeconds,
    StoreUrl,
    Target,
)
from bridge.cli.pages import Pages, console_token, with_pages
from bridge.cli.reporting import reporting
from bridge.cli.state import default_file, default_store
from bridge.errors import ConfigurationError
from bridge.upstreams.targets import ServerOptions
from bridge.upstreams.wrapped import WrapRules

__all__ = ["AfterDashes", "is_after_dashes", "serve", "stdio"]

_DASHES = "bridge.after_dashes"
_err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


class AfterDashes(TyperCommand):
    """A command that is told whether its target stands after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note the dashes, which click takes away."""
        ctx.meta[_DASHES] = "--" in args
        return super().parse_args(ctx, args)


def is_after_dashes(ctx: typer.Context) -> bool:
    """Whether the target of a command stands after `--`."""
    return bool(ctx.meta[_DASHES])


_BESIDE: Final = {"sse": "HTTP+SSE at /sse", "websocket": "WebSocket at /ws"}


class _Choices(msgspec.Struct, frozen=True):
    """What the user chose, beside the target."""

    store: str | None
    key_file: Path | None
    fallback: Literal["result", "wait", "off"]
    name: str | None
    server: ServerOptions
    rules: WrapRules
    options: dict[str, Any]


def serve(
    ctx: typer.Context,
    target: Target,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    store: StoreUrl = None,
    key_file: KeyFile = None,
    fallback: Fallback = "result",
    resume: Resume = "hold",
    repeatable: Repeatable = False,
    header: Header = None,
    protocol: Protocol = "auto",
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    no_auth: NoAuth = False,
    shared: Shared = False,
    processes: Processes = 1,
    concurrent: Concurrent = False,
    name: Name = None,
    playground: PlaygroundPage = False,
    console: ConsolePage = False,
    console_token_file: ConsoleTokenFile = None,
    shutdown_seconds: ShutdownSeconds = 10.0,
    health: Health = True,
    metrics: Metrics = False,
    log_level: LogLevel = "info",
) -> None:
    """Serve a server that exists, unchanged, over HTTP: for clients of every revision."""

    def run() -> None:
        from bridge.transports.uvicorn import serve as serve_http

        given = {
            "allowed_hosts": tuple(allow_host or ()),
            "allowed_origins": tuple(allow_origin or ()),
            "shutdown_seconds": shutdown_seconds,
            "health": health,
            "metrics": metrics,
        }
        pages = Pages(playground, console, console_token(console_token_file))
        reached = _reached(header, protocol, shared, processes, concurrent)
        rules = WrapRules(resume=resume, repeatable=repeatable)
        bridge = _bridge(ctx, target, _Choices(store, key_file, fallback, name, reached, rules, given))
        check_exposure(host, bridge.options, no_auth=no_auth)
        app = bridge.asgi()
        also = [words for name, words in _BESIDE.items() if name in bridge.options.transports]
        beside = f" ({', '.join(also)})" if also else ""
        served = with_pages(bridge, app, pages)

        def started(url: str) -> None:
            for line in (f"{app.name} is served at {url}/mcp{beside}", *pages.told(url)):
                _err.print(line)

        serve_http(served, host, port, started=started)

    _reporting(run, log_level)


def stdio(
    ctx: typer.Context,
    target: Target,
    store: StoreUrl = None,
    key_file: KeyFile = None,
    fallback: Fallback = "result",
    resume: Resume = "hold",
    repeatable: Repeatable = False,
    header: Header = None,
    protocol: Protocol = "auto",
    concurrent: Concurrent = False,
    name: Name = None,
    log_level: LogLevel = "warning",
) -> None:
    """Serve a server that exists, unchanged, over stdin and stdout: for one client, of any revision."""

    def run() -> None:
        reached = _reached(header, protocol, False, 1, concurrent)
        rules = WrapRules(resume=resume, repeatable=repeatable)
        _bridge(ctx, target, _Choices(store, key_file, fallback, name, reached, rules, {})).run_stdio()

    _reporting(run, log_level)


def _reporting(run: Callable[[], None], log_level: str) -> None:
    log_to_stderr(log_level)
    with reporting():
        run()


def _reached(
    header: list[str] | None, protocol: Literal["auto", "modern", "legacy"], shared: bool, processes: int, several: bool
) -> ServerOptions:
    headers = read_headers(header)
    return ServerOptions(headers=headers, protocol=protocol, shared=shared, processes=processes, concurrent=several)


def _bridge(ctx: typer.Context, target: list[str], choices: _Choices) -> Bridge:
    """The bridge that is served: the one that the target is, or one that wraps it."""
    found = load_target(target, is_command=is_after_dashes(ctx))
    if isinstance(found, Bridge):
        return _as_it_is(ctx, found)
    store = choices.store
    keys = choose_keys(choices.key_file, f"sqlite:///{default_file()}" if store is None else store)
    if keys is None:
        _err.print(RANDOM_KEY)
    return Bridge.wrap(
        found,
        name=choices.name,
        store=default_store(target, is_command=ctx.meta[_DASHES]) if store is None else store,
        keys=keys,
        server=choices.server,
        rules=choices.rules,
        fallback=choices.fallback,
        **choices.options,
    )


_OF_TRANSPORT = frozenset(
    {"target", "host", "port", "no_auth", "playground", "console", "console_token_file", "log_level"}
)


def _as_it_is(ctx: typer.Context, bridge: Bridge) -> Bridge:
    """A bridge is set up where it is made: options for wrapping would be ignored, so they are refused."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in ctx.params
        if name not in _OF_TRANSPORT and getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise ConfigurationError(
            f"the target is a Bridge, which is set up where it is made: {', '.join(given)} cannot be"
        )
    return bridge
