"""The servers that are measured, each in a process of its own: `python -m benchmarks.servers NAME [--weighable]`.

A server prints its port on a line once connections can be made, and runs until it is terminated. All have the same two
tools: `add` adds two numbers, `close_ticket` asks its user first.
"""

import gc
import os
import resource
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import uvicorn
from pydantic import BaseModel

from bridge.transports.uvicorn import settings

__all__ = ["SERVERS", "main"]

App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

_CORE: Final = 0
_MAX_SESSIONS: Final = 20_000


class Confirm(BaseModel):
    """One box to tick."""

    confirm: bool


class _Arguments(msgspec.Struct):
    a: int
    b: int


class _Params(msgspec.Struct, rename={"meta": "_meta"}):
    name: str
    arguments: _Arguments
    meta: dict[str, Any]


class _Request(msgspec.Struct):
    jsonrpc: str
    id: int | str
    method: str
    params: _Params


def bare() -> App:
    """The practical limit: one read, one msgspec decode, one encode, one reply, and no check of anything."""
    decode, encode = msgspec.json.Decoder(_Request).decode, msgspec.json.Encoder().encode

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        request = decode((await receive())["body"])
        total = request.params.arguments.a + request.params.arguments.b
        content = [{"type": "text", "text": str(total)}]
        result = {"content": content, "structuredContent": total, "resultType": "complete"}
        body = encode({"jsonrpc": "2.0", "id": request.id, "result": result})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def mcp() -> App:
    """The official SDK, set up for speed: JSON replies, and its own seal with a key of the process."""
    from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult, MCPServer, Resolve

    server = MCPServer("benchmark", log_level="ERROR")

    async def confirmed(id: str) -> Elicit[Confirm]:  # noqa: A002 - the tool's argument
        return Elicit(f"Close {id}?", Confirm)

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def close_ticket(
        id: str,  # noqa: A002 - the tool's argument
        answer: Annotated[ElicitationResult[Confirm], Resolve(confirmed)],
    ) -> dict[str, bool]:
        """Close a ticket, if its user agrees."""
        return {"closed": isinstance(answer, AcceptedElicitation) and answer.data.confirm}

    return server.streamable_http_app(json_response=True, max_sessions=_MAX_SESSIONS)


def bridge() -> App:
    """This project, as `Bridge.run` serves it, with sessions and rounds in memory."""
    from bridge import Bridge, Context

    server = Bridge("benchmark", elicitation=True)

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


SERVERS: Final[dict[str, Callable[[], App]]] = {"bare": bare, "mcp": mcp, "bridge": bridge}


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
    os.sched_setaffinity(0, {_CORE})
    app = SERVERS[name]()
    if "--weighable" in flags:
        app = weighable(app)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(256)
    print(listener.getsockname()[1], flush=True)
    options = {"loop": "uvloop", "log_level": "error", "access_log": False, "server_header": False}
    if name == "bridge":
        config = settings(app, **options, timeout_keep_alive=3600)  # type: ignore[arg-type]
    else:
        config = uvicorn.Config(app, http="httptools", **options, timeout_keep_alive=3600)  # type: ignore[arg-type]
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
