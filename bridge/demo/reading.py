"""What the help desk shows: tools that only read, and resources, one of which asks."""

from typing import Any, Literal

import msgspec
from pydantic import BaseModel, Field

from bridge import Bridge, Context, ToolError
from bridge.demo.desk import Desk

__all__ = ["add_reading"]

_SECONDS = {"hour": 3600.0, "day": 86400.0, "week": 604800.0}


class PickPeriod(BaseModel):
    """How far back a report goes."""

    period: Literal["hour", "day", "week"] = Field(description="How far back the report goes")


def add_reading(bridge: Bridge, desk: Desk) -> None:
    """Add the tools that read, and the resources."""
    _add_tools(bridge, desk)
    _add_resources(bridge, desk)


async def _all(desk: Desk) -> list[dict[str, Any]]:
    tickets: list[dict[str, Any]] = msgspec.to_builtins(list((await desk.tickets()).values()))
    return tickets


def _add_tools(bridge: Bridge, desk: Desk) -> None:
    @bridge.tool(annotations={"readOnlyHint": True})
    async def list_tickets() -> list[dict[str, Any]]:
        """List the tickets of the help desk."""
        return await _all(desk)

    @bridge.tool(annotations={"readOnlyHint": True})
    async def history() -> list[str]:
        """List everything that was done, once each, oldest first."""
        return await desk.history()

    @bridge.tool(annotations={"readOnlyHint": True})
    async def outbox() -> list[str]:
        """List the mails to customers, oldest first."""
        return await desk.outbox()


def _add_resources(bridge: Bridge, desk: Desk) -> None:
    @bridge.resource("desk://tickets")
    async def tickets() -> list[dict[str, Any]]:
        """All tickets."""
        return await _all(desk)

    @bridge.resource("desk://tickets/{id}")
    async def ticket(id: str) -> dict[str, Any]:  # noqa: A002 - the template's variable
        """One ticket."""
        found: dict[str, Any] = msgspec.to_builtins(await desk.find(id))
        return found

    @bridge.resource("desk://report", mime_type="text/markdown")
    async def report(ctx: Context) -> str:
        """What was done at the help desk. Asks the user for the period."""
        answer = await ctx.elicit("What period should the report cover?", PickPeriod)
        if not answer.accepted:
            raise ToolError(f"There is no report: the user picked no period ({answer.status}).")
        period = answer.content.period
        lines = [f"- {what}" for what in await desk.history(_SECONDS[period])] or ["Nothing was done."]
        return "\n".join((f"# The last {period}", "", *lines))
