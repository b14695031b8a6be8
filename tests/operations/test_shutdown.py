"""A process that is told to end: by its own server and under a plain uvicorn, over every transport."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from bridge import Bridge
from bridge.testing import connect
from tests.behaviours.talking import META, hello, request, said
from tests.behaviours.works import Work, happens, make
from tests.operations.processes import EVENTS, HOW, Server, last_event, modern, open_session, serving

behaviour = pytest.mark.behaviour
ENDS = "shutting down"


@pytest.fixture(params=HOW)
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(how: str, tmp_path: Path) -> Iterator[Server]:
    """It gives what runs one second."""
    with serving(*HOW[how], SLOW_SHUTDOWN="1", SLOW_STORE=f"sqlite:///{tmp_path}/state.db") as server:
        yield server


@behaviour("TRN-6")
async def test_a_call_that_ends_in_time_gets_its_result(server: Server) -> None:
    async with aiohttp.ClientSession() as http, anyio.create_task_group() as tasks:
        replies: list[Any] = []

        async def call() -> None:
            async with http.post(f"{server.url}/mcp", **modern(1, "nap", {"seconds": 0.6})) as reply:
                replies.append(await reply.json())

        tasks.start_soon(call)
        await anyio.to_thread.run_sync(server.says, "begun")
        server.terminate()
        await anyio.to_thread.run_sync(server.left, 10)
    assert said(replies[0]) == "rested"


@behaviour("TRN-6")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_call_that_does_not_end_in_time_is_cancelled_and_says_so(server: Server, era: str) -> None:
    async with aiohttp.ClientSession() as http, anyio.create_task_group() as tasks:
        url = f"{server.url}/mcp"
        asked = modern(1, "nap", {"seconds": 60})
        if era == "legacy":
            body = request(1, "tools/call", {"name": "nap", "arguments": {"seconds": 60}})
            asked = {"json": body, "headers": await open_session(http, url, "2025-06-18")}
        replies: list[Any] = []

        async def call() -> None:
            async with http.post(url, **asked) as reply:
                replies.append((reply.status, await reply.json()))

        tasks.start_soon(call)
        await anyio.to_thread.run_sync(server.says, "begun")
        told_at = server.terminate()
        await anyio.to_thread.run_sync(server.says, "cancelled")
        assert time.monotonic() - told_at >= 0.9
        await anyio.to_thread.run_sync(server.left, 10)
    assert replies[0][0] == 200
    assert ENDS in replies[0][1]["error"]["message"]


@behaviour("TRN-6", "LEG-7")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(("seconds", "ending"), [(0.6, "rested"), (60, ENDS)], ids=["in time", "too long"])
async def test_the_client_of_a_stream_finds_the_end_of_its_call_elsewhere(
    server: Server, how: str, tmp_path: Path, revision: str, seconds: float, ending: str
) -> None:
    async with aiohttp.ClientSession() as http:
        headers = await open_session(http, f"{server.url}/mcp", revision)
        body = request(1, "tools/call", {"name": "nap_aloud", "arguments": {"seconds": seconds}})
        async with http.post(f"{server.url}/mcp", json=body, headers=headers) as reply:
            await anyio.to_thread.run_sync(server.says, "begun")
            told_at = server.terminate()
            event_id, retry_ms = last_event(await reply.read())
        assert time.monotonic() - told_at < 0.9, "the stream ends at once, and not with the call"
        assert retry_ms == 5000
        await anyio.to_thread.run_sync(server.left, 10)
    with serving(*HOW[how], SLOW_STORE=f"sqlite:///{tmp_path}/state.db") as other:
        async with aiohttp.ClientSession() as http:
            again = {**headers, **EVENTS, "Last-Event-ID": event_id}
            async with http.get(f"{other.url}/mcp", headers=again) as reply:
                with anyio.fail_after(5):
                    rest = (await reply.read()).decode()
        messages = [json.loads(line[6:]) for line in rest.splitlines() if line.startswith("data: ")]
        assert [message["id"] for message in messages if "id" in message] == [1]
        assert ending in json.dumps(messages[-1])


@behaviour("TRN-6", "LEG-7")
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_an_open_stream_ends_with_when_to_come_back(server: Server, path: str) -> None:
    async with aiohttp.ClientSession() as http:
        headers = await open_session(http, f"{server.url}/mcp", "2025-11-25") if path == "/mcp" else {}
        async with http.get(server.url + path, headers={**headers, **EVENTS}) as reply:
            first = await reply.content.readuntil(b"\n\n")
            server.terminate()
            stream = first + await reply.content.read()
    assert b"\nretry: 5000\n\n" in stream
    if path == "/mcp":
        assert last_event(stream)[0].startswith("get:")
    await anyio.to_thread.run_sync(server.left, 10)


@behaviour("TRN-6")
async def test_a_session_goes_on_in_another_process(server: Server, how: str, tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as http:
        headers = await open_session(http, f"{server.url}/mcp", "2025-11-25")
        server.terminate()
        await anyio.to_thread.run_sync(server.left, 10)
        with serving(*HOW[how], SLOW_STORE=f"sqlite:///{tmp_path}/state.db") as other:
            body = request(2, "tools/call", {"name": "nap", "arguments": {"seconds": 0}})
            async with http.post(f"{other.url}/mcp", json=body, headers=headers) as reply:
                assert (await reply.json())["result"]["content"][0]["text"] == "rested"


@behaviour("TRN-6")
async def test_over_sse_what_runs_ends_before_the_stream_does(server: Server) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/sse", headers=EVENTS) as stream:
        endpoint = (await stream.content.readuntil(b"\n\n")).split(b"data: ")[1].strip().decode()

        async def post(body: Any) -> int:
            async with http.post(server.url + endpoint, json=body) as reply:
                return reply.status

        async def next_message() -> Any:
            return json.loads((await stream.content.readuntil(b"\n\n")).split(b"data: ")[1])

        await post(request(0, "initialize", hello("2024-11-05")))
        await next_message()
        await post(request(1, "tools/call", {"name": "nap", "arguments": {"seconds": 0.7}}))
        await anyio.to_thread.run_sync(server.says, "begun")
        server.terminate()
        ended = await next_message()
        assert ended["id"] == 1
        assert said(ended) == "rested"
        assert b"retry: 5000" in await stream.content.read()
    await anyio.to_thread.run_sync(server.left, 10)


@behaviour("TRN-6")
async def test_over_websocket_what_runs_ends_and_what_comes_meanwhile_is_refused(tmp_path: Path) -> None:
    with serving(*HOW["bridge"], SLOW_SHUTDOWN="5") as server:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{server.url}/ws", protocols=("mcp",)) as socket,
        ):
            # A second connection, which stays open, and on which nothing runs.
            async with http.get(f"{server.url}/nothing") as reply:
                assert reply.status == 404
            call = {"name": "nap", "arguments": {"seconds": 1.5}, "_meta": META}
            await socket.send_json(request(1, "tools/call", call))
            await anyio.to_thread.run_sync(server.says, "begun")
            server.terminate()
            refused: Any = {}
            while "error" not in refused:
                await socket.send_json(request(2, "server/discover", {"_meta": META}))
                refused = await socket.receive_json()
            assert ENDS in refused["error"]["message"]
            async with http.post(f"{server.url}/mcp", **modern(3, "nap", {"seconds": 0})) as reply:
                assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
                assert ENDS in await reply.text()
            ended = await socket.receive_json()
            while ended["id"] != 1:
                ended = await socket.receive_json()
            assert said(ended) == "rested"
            assert (await socket.receive()).data == 1001
        await anyio.to_thread.run_sync(server.left, 10)


@behaviour("TRN-6")
async def test_a_plain_server_closes_websockets_itself(tmp_path: Path) -> None:
    with serving(*HOW["uvicorn"], SLOW_SHUTDOWN="5") as server:
        async with aiohttp.ClientSession() as http, http.ws_connect(f"{server.url}/ws", protocols=("mcp",)) as socket:
            call = {"name": "nap", "arguments": {"seconds": 60}, "_meta": META}
            await socket.send_json(request(1, "tools/call", call))
            await anyio.to_thread.run_sync(server.says, "begun")
            server.terminate()
            await anyio.to_thread.run_sync(server.says, "cancelled")
            assert (await socket.receive()).data in (1001, 1012)
        await anyio.to_thread.run_sync(server.left, 10)


@behaviour("TRN-6", "UPS-11")
async def test_a_suspended_call_is_cancelled_at_its_server_and_its_answer_elsewhere_learns_that(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal"
    command = ("bridge", "serve", "--store", f"sqlite:///{tmp_path}/state.db", "--log-level", "error", "--port")
    target = ("--", sys.executable, "tests/upstreams/plain_server.py", str(journal))
    call = ("close", {"what": "T-1"})
    async with aiohttp.ClientSession() as http:
        with serving(*command, after=target) as server:
            async with http.post(f"{server.url}/mcp", **modern(1, *call)) as reply:
                asked = (await reply.json())["result"]
            assert asked["resultType"] == "input_required"
            server.terminate()
            await anyio.to_thread.run_sync(server.left, 10)
        lines = journal.read_text().splitlines()
        assert any(line.startswith("cancelled") for line in lines), lines
        assert lines.index("began T-1") < len(lines) - 1
        (key,) = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"confirm": True}}}
        with serving(*command, after=target) as server:
            retry = modern(2, *call, inputResponses=answers, requestState=asked["requestState"])
            async with http.post(f"{server.url}/mcp", **retry) as reply:
                ended = (await reply.json())["result"]
            assert ended["isError"] is True
            assert "not run again" in ended["content"][0]["text"]
    assert "closed T-1" not in journal.read_text()


# In process: what is answered to whom, once the node shuts down.


@behaviour("TRN-6")
async def test_what_stands_alone_is_refused_unread(bridge: Bridge) -> None:
    app = bridge.asgi()
    async with app.lifespan(), connect(app) as mcp, connect(app, revision="2025-11-25") as legacy:
        app.node.close()
        replies = [await mcp.raw.post({"jsonrpc": "2.0"}), await _initialize(legacy)]
        for reply in replies:
            message = await anext(reply.messages())
            assert reply.status == 503
            assert reply.headers["retry-after"] == "5"
            assert reply.headers["connection"] == "close"
            assert ENDS in message["error"]["message"]


@behaviour("TRN-6", "LEG-13")
async def test_on_a_session_a_request_is_refused_with_200_and_what_is_for_running_ones_is_taken(
    bridge: Bridge, work: Work
) -> None:
    app = bridge.asgi()
    async with app.lifespan(), connect(app, revision="2025-11-25") as mcp, anyio.create_task_group() as tasks:
        running = await mcp.raw.post(request("slow", "tools/call", {"name": "use", "arguments": {}}))
        await happens(work.begun)
        app.node.close()
        refused = await mcp.raw.post(request(7, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
        (message,) = [message async for message in refused.messages()]
        assert refused.status == 200
        assert refused.headers["connection"] == "close"
        assert message["id"] == 7
        assert ENDS in message["error"]["message"]
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}
        assert (await mcp.raw.post(cancelled)).status == 202
        await happens(work.over)
        assert work.trace == ["cancelled"]
        running.disconnect()
        tasks.cancel_scope.cancel()


@behaviour("TRN-6", "LEG-8")
async def test_a_batch_is_refused_or_cut_off_as_single_requests_are(work: Work) -> None:
    app = make(work, shutdown_seconds=0.05).asgi()
    batch = [request(1, "tools/call", {"name": "use", "arguments": {}}), request(2, "ping")]
    body = json.dumps(batch).encode()
    async with app.lifespan(), connect(app, revision="2025-03-26") as mcp, anyio.create_task_group() as tasks:
        ended: list[Any] = []

        async def run() -> None:
            reply = await mcp.raw.post(body)
            ended.extend([message async for message in reply.messages()])

        tasks.start_soon(run)
        await happens(work.begun)
        app.node.close()
        late = await mcp.raw.post(body)
        assert late.status == 503
        await happens(work.over)
    first, second = ended[0]
    assert ENDS in first["error"]["message"]
    assert second["result"] == {}


async def _initialize(mcp: Any) -> Any:
    return await mcp._http.request(
        "POST",
        {"content-type": "application/json", "accept": "application/json, text/event-stream"},
        json.dumps(request(0, "initialize", hello())).encode(),
    )
