"""A remote server is found out once: its era, its transport, or in one line why it is none."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from websockets.asyncio.server import ServerConnection, serve

from bridge.errors import ConfigurationError, UpstreamUnreachable
from bridge.protocol.revisions import Era
from bridge.upstreams.base import Finished
from bridge.upstreams.links import Facts
from bridge.upstreams.remote import Command, RemoteServer, Url
from bridge.upstreams.remote.sse import SseWire
from bridge.upstreams.remote.streamable import StreamableWire
from tests.upstreams.remote.faulty import Answer, Exchange, FaultyServer, faulty_server
from tests.upstreams.remote.peers import command, serving
from tests.upstreams.remote.session import SECONDS, session
from tests.upstreams.remote.talks import HELLO, News

behaviour = pytest.mark.behaviour

INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "instructions": "Do.",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m", "version": "2"}},
}

PEER = """
import json, sys, time
def answer(message, **reply):
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
def initialize(message):
    answer(message, result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}})
def no(message, code, data=None):
    answer(message, error={"code": code, "message": "no", "data": data})
def messages():
    return (message for message in map(json.loads, sys.stdin) if "id" in message)
"""


@asynccontextmanager
async def started(target: Any, **options: Any) -> AsyncIterator[RemoteServer]:
    server = RemoteServer(target, **options)
    try:
        with anyio.fail_after(SECONDS):
            await server.start()
        yield server
    finally:
        await server.aclose()


def script(source: str) -> Command:
    return Command(sys.executable, ("-c", PEER + source))


@asynccontextmanager
async def at(answer: Answer, **options: Any) -> AsyncIterator[tuple[RemoteServer, FaultyServer]]:
    async with faulty_server(answer) as faulty, started(Url(faulty.url), **options) as server:
        yield server, faulty


async def refused(target: Any, **options: Any) -> str:
    """What a server that cannot be reached is said to be, in one line."""
    with pytest.raises(UpstreamUnreachable) as raised:
        async with started(target, **options):
            pass
    text = str(raised.value)
    assert "\n" not in text
    return text


@pytest.mark.peers
@behaviour("UPS-2")
@pytest.mark.parametrize(
    ("sdk", "transport", "era"),
    [
        ("mcp1", "stdio", Era.LEGACY),
        ("mcp1", "streamable", Era.LEGACY),
        ("mcp1", "sse", Era.LEGACY),
        ("mcp1", "websocket", Era.LEGACY),
        ("mcp2", "stdio", Era.MODERN),
        ("mcp2", "streamable", Era.LEGACY),
    ],
)
async def test_every_transport_of_either_sdk_is_found_out_and_served(sdk: str, transport: str, era: Era) -> None:
    async def check(target: Any) -> None:
        async with started(target) as server:
            assert server.era is era
            if era is Era.LEGACY:
                async with session(server.wire()) as client:
                    assert (await client.initialize())["serverInfo"]["name"] == "peer"
                    assert (await client.call("add", a=2, b=3))["structuredContent"] == {"result": 5}
            else:
                link = await server.connect_modern(HELLO, News())
                assert isinstance(await link.request("tools/list", {}), Finished)
                await link.aclose()

    if transport == "stdio":
        await check(command(sdk))
    else:
        with serving(sdk, transport) as url:
            await check(Url(url))


@behaviour("UPS-2")
@pytest.mark.parametrize("code", [-32601, -32602, -32600, 0, -32002])
async def test_a_command_that_answers_with_any_other_error_is_legacy(code: int) -> None:
    async with started(script(f"for message in messages(): no(message, {code})")) as server:
        assert server.era is Era.LEGACY


@behaviour("UPS-2")
async def test_a_command_with_a_modern_error_is_modern_and_never_initialized() -> None:
    source = "for message in messages(): no(message, -32022, {'supported': ['2027-01-01']})"
    assert "supports the revisions ['2027-01-01']" in await refused(script(source))
    source = "for message in messages(): no(message, -32021) if message['method'] == 'server/discover' else 1/0"
    assert "is modern and refused server/discover" in await refused(script(source))


@behaviour("UPS-2")
async def test_a_command_that_is_silent_until_it_is_initialized_is_legacy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.probe._QUIET_SECONDS", 0.3)
    source = (
        "print('ready', file=sys.stderr, flush=True)\n"
        "for message in messages():\n    if message['method'] == 'initialize': initialize(message)"
    )
    async with started(script(source)) as server:
        assert server.era is Era.LEGACY


@behaviour("UPS-2")
async def test_the_silence_of_a_slow_start_counts_only_from_its_first_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.probe._QUIET_SECONDS", 0.5)
    source = f"time.sleep(1.5)\nfor message in messages(): answer(message, result={DISCOVERED!r})"
    async with started(script(source)) as server:
        assert server.era is Era.MODERN
        assert server.facts == Facts(
            revision=server.facts.revision,  # type: ignore[union-attr]
            capabilities={"tools": {}},
            info={"name": "m", "version": "2"},
            instructions="Do.",
        )


@behaviour("UPS-2")
async def test_a_command_that_ends_at_what_comes_before_initialize_is_legacy() -> None:
    source = (
        "for message in messages():\n    if message['method'] != 'initialize': sys.exit(1)\n    initialize(message)"
    )
    async with started(script(source)) as server:
        assert server.era is Era.LEGACY


async def test_a_command_that_exits_is_said_to_and_with_its_last_words() -> None:
    text = await refused(script("sys.exit('no such database')"))
    assert "each time the command exited with 1; the last that it said was: no such database" in text
    assert text.startswith("python")
    assert "run it by hand" in text


async def test_a_command_that_never_answers_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.probe._QUIET_SECONDS", 0.2)
    monkeypatch.setattr("bridge.upstreams.remote.probe.PROBE_SECONDS", 0.6)
    assert "answered neither server/discover nor initialize" in await refused(Command("cat"))
    assert "answered neither" in await refused(Command("sleep", ("60",)))


async def test_a_command_that_does_not_exist_is_named() -> None:
    assert "there is no command 'no-such-command'" in await refused(Command("no-such-command"))


@behaviour("UPS-2")
async def test_a_modern_url_is_found_by_discovery_and_asked_once_whether_it_begins_sessions() -> None:
    async with at(lambda exchange: exchange.result(DISCOVERED)) as (server, faulty):
        assert server.era is Era.MODERN
        await server.start()
    exchange, second = faulty.exchanges
    assert second.message["method"] == "initialize"
    assert exchange.message["method"] == "server/discover"
    assert exchange.headers["mcp-method"] == "server/discover"


async def both(exchange: Exchange, result: Any, **headers: str) -> None:
    """A server that serves both eras."""
    if exchange.method != "POST":
        await exchange.answer(204)
    elif exchange.message["method"] == "server/discover":
        await exchange.result(DISCOVERED)
    else:
        await exchange.result(result, **headers)


@behaviour("UPS-2", "UPS-3")
async def test_a_url_of_both_eras_is_legacy_where_it_begins_sessions_and_that_of_the_probe_is_ended() -> None:
    async with at(lambda exchange: both(exchange, INITIALIZED, mcp_session_id="probe")) as (server, faulty):
        assert server.era is Era.LEGACY
    assert [exchange.headers["mcp-session-id"] for exchange in faulty.asked("DELETE")] == ["probe"]
    assert [exchange.message["method"] for exchange in faulty.asked("POST")] == ["server/discover", "initialize"]


@behaviour("UPS-2", "UPS-3")
async def test_a_url_of_both_eras_without_sessions_is_modern_since_it_cannot_ask_midway() -> None:
    async with at(lambda exchange: both(exchange, INITIALIZED)) as (server, _):
        assert server.era is Era.MODERN


async def test_a_url_of_both_eras_is_spoken_to_as_the_operator_says() -> None:
    async with at(lambda exchange: both(exchange, INITIALIZED, mcp_session_id="probe"), protocol="modern") as (
        server,
        faulty,
    ):
        assert server.era is Era.MODERN
    assert [exchange.message["method"] for exchange in faulty.exchanges] == ["server/discover"]


@pytest.mark.parametrize("fault", ["500", "cut", "silence"])
async def test_a_modern_url_that_is_ill_at_initialize_stays_modern(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.probe_http._SESSION_SECONDS", 0.2)

    async def answer(exchange: Exchange) -> None:
        if exchange.message["method"] == "server/discover":
            await exchange.result(DISCOVERED)
        elif fault == "500":
            await exchange.answer(500, mcp_session_id="probe")
        elif fault == "cut":
            exchange.cut()
        else:
            await anyio.sleep(SECONDS)

    async with at(answer) as (server, _):
        assert server.era is Era.MODERN


@behaviour("UPS-2")
async def test_a_server_that_refuses_the_revision_that_it_lists_is_asked_once_more() -> None:
    def answer(exchange: Exchange) -> Any:
        data = {"supported": ["2026-07-28"], "requested": "2026-07-28"}
        error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        refused = {"jsonrpc": "2.0", "id": exchange.message["id"], "error": error}
        patient = len(seen) > 0
        if exchange.message["method"] == "initialize":
            return exchange.answer(400, refused)
        seen.append(exchange.headers["mcp-protocol-version"])
        return exchange.result(DISCOVERED) if patient else exchange.answer(400, refused)

    seen: list[str] = []
    async with at(answer) as (server, _):
        assert server.era is Era.MODERN
    assert seen == ["2026-07-28", "2026-07-28"]


async def legacy(exchange: Exchange, status: int, body: Any = b"") -> None:
    if exchange.method == "POST" and exchange.message["method"] == "initialize":
        await exchange.result(INITIALIZED, mcp_session_id="probe")
    elif exchange.method == "POST":
        await exchange.answer(status, body)
    else:
        await exchange.answer(204)


@behaviour("UPS-2")
@pytest.mark.parametrize("status", [400, 404, 405, 406, 415, 422])
async def test_a_4xx_without_a_modern_error_is_legacy_and_its_session_of_the_probe_is_ended(status: int) -> None:
    async with at(lambda exchange: legacy(exchange, status)) as (server, faulty):
        assert server.era is Era.LEGACY
        assert isinstance(server.wire(), StreamableWire)
    assert [exchange.headers["mcp-session-id"] for exchange in faulty.asked("DELETE")] == ["probe"]


@behaviour("UPS-2")
@pytest.mark.parametrize("status", [200, 400])
async def test_a_json_rpc_error_that_is_not_modern_is_legacy_without_another_request(status: int) -> None:
    body = {"jsonrpc": "2.0", "id": "server-error" if status == 400 else 1, "error": {"code": -32600, "message": "no"}}
    async with at(lambda exchange: exchange.answer(status, body)) as (server, faulty):
        assert server.era is Era.LEGACY
        assert len(faulty.exchanges) == 1


@behaviour("UPS-2")
@pytest.mark.parametrize("status", [401, 403, 500, 502, 503])
async def test_credentials_and_ill_servers_are_errors_and_not_eras(status: int) -> None:
    async with faulty_server(lambda exchange: exchange.answer(status)) as faulty:
        text = await refused(Url(faulty.url))
    assert f"answered {status}" in text
    assert ("--header" in text) == (status in (401, 403))
    assert len(faulty.exchanges) == 1


@behaviour("UPS-2")
async def test_a_cut_or_refused_connection_is_an_error_and_not_an_era() -> None:
    async def cut(exchange: Exchange) -> None:
        exchange.cut()

    async with faulty_server(cut) as faulty:
        assert "cut off" in await refused(Url(faulty.url))
    assert "the connection was refused" in await refused(Url(faulty.url))


async def test_a_web_page_is_no_mcp_server() -> None:
    async with faulty_server(lambda exchange: exchange.answer(200, b"<html>", content_type="text/html")) as faulty:
        assert "text/html" in await refused(Url(faulty.url))
    async with faulty_server(lambda exchange: exchange.answer(404)) as faulty:
        assert "is no MCP server: it took neither a POST" in await refused(Url(faulty.url))


async def test_a_url_that_never_answers_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.probe_http.PROBE_SECONDS", 0.2)

    async def silent(exchange: Exchange) -> None:
        await anyio.sleep(SECONDS)

    async with faulty_server(silent) as faulty:
        assert "did not answer server/discover within 0.2 seconds" in await refused(Url(faulty.url))


@behaviour("UPS-2")
async def test_a_stream_that_names_its_endpoint_is_http_and_sse() -> None:
    async def answer(exchange: Exchange) -> None:
        if exchange.method == "POST":
            await exchange.answer(405)
            return
        await exchange.stream()
        await exchange.chunk(b"event: endpoint\r\ndata: /messages?id=1\r\n\r\n")

    async with at(answer) as (server, _):
        assert server.era is Era.LEGACY
        assert isinstance(server.wire(), SseWire)


async def test_a_protocol_that_was_given_is_not_probed_for_another() -> None:
    async with at(lambda exchange: legacy(exchange, 400), protocol="legacy") as (server, faulty):
        assert server.era is Era.LEGACY
        assert faulty.exchanges[0].message["method"] == "initialize"
    async with faulty_server(lambda exchange: legacy(exchange, 400)) as faulty:
        assert "it is legacy" in await refused(Url(faulty.url), protocol="modern")


@behaviour("UPS-2")
async def test_a_websocket_of_either_era_is_found_out() -> None:
    import json

    async def modern(socket: ServerConnection) -> None:
        async for text in socket:
            message = json.loads(text)
            if "id" in message:
                result = DISCOVERED if message["method"] == "server/discover" else {"tools": []}
                await socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))

    async def closing(socket: ServerConnection) -> None:
        message = json.loads(await socket.recv())
        if message["method"] == "initialize":
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": INITIALIZED}))

    for handler, era in ((modern, Era.MODERN), (closing, Era.LEGACY)):
        async with serve(handler, "127.0.0.1", 0, subprotocols=["mcp"]) as listening:  # type: ignore[list-item]
            port = listening.sockets[0].getsockname()[1]
            async with started(Url(f"ws://127.0.0.1:{port}/")) as server:
                assert server.era is era
                if era is Era.MODERN:
                    link = await server.connect_modern(HELLO, News())
                    assert await link.request("tools/list", {}) == Finished({"tools": []})
                    await link.aclose()


def test_a_server_is_named_without_what_is_secret() -> None:
    assert RemoteServer(Url("https://user:pw@host:1/mcp?key=s#f")).name == "https://host:1/mcp"
    assert RemoteServer(Command("/usr/bin/some-server", ("--key", "s"))).name == "some-server"


@pytest.mark.parametrize("url", ["ftp://host/", "host/mcp", "http://", "http://host:port/", "file:///etc/passwd"])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        Url(url)


def test_headers_that_cannot_be_sent_are_refused() -> None:
    for target, headers in (
        (Url("http://host/"), {"A": "b\r\nC: d"}),
        (Url("http://host/"), {"A b": "c"}),
        (Url("http://host/"), {"Content-Length": "1"}),
        (Command("x"), {"A": "b"}),
        (Url("http://u:p@host/"), {"authorization": "Bearer x"}),
    ):
        with pytest.raises(ConfigurationError):
            RemoteServer(target, headers=headers)


async def test_what_was_not_started_or_is_of_the_other_era_cannot_be_connected() -> None:
    server = RemoteServer(Command("x"))
    with pytest.raises(ConfigurationError, match="start"):
        server.wire()
    with pytest.raises(ConfigurationError, match="start"):
        await server.connect_modern(HELLO, News())


def test_only_an_http_url_needs_the_extra() -> None:
    source = """
import sys
sys.modules["aiohttp"] = None
from bridge.errors import MissingExtraError
from bridge.upstreams.remote import Command, RemoteServer, Url
RemoteServer(Command("x")), RemoteServer(Url("ws://host/"))
try:
    RemoteServer(Url("http://host/"))
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert "pip install 'mcp-session-bridge[remote]'" in done.stdout
