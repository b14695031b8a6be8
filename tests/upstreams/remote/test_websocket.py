"""A WebSocket as a wire: one message a text frame."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from bridge.errors import UpstreamUnreachable
from bridge.protocol.messages import request_message
from bridge.upstreams.remote.websocket import WebSocketWire
from tests.upstreams.remote.peers import serving
from tests.upstreams.remote.session import Session, session

behaviour = pytest.mark.behaviour


@asynccontextmanager
async def talking_to(handler: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[Session]:
    async with serve(handler, "127.0.0.1", 0, subprotocols=["mcp"], max_size=None) as listening:  # type: ignore[list-item]
        port = listening.sockets[0].getsockname()[1]
        async with session(
            WebSocketWire(f"ws://127.0.0.1:{port}/mcp?key=s", {"Authorization": "Bearer own"})
        ) as client:
            yield client


@pytest.mark.peers
@behaviour("UPS-2")
async def test_a_server_of_mcp_1_is_served() -> None:
    with serving("mcp1", "websocket") as url:
        async with session(WebSocketWire(url, {})) as client:
            await client.initialize()
            assert (await client.call("add", a=2, b=3))["structuredContent"] == {"result": 5}


async def test_messages_pass_both_ways_with_the_subprotocol_and_the_headers() -> None:
    seen = []

    async def echo(socket: ServerConnection) -> None:
        assert socket.request is not None
        seen.append((socket.subprotocol, socket.request.headers["Authorization"]))
        async for text in socket:
            assert isinstance(text, str)
            message = json.loads(text)
            await socket.send("garbage")
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": message["params"]}))

    async with talking_to(echo) as client:
        text = "ü" * 3_000_000
        assert await client.request("any", {"text": text, "n": 2**70}) == {"text": text, "n": 2**70}
        assert [identity for _, identity in client.heard] == [None]
    assert seen == [("mcp", "Bearer own")]


async def test_a_close_of_the_server_closes_the_wire_with_its_reason() -> None:
    async def close(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.close(1001, "going away")

    async with talking_to(close) as client:
        await client.wire.send(request_message(1, "any", {}))
        why = await client.closed()
        assert "going away" in why
        assert "key=s" not in why
        with pytest.raises(UpstreamUnreachable):
            await client.wire.send(request_message(2, "any", {}))


@pytest.mark.timeout(60)
async def test_a_frame_of_65_mib_closes_the_wire() -> None:
    async def large(socket: ServerConnection) -> None:
        await socket.send("x" * (65 * 2**20))
        await socket.wait_closed()

    async with talking_to(large) as client:
        assert "1009" in await client.closed()


async def test_what_cannot_be_reached_is_said_in_one_line() -> None:
    with pytest.raises(UpstreamUnreachable, match=r"ws://127.0.0.1:1/ cannot be reached: the connection was refused"):
        async with session(WebSocketWire("ws://127.0.0.1:1/?key=s", {})):
            pass


@pytest.mark.parametrize(("status", "location"), [(401, None), (404, None), (307, "ws://example.invalid/")])
async def test_a_handshake_that_is_refused_or_sent_elsewhere_is_unreachable(status: int, location: str | None) -> None:
    async def never(socket: ServerConnection) -> None:
        raise AssertionError

    def refuse(socket: ServerConnection, request: object) -> object:
        response = socket.respond(status, "no")
        if location is not None:
            response.headers["Location"] = location
        return response

    async with serve(never, "127.0.0.1", 0, process_request=refuse) as listening:  # type: ignore[arg-type]
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(UpstreamUnreachable, match=str(status) if location is None else "cross-origin"):
            async with session(WebSocketWire(f"ws://127.0.0.1:{port}/", {})):
                pass
