"""The Redis of a fleet is away for a while, or comes back empty."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import anyio
import anyio.to_thread
import pytest

from bridge.demo.desk import Desk
from tests.behaviours.talking import request
from tests.fleet.conversations import conversation, judge
from tests.fleet.crowd import Crowd
from tests.fleet.nodes import fleet
from tests.operations.processes import open_session
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.fleet, pytest.mark.anyio, pytest.mark.timeout(240)]
behaviour = pytest.mark.behaviour

AWAY_SECONDS = 5
CLIENTS = 50
PAUSE_SECONDS = 1.0


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that keeps every write on disk."""
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder=folder, appendonly="yes", appendfsync="always")
    server.start()
    yield server
    server.stop()


async def freeze(redis: RedisServer) -> None:
    """Let it be there and say nothing."""
    assert redis._process is not None
    redis._process.send_signal(signal.SIGSTOP)
    await anyio.sleep(AWAY_SECONDS)
    redis._process.send_signal(signal.SIGCONT)


async def crash(redis: RedisServer) -> None:
    """Let it be gone, and come back with what it had written."""
    redis.stop()
    await anyio.sleep(AWAY_SECONDS)
    redis.start()


@behaviour("LEG-3")
@pytest.mark.parametrize("accident", [freeze, crash])
async def test_calls_wait_for_a_redis_that_is_away_for_five_seconds(
    tmp_path: Path, redis: RedisServer, accident: Callable[..., object]
) -> None:
    with fleet(tmp_path, redis.url, 3) as nodes:
        store = nodes.open_store()
        desk = Desk(store)
        planned = [await conversation(desk, f"Case {number}") for number in range(CLIENTS)]
        crowd = Crowd(nodes.url, planned, pause_seconds=PAUSE_SECONDS)
        try:
            while not await desk.outbox():  # noqa: ASYNC110 - it happens in other processes
                await anyio.sleep(0.1)
            await accident(redis)  # type: ignore[misc]
            told = await anyio.to_thread.run_sync(crowd.told)
        finally:
            crowd.end()
        verdict = await judge(store, [(each.conversation, each.calls) for each in told])
        await store.aclose()
        assert [each.failed for each in told if each.failed] == []
        assert verdict.failed == []
        assert verdict.faults == []
        nodes.assert_nothing_crashed()


@behaviour("LEG-3")
async def test_a_redis_that_comes_back_empty_has_no_sessions_and_nothing_crashes(
    tmp_path: Path,
) -> None:
    redis = RedisServer()
    redis.start()
    with fleet(tmp_path, redis.url, 2) as nodes:
        async with aiohttp.ClientSession() as http:
            session = await open_session(http, nodes.url, "2025-11-25", elicitation={})
            redis.stop()
            redis.start()
            call = request(1, "tools/call", {"name": "history", "arguments": {}})
            with anyio.fail_after(20):
                # A node keeps what it knows of a session until it hears that it has missed something.
                while True:
                    async with http.post(nodes.url, json=call, headers=session) as reply:
                        if reply.status == 404:
                            assert (await reply.json())["error"]["message"] == "Session not found"
                            break
                        assert reply.status == 200
            again = await open_session(http, nodes.url, "2025-11-25", elicitation={})
            async with http.post(nodes.url, json=call, headers=again) as reply:
                assert reply.status == 200
                assert (await reply.json())["result"]["structuredContent"] == {"result": []}
        nodes.assert_nothing_crashed()
    redis.stop()
