"""A server of the SDK that others wrote, mcp 1.30 or 2.3, run by its own Python: `peer_server.py TRANSPORT [PORT]`.

It imports nothing of this repository.
"""

import asyncio
import sys

try:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
except (ImportError, AttributeError):
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server

from pydantic import BaseModel

server = Server("peer", instructions="Add numbers.")


class Confirm(BaseModel):
    yes: bool


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Report progress and logs."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    await ctx.info("counted")
    return "done"


@server.tool()
async def close(ticket: str, ctx: Context) -> str:
    answer = await ctx.elicit(f"Close {ticket}?", Confirm)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def wait() -> str:
    """Say when it begins, on stderr, and how it ends."""
    print("waiting", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(600)
    except BaseException:
        print("wait was cancelled", file=sys.stderr, flush=True)
        raise
    return "never"


@server.resource("note://one")
def note() -> str:
    return "a note"


def app(transport: str):
    if transport == "websocket":
        from mcp.server.websocket import websocket_server

        async def serve(scope, receive, send):
            if scope["type"] == "websocket":
                low = server._mcp_server
                async with websocket_server(scope, receive, send) as (read, write):
                    await low.run(read, write, low.create_initialization_options())

        return serve
    return server.sse_app() if transport == "sse" else server.streamable_http_app()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        import uvicorn

        uvicorn.run(app(sys.argv[1]), port=int(sys.argv[2]), log_level="error", timeout_graceful_shutdown=1)
