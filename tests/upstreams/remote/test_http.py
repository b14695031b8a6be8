"""HTTP to one server: what is written, and what is read as the reply to it."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.upstreams.remote.http import HttpClient
from tests.upstreams.remote.faulty import Answer, Exchange, FaultyServer, faulty_server


@asynccontextmanager
async def client_to(answer: Answer, **headers: str) -> AsyncIterator[tuple[HttpClient, FaultyServer]]:
    async with faulty_server(answer) as server:
        client = HttpClient(server.url, headers)
        try:
            yield client, server
        finally:
            await client.aclose()


async def post(client: HttpClient, body: bytes = b"{}", **headers: str) -> bytes:
    reply = await client.request("POST", {name.replace("_", "-"): value for name, value in headers.items()}, body)
    data = await reply.body()
    reply.retire()
    return data


async def echo(exchange: Exchange) -> None:
    await exchange.answer(200, exchange.body)


@pytest.mark.parametrize("when", ["with the reply", "later"])
async def test_what_comes_on_an_idle_connection_is_never_the_reply_to_what_is_asked_next(when: str) -> None:
    stray = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"

    async def answer(exchange: Exchange) -> None:
        reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + exchange.body
        await exchange.write(reply + stray if when == "with the reply" else reply)

    async with client_to(answer) as (client, server):
        for body in (b"11", b"22", b"33"):
            assert await post(client, body) == body
            if when == "later":
                await server.exchanges[-1].write(stray)
                for _ in range(3):  # turns of the loop in which the client reads it: on one machine it is there at once
                    await asyncio.sleep(0)


async def test_replies_of_1xx_are_passed_over() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        await echo(exchange)

    async with client_to(answer) as (client, _):
        assert await post(client, b"one") == b"one"


async def test_a_header_that_would_be_two_is_not_sent() -> None:
    async with client_to(echo) as (client, server):
        for value in ("a\r\nX: b", "a\nb", "a\x00"):
            with pytest.raises(UpstreamUnreachable, match="'Last-Event-ID'"):
                await post(client, Last_Event_ID=value)
        assert not server.exchanges


async def test_headers_of_a_request_come_before_those_of_every_request_and_each_is_there_once() -> None:
    async with client_to(echo, Accept="text/html", **{"user-agent": "mine"}) as (client, server):
        await post(client, ACCEPT="application/json")
        headers = server.exchanges[0].headers
    assert headers["accept"] == "application/json"
    assert headers["user-agent"] == "mine"
    assert headers["host"] == f"127.0.0.1:{server.port}"
    assert headers["content-length"] == "2"


async def test_what_a_server_named_goes_back_to_it_byte_by_byte() -> None:
    async def answer(exchange: Exchange) -> None:
        name = "caf\xe9 \xff".encode("latin-1")
        await exchange.write(b"HTTP/1.1 200 OK\r\nMcp-Session-Id: " + name + b"\r\nContent-Length: 0\r\n\r\n")

    async with client_to(answer) as (client, server):
        reply = await client.request("POST", {}, b"{}")
        await post(client, Mcp_Session_Id=reply.header("mcp-session-id") or "")
        assert server.exchanges[-1].headers["mcp-session-id"] == "caf\xe9 \xff"


async def test_credentials_of_the_url_travel_in_a_header_alone() -> None:
    async with faulty_server(echo) as server:
        client = HttpClient(server.url.replace("//", "//user:p%40ss@") + "?key=a%20b", {})
        await post(client)
        await client.aclose()
        (exchange,) = server.exchanges
    assert exchange.headers["authorization"] == "Basic " + base64.b64encode(b"user:p@ss").decode()
    assert exchange.headers["host"] == f"127.0.0.1:{server.port}"
    assert exchange.path == "/mcp?key=a%20b"


async def test_a_large_message_arrives_whole() -> None:
    body = json.dumps({"text": "x" * 3_000_000}).encode()
    async with client_to(echo) as (client, _):
        assert await post(client, body) == body


async def test_a_reply_that_is_no_http_is_lost() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.write(b"SSH-2.0-server\r\n\r\n")

    async with client_to(answer) as (client, _):
        with pytest.raises(UpstreamLost, match="cut off"):
            await post(client)


async def test_a_client_that_was_closed_sends_nothing() -> None:
    async with client_to(echo) as (client, server):
        await client.aclose()
        with pytest.raises(UpstreamUnreachable, match="closed"):
            await post(client)
        assert not server.exchanges
