"""What `uvicorn --workers 4 tests.behaviours.worker_app:app` serves: a bridge that says which worker answered."""

import os
from typing import Any

from bridge import Bridge, Context

_bridge = Bridge("workers", elicitation=True, store=os.environ["WORKERS_STORE"])
_served = _bridge.asgi()


@_bridge.tool
async def ask(ctx: Context) -> str:
    """Asks, and says where it went on."""
    answer = await ctx.elicit("Go on?", bool)
    return f"{answer.content}"


@_bridge.tool
def plain(text: str) -> str:
    """Returns what it is given."""
    return text


async def app(scope: Any, receive: Any, send: Any) -> None:
    async def named(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"x-worker", str(os.getpid()).encode())]
        await send(message)

    await _served(scope, receive, named)
