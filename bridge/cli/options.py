"""The options of the commands that serve or check a server: what each is called, means and takes."""

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from bridge.cli.pages import TOKEN_ENVIRONMENT
from bridge.cli.state import STORE_HELP

__all__ = [
    "AllowHost",
    "AllowOrigin",
    "Concurrent",
    "ConsolePage",
    "ConsoleTokenFile",
    "Fallback",
    "Header",
    "Health",
    "Host",
    "LogLevel",
    "Metrics",
    "Name",
    "NoAuth",
    "PlaygroundPage",
    "Port",
    "Processes",
    "Protocol",
    "Repeatable",
    "Resume",
    "Shared",
    "ShutdownSeconds",
    "StoreUrl",
    "Target",
]

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
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        help="A name in Host by which the server may be reached, beside loopback's.",
        metavar="NAME",
        rich_help_panel=_REACHED,
    ),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        help="An Origin of web pages that may call, beside loopback ones.",
        metavar="ORIGIN",
        rich_help_panel=_REACHED,
    ),
]
NoAuth = Annotated[
    bool,
    typer.Option("--no-auth", help="Serve everybody who reaches an address beyond loopback.", rich_help_panel=_REACHED),
]
PlaygroundPage = Annotated[
    bool,
    typer.Option(
        "--playground",
        help="Serve a page at / too, to try the server as every kind of client.",
        rich_help_panel=_PAGES,
    ),
]
ConsolePage = Annotated[
    bool,
    typer.Option(
        "--console",
        help="Serve a page at /console: sessions, open questions, the last hour.",
        rich_help_panel=_PAGES,
    ),
]
ConsoleTokenFile = Annotated[
    Path | None,
    typer.Option(
        help=f"A file with the secret that opens the console and /explain; by default what is in {TOKEN_ENVIRONMENT}.",
        metavar="FILE",
        rich_help_panel=_PAGES,
    ),
]
Health = Annotated[bool, typer.Option(help="Whether /healthz and /readyz are served.", rich_help_panel=_REACHED)]
Metrics = Annotated[
    bool,
    typer.Option("--metrics", help="Serve /metrics for Prometheus, to everybody.", rich_help_panel=_REACHED),
]
Host = Annotated[str, typer.Option(help="The address to bind.", metavar="ADDRESS", rich_help_panel=_REACHED)]
Port = Annotated[int, typer.Option(help="The TCP port; 0 for a free one.", min=0, max=65535, rich_help_panel=_REACHED)]
