"""What the command can do, and the options that stand before everything else."""

from typing import Annotated, Final

import typer
from rich.console import Console

from bridge import __version__
from bridge.cli.check import EPILOG, check
from bridge.cli.demo import demo
from bridge.cli.exits import CANNOT_START, OK, SERVING, epilog
from bridge.cli.keys import app as keys
from bridge.cli.serve import AfterDashes, serve, stdio

__all__ = ["app"]

_HELP: Final = """One MCP server for clients of every revision of the protocol.

Start with *demo*: a help desk to try, with a page in the browser. Then *serve* a server of your own, unchanged, and
*check* which clients it now serves, and why.
"""

app = typer.Typer(
    name="mcp-session-bridge",
    help=_HELP,
    epilog="Each command explains itself: *python -m bridge serve --help*",
    invoke_without_command=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        Console(highlight=False).print(__version__)
        raise typer.Exit


@app.callback()
def _main(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        Console(highlight=False, markup=False).print(ctx.get_help())


app.command(epilog=epilog(SERVING, "python -m bridge demo", "python -m bridge demo --port 9000"))(demo)
app.command(
    cls=AfterDashes,
    epilog=epilog(
        SERVING,
        "python -m bridge serve server.py:mcp",
        "python -m bridge serve https://tools.example.com/mcp --header 'Authorization: Bearer its-own'",
        "python -m bridge serve -- npx @modelcontextprotocol/server-everything",
    ),
)(serve)
app.command(cls=AfterDashes, epilog=epilog(SERVING, "python -m bridge stdio https://tools.example.com/mcp"))(stdio)
app.command(cls=AfterDashes, epilog=EPILOG)(check)
app.add_typer(
    keys, name="keys", epilog=epilog({OK: "it is done", CANNOT_START: "the file cannot be; one line says why"})
)
