"""A bridge whose tools take their time, set up by the environment; `uvicorn slow_server:app` serves it too."""

import os
import sys

import anyio

from bridge import Bridge, Context, KeyRing
from tests.behaviours.works import Name

bridge = Bridge(
    "slow",
    elicitation=True,
    store=os.environ.get("SLOW_STORE", "memory"),
    keys=KeyRing([b"k" * 32]),
    shutdown_seconds=float(os.environ.get("SLOW_SHUTDOWN", "10")),
)


def say(word: str) -> None:
    print(word, file=sys.stdout, flush=True)


@bridge.tool
async def nap(seconds: float) -> str:
    say("begun")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        say("cancelled")
        raise
    return "rested"


@bridge.tool
async def nap_aloud(seconds: float, ctx: Context) -> str:
    """Likewise, and opens its stream."""
    await ctx.warning("good night")
    return await nap(seconds)


@bridge.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Who?", Name)
    return answer.content.name if answer.content else answer.status


app = bridge.asgi()
