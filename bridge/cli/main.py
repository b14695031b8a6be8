"""What the command can do, and the options that stand before everything else."""

from typing import Annotated

import typer
from rich.console import Console

from bridge import __version__
from bridge.cli.demo import demo
from bridge.cli.keys import app as keys
from bridge.cli.serve import AfterDashes, serve, stdio

__all__ = ["app"]

app = typer.Typer(
    name="mcp-session-bridge",
    help="One MCP server for a fleet of clients that speak different revisions of the protocol.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        Console(highlight=False).print(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command()(demo)
app.command(cls=AfterDashes)(serve)
app.command(cls=AfterDashes)(stdio)
app.add_typer(keys, name="keys")
