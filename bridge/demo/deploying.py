"""Deploying: a question with a key of its own, and a result that keeps to its schema, or is an error."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from bridge import Bridge, Context, ToolError
from bridge.demo.desk import Desk

__all__ = ["add_deploying"]


class Approval(BaseModel):
    """Whether to deploy, and what to note about it."""

    approve: bool = Field(description="Tick to deploy")
    note: str | None = Field(default=None, description="What to note about it", max_length=200)


class Deployed(BaseModel):
    """What came of it."""

    environment: str
    deployed: bool


def add_deploying(bridge: Bridge, desk: Desk) -> None:
    """Add `deploy`."""

    @bridge.tool(annotations={"destructiveHint": True})
    async def deploy(
        environment: Annotated[Literal["staging", "production"], Field(description="Where to", examples=["staging"])],
        ctx: Context,
    ) -> Deployed:
        """Deploy the help desk's newest version. Asks the user to approve; without a yes the call fails."""
        answer = await ctx.elicit(f"Deploy to {environment}?", Approval, key="deployment-approval")
        if not answer.accepted:
            raise ToolError(f"Nothing was deployed to {environment}: the user did not agree ({answer.status}).")
        if not answer.content.approve:
            raise ToolError(f"Nothing was deployed to {environment}: the user did not tick the box.")
        await desk.deploy(environment, answer.content.note or "")
        return Deployed(environment=environment, deployed=True)
