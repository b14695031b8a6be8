"""`serve` and `stdio`: a server that exists, or a bridge, served to clients of every revision."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer
from rich.console import Console
from typer.core import TyperCommand

from bridge.app import Bridge, check_exposure
from bridge.cli.keys import RANDOM_KEY, KeyFile, choose_keys
from bridge.cli.loading import load_target, read_headers
from bridge.cli.logs import log_to_stderr
from bridge.cli.pages import TOKEN_ENVIRONMENT, Pages, console_token, with_pages
from bridge.cli.reporting import reporting
from bridge.cli.state import STORE_HELP, default_file, default_store
from bridge.errors import ConfigurationError
from bridge.upstreams.targets import ServerOptions
from bridge.upstreams.wrapped import WrapRules

__all__ = [
    "AfterDashes",
    "Fallback",
    "Header",
    "LogLevel",
    "Protocol",
    "Target",
    "is_after_dashes",
    "serve",
    "stdio",
]

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


_BEHIND: Final = "The server behind"
_ASKING: Final = "Questions"
_REACHED: Final = "Where it is served, and to whom"
_PAGES: Final = "Pages for people"

Target = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET",
        help="file.py:attribute or module:attribute (a server or a Bridge), a URL, or -- and a command.",
    ),
]
StoreUrl = Annotated[str | None, typer.Option(help=STORE_HELP, show_default=False)]
Fallback = Annotated[
    Literal["result", "wait", "off"],
    typer.Option(
        help="How clients are asked that show no form: through the chat (result, wait), or not at all.",
        rich_help_panel=_ASKING,
    ),
]
Resume = Annotated[
    Literal["hold", "rerun"],
    typer.Option(
        help="After a question, a call goes on where it stopped (hold), or is made again (rerun).",
        rich_help_panel=_ASKING,
    ),
]
Repeatable = Annotated[
    bool, typer.Option("--repeatable", help="Running a tool twice does no harm.", rich_help_panel=_ASKING)
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        help="An HTTP header for the server behind: 'Name: value'.",
        metavar="HEADER",
        rich_help_panel=_BEHIND,
    ),
]
Protocol = Annotated[
    Literal["auto", "modern", "legacy"],
    typer.Option(help="The era to speak with the server behind.", rich_help_panel=_BEHIND),
]
Shared = Annotated[
    bool, typer.Option("--shared", help="One child, or session, for all clients.", rich_help_panel=_BEHIND)
]
Processes = Annotated[
    int, typer.Option(help="Over how many children calls are spread that share one.", min=1, rich_help_panel=_BEHIND)
]
Concurrent = Annotated[
    bool,
    typer.Option(
        "--concurrent",
        help="Several calls at once in one child, for a server that never asks.",
        rich_help_panel=_BEHIND,
    ),
]
ShutdownSeconds = Annotated[
    float,
    typer.Option(help="How long what runs may go on once a signal comes, in seconds.", min=0, rich_help_panel=_REACHED),
]
Name = Annotated[
    str | None,
    typer.Option(
        help="How the server is called; by default as it calls itself.", metavar="NAME", rich_help_panel=_BEHIND
    ),
]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], typer.Option(help="The lowest level of logs.")]


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
    host: Annotated[
        str, typer.Option(help="The address to bind.", metavar="ADDRESS", rich_help_panel=_REACHED)
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The TCP port; 0 for a free one.", min=0, max=65535, rich_help_panel=_REACHED)
    ] = 8000,
    store: StoreUrl = None,
    key_file: KeyFile = None,
    fallback: Fallback = "result",
    resume: Resume = "hold",
    repeatable: Repeatable = False,
    header: Header = None,
    protocol: Protocol = "auto",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name in Host by which the server may be reached, beside loopback's.",
            metavar="NAME",
            rich_help_panel=_REACHED,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="An Origin of web pages that may call, beside loopback ones.",
            metavar="ORIGIN",
            rich_help_panel=_REACHED,
        ),
    ] = None,
    no_auth: Annotated[
        bool,
        typer.Option(
            "--no-auth", help="Serve everybody who reaches an address beyond loopback.", rich_help_panel=_REACHED
        ),
    ] = False,
    shared: Shared = False,
    processes: Processes = 1,
    concurrent: Concurrent = False,
    name: Name = None,
    playground: Annotated[
        bool,
        typer.Option(
            "--playground",
            help="Serve a page at / too, to try the server as every kind of client.",
            rich_help_panel=_PAGES,
        ),
    ] = False,
    console: Annotated[
        bool,
        typer.Option(
            "--console",
            help="Serve a page at /console: sessions, open questions, the last hour.",
            rich_help_panel=_PAGES,
        ),
    ] = False,
    console_token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the secret that opens the console and /explain; by default what is in "
            f"{TOKEN_ENVIRONMENT}.",
            metavar="FILE",
            rich_help_panel=_PAGES,
        ),
    ] = None,
    shutdown_seconds: ShutdownSeconds = 10.0,
    health: Annotated[
        bool, typer.Option(help="Whether /healthz and /readyz are served.", rich_help_panel=_REACHED)
    ] = True,
    metrics: Annotated[
        bool,
        typer.Option("--metrics", help="Serve /metrics for Prometheus, to everybody.", rich_help_panel=_REACHED),
    ] = False,
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
