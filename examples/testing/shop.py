"""A shop whose tools ask: the server under test. Its till stands for what a real one has, a payment service."""

from typing import Annotated

from pydantic import BaseModel, Field

from bridge import Bridge, Context, ToolError


class Till:
    """Puts money aside, charges it, gives it back."""

    def reserve(self, amount: float) -> str:
        """Put money aside; return the number of the reservation."""
        return f"R-{amount:g}"

    def charge(self, reservation: str) -> None:
        """Take the money that was put aside."""

    def release(self, reservation: str) -> None:
        """Give it back."""


class Delivery(BaseModel):
    """Where and when."""

    street: str = Field(description="Street and number")
    express: bool = False


class Shop:
    """A shop over a till."""

    def __init__(self, till: Till) -> None:
        self.bridge = Bridge("shop", elicitation=True)
        self._till = till
        self.bridge.tool(self.buy)
        self.bridge.tool(self.deliver)

    async def buy(self, amount: Annotated[float, Field(gt=0)], ctx: Context) -> str:
        """Buy something. Puts the money aside, asks, and charges it on a yes."""
        reservation = await ctx.step("reserve", lambda: self._till.reserve(amount))
        answer = await ctx.elicit(f"Spend {amount:g}?", bool, key="spend")
        if not answer.content:
            self._till.release(reservation)
            return "Not bought."
        self._till.charge(reservation)
        return f"Bought for {amount:g}."

    async def deliver(self, article: str, ctx: Context) -> str:
        """Deliver an article. Asks where to, and once more before an express delivery."""
        where = await ctx.elicit(f"Where does {article} go?", Delivery, key="where")
        if not where.accepted:
            raise ToolError("No address, no delivery.")
        if where.content.express and not (await ctx.elicit("Pay 10 for express?", bool, key="express")).content:
            return f"{article} goes to {where.content.street}, by ordinary mail."
        return f"{article} goes to {where.content.street}."


bridge = Shop(Till()).bridge

if __name__ == "__main__":
    bridge.run()
