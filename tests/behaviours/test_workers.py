"""Several worker processes on one SQLite file, as `uvicorn --workers 4` runs them: any of them serves any message."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from bridge.testing import Client, accept, connect
from tests.redis_server import free_port

pytestmark = pytest.mark.anyio
behaviour = pytest.mark.behaviour

WORKERS = 4
START_SECONDS = 40


@contextmanager
def workers(folder: Path, port: int) -> Iterator[str]:
    """Run four workers on one file; yield the URL."""
    command = [sys.executable, "-m", "uvicorn", "--workers", str(WORKERS), "--port", str(port)]
    command += ["--log-level", "error", "--timeout-graceful-shutdown", "3", "tests.behaviours.worker_app:app"]
    given = {**os.environ, "WORKERS_STORE": f"sqlite:///{folder}/state.db"}
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], env=given) as process:
        try:
            _await(port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(20)


def _await(port: int) -> None:
    gives_up_at = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < gives_up_at
            time.sleep(0.05)


class Spread:
    """An ASGI app that sends every request over a connection of its own, and notes which worker answered it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.seen: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"] if name != b"host"}
        body = (await receive())["body"]
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http,
            http.request(scope["method"], self.url, headers=headers, data=body) as reply,
        ):
            self.seen.append(reply.headers["x-worker"])
            raw = [(name.lower().encode(), value.encode()) for name, value in reply.headers.items()]
            await send({"type": "http.response.start", "status": reply.status, "headers": raw})
            async for chunk in reply.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


async def asks_and_answers(client: Client) -> None:
    client.on_elicitation(lambda asked: accept({"confirm": True}))
    assert (await client.tools.call("ask")).text() == "True"


@pytest.mark.timeout(120)
async def test_any_of_four_workers_serves_a_session_and_takes_an_answer(tmp_path: Path) -> None:
    crossed = 0

    async def converse(url: str) -> None:
        nonlocal crossed
        spread = Spread(url)
        async with connect(spread, revision="2025-06-18") as mcp:
            assert (await mcp.tools.call("plain", {"text": "x"})).text() == "x"
            before = len(spread.seen)
            await asks_and_answers(mcp)
        asked_at, answered_at = spread.seen[before : before + 2]
        crossed += asked_at != answered_at

    with workers(tmp_path, free_port()) as url:
        for _ in range(10):
            async with anyio.create_task_group() as group:
                for _ in range(12):
                    group.start_soon(converse, url)
            if crossed >= 5:
                break
    assert crossed >= 5


@behaviour("CHT-14")
@pytest.mark.timeout(120)
async def test_a_chat_question_outlives_a_restart_of_all_workers(tmp_path: Path) -> None:
    port = free_port()
    spread = Spread(f"http://127.0.0.1:{port}/mcp")
    with ExitStack() as before:
        before.enter_context(workers(tmp_path, port))
        async with connect(spread, revision="2025-06-18", capabilities={}) as mcp:
            asked = await mcp.request("tools/call", {"name": "ask", "arguments": {}})
            elicit_id = asked["_meta"]["elicitationPending"]["elicitId"]
            before.close()
            with workers(tmp_path, port):
                arguments = {"elicitId": elicit_id, "action": "accept", "content": {"confirm": True}}
                assert (await mcp.tools.call("sendElicitationResult", arguments)).text() == "True"


@behaviour("MOD-5")
@pytest.mark.timeout(120)
async def test_a_round_outlives_a_restart_of_all_workers(tmp_path: Path) -> None:
    port = free_port()
    params: dict[str, Any] = {"name": "ask", "arguments": {}}
    async with connect(Spread(f"http://127.0.0.1:{port}/mcp")) as mcp:
        with workers(tmp_path, port):
            asked = await mcp.request("tools/call", params)
        (key,) = asked["inputRequests"]
        answered = {key: {"action": "accept", "content": {"confirm": True}}}
        with workers(tmp_path, port):
            again = {**params, "inputResponses": answered, "requestState": asked["requestState"]}
            done = await mcp.request("tools/call", again)
    assert done["content"][0]["text"] == "True"
