"""`demo`: the help desk, served."""

from typing import Annotated, Any

import typer
from rich.console import Console

from bridge.cli.keys import RANDOM_KEY, KeyFile, choose_keys
from bridge.cli.logs import log_to_stderr
from bridge.cli.reporting import reporting
from bridge.protocol.inbound import META_CAPABILITIES, META_CLIENT_INFO, META_VERSION
from bridge.protocol.messages import encode
from bridge.protocol.revisions import MODERN

__all__ = ["demo"]

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)


def demo(
    host: Annotated[str, typer.Option(help="The address to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The TCP port.", min=0, max=65535)] = 8000,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve over stdin and stdout instead.")] = False,
    store: Annotated[
        str, typer.Option(help="Where sessions and open questions live: memory, sqlite:///path or redis://host.")
    ] = "memory",
    key_file: KeyFile = None,
    base_url: Annotated[
        str | None, typer.Option(help="Where users reach the pages of the help desk; by default host and port.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name in Host by which the server may be reached, beside loopback's.")
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Serve everybody who reaches an address beyond loopback.")
    ] = False,
    shutdown_seconds: Annotated[
        float, typer.Option(help="How long what runs may go on once a signal comes, in seconds.", min=0)
    ] = 10.0,
    metrics: Annotated[bool, typer.Option("--metrics", help="Serve /metrics for Prometheus, to everybody.")] = False,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error. By default info, over stdio warning.")
    ] = None,
) -> None:
    """Serve the help desk: tools that ask their user, for clients of every revision."""
    log_to_stderr(log_level or ("warning" if stdio else "info"))
    with reporting():
        from bridge.app import check_exposure
        from bridge.demo.app import HelpDeskApp, help_desk_playground
        from bridge.demo.helpdesk import make
        from bridge.pages.explain import Explain
        from bridge.transports.uvicorn import serve

        keys = choose_keys(key_file, store)
        reached = (base_url or f"http://{host}:{port}").rstrip("/")
        bridge = make(
            store=store,
            keys=keys,
            base_url=reached,
            allowed_hosts=tuple(allow_host or ()),
            shutdown_seconds=shutdown_seconds,
            metrics=metrics,
        )
        if stdio:
            bridge.run_stdio()
            return
        check_exposure(host, bridge.options, no_auth=no_auth)
        if keys is None:
            _err.print(RANDOM_KEY)
        url = f"{reached}/mcp"
        _out.print(f"[bold]The help desk serves[/bold] {url}\n")
        _out.print(f"[bold]See it at work[/bold] in a browser, as every kind of client: {reached}/\n")
        _out.print("Point any MCP client at it, old or new, or try one call:\n")
        _out.print(_curl(url), markup=False)
        playground = help_desk_playground(HelpDeskApp(bridge), bridge)
        serve(Explain(playground, bridge.store, bridge.options, None), host, port)


def _curl(url: str) -> str:
    """One call of a tool that asks, as a modern client makes it."""
    meta: dict[str, Any] = {
        META_VERSION: MODERN.name,
        META_CLIENT_INFO: {"name": "curl", "version": "8"},
        META_CAPABILITIES: {"elicitation": {"form": {}}},
    }
    params = {"name": "close_ticket", "arguments": {"id": "T-1"}, "_meta": meta}
    body = encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).decode()
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": MODERN.name,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "close_ticket",
    }
    lines = [f"curl -s {url}", *(f"-H '{name}: {value}'" for name, value in headers.items()), f"-d '{body}'"]
    return " \\\n  ".join(lines) + "\n"
