"""The servers that are measured, each in a process of its own: `python -m benchmarks.servers NAME`.

`--weighable` lets one tell its size, `--store URL` says where the bridge keeps sessions and rounds. A server prints its
port on a line once connections can be made, and runs until it is terminated. All have the same two tools, but the bare
ones: `add` adds two numbers, `close_ticket` asks its user first.
"""

import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel

from benchmarks.bare import bare, bare_stdio
from benchmarks.process import LOAD_CORE, OPTIONS, SERVER_CORE, App, keep_to, serve

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

__all__ = ["SERVERS", "main"]

_MAX_SESSIONS: Final = 20_000
_MAX_HOLDS: Final = 200_000


class Confirm(BaseModel):
    """One box to tick."""

    confirm: bool


def mcp() -> App:
    """The official SDK, set up for speed: JSON replies, and its own seal with a key of the process."""
    from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult, Resolve

    server = _adding()

    async def confirmed(id: str) -> Elicit[Confirm]:  # noqa: A002 - the tool's argument
        return Elicit(f"Close {id}?", Confirm)

    @server.tool()
    async def close_ticket(
        id: str,  # noqa: A002 - the tool's argument
        answer: Annotated[ElicitationResult[Confirm], Resolve(confirmed)],
    ) -> dict[str, bool]:
        """Close a ticket, if its user agrees."""
        return {"closed": isinstance(answer, AcceptedElicitation) and answer.data.confirm}

    return server.streamable_http_app(json_response=True, max_sessions=_MAX_SESSIONS)


def wrapped() -> App:
    """This project around a server of the official SDK, in one process; its tool asks in its body, as most do."""
    from mcp.server.mcpserver import Context

    from bridge import Bridge
    from bridge.upstreams.wrapped import WrapRules

    server = _adding()

    @server.tool()
    async def close_ticket(id: str, ctx: Context) -> dict[str, bool]:  # noqa: A002 - the tool's argument
        """Close a ticket, if its user agrees."""
        answer = await ctx.elicit(f"Close {id}?", Confirm)
        return {"closed": answer.action == "accept" and answer.data.confirm}

    return Bridge.wrap(server, rules=WrapRules(max_holds=_MAX_HOLDS)).asgi()


def _adding() -> "MCPServer":
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("benchmark", log_level="ERROR")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


def bridge(store: str = "memory") -> App:
    """This project, as `Bridge.run` serves it, with sessions and rounds in a store, encrypted unless in memory."""
    from bridge import Bridge, Context, KeyRing

    server = Bridge("benchmark", elicitation=True, store=store, keys=KeyRing([b"k" * 32]))

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def close_ticket(id: str, ctx: Context) -> dict[str, bool]:  # noqa: A002 - the tool's argument
        """Close a ticket, if its user agrees."""
        answer = await ctx.elicit(f"Close {id}?", Confirm)
        return {"closed": answer.content is not None and answer.content.confirm}

    return server.asgi()


SERVERS: Final[dict[str, Callable[..., App]]] = {"bare": bare, "mcp": mcp, "bridge": bridge, "wrapped": wrapped}


def weighable(app: App) -> App:
    """Answer any request to `/weight` with the bytes that the process occupies after a collection."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != "/weight":
            await app(scope, receive, send)
            return
        body = str(_weight()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    return serve


def _weight() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main(name: str, *flags: str) -> None:
    """Serve until terminated."""
    keep_to(LOAD_CORE if "--beside-load" in flags else SERVER_CORE)
    if name == "bare-stdio":
        bare_stdio()
        return
    app = SERVERS[name](*flags[flags.index("--store") + 1 :][:1]) if "--store" in flags else SERVERS[name]()
    if "--weighable" in flags:
        app = weighable(app)
    serve(app, _corked(app) if name in ("bridge", "wrapped") else None)


def _corked(app: Any) -> Any:
    from bridge.transports.uvicorn import settings

    return settings(app, **OPTIONS)


if __name__ == "__main__":
    main(*sys.argv[1:])
