"""Desks that ask, served with what operators see, in process; sessions are opened as each kind of client."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import httpx
import pytest

from bridge import Bridge, Context
from bridge.kinds import kind_named
from bridge.pages.console import Console
from bridge.pages.door import Door
from bridge.pages.explain import Explain
from bridge.stores import Store
from bridge.testing import Client, connect

TOKEN = secrets.token_urlsafe(32)
BEARER = {"authorization": f"Bearer {TOKEN}"}
SECRETS = ("T-77", "hush-hush", "the-argument")
"""What was asked, answered or passed, and must not be seen."""


class Desk:
    """A node with its console.

    Args:
        site: the ASGI app, pages and all.
        bridge: what it serves.
    """

    def __init__(self, site: Any, bridge: Bridge) -> None:
        self.site = site
        self.bridge = bridge
        self.effects: list[str] = []

    def browser(self, **headers: str) -> httpx.AsyncClient:
        """Somebody who looks at its pages; cookies are kept."""
        transport = httpx.ASGITransport(self.site, client=("10.0.0.1", 1))
        return httpx.AsyncClient(transport=transport, base_url="http://localhost:8000", headers=headers)

    async def get(self, path: str) -> Any:
        """What a program with the token gets."""
        async with self.browser(**BEARER) as browser:
            reply = await browser.get(path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def post(self, path: str, **fields: str) -> httpx.Response:
        """What a program with the token does."""
        async with self.browser(**BEARER) as browser:
            return await browser.post(path, data=fields)

    @asynccontextmanager
    async def client(self, name: str, **connecting: Any) -> AsyncIterator[Client]:
        """A client of a kind."""
        kind = kind_named(name)
        given = {"revision": kind.revision, "capabilities": kind.capabilities, "info": kind.info, **connecting}
        async with connect(self.site, **given) as client:
            yield client

    @asynccontextmanager
    async def asking(self, name: str) -> AsyncIterator[list[Any]]:
        """A client of a kind whose user is being asked, and lets that be; what its call ended with is in the list."""
        asked, ended = anyio.Event(), []
        async with self.client(name) as client, anyio.create_task_group() as tasks:

            async def look(question: Any) -> None:
                """The client shows the form, and its user does nothing."""
                asked.set()

            async def call() -> None:
                params = {"name": "delete", "arguments": {"what": "the-argument"}}
                if name.endswith("forms"):
                    ended.append((await client.tools.call("delete", {"what": "the-argument"})).text())
                else:
                    # Nobody answers: the call itself is over, and waits.
                    ended.append(await client.request("tools/call", params))
                    asked.set()

            client._serve = look  # type: ignore[method-assign]
            tasks.start_soon(call)
            await asked.wait()
            yield ended
            tasks.cancel_scope.cancel()


Serve: TypeAlias = Callable[..., Awaitable[Desk]]


def make(store: Store | None, desk_of: Callable[[], Desk], **options: Any) -> Bridge:
    bridge = Bridge("desk", elicitation=True, store=store, **options)

    @bridge.tool
    async def delete(what: str, ctx: Context) -> str:
        """Delete something. Asks first."""
        answer = await ctx.elicit(f"Delete T-77, {what}?", bool)
        desk_of().effects.append(f"{what}: {answer.status}")
        return f"{answer.status}: hush-hush"

    @bridge.tool
    async def fail() -> str:
        raise ValueError("on purpose")

    return bridge


@pytest.fixture
async def desks() -> AsyncIterator[Serve]:
    """Serve nodes until the test is over."""
    async with AsyncExitStack() as stack:

        async def start(store: Store | None = None, **options: Any) -> Desk:
            bridge = make(store, lambda: desk, **options)
            app = bridge.asgi()
            door = Door(TOKEN)
            desk = Desk(Console(Explain(app, bridge.store, bridge.options, door), app, door), bridge)
            desk.app = app  # type: ignore[attr-defined]
            await stack.enter_async_context(app.lifespan())
            return desk

        yield start


@pytest.fixture
async def desk(desks: Serve) -> Desk:
    return await desks()
