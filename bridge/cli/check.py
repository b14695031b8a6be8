"""`check`: connects to a server as each kind of client, and says who is served, how each is asked, and why."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from typing import Annotated, Any, Final

import anyio
import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from bridge.app import Bridge
from bridge.cli.check_table import show
from bridge.cli.checking import Checked, KindReport, ToolCall, check_kinds
from bridge.cli.direct import Direct
from bridge.cli.exits import CANNOT_START, NOT_ALL_SERVED, OK, epilog
from bridge.cli.loading import load_target, read_headers
from bridge.cli.logs import log_to_stderr
from bridge.cli.options import Fallback, Header, LogLevel, Protocol, Target
from bridge.cli.reporting import reporting
from bridge.cli.serve import is_after_dashes
from bridge.errors import ConfigurationError
from bridge.kinds import KINDS, ClientKind
from bridge.upstreams.targets import ServerOptions

__all__ = ["EPILOG", "check"]

EPILOG: Final = epilog(
    {
        OK: "every kind of client is served",
        CANNOT_START: "there is no such target, or it cannot be reached",
        NOT_ALL_SERVED: "some kind of client is not served; the table says why",
    },
    "python -m bridge check server.py:mcp",
    "python -m bridge check https://tools.example.com/mcp --direct",
    """python -m bridge check server.py:mcp --tool close_ticket --arguments '{"id": "T-1"}' --answer decline""",
)

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)


def check(
    ctx: typer.Context,
    target: Target,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list with one object for each kind of client, and nothing else.")
    ] = False,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="Not through the bridge: to a Streamable HTTP URL as it is, for comparison."),
    ] = False,
    tool: Annotated[
        str | None,
        typer.Option(
            help="Really call this tool, once as each kind of client. Without it nothing is called.", metavar="NAME"
        ),
    ] = None,
    arguments: Annotated[str, typer.Option(help="The tool's arguments, a JSON object.", metavar="JSON")] = "{}",
    answer: Annotated[
        str,
        typer.Option(
            help="What the user answers to whatever the tool asks: a JSON object (accept, with these fields), "
            "decline or cancel.",
            metavar="JSON|decline|cancel",
        ),
    ] = "decline",
    header: Header = None,
    protocol: Protocol = "auto",
    fallback: Fallback = "result",
    timeout: Annotated[float, typer.Option(help="How long one kind may take, in seconds.", min=0.1)] = 30.0,
    log_level: LogLevel = "error",
) -> None:
    """See who is served: connect to a server as each kind of client, and explain each no.

    Only connects and lists, unless --tool is given: calling a tool can have effects, and it is called once as each kind
    of client, seven times in all.
    """
    call = _call(tool, arguments, answer)
    log_to_stderr(log_level)
    # What is checked may print, as it is imported and when its tools run; stdout is for what was found.
    with reporting(), redirect_stdout(sys.stderr):
        found = load_target(target, is_command=is_after_dashes(ctx))
        headers = read_headers(header)
        served = _Direct(found, headers) if direct else _Bridged(found, headers, protocol, fallback)
        reports = anyio.run(_run, served, call, timeout)
    if as_json:
        # Not through rich, which would wrap it.
        print(json.dumps(msgspec.to_builtins(reports), indent=2, ensure_ascii=False))  # noqa: T201
    else:
        show(_out, reports, called=tool, direct=direct)
    raise typer.Exit(OK if all(report.served for report in reports) else NOT_ALL_SERVED)


def _call(tool: str | None, arguments: str, answer: str) -> ToolCall | None:
    if tool is None:
        if arguments != "{}" or answer != "decline":
            raise typer.BadParameter("--arguments and --answer say how a tool is called: name it with --tool")
        return None
    said = (
        {"action": answer}
        if answer in ("decline", "cancel")
        else {"action": "accept", "content": _object(answer, "--answer")}
    )
    return ToolCall(tool, _object(arguments, "--arguments"), said)


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option} is no JSON: {error}") from None
    if not isinstance(read, dict):
        raise typer.BadParameter(f'{option} wants a JSON object such as \'{{"id": "T-1"}}\', not {text}')
    return read


class _Bridged:
    """A target behind the bridge, in this process."""

    def __init__(self, target: Any, headers: dict[str, str], protocol: Any, fallback: Any) -> None:
        own = isinstance(target, Bridge)
        server = ServerOptions(headers=headers, protocol=protocol)
        self._bridge = target if own else Bridge.wrap(target, server=server, fallback=fallback)
        self._headers = headers if own else {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Checked]:
        app = self._bridge.asgi()
        async with app.lifespan():
            yield Checked(app=app, options=self._bridge.options, headers=self._headers)

    def judge(self, reports: list[KindReport]) -> None:
        """Nothing more: what cannot be reached ended the start."""


class _Direct:
    """A URL as it is."""

    def __init__(self, target: Any, headers: dict[str, str]) -> None:
        if not (isinstance(target, str) and target.startswith(("http://", "https://"))):
            raise ConfigurationError(
                "--direct takes the http or https URL of a server; without it, anything is checked"
            )
        self._app = Direct(target, headers)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Checked]:
        async with self._app.lifespan():
            yield Checked(app=self._app, options=None)

    def judge(self, reports: list[KindReport]) -> None:
        """Nobody got anywhere, since the server got no request: that is no finding about kinds of clients."""
        if self._app.unreachable is not None and not any(report.served for report in reports):
            raise self._app.unreachable


async def _run(served: _Bridged | _Direct, call: ToolCall | None, timeout_seconds: float) -> list[KindReport]:
    columns = (TextColumn("[dim]{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal) as progress:
        task = progress.add_task("starting the server", total=len(KINDS))

        def tell(kind: ClientKind) -> None:
            progress.update(task, description=f"as {kind.title}", completed=KINDS.index(kind))

        async with served.open() as checked:
            asked = msgspec.structs.replace(checked, call=call, timeout_seconds=timeout_seconds)
            reports = await check_kinds(asked, tell=tell)
    served.judge(reports)
    return reports
