"""What must happen once, before a question, is a step. The tool runs again for each answer, the step does not."""

from bridge import Bridge, Context

bridge = Bridge("step", elicitation=True)
charges: list[float] = []
cancelled: list[int] = []


def reserve(amount: float) -> int:
    """Put money aside, and return the number of the reservation."""
    charges.append(amount)
    return len(charges)


@bridge.tool
async def buy(amount: float, ctx: Context) -> str:
    """Buy something. Puts the money aside, then asks."""
    reservation = await ctx.step("reserve", lambda: reserve(amount))
    answer = await ctx.elicit(f"Spend {amount:g}? Reservation {reservation} holds the money.", bool)
    if not answer.content:
        cancelled.append(reservation)
        return "Not bought."
    return f"Bought, with reservation {reservation}."


if __name__ == "__main__":
    bridge.run()
