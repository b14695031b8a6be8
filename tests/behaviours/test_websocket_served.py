"""WebSocket over real sockets: what the server in front of the app has to do."""

import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from bridge import Bridge
from bridge.errors import ConfigurationError
from bridge.transports import sending
from bridge.transports.uvicorn import settings
from tests.behaviours.talking import SECONDS, Json, Talker, hello
from tests.behaviours.talking import request as asked
from tests.behaviours.web import Served, served_by_uvicorn, served_by_websockets
from tests.behaviours.works import Work, happens, lives
from tests.wiretap import Tap

behaviour = pytest.mark.behaviour

MCP = [Subprotocol("mcp")]


class WebClient(Talker):
    """Speaks over a connection of the package `websockets`."""

    def __init__(self, connection: ClientConnection, tap: Tap) -> None:
        super().__init__(tap)
        self._connection = connection

    async def send(self, *messages: Any) -> None:
        for message in messages:
            self._conversation.heard(message)
            await self._connection.send(json.dumps(message))

    async def next(self) -> Json | None:
        with anyio.fail_after(SECONDS):
            message: Json = json.loads(await self._connection.recv())
        self._conversation.said(message)
        return message


@pytest.fixture(params=["uvicorn", "websockets"])
async def server(request: pytest.FixtureRequest, bridge: Bridge) -> AsyncIterator[Served]:
    """Each of the servers in turn."""
    serve = served_by_uvicorn if request.param == "uvicorn" else served_by_websockets
    async with serve(bridge) as served:
        yield served


@pytest.fixture
def url(server: Served) -> str:
    return f"{server.url.replace('http', 'ws').removesuffix('/ws')}/ws"


@behaviour("TRN-1", "TRN-2")
async def test_both_eras_are_served_under_the_subprotocol(url: str, tap: Tap) -> None:
    async with connect(url, subprotocols=MCP) as connection:
        assert connection.subprotocol == "mcp"
        mcp = WebClient(connection, tap)
        await mcp.initialize()
        await lives(mcp)


@behaviour("TRN-3")
async def test_a_foreign_origin_is_refused_with_its_status(url: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, subprotocols=MCP, origin="https://evil.example"):  # type: ignore[arg-type]
            pass
    assert refused.value.response.status_code == 403
    assert b"evil.example" in (refused.value.response.body or b"")


@behaviour("TRN-4")
async def test_a_message_of_more_than_4_mib_closes_the_connection(url: str, work: Work) -> None:
    async with shaken(url) as stream:
        await begin_flood(stream, kilobytes=1)
        await happens(work.over)
        await stream.send(b"\x81" + bytes([0x80 | 127]) + (4 * 1024 * 1024 + 1).to_bytes(8, "big") + b"\0\0\0\0")
        closing = (await rest(stream)).partition(b"\x88")[2]
        assert int.from_bytes(closing[1:3]) == 1009


@behaviour("TRN-6")
async def test_at_shutdown_running_calls_finish_before_the_connection_is_closed(
    server: Served, url: str, work: Work, tap: Tap
) -> None:
    async with connect(url, subprotocols=MCP) as connection:
        mcp = WebClient(connection, tap)
        await mcp.initialize()
        await mcp.start("a", "use")
        await happens(work.begun)
        server.shut_down()
        work.go.set()
        await mcp.reply("a")
        with pytest.raises(ConnectionClosed), anyio.fail_after(SECONDS):
            await connection.recv()
        assert connection.close_code == 1001
        await happens(server.ended)


async def test_a_client_that_never_reads_again_is_cut_off(
    url: str, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "STALLED_SECONDS", 0.2)
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.02)
    async with shaken(url) as stream:
        await begin_flood(stream, kilobytes=64 * 1024)
        await happens(work.over)
        assert work.said < 64 * 1024
        await rest(stream)


SERVER = """
import logging
from bridge import Bridge
from bridge.errors import ConfigurationError
logging.basicConfig(level="INFO", format="%(message)s")
logging.getLogger("websockets").setLevel("ERROR")
Bridge("alone").run_websocket(port=0)
"""


@behaviour("TRN-1", "TRN-6")
async def test_it_is_served_alone_until_a_signal_ends_it(tap: Tap) -> None:
    async with await anyio.open_process([sys.executable, "-c", SERVER]) as process:
        assert process.stderr is not None
        said = await BufferedByteReceiveStream(process.stderr).receive_until(b"\n", 1000)
        name, _, url = said.decode().partition(" is served at ")
        assert name == "alone"
        async with connect(url, subprotocols=MCP) as connection:
            await WebClient(connection, tap).initialize()
            process.terminate()
            with pytest.raises(ConnectionClosed), anyio.fail_after(SECONDS):
                await connection.recv()
            assert connection.close_code == 1001
        with anyio.fail_after(SECONDS):
            assert await process.wait() == 0


@behaviour("AUT-3")
def test_it_is_not_served_to_everybody_unless_that_is_said(bridge: Bridge) -> None:
    with pytest.raises(ConfigurationError, match="no_auth"):
        bridge.run_websocket("0.0.0.0")


def test_the_server_looks_every_20_s_whether_the_connection_is_alive(bridge: Bridge) -> None:
    config = settings(bridge.asgi())
    assert config.ws_ping_interval == 20
    # A client that shows a form may read nothing, and so answer nothing, for as long as the form is open.
    assert config.ws_ping_timeout is None
    assert config.ws_max_size == 4 * 1024 * 1024


@asynccontextmanager
async def shaken(url: str) -> AsyncIterator[ByteStream]:
    """A connection on which nothing is read unless the test does it; the handshake is over."""
    host, _, port = url.removeprefix("ws://").removesuffix("/ws").partition(":")
    key = base64.b64encode(b"0123456789abcdef").decode()
    lines = ("GET /ws HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket", "Connection: Upgrade")
    handshake = "\r\n".join((*lines, "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "", ""))
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(handshake.encode())
        assert b"101 Switching Protocols" in await stream.receive()
        yield stream


async def begin_flood(stream: ByteStream, *, kilobytes: int) -> None:
    """Have the server send much."""
    await stream.send(frame(asked(1, "initialize", hello())))
    assert b"protocolVersion" in await stream.receive()
    await stream.send(frame(asked(2, "tools/call", {"name": "flood", "arguments": {"kilobytes": kilobytes}})))


async def rest(stream: ByteStream) -> bytes:
    """Read until the server has ended the connection; return what came last."""
    found = b""
    with anyio.fail_after(SECONDS), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            found = await stream.receive()
    return found


def frame(message: Json) -> bytes:
    """A text frame of a client, whose mask is zero."""
    data = json.dumps(message).encode()
    return b"\x81" + bytes([0x80 | 126]) + len(data).to_bytes(2, "big") + b"\0\0\0\0" + data
