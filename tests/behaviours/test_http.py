"""What Streamable HTTP refuses before a message is read, and the app mounted in another one."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from bridge import Bridge, Context
from bridge.application import Application
from bridge.testing import Client, HttpReply, accept, connect
from tests.conftest import Serve
from tests.wiretap import Tap, tap_asgi

behaviour = pytest.mark.behaviour

REVISIONS = ("2025-06-18", "2026-07-28")
SECONDS = 10
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Name(BaseModel):
    name: str


def serving(**options: Any) -> Bridge:
    bridge = Bridge("http", elicitation=True, **options)

    @bridge.tool
    async def echo(value: Any = None) -> str:
        return json.dumps(value)

    @bridge.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return answer.content.name if answer.content else answer.status

    return bridge


async def refused(reply: HttpReply, status: int) -> Any:
    """The error of a reply that is a refusal."""
    with anyio.fail_after(SECONDS):
        assert reply.status == status
        assert reply.headers["content-type"] == "application/json"
        body = await reply.json()
    assert "id" not in body
    assert body["jsonrpc"] == "2.0"
    return body["error"]


async def served(reply: HttpReply) -> None:
    with anyio.fail_after(SECONDS):
        assert reply.status == 200
        assert (await reply.json())["id"] == 2


def message(mcp: Client) -> Any:
    return mcp._completed({"id": 2, "method": "tools/list"})


# TRN-3


@behaviour("TRN-3")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "LOCALHOST:65535", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:9"]
)
async def test_loopback_names_are_served_on_any_port(serve: Serve, revision: str, host: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        await served(await mcp.raw.post(message(mcp), {"host": host}))
        await served(await mcp.raw.post(message(mcp), {"host": host, "origin": f"http://{host}"}))
        await served(await mcp.raw.post(message(mcp), {"host": host, "origin": "https://localhost:3000"}))


@behaviour("TRN-3")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost:80:80",
        "[::2]",
    ],
)
async def test_any_other_host_is_refused_by_name(serve: Serve, revision: str, host: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        error = await refused(await mcp.raw.post(message(mcp), {"host": host}), 421)
        assert host in error["message"]
        assert "allowed_hosts" in error["message"]


@behaviour("TRN-3")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example#localhost",
        "http://[::1",
        "localhost",
    ],
)
async def test_any_other_origin_is_refused_by_name(serve: Serve, revision: str, origin: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        error = await refused(await mcp.raw.post(message(mcp), {"origin": origin}), 403)
        assert origin in error["message"]
        assert "allowed_origins" in error["message"]


@behaviour("TRN-3")
async def test_get_and_delete_are_checked_too(serve: Serve) -> None:
    app = await serve(serving())
    async with connect(app, revision="2025-06-18") as mcp:
        for name, value, status in (("host", "evil.example", 421), ("origin", "http://evil.example", 403)):
            mcp._extra_headers[name] = value
            await refused(await mcp.raw.get(), status)
            await refused(await mcp.raw.delete(), status)
            del mcp._extra_headers[name]
        await served(await mcp.raw.post(message(mcp)))


@behaviour("TRN-3")
async def test_hosts_and_origins_that_were_allowed_are_served(serve: Serve) -> None:
    bridge = serving(allowed_hosts=("MCP.example.com",), allowed_origins=("https://App.example.com",))
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        for host in ("mcp.example.com", "mcp.example.com:8443", "Mcp.Example.Com"):
            await served(await mcp.raw.post(message(mcp), {"host": host}))
        for origin in ("https://app.example.com", "https://mcp.example.com"):
            await served(await mcp.raw.post(message(mcp), {"host": "mcp.example.com", "origin": origin}))
        await refused(await mcp.raw.post(message(mcp), {"host": "app.example.com"}), 421)
        await refused(await mcp.raw.post(message(mcp), {"origin": "http://app.example.com"}), 403)


@behaviour("TRN-3")
async def test_a_star_allows_any_host_and_origin(serve: Serve) -> None:
    bridge = serving(allowed_hosts=("*",), allowed_origins=("*",))
    async with connect(await serve(bridge), revision="2025-06-18") as mcp:
        await served(await mcp.raw.post(message(mcp), {"host": "any.example:1", "origin": "https://other.example"}))


# TRN-4


@behaviour("TRN-4")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_body_over_4_mib_is_refused(serve: Serve, revision: str) -> None:
    limit = 4 * 1024 * 1024
    async with connect(await serve(serving()), revision=revision) as mcp:
        body = json.dumps(message(mcp)).encode()
        headers = mcp._headers(message(mcp))
        await served(await mcp.raw.post(body + b" " * (limit - len(body)), headers))
        error = await refused(await mcp.raw.post(body + b" " * (limit + 1 - len(body)), headers), 413)
        assert str(limit) in error["message"]
        await refused(await mcp.raw.post(body, {**headers, "content-length": str(limit + 1)}), 413)


@behaviour("TRN-4")
async def test_a_body_over_4_mib_in_parts_is_refused(serve: Serve) -> None:
    inner = await serve(serving())

    async def in_parts(scope: Any, receive: Any, send: Any) -> None:
        left = [b" " * (1024 * 1024)] * 5 if (b"x-parts", b"1") in scope["headers"] else []

        async def part() -> Any:
            if left:
                return {"type": "http.request", "body": left.pop(), "more_body": True}
            return await receive()

        await inner(scope, part, send)

    async with connect(in_parts, revision="2025-06-18") as mcp:
        await refused(await mcp.raw.post(PING, {"x-parts": "1"}), 413)


NO_JSON = [
    b"",
    b" ",
    b"{",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
    b"{'jsonrpc':'2.0'}",
    b"\xef\xbb\xbf{}",
    '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":Infinity}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\udc00"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800 and more text"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\\udfff":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xed\xa0\x80"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xc0\xaf"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"line\nbreak"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 64 + b"1" + b"}" * 65,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 63 + b"]" * 63 + b"}}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
]


@behaviour("TRN-4")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("body", NO_JSON, ids=range(len(NO_JSON)))
async def test_what_is_no_json_is_refused_without_an_id(serve: Serve, revision: str, body: bytes) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        headers = mcp._headers(mcp._completed({"method": "ping"}))
        error = await refused(await mcp.raw.post(body, headers), 400)
        assert error["code"] == -32700
        await served(await mcp.raw.post(message(mcp)))


@behaviour("TRN-4")
async def test_depth_is_counted_to_64_and_not_in_strings(serve: Serve) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        deep: Any = "[" * 500 + '"{' * 500
        for _ in range(61):  # the message, its params and its arguments are three levels more
            deep = [deep]
        assert (await mcp.tools.call("echo", {"value": deep})).text() == json.dumps(deep)


@behaviour("TRN-4")
async def test_duplicate_keys_have_one_reading(serve: Serve) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        body = (
            b'{"jsonrpc":"2.0","id":9,"id":1,"method":"no/such","method":"tools/call","params":{},'
            b'"params":{"name":"no","name":"echo","arguments":{"value":1,"value":2}}}'
        )
        reply = await mcp.raw.post(body)
        answer = await reply.json()
        assert answer["id"] == 1
        assert answer["result"]["content"][0]["text"] == "2"


@behaviour("TRN-4", "MOD-4")
@pytest.mark.parametrize("named", ["ask", "echo"])
async def test_of_duplicate_keys_the_one_that_was_checked_is_used(serve: Serve, named: str) -> None:
    async with connect(await serve(serving())) as mcp:
        call = mcp._completed({"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"value": 1}}})
        body = json.dumps(call).encode().replace(b'"name": "echo"', b'"name": "ask", "name": "echo"')
        reply = await mcp.raw.post(body, {**mcp._headers(call), "mcp-name": named})
        answer = await reply.json()
        if named == "echo":
            assert answer["result"]["content"][0]["text"] == "1"
        else:
            assert (reply.status, answer["error"]["code"]) == (400, -32020)


# TRN-5


@behaviour("TRN-5")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "kind", ["text/plain", "", "application/json-rpc", "application/x-www-form-urlencoded", "json"]
)
async def test_another_content_type_is_refused(serve: Serve, revision: str, kind: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        error = await refused(await mcp.raw.post(message(mcp), {"content-type": kind}), 415)
        assert "application/json" in error["message"]


@behaviour("TRN-5")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/json;"])
async def test_json_is_json_however_it_is_written(serve: Serve, revision: str, kind: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        await served(await mcp.raw.post(message(mcp), {"content-type": kind}))


@behaviour("TRN-5")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("value", ["text/html", "image/*", "application/xml, text/plain"])
async def test_an_accept_that_fits_nothing_is_refused(serve: Serve, revision: str, value: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        error = await refused(await mcp.raw.post(message(mcp), {"accept": value}), 406)
        assert "text/event-stream" in error["message"]


@behaviour("TRN-5")
async def test_a_get_that_takes_no_events_is_refused(serve: Serve) -> None:
    async with connect(await serve(serving()), revision="2025-06-18") as mcp:
        headers = {**mcp._headers({}), "accept": "application/json"}
        await refused(await mcp._http.request("GET", headers), 406)


@behaviour("TRN-5", "MOD-13")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("verb", ["PUT", "PATCH", "OPTIONS", "TRACE", "post"])
async def test_other_verbs_are_refused(serve: Serve, revision: str, verb: str) -> None:
    async with connect(await serve(serving()), revision=revision) as mcp:
        body = json.dumps(message(mcp)).encode()
        reply = await mcp._http.request(verb, mcp._headers(message(mcp)), body)
        await refused(reply, 405)
        assert "POST" in reply.headers["allow"]


@behaviour("TRN-5", "MOD-13")
async def test_a_modern_client_has_no_get_and_no_delete(serve: Serve) -> None:
    async with connect(await serve(serving())) as mcp:
        for reply in (await mcp.raw.get(), await mcp.raw.delete()):
            await refused(reply, 405)


# Mounted in another app


def at(path: list[str], app: Any) -> Any:
    """The app as a client reaches it that asks for `path[0]`."""

    async def moved(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "path": path[0], "raw_path": path[0].encode()}, receive, send)

    return moved


async def home(request: Any) -> PlainTextResponse:
    return PlainTextResponse("home")


def in_starlette(prefix: str, app: Application, **options: Any) -> Any:
    return Starlette(routes=[Route("/", home), Mount(prefix, app=app)], **options)


def in_fastapi(prefix: str, app: Application, **options: Any) -> Any:
    outer = FastAPI(**options)
    outer.mount(prefix, app)
    return outer


Outer = Callable[..., Any]


@behaviour("TRN-1")
@pytest.mark.parametrize("make", [in_starlette, in_fastapi])
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
@pytest.mark.parametrize(
    ("prefix", "path", "asked"),
    [("/api", "/mcp", "/api/mcp"), ("/api/v1", "/tools/mcp", "/api/v1/tools/mcp"), ("/mcp", "/", "/mcp/")],
)
async def test_a_mounted_app_serves_under_its_prefix_without_a_lifespan(
    tap: Tap, make: Outer, revision: str, prefix: str, path: str, asked: str
) -> None:
    app = serving().asgi(path=path)
    try:
        async with connect(at([asked], tap_asgi(make(prefix, app), tap)), revision=revision) as mcp:
            mcp.on_elicitation(lambda question: accept({"name": "Ada"}))
            assert (await mcp.tools.call("ask")).text() == "Ada"
            assert (await mcp.tools.call("echo", {"value": [1]})).text() == "[1]"
    finally:
        await app.stop()


@behaviour("TRN-1")
@pytest.mark.parametrize("make", [in_starlette, in_fastapi])
async def test_a_mounted_app_has_its_lifespan_in_the_outer_one(tap: Tap, make: Outer) -> None:
    app = serving().asgi()
    outer = make("/api", app, lifespan=app.lifespan)
    async with outer.router.lifespan_context(outer):
        assert app.node.running
        async with connect(at(["/api/mcp"], tap_asgi(outer, tap)), revision="2025-06-18") as mcp:
            mcp.on_elicitation(lambda question: accept({"name": "Ada"}))
            assert (await mcp.tools.call("ask")).text() == "Ada"
            stream = await mcp.raw.get()
            assert stream.status == 200
    assert not app.node.running


@behaviour("TRN-1")
@pytest.mark.parametrize("make", [in_starlette, in_fastapi])
async def test_a_mounted_app_serves_its_endpoint_only(tap: Tap, make: Outer) -> None:
    app, path = serving().asgi(), ["/api/mcp"]
    try:
        async with connect(at(path, tap_asgi(make("/api", app), tap)), revision="2025-06-18") as mcp:
            for other in ("/api/other", "/api/mcp/more", "/api/api/mcp", "/mcp", "/api"):
                path[0] = other
                reply = await mcp._http.request("GET", {"accept": "text/event-stream"})
                assert reply.status in (404, 307)
            path[0] = "/api/mcp"
            await served(await mcp.raw.post(message(mcp)))
    finally:
        await app.stop()
