"""What ends with what: calls, children, sessions; and that nothing is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2 as httpx
import pytest

from bridge import Bridge
from bridge.protocol.messages import encode
from bridge.testing import accept, connect
from bridge.upstreams.targets import ServerOptions
from bridge.upstreams.wrapped import WrapRules
from tests.conftest import Serve
from tests.upstreams import web
from tests.upstreams.plain import Plain
from tests.upstreams.web import Handle, http_server

behaviour = pytest.mark.behaviour

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


def children() -> set[int]:
    """The processes that this one has started and that are still there."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    return {int(line) for line in found.stdout.split()}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc to count descriptors in")
@behaviour("UPS-9", "UPS-11", "MOD-10")
async def test_nothing_is_left_of_a_thousand_calls_that_nobody_answered(plain: Plain) -> None:
    tasks, processes, files = len(asyncio.all_tasks()), children(), descriptors()
    bridge = plain.bridge(WrapRules(max_holds=1000), round_seconds=0.5)
    async with connect(bridge) as mcp:
        for number in range(1000):
            first = await mcp.request("tools/call", {"name": "close", "arguments": {"what": f"T-{number}"}})
            assert first["resultType"] == "input_required", first
        await plain.wrote("cancelled", 1000)
    assert len(asyncio.all_tasks()) <= tasks
    assert len(children()) <= len(processes) + 1  # ps itself
    assert descriptors() <= files
    assert len(plain.effects) == 1000


@behaviour("MOD-10", "UPS-8")
async def test_a_client_that_leaves_takes_its_call_at_the_server_with_it(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge())) as mcp:
        message = mcp._completed({"method": "tools/call", "params": {"name": "hang", "arguments": {}}})
        reply = await mcp.raw.post(message)  # it begins when nothing has come for a while
        await plain.wrote("hanging")
        reply.disconnect()
        await plain.wrote("cancelled")


@behaviour("UPS-8", "LEG-6")
async def test_a_legacy_client_that_cancels_its_call_cancels_it_at_the_server(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-11-25") as mcp:
        message = mcp._completed({"method": "tools/call", "params": {"name": "hang", "arguments": {}}})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mcp.raw.post, message)
            await plain.wrote("hanging")
            await mcp.notify("notifications/cancelled", {"requestId": message["id"]})
            await plain.wrote("cancelled")
            tasks.cancel_scope.cancel()


@behaviour("UPS-10")
async def test_a_call_that_takes_longer_than_it_may_is_cancelled(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge(WrapRules(call_seconds=0.3)))) as mcp:
        late = await mcp.tools.call("hang")
        assert late.error_code == "INTERRUPTED"
        assert "took longer than 0.3 seconds" in late.text()
        await plain.wrote("cancelled")


@behaviour("TRN-6", "UPS-9", "UPS-11")
async def test_a_signal_cancels_suspended_calls_before_their_server_is_closed(plain: Plain) -> None:
    command = [sys.executable, "-m", "bridge", "serve", "--port", "0", "--", *plain.words]
    process = await anyio.open_process(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        url = await _served_at(process)
        params = {"name": "close", "arguments": {"what": "T-1"}, "_meta": META}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "close"}
        body = encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        async with httpx.AsyncClient() as client:
            everything = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                **headers,
            }
            reply = await client.post(url, content=body, headers=everything)
        assert reply.json()["result"]["resultType"] == "input_required"
        process.send_signal(signal.SIGTERM)
        with anyio.fail_after(20):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        await process.aclose()
    last = [line.split()[0] for line in plain.lines][-3:]
    assert last == ["began", "cancelled", "ended"]


async def _served_at(process: Any) -> str:
    text = b""
    with anyio.fail_after(30):
        while b"is served at " not in text or not text.endswith(b"\n"):
            text += await process.stderr.receive()
    return text.partition(b"is served at ")[2].split()[0].decode()


def failing(effects: list[str], *, modern: bool) -> Handle:
    """A server that does what it is told, and then answers 500."""
    capabilities = {"tools": {}}

    def handle(message: dict[str, Any]) -> tuple[int, Any]:
        method = message["method"]
        results: dict[str, Any] = {"tools/list": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}}
        about = {"capabilities": capabilities, "serverInfo": {"name": "f", "version": "1"}}
        if modern:
            results["server/discover"] = {"supportedVersions": ["2026-07-28"], "resultType": "complete", **about}
        else:
            results["initialize"] = {"protocolVersion": "2025-11-25", **about}
        if method == "tools/call" and message["params"]["arguments"].get("hang"):
            return 0, None
        if method == "tools/call":
            effects.append(message["params"]["name"])
            return 500, {"oops": True}
        if "id" not in message:
            return 202, None
        if method in results:
            return 200, {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
        error = {"code": -32601, "message": "none"}
        return 404 if modern else 400, {"jsonrpc": "2.0", "id": message["id"], "error": error}

    return handle


@pytest.mark.parametrize("modern", [True, False], ids=["modern", "legacy"])
@behaviour("UPS-7", "UPS-2")
async def test_a_server_that_fails_after_it_has_acted_is_not_called_again(serve: Serve, modern: bool) -> None:
    effects: list[str] = []
    async with http_server(failing(effects, modern=modern)) as url:
        app = await serve(Bridge.wrap(url))
        for revision in ("2026-07-28", "2025-11-25"):
            async with connect(app, revision=revision) as mcp:
                mcp.on_elicitation(lambda asked: accept())
                result = await mcp.tools.call("act")
            assert result.is_error
            assert result.error_code == "INTERRUPTED"
            assert "was not run again" in result.text()
    assert effects == ["act", "act"]


@pytest.mark.parametrize("modern", [True, False], ids=["modern", "legacy"])
@behaviour("UPS-14")
async def test_a_callers_token_never_goes_to_the_server_behind(serve: Serve, modern: bool) -> None:
    web.heads.clear()
    own = ServerOptions(headers={"Authorization": "Bearer its-own"})
    async with http_server(failing([], modern=modern)) as url:
        app = await serve(Bridge.wrap(url, server=own))
        for revision in ("2026-07-28", "2025-11-25"):
            async with connect(app, revision=revision, headers={"authorization": "Bearer the-callers"}) as mcp:
                await mcp.tools.call("act")
    assert not any(b"the-callers" in head for head in web.heads)
    assert all(b"Bearer its-own" in head for head in web.heads)


@behaviour("UPS-10", "UPS-8", "MOD-10")
async def test_a_call_of_a_modern_server_ends_with_its_time_and_with_its_client(serve: Serve) -> None:
    async with http_server(failing([], modern=True)) as url:
        web.left = anyio.Event()
        async with connect(await serve(Bridge.wrap(url, rules=WrapRules(call_seconds=0.3)))) as mcp:
            late = await mcp.tools.call("act", {"hang": True})
            assert late.error_code == "INTERRUPTED"
            assert "took longer than 0.3 seconds" in late.text()
            with anyio.fail_after(20):
                await web.left.wait()
        web.left = anyio.Event()
        async with connect(await serve(Bridge.wrap(url))) as mcp:
            params = {"name": "act", "arguments": {"hang": True}}
            reply = await mcp.raw.post(mcp._completed({"method": "tools/call", "params": params}))
            reply.disconnect()
            with anyio.fail_after(20):
                await web.left.wait()
