"""`/healthz` and `/readyz`, as what runs and balances a process asks them."""

from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import anyio
import pytest

from bridge import Bridge, KeyRing
from bridge.demo.app import HelpDeskApp
from bridge.demo.helpdesk import make
from bridge.stores import MemoryStore, open_store
from bridge.testing import connect
from bridge.transports import health
from tests.operations.processes import HOW, serving
from tests.redis_server import RedisServer

behaviour = pytest.mark.behaviour
OF_AN_ADDRESS = {"host": "10.0.0.7:8000"}


async def ask(app: Any, path: str, method: str = "GET", **scope: Any) -> tuple[int, Any]:
    """What an app says to a probe, which comes by the address of its machine."""
    async with connect(app) as mcp:
        said: list[Any] = []
        headers = [(name.encode(), value.encode()) for name, value in OF_AN_ADDRESS.items()]

        async def send(event: Any) -> None:
            said.append(event)

        asked = {"type": "http", "path": path, "root_path": "", "method": method, "headers": headers, **scope}
        await app(asked, None, send)
        assert mcp.revision
    return said[0]["status"], said[1]["body"]


async def test_a_process_that_serves_is_alive_and_ready(bridge: Bridge) -> None:
    app = bridge.asgi()
    async with app.lifespan():
        for path in ("/healthz", "/readyz"):
            assert await ask(app, path) == (200, b'{"status":"ok"}')
            assert (await ask(app, path, "POST"))[0] == 405


async def test_they_can_be_switched_off() -> None:
    app = Bridge("quiet", health=False).asgi()
    async with app.lifespan():
        assert (await ask(app, "/healthz"))[0] == 404
        assert (await ask(app, "/readyz"))[0] == 404


async def test_they_stand_beside_the_endpoint_wherever_that_is() -> None:
    app = Bridge("inner").asgi(path="/tools/mcp")
    async with app.lifespan():
        assert (await ask(app, "/tools/readyz"))[0] == 200
        assert (await ask(app, "/readyz"))[0] == 404
        assert (await ask(app, "/outer/tools/readyz", root_path="/outer"))[0] == 200


async def test_the_help_desk_has_them() -> None:
    desk = HelpDeskApp(make())
    await desk.start()
    try:
        assert (await ask(desk, "/readyz"))[0] == 200
    finally:
        await desk.stop()


@behaviour("TRN-6")
async def test_a_process_that_shuts_down_is_alive_and_not_ready(bridge: Bridge) -> None:
    app = bridge.asgi()
    async with app.lifespan():
        app.node.close()
        assert (await ask(app, "/healthz"))[0] == 200
        status, body = await ask(app, "/readyz")
        assert status == 503
        assert b"shutting down" in body


async def test_a_process_is_ready_only_while_its_store_answers(
    closing: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(health, "KNOWN_SECONDS", 0.0)
    redis = RedisServer()
    redis.start()
    closing.callback(redis.stop)
    store = open_store(redis.url)
    closing.push_async_callback(store.aclose)
    app = Bridge("fleet", store=store, keys=KeyRing([b"k" * 32])).asgi()
    async with app.lifespan():
        assert (await ask(app, "/readyz"))[0] == 200
        redis.stop()
        status, body = await ask(app, "/readyz")
        assert (status, b"store" in body) == (503, True)
        assert (await ask(app, "/healthz"))[0] == 200
        redis.start()
        with anyio.fail_after(10):
            while (await ask(app, "/readyz"))[0] != 200:
                pass


async def test_however_often_it_is_asked_the_store_is_asked_once_in_a_while() -> None:
    class Counting(MemoryStore):
        asked = 0

        async def get(self, key: str) -> Any:
            self.asked += key == "store/id"
            return await super().get(key)

    store = Counting()
    app = Bridge("asked", store=store).asgi()
    async with app.lifespan(), anyio.create_task_group() as tasks:
        before = store.asked
        for _ in range(50):
            tasks.start_soon(ask, app, "/readyz")
    assert store.asked == before + 1


@pytest.mark.parametrize("how", HOW)
async def test_a_real_process_answers_probes(how: str) -> None:
    with serving(*HOW[how]) as server:
        async with aiohttp.ClientSession() as http:
            for path in ("/healthz", "/readyz"):
                async with http.get(server.url + path, headers={"Host": "10.0.0.7"}) as reply:
                    assert (reply.status, await reply.json()) == (200, {"status": "ok"})
                async with http.head(server.url + path) as reply:
                    assert (reply.status, reply.headers["Cache-Control"]) == (200, "no-store")
