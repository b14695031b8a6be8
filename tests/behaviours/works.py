"""A bridge whose tools tell a test what they do, and wait for its word."""

from typing import Any

import anyio
from pydantic import BaseModel

from bridge import Bridge, Context
from tests.behaviours.talking import META, SECONDS, Talker

__all__ = ["Name", "Work", "happens", "lives", "make"]


class Name(BaseModel):
    name: str


class Work:
    """What tools did, and what a test lets them do."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.go = anyio.Event()
        self.over = anyio.Event()
        self.answered = anyio.Event()
        self.said = 0
        self.trace: list[str] = []


def make(work: Work, **options: Any) -> Bridge:
    """A bridge whose tools tell a test what they do."""
    bridge = Bridge("pipes", elicitation=True, **options)

    @bridge.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @bridge.tool
    async def use() -> str:
        work.begun.set()
        try:
            await work.go.wait()
            work.trace.append("went on")
        except anyio.get_cancelled_exc_class():
            work.trace.append("cancelled")
            raise
        finally:
            work.over.set()
        return "done"

    @bridge.tool
    async def ask(ctx: Context, who: str = "Who?") -> str:
        answer = await ctx.elicit(who, Name)
        work.answered.set()
        return answer.content.name if answer.content else answer.status

    @bridge.tool
    async def flood(ctx: Context, kilobytes: int) -> str:
        work.begun.set()
        try:
            for _ in range(kilobytes):
                await ctx.info("x" * 1024)
                work.said += 1
        finally:
            work.over.set()
        return "said"

    @bridge.tool
    def echo(text: str) -> str:
        return text

    @bridge.resource("notes://today")
    async def today() -> str:
        return "nothing"

    return bridge


async def happens(event: anyio.Event) -> None:
    with anyio.fail_after(SECONDS):
        await event.wait()


async def lives(mcp: Talker) -> None:
    """The connection still answers, in both eras."""
    assert (await mcp.call("add", a=2, b=3))["structuredContent"] == {"result": 5}
    assert (await mcp.call("add", META, a=2, b=3))["structuredContent"] == 5
