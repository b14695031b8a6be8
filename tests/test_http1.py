"""HTTP/1.1 over real sockets: whatever a client sends, it gets the bytes that uvicorn's own protocol would give it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from bridge.transports.http1 import HttpProtocol

SECONDS = 10
BIG = 4 * 1024 * 1024
GET = b"GET /mcp?a=%20b HTTP/1.1\r\nHost: x\r\n\r\n"

App = Callable[[Any, Any, Any], Awaitable[Any]]


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@pytest.fixture(params=[HttpProtocol, HttpToolsProtocol], ids=["ours", "uvicorn's"])
def protocol(request: pytest.FixtureRequest) -> Any:
    return request.param


ours = pytest.mark.parametrize("protocol", [HttpProtocol], ids=["ours"])


class Peer(NamedTuple):
    """A client's end of a connection, and what the server's end knows."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: ServerState

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def rest(self) -> bytes:
        """What comes until the server closes the connection."""
        return await asyncio.wait_for(self.reader.read(), SECONDS)

    async def until(self, end: bytes) -> bytes:
        return await asyncio.wait_for(self.reader.readuntil(end), SECONDS)


@asynccontextmanager
async def serving(protocol: Any, app: App, **options: Any) -> AsyncIterator[Peer]:
    """Serve an app on a real socket, and connect to it."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, **{"access_log": False, **options})
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol(config, state, {}, loop), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield Peer(reader, writer, state)
    finally:
        writer.close()
        server.close()
        for task in list(state.tasks):
            task.cancel()
        await until(lambda: not state.tasks and not state.connections)


async def until(is_so: Callable[[], object]) -> None:
    """Let the loop turn until something is so that no event tells of."""
    async with asyncio.timeout(SECONDS):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def body_of(receive: Any) -> bytes:
    parts = b""
    while True:
        message = await receive()
        assert message["type"] == "http.request"
        parts += message["body"]
        if not message["more_body"]:
            return parts


async def reply(send: Any, body: bytes, *headers: tuple[bytes, bytes], status: int = 200) -> None:
    length = (b"Content-Length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """The method, the target and the body of the request."""
    body = await body_of(receive)
    target = f"{scope['method']} {scope['path']} {scope['query_string'].decode()} {scope['http_version']}|"
    await reply(send, target.encode() + body)


def post(body: bytes, *headers: bytes) -> bytes:
    lines = [b"POST /a%2Fb HTTP/1.1", b"host: x", b"Content-Length: %d" % len(body), *headers, b"", b""]
    return b"\r\n".join(lines) + body


CLOSE = b"Connection: close"


async def test_a_connection_serves_one_request_after_the_other(protocol: Any) -> None:
    async with serving(protocol, echo) as peer:
        peer.send(GET)
        assert await peer.until(b"1.1|") == b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nGET /mcp a=%20b 1.1|"
        peer.send(post(b"two", CLOSE))
        assert await peer.rest() == (
            b"HTTP/1.1 200 OK\r\ncontent-length: 18\r\nconnection: close\r\n\r\nPOST /a/b  1.1|two"
        )


async def test_requests_that_are_sent_at_once_are_answered_in_their_order(protocol: Any) -> None:
    async with serving(protocol, echo) as peer:
        peer.send(b"".join(post(b"number %d" % number) for number in range(9)) + post(b"last", CLOSE))
        replies = (await peer.rest()).split(b"HTTP/1.1 200 OK\r\n")[1:]
        assert [part[part.index(b"1.1|") + 4 :] for part in replies] == [
            *(b"number %d" % number for number in range(9)),
            b"last",
        ]


async def test_one_that_waits_is_not_overtaken(protocol: Any) -> None:
    free = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = await body_of(receive)
        if body == b"slow":
            await free.wait()
        await reply(send, body)

    async with serving(protocol, app) as peer:
        peer.send(post(b"slow") + post(b"fast", CLOSE))
        await until(lambda: peer.state.tasks)
        assert len(peer.state.tasks) == 1
        free.set()
        everything = await peer.rest()
        assert 0 < everything.index(b"slow") < everything.index(b"fast")


async def test_a_request_may_come_byte_by_byte(protocol: Any) -> None:
    async with serving(protocol, echo) as peer:
        for byte in post(b"slow", CLOSE):
            peer.send(bytes([byte]))
            await peer.writer.drain()
            await asyncio.sleep(0)
        assert (await peer.rest()).endswith(b"POST /a/b  1.1|slow")


async def test_a_body_may_come_in_chunks(protocol: Any) -> None:
    async with serving(protocol, echo) as peer:
        peer.send(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n")
        peer.send(b"1;x=y\r\nd\r\n" * 3)
        await peer.writer.drain()
        peer.send(b"0\r\n\r\n")
        assert (await peer.rest()).endswith(b"POST /  1.1|abcddd")


async def test_a_large_body_is_read_no_faster_than_it_is_taken(protocol: Any) -> None:
    sizes: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["more_body"]:
            sizes.append(len(message["body"]))
        sizes.append(len(message["body"]))
        await reply(send, b"")

    async with serving(protocol, app) as peer:
        peer.send(post(b"x" * BIG, CLOSE))
        assert (await peer.rest()).startswith(b"HTTP/1.1 200 OK")
    assert sum(sizes) == BIG
    assert max(sizes) < BIG / 4


async def test_a_reply_without_a_length_is_sent_in_chunks(protocol: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        for part in (b"one", b"", b"three"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    async with serving(protocol, app) as peer:
        peer.send(GET)
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        assert await peer.until(b"0\r\n\r\n") == head + b"3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"


async def test_what_an_app_sends_is_there_while_the_app_waits(protocol: Any) -> None:
    free = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await free.wait()
        await send({"type": "http.response.body", "body": b"second"})

    async with serving(protocol, app) as peer:
        peer.send(GET)
        assert (await peer.until(b"first\r\n")).endswith(b"\r\n\r\n5\r\nfirst\r\n")
        free.set()
        assert await peer.until(b"0\r\n\r\n") == b"6\r\nsecond\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("request_line", "status", "expected"),
    [
        (b"HEAD / HTTP/1.1", 200, b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n"),
        (b"GET / HTTP/1.0", 200, b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody"),
        (b"GET / HTTP/1.1", 404, b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody"),
        (b"GET / HTTP/1.1", 599, b"HTTP/1.1 599 \r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody"),
    ],
)
async def test_a_reply_is_as_the_request_and_its_status_want_it(
    protocol: Any, request_line: bytes, status: int, expected: bytes
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"body", status=status)

    async with serving(protocol, app) as peer:
        peer.send(request_line + b"\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert await peer.rest() == expected


async def test_a_reply_without_a_body_has_none(protocol: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": [(b"x", b"y"), (b"connection", b"close")]})
        await send({"type": "http.response.body"})

    async with serving(protocol, app) as peer:
        peer.send(GET)
        assert await peer.rest() == b"HTTP/1.1 204 No Content\r\nx: y\r\nconnection: close\r\n\r\n"


async def test_a_client_is_told_to_go_on_when_the_app_wants_the_body(protocol: Any) -> None:
    async with serving(protocol, echo) as peer:
        peer.send(post(b"", b"Expect: 100-Continue", CLOSE).replace(b"Length: 0", b"Length: 4"))
        assert await peer.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.send(b"bo")
        await peer.writer.drain()
        peer.send(b"dy")
        assert (await peer.rest()).endswith(b"\r\n\r\nPOST /a/b  1.1|body")


async def test_a_client_is_not_told_to_go_on_when_the_app_does_not_want_the_body(protocol: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"", (b"connection", b"close"), status=413)

    async with serving(protocol, app) as peer:
        peer.send(post(b"", b"Expect: 100-continue").replace(b"Length: 0", b"Length: 4"))
        assert (await peer.rest()).startswith(b"HTTP/1.1 413 ")


BROKEN_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
BROKEN = b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n"


async def raises(scope: Any, receive: Any, send: Any) -> None:
    raise ValueError


async def returns_something(scope: Any, receive: Any, send: Any) -> Any:
    return 1


async def returns_nothing(scope: Any, receive: Any, send: Any) -> None:
    pass


async def raises_late(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    raise ValueError


async def stops_early(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})


async def sends_too_much(scope: Any, receive: Any, send: Any) -> None:
    await stops_early(scope, receive, send)
    await send({"type": "http.response.body", "body": b"12345"})


async def sends_too_little(scope: Any, receive: Any, send: Any) -> None:
    await stops_early(scope, receive, send)
    await send({"type": "http.response.body", "body": b"123"})


async def sends_body_first(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.body", "body": b"123"})


async def starts_twice(scope: Any, receive: Any, send: Any) -> None:
    await stops_early(scope, receive, send)
    await stops_early(scope, receive, send)


async def sends_on(scope: Any, receive: Any, send: Any) -> None:
    await reply(send, b"1234")
    await send({"type": "http.response.body", "body": b"5"})


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        (raises, BROKEN + b"connection: close\r\n\r\nInternal Server Error"),
        (returns_nothing, BROKEN + b"connection: close\r\n\r\nInternal Server Error"),
        (sends_body_first, BROKEN + b"connection: close\r\n\r\nInternal Server Error"),
        (returns_something, b""),
        (raises_late, BROKEN_HEAD),
        (stops_early, BROKEN_HEAD),
        (starts_twice, BROKEN_HEAD),
        (sends_too_much, BROKEN_HEAD),
        (sends_too_little, BROKEN_HEAD + b"123"),
        (sends_on, BROKEN_HEAD + b"1234"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_an_app_that_breaks_the_rules_loses_its_connection(
    protocol: Any, app: App, expected: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(protocol, app) as peer:
        peer.send(GET)
        assert await peer.rest() == expected
    assert "ASGI" in caplog.text


@pytest.mark.parametrize("header", [(b"a b", b"c"), (b"a", b"b\r\nc: d")], ids=["name", "value"])
async def test_a_header_cannot_smuggle_another(
    protocol: Any, header: tuple[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"1234", header)

    async with serving(protocol, app) as peer:
        peer.send(GET)
        assert b"c" not in (await peer.rest()).partition(b"\r\n\r\n")[2]
    assert "Invalid HTTP header" in caplog.text


@pytest.mark.parametrize("data", [b"nonsense\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\nhost x\r\n\r\n"])
async def test_what_is_no_http_is_refused(protocol: Any, data: bytes) -> None:
    async with serving(protocol, echo) as peer:
        peer.send(data)
        assert (await peer.rest()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_a_refusal_comes_after_the_reply_that_was_made_before(protocol: Any) -> None:
    async with serving(protocol, echo) as peer:
        peer.send(GET)
        await peer.until(b"1.1|")
        peer.send(b"nonsense\r\n\r\n")
        assert (await peer.rest()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_too_many_connections_are_refused(protocol: Any) -> None:
    async with serving(protocol, echo, limit_concurrency=1) as peer:
        peer.send(GET)
        assert (await peer.rest()).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")


class Waiting:
    """An app that waits until its client has gone."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await body_of(receive)
        self.entered.set()
        assert (await receive())["type"] == "http.disconnect"
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.start", "status": 200})
        self.left.set()


async def test_an_app_learns_that_its_client_has_gone(protocol: Any, caplog: pytest.LogCaptureFixture) -> None:
    app = Waiting()
    async with serving(protocol, app) as peer:
        peer.send(post(b"body"))
        await asyncio.wait_for(app.entered.wait(), SECONDS)
        peer.writer.close()
        await asyncio.wait_for(app.left.wait(), SECONDS)
    assert not caplog.text


@ours
async def test_an_app_learns_it_also_when_another_request_waits_behind(protocol: Any) -> None:
    app = Waiting()
    async with serving(protocol, app) as peer:
        peer.send(post(b"one") + post(b"two"))
        await asyncio.wait_for(app.entered.wait(), SECONDS)
        peer.writer.close()
        await asyncio.wait_for(app.left.wait(), SECONDS)


async def test_a_client_that_goes_in_the_middle_of_its_body_is_noticed(protocol: Any) -> None:
    gone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    async with serving(protocol, app) as peer:
        peer.send(post(b"body")[:-2])
        await until(lambda: peer.state.tasks)
        peer.writer.close()
        await asyncio.wait_for(gone.wait(), SECONDS)


async def test_an_app_waits_for_a_client_that_reads_slowly(protocol: Any) -> None:
    sent = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % (4 * BIG))]})
        for _ in range(256):
            await send({"type": "http.response.body", "body": b"x" * (BIG // 64), "more_body": True})
            sent += BIG // 64
        await send({"type": "http.response.body"})

    async with serving(protocol, app) as peer:
        peer.send(GET)
        await peer.until(b"\r\n\r\n")
        before = -1
        while sent > before:
            before = sent
            await asyncio.sleep(0.05)  # the kernel has its own idea of how much it takes
        assert sent < 4 * BIG
        assert len(await asyncio.wait_for(peer.reader.readexactly(4 * BIG), SECONDS)) == 4 * BIG


async def test_an_idle_connection_is_closed_in_time(protocol: Any) -> None:
    async with serving(protocol, echo, timeout_keep_alive=0.4) as peer:
        loop = asyncio.get_running_loop()
        peer.send(GET)
        await peer.until(b"1.1|")
        await asyncio.sleep(0.25)
        peer.send(GET)
        await peer.until(b"1.1|")
        idle_since = loop.time()
        assert await peer.rest() == b""
        assert 0.35 < loop.time() - idle_since < 3


async def test_a_connection_that_is_waited_for_is_not_idle(protocol: Any) -> None:
    free = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await free.wait()
        await reply(send, scope["path"].encode())

    async with serving(protocol, app, timeout_keep_alive=0.05) as peer:
        peer.send(GET)
        await peer.until(b"/mcp")
        peer.send(GET.replace(b"/mcp", b"/slow"))
        asyncio.get_running_loop().call_later(0.3, free.set)
        assert (await peer.rest()).endswith(b"/slow")


async def test_shutting_down_closes_what_is_idle_and_finishes_what_is_not(protocol: Any) -> None:
    free = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            await free.wait()
        await reply(send, b"done")

    async with serving(protocol, app) as idle, serving(protocol, app) as busy:
        idle.send(GET)
        await idle.until(b"done")
        busy.send(GET.replace(b"/mcp", b"/slow"))
        await until(lambda: busy.state.tasks)
        for connection in [*idle.state.connections, *busy.state.connections]:
            connection.shutdown()
        assert await idle.rest() == b""
        free.set()
        assert (await busy.rest()).endswith(b"connection: close\r\n\r\ndone")


async def test_requests_are_counted_and_logged(
    protocol: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", "uvicorn.access")
    monkeypatch.setattr(logging.getLogger("uvicorn.access"), "propagate", True)
    async with serving(protocol, echo, access_log=True) as peer:
        peer.send(GET)
        await peer.until(b"1.1|")
        assert peer.state.total_requests == 1
    assert '"GET /mcp?a=%20b HTTP/1.1" 200' in caplog.text


async def test_an_upgrade_to_a_websocket_is_handed_on(protocol: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await reply(send, b"http")
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    key = b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n"
    async with serving(protocol, app, ws="websockets-sansio") as peer:
        peer.send(GET)
        await peer.until(b"http")
        peer.send(b"GET / HTTP/1.1\r\nhost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n" + key + b"\r\n")
        assert (await peer.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 403 Forbidden\r\n")


async def test_any_other_upgrade_is_not_taken(protocol: Any) -> None:
    async with serving(protocol, echo, ws="none") as peer:
        peer.send(b"GET /h2 HTTP/1.1\r\nhost: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n")
        assert (await peer.until(b"1.1|")).endswith(b"GET /h2  1.1|")


class Recording(asyncio.Transport):
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def connected(app: App) -> tuple[HttpProtocol, Recording]:
    config = uvicorn.Config(app, lifespan="off", access_log=False, log_config=None)
    protocol, transport = HttpProtocol(config, ServerState(), {}), Recording()
    protocol.connection_made(transport)
    return protocol, transport


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_turn_of_the_loop_writes_once() -> None:
    protocol, transport = connected(echo)
    protocol.data_received(GET)
    await turns(3)
    assert transport.written == [b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nGET /mcp a=%20b 1.1|"]


async def test_what_a_turn_wrote_is_not_lost_when_the_connection_is_closed() -> None:
    for end in (HttpProtocol.eof_received, HttpProtocol.shutdown, HttpProtocol.timeout_keep_alive_handler):
        protocol, transport = connected(echo)
        protocol.data_received(GET)
        await turns(1)
        assert transport.written == []
        end(protocol)
        assert b"".join(transport.written).endswith(b"1.1|")


async def test_nothing_is_written_to_a_connection_that_is_gone() -> None:
    protocol, transport = connected(echo)
    protocol.data_received(GET)
    await turns(1)
    transport.close()
    protocol.connection_lost(ConnectionResetError())
    await turns(3)
    assert transport.written == []


async def test_a_large_reply_does_not_wait_for_the_end_of_the_turn() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"x" * 100_000)

    protocol, transport = connected(app)
    protocol.data_received(GET)
    await turns(1)
    assert len(b"".join(transport.written)) > 100_000
