"""Connecting an account at a page: for what must not pass through a client, a model or a form.

The state of a flow stays on the server, under a handle that nobody can guess, in the bridge's store: the node that
serves the page need not be the one that runs the tool, nor need it be the same process. The page itself is in `app.py`.

Nobody logs in to the help desk, so whoever has the link can complete the flow. Where users log in, the page must also
check that it is the one who called the tool: `ctx.client.principal`.
"""

import re
import secrets
from typing import Annotated, Final, Literal

import msgspec
from pydantic import BaseModel, Field

from bridge import Bridge, Context, ToolError
from bridge.demo.desk import Desk
from bridge.stores import Store

__all__ = ["FLOW_SECONDS", "MAX_ASKS", "Flow", "Flows", "add_connecting", "elicitation_ids"]

Provider = Literal["calendar", "mail", "payments"]

FLOW_SECONDS: Final = 3600.0
"""How long a page can be completed."""

MAX_ASKS: Final = 3
"""How often the tool asks, while the page is still open."""

_HANDLE: Final = re.compile(r"[A-Za-z0-9_-]{32}")


class Flow(msgspec.Struct, frozen=True):
    """One way through the page."""

    provider: Provider
    done: bool = False


class Flows:
    """The flows that are open, by handle.

    Args:
        store: where they live.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, provider: Provider) -> str:
        """Begin a flow and return its handle: 192 random bits."""
        handle = secrets.token_urlsafe(24)
        await self._store.put(_key(handle), msgspec.json.encode(Flow(provider)), ttl_seconds=FLOW_SECONDS)
        return handle

    async def find(self, handle: str) -> Flow | None:
        """The flow of a handle, whoever made that up; None where it is none, is over or has expired."""
        record = await self._store.get(_key(handle)) if _HANDLE.fullmatch(handle) else None
        return None if record is None else _decoder.decode(record.value)

    async def complete(self, handle: str) -> Flow | None:
        """Mark a flow as done; None where there is none."""
        record = await self._store.get(_key(handle)) if _HANDLE.fullmatch(handle) else None
        if record is None:
            return None
        done = msgspec.structs.replace(_decoder.decode(record.value), done=True)
        version = await self._store.put(
            _key(handle), msgspec.json.encode(done), ttl_seconds=FLOW_SECONDS, if_version=record.version
        )
        # Another request was faster: either it completed the flow too, or the tool has ended it.
        return done if version is not None else await self.find(handle)

    async def state(self, handle: str) -> Literal["open", "done", "gone"]:
        """How far a flow is."""
        flow = await self.find(handle)
        if flow is None:
            return "gone"
        return "done" if flow.done else "open"

    async def end(self, handle: str) -> None:
        """Forget a flow: its page no longer works."""
        await self._store.take(_key(handle))


class Connected(BaseModel):
    """What came of it."""

    provider: str
    connected: bool


def elicitation_ids(handle: str) -> list[str]:
    """The names under which the page of a flow is asked for, one for each time."""
    return [f"{handle}-{number}" for number in range(1, MAX_ASKS + 1)]


def add_connecting(bridge: Bridge, desk: Desk, base_url: str) -> None:
    """Add `connect_account`, whose page is at `base_url`."""
    flows = Flows(bridge.store)

    @bridge.tool(annotations={"destructiveHint": False})
    async def connect_account(
        provider: Annotated[Provider, Field(description="Whose account to connect", examples=["mail"])], ctx: Context
    ) -> Connected:
        """Connect the help desk to an account. Sends the user to a page, and goes on when it is completed."""
        handle: str = await ctx.step("flow", lambda: flows.begin(provider))
        message = f"To connect your {provider} account, open this page and press its button."
        for number, elicitation_id in enumerate(elicitation_ids(handle), start=1):
            key = f"connect-{number}"
            answer = await ctx.elicit_url(message, f"{base_url}/connect/{handle}", key, elicitation_id=elicitation_id)
            if not answer.accepted:
                await flows.end(handle)
                raise ToolError(f"The {provider} account was not connected: the user did not agree ({answer.status}).")
            # An accept says that the user is willing, not that the page is done. What was found is a step, so that a
            # run which sees the next answer goes the same way as the one which asked for it.
            state: str = await ctx.step(f"look-{number}", lambda: flows.state(handle))
            if state == "done":
                await flows.end(handle)
                await desk.connect(provider)
                return Connected(provider=provider, connected=True)
            if state == "gone":
                raise ToolError(f"The page to connect the {provider} account has expired. Call the tool again.")
            message = f"The page to connect your {provider} account is still open. Press its button, then go on here."
        await flows.end(handle)
        raise ToolError(
            f"The {provider} account was not connected: its page was still open each of the {MAX_ASKS} times that the "
            "user was asked. Call the tool again for a new page."
        )


_decoder: Final = msgspec.json.Decoder(Flow)


def _key(handle: str) -> str:
    return f"demo/connect/{handle}"
