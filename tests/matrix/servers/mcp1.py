"""The server of the matrix, written with FastMCP of mcp 1.30.0: it asks in the middle of a call.

Run it with `python mcp1.py stdio`, or with `http`, `sse` or `ws` and a port.
"""

import sys
import warnings

import uvicorn
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

server = FastMCP("matrix", log_level="WARNING")


class Confirm(BaseModel):
    confirm: bool


class Name(BaseModel):
    name: str


class Count(BaseModel):
    count: int


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def ask_once(what: str, ctx: Context) -> str:
    """Close something. Asks the user first."""
    answer = await ctx.elicit(f"Close {what}?", Confirm)
    return f"closed {what}" if isinstance(answer, AcceptedElicitation) and answer.data.confirm else f"kept {what}"


@server.tool()
async def ask_twice(what: str, ctx: Context) -> str:
    """Order something. Asks for a name, then how many go to that name."""
    name = await ctx.elicit(f"Who orders {what}?", Name)
    if not isinstance(name, AcceptedElicitation):
        return f"no {what}"
    count = await ctx.elicit(f"How many {what} for {name.data.name}?", Count)
    return f"{count.data.count} {what} for {name.data.name}" if isinstance(count, AcceptedElicitation) else f"no {what}"


@server.tool()
async def count_up(steps: int, ctx: Context) -> str:
    """Count, and report each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@server.resource("matrix://note")
def note() -> str:
    """A note."""
    return "noted"


@server.prompt()
def greet() -> str:
    """A greeting."""
    return "Greet the user."


def over_websocket() -> Starlette:
    """An app that serves it at `/ws`, each connection a session."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        from mcp.server.websocket import websocket_server

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            connected = websocket_server(scope, receive, send)
        async with connected as (read, write):
            lowlevel = server._mcp_server
            await lowlevel.run(read, write, lowlevel.create_initialization_options())

    async def accept(websocket: WebSocket) -> None:
        await endpoint(websocket.scope, websocket.receive, websocket.send)

    return Starlette(routes=[WebSocketRoute("/ws", accept)])


if __name__ == "__main__":
    transport = sys.argv[1]
    if transport == "stdio":
        server.run("stdio")
    else:
        apps = {"http": server.streamable_http_app, "sse": server.sse_app, "ws": over_websocket}
        uvicorn.run(apps[transport](), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
