"""The example of `docs/deploy.md`, run: three nodes on one Redis behind nginx."""

import getpass
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from bridge.keys import make_key_file
from tests.behaviours.talking import hello, request
from tests.operations.processes import JSON, REPOSITORY, Server, await_accepting, modern, open_session, serving
from tests.redis_server import free_port, redis_server

pytestmark = pytest.mark.timeout(120)
HOST = {"Host": "mcp.example.com"}


def example() -> str:
    """The nginx configuration of the page."""
    (block,) = re.findall(r"```nginx\n(.*?)```", (REPOSITORY / "docs" / "deploy.md").read_text(), re.DOTALL)
    return str(block)


@contextmanager
def nginx(folder: Path, nodes: list[Server], port: int) -> Iterator[str]:
    """nginx with the configuration of the page, but for its addresses."""
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if binary is None:
        pytest.skip("no nginx on PATH: apt-get install nginx-light")
    block = example()
    for number, node in enumerate(nodes, 1):
        address = node.url.removeprefix("http://")
        assert f"10.0.0.{number}:8000" in block
        block = block.replace(f"10.0.0.{number}:8000", address)
    assert "listen 80;" in block
    block = block.replace("listen 80;", f"listen 127.0.0.1:{port};")
    paths = "\n".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if getpass.getuser() == "root" else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"{user}\ndaemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log stderr warn;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}\n{block}\n}}\n"
    )
    process = subprocess.Popen([binary, "-p", str(folder), "-c", str(config)], stderr=subprocess.PIPE, text=True)
    try:
        await_accepting(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=10)


class Fleet:
    """Three nodes, what is in front of them, and how one more is started."""

    def __init__(self, nodes: list[Server], url: str) -> None:
        self.nodes = nodes
        self.url = url


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    keys = tmp_path / "keys"
    make_key_file(keys)
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        command = ("bridge", "demo", "--store", redis, "--key-file", str(keys), "--allow-host", HOST["Host"])
        command += ("--base-url", "http://mcp.example.com", "--metrics", "--log-level", "warning", "--port")
        nodes = [stack.enter_context(serving(*command)) for _ in range(3)]
        yield Fleet(nodes, stack.enter_context(nginx(tmp_path, nodes, free_port())))


async def calls_of(http: aiohttp.ClientSession, node: Server) -> int:
    """How many calls a node has answered."""
    async with http.get(f"{node.url}/metrics") as reply:
        found = re.findall(r"^mcp_bridge_calls_total\{.*\} (\d+)", await reply.text(), re.MULTILINE)
    return sum(map(int, found))


async def events(reply: aiohttp.ClientResponse) -> Any:
    """The messages of a stream, as they come."""
    async for line in reply.content:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


async def test_the_example_serves_old_and_new_clients_at_any_node(fleet: Fleet) -> None:
    url = f"{fleet.url}/mcp"
    async with aiohttp.ClientSession(headers=HOST) as http:
        # A legacy session, each of whose messages reaches another node than the one before.
        headers = await open_session(http, url, "2025-06-18", elicitation={})
        for number in range(6):
            call = request(number, "tools/call", {"name": "list_tickets", "arguments": {}})
            async with http.post(url, json=call, headers=headers) as reply:
                assert "result" in await reply.json()
        # A question in the middle of its call: the answer goes to another node than the one that asked.
        call = request("asking", "tools/call", {"name": "close_ticket", "arguments": {"id": "T-1"}})
        with anyio.fail_after(15):
            async with http.post(url, json=call, headers=headers) as reply:
                assert reply.headers["Content-Type"] == "text/event-stream"
                messages = events(reply)
                asked = await anext(messages)
                assert asked["method"] == "elicitation/create"
                answer = {"action": "accept", "content": {"confirm": True}}
                answered = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
                async with http.post(url, json=answered, headers=headers) as taken:
                    assert taken.status == 202
                ended = [message async for message in messages][-1]
        assert ended["id"] == "asking"
        assert ended["result"].get("isError") is not True
        # A modern client: its question is a result, and its answer another request.
        async with http.post(url, **modern(1, "close_ticket", {"id": "T-2"})) as reply:
            asked = (await reply.json())["result"]
        assert asked["resultType"] == "input_required"
        answers = {key: {"action": "accept", "content": {"confirm": True}} for key in asked["inputRequests"]}
        retry = modern(2, "close_ticket", {"id": "T-2"}, inputResponses=answers, requestState=asked["requestState"])
        async with http.post(url, **retry) as reply:
            ended = await reply.json()
        assert ended["result"]["resultType"] == "complete"
        assert ended["result"].get("isError") is not True
        assert [await calls_of(http, node) > 0 for node in fleet.nodes] == [True] * 3


async def test_the_example_carries_websockets_and_keeps_the_inside_inside(fleet: Fleet) -> None:
    async with aiohttp.ClientSession(headers=HOST) as http:
        async with http.ws_connect(f"{fleet.url}/ws", protocols=("mcp",)) as socket:
            await socket.send_json(request(1, "initialize", hello("2025-11-25")))
            assert (await socket.receive_json())["result"]["serverInfo"]["name"] == "help-desk"
        for path in ("metrics", "healthz", "readyz"):
            async with http.get(f"{fleet.url}/{path}") as reply:
                assert reply.status == 404
                assert b"nginx" in await reply.read()
        async with http.post(f"{fleet.url}/mcp", json={}, headers={**JSON, "Host": "evil.example"}) as reply:
            assert reply.status == 421


async def test_a_node_that_is_taken_away_is_missed_by_no_session(fleet: Fleet) -> None:
    url = f"{fleet.url}/mcp"
    async with aiohttp.ClientSession(headers=HOST) as http:
        headers = await open_session(http, url, "2025-06-18", elicitation={})
        fleet.nodes[0].terminate()
        await anyio.to_thread.run_sync(fleet.nodes[0].left, 15)
        for number in range(12):
            call = request(number, "tools/call", {"name": "list_tickets", "arguments": {}})
            async with http.post(url, json=call, headers=headers) as reply:
                assert reply.status == 200
                assert "result" in await reply.json()
