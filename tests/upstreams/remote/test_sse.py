"""HTTP+SSE of 2024-11-05: one stream of events, which names where messages are POSTed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import request_message, result_message
from bridge.upstreams.remote.http import HttpClient
from bridge.upstreams.remote.sse import SseWire
from tests.upstreams.remote.faulty import Exchange, FaultyServer, faulty_server
from tests.upstreams.remote.peers import serving
from tests.upstreams.remote.session import SECONDS, Session, session

behaviour = pytest.mark.behaviour


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[Session]:
    client = HttpClient(url, {"Authorization": "Bearer own"})
    try:
        async with session(SseWire(client)) as made:
            yield made
    finally:
        await client.aclose()


class OldServer:
    """A server that names an endpoint, and echoes params on its stream, unless a POST is refused."""

    def __init__(self, endpoint: str, status: int = 202) -> None:
        self.endpoint = endpoint
        self.status = status
        self.stream: Exchange | None = None

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.method == "GET":
            self.stream = exchange
            await exchange.stream()
            await exchange.chunk(f"event: endpoint\r\ndata: {self.endpoint}\r\n\r\n".encode())
            return
        await exchange.answer(self.status)
        if self.status == 202:
            assert self.stream is not None
            message = exchange.message
            await self.stream.event(result_message(message["id"], message["params"]), kind="message")


@asynccontextmanager
async def talking_to(old: OldServer) -> AsyncIterator[tuple[Session, FaultyServer]]:
    async with faulty_server(old) as server:
        old.endpoint = old.endpoint.format(server.port)
        async with client_of(server.url) as client:
            yield client, server


@pytest.mark.peers
@behaviour("UPS-2")
async def test_a_server_of_mcp_1_is_served() -> None:
    with serving("mcp1", "sse") as url:
        async with client_of(url) as client:
            await client.initialize("2024-11-05")
            assert (await client.call("add", a=2, b=3))["content"][0]["text"] == "5"
            assert {identity for _, identity in client.heard} == {None}


@pytest.mark.parametrize(
    "endpoint", ["/messages?session=1", "messages?session=1", "http://127.0.0.1:{}/messages?session=1"]
)
async def test_messages_go_to_the_endpoint_and_replies_come_on_the_stream(endpoint: str) -> None:
    async with talking_to(OldServer(endpoint)) as (client, server):
        assert await client.request("any", {"a": 1}) == {"a": 1}
        post = server.asked("POST")[0]
        assert post.path == "/messages?session=1"
        assert post.headers["authorization"] == "Bearer own"


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:1/messages", "//example.invalid/x", "https://127.0.0.1:{}/x", "file:///x"]
)
async def test_an_endpoint_of_another_origin_is_refused(endpoint: str) -> None:
    with pytest.raises(UpstreamUnreachable, match="another origin"):
        async with talking_to(OldServer(endpoint)):
            pass


async def test_the_end_of_the_stream_closes_the_wire() -> None:
    old = OldServer("/m")
    async with talking_to(old) as (client, _):
        assert old.stream is not None
        old.stream.cut()
        await client.closed()
        with pytest.raises(UpstreamUnreachable):
            await client.wire.send(request_message(1, "any", {}))


@behaviour("UPS-7")
@pytest.mark.parametrize(("status", "kind"), [(404, UpstreamUnreachable), (500, UpstreamLost)])
async def test_a_post_that_is_refused_says_whether_it_can_have_run(status: int, kind: type[Exception]) -> None:
    async with talking_to(OldServer("/m", status)) as (client, _):
        with pytest.raises(kind, match=str(status)):
            await client.wire.send(request_message(1, "any", {}))


async def test_a_server_that_names_no_endpoint_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.upstreams.remote.sse._ENDPOINT_SECONDS", 0.2)

    async def silent(exchange: Exchange) -> None:
        await exchange.stream()
        await asyncio.sleep(SECONDS)

    async def page(exchange: Exchange) -> None:
        await exchange.answer(200, b"<html>", content_type="text/html")

    async def away(exchange: Exchange) -> None:
        await exchange.answer(404)

    for answer, why in ((silent, "did not name its endpoint"), (page, "text/html"), (away, "404")):
        async with faulty_server(answer) as server:
            with pytest.raises(UpstreamUnreachable, match=why):
                async with client_of(server.url):
                    pass
