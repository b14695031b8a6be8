"""Paying a customer back: something must happen once before the question, so it is a step."""

from typing import Annotated, Any

from pydantic import Field

from bridge import Bridge, Context
from bridge.demo.desk import Desk
from bridge.demo.forms import Confirm, TicketId

__all__ = ["add_refunding"]


def add_refunding(bridge: Bridge, desk: Desk) -> None:
    """Add `refund`. Why its reservation ends by itself: see `Desk.reserve`."""

    @bridge.tool(annotations={"destructiveHint": True})
    async def refund(
        id: TicketId,  # noqa: A002 - the tool's argument
        amount: Annotated[float, Field(gt=0, le=1000, description="How much to pay back", examples=[20])],
        ctx: Context,
    ) -> dict[str, Any]:
        """Pay a customer back. Puts the money aside for 15 minutes, asks the user, and pays it or gives it back.

        A call that never gets an answer cannot give anything back, so the money is released when the 15 minutes are
        over; the history shows it.
        """
        ticket = await desk.find(id)
        reservation = await ctx.step("reserve", lambda: desk.reserve(id, amount))
        answer = await ctx.elicit(f'Pay {amount:g} back for {id} ("{ticket.title}")?', Confirm)
        if not (answer.accepted and answer.content.confirm):
            await desk.release(id, amount, reservation)
            return {"id": id, "refunded": False, "reason": f"The user did not agree ({answer.status})."}
        if not await desk.refund(id, amount, reservation):
            reason = f"The user agreed too late: {reservation} was released. Call the tool again to ask anew."
            return {"id": id, "refunded": False, "reason": reason}
        return {"id": id, "refunded": True, "amount": amount}
