"""What the page asks its own server for: only there where it was switched on, and only for the page itself."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge import Bridge, Context, Principal
from bridge.pages import Playground, PlaygroundRules
from bridge.testing import AsgiHttp, HttpReply, connect
from tests.peers.demo_server import await_accepting, free_port

Json = dict[str, Any]
OWN = {"host": "localhost:8000", "origin": "http://localhost:8000", "content-type": "application/json"}


def asking_bridge(**options: Any) -> Bridge:
    bridge = Bridge("asks", elicitation=True, **options)

    @bridge.tool
    async def ask(ctx: Context) -> bool:
        """Ask."""
        return (await ctx.elicit("Really?", bool)).content is True

    return bridge


@asynccontextmanager
async def playground(bridge: Bridge, **rules: Any) -> AsyncIterator[Playground]:
    app = bridge.asgi()
    async with app.lifespan():
        shown = PlaygroundRules(title=lambda: app.name, version="1", **rules)
        yield Playground(app, bridge.options, bridge.keys, shown)


async def send(
    app: Any, method: str, path: str, headers: Json | None = None, body: bytes = b""
) -> tuple[int, str, HttpReply]:
    """Send a request; return the status, the text, and the whole reply."""
    async with anyio.create_task_group() as tasks:
        reply = await AsgiHttp(app, tasks, path).request(method, headers or {"host": "localhost:8000"}, body)
        while (chunk := await reply._next()) is not None:
            reply.raw += chunk
        return reply.status, reply.raw.decode(), reply


async def token_of(app: Any) -> str:
    _, page, _ = await send(app, "GET", "/")
    facts: Json = json.loads(page.split('id="facts">')[1].split("</script>")[0])
    token: str = facts["token"]
    return token


async def ask_for(app: Any, what: str, asked: object, **headers: str) -> tuple[int, Json]:
    sent = {**OWN, "playground-token": await token_of(app), **headers}
    status, text, _ = await send(app, "POST", f"/playground/{what}", sent, json.dumps(asked).encode())
    answer: Json = json.loads(text)
    return status, answer


async def sealed(bridge: Bridge, app: Any, **headers: str) -> str:
    async with connect(app, headers=headers) as mcp:
        result = await mcp.request("tools/call", {"name": "ask", "arguments": {}})
    state: str = result["requestState"]
    return state


async def test_a_bridge_has_no_page_of_itself() -> None:
    app = asking_bridge().asgi()
    async with app.lifespan():
        for path in ("/", "/playground/main.js", "/playground/open"):
            status, _, _ = await send(app, "GET", path)
            assert status == 404


async def test_the_page_lets_nothing_in_but_its_own() -> None:
    async with playground(asking_bridge()) as app:
        status, page, reply = await send(app, "GET", "/")
        assert status == 200
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "style=" not in page
        assert "onclick=" not in page
        assert reply.headers["cache-control"] == "no-store"


async def test_what_is_written_into_the_page_cannot_end_where_it_stands() -> None:
    async with playground(Bridge("</title></script><script>alert(1)</script>"), snippet="<b>x</b>") as app:
        _, page, _ = await send(app, "GET", "/")
        assert "<script>alert" not in page
        assert "<b>x</b>" not in page


@pytest.mark.parametrize("path", ["/", "/playground/main.js", "/playground/open"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [({"host": "evil.example"}, 421), ({"host": "localhost", "origin": "https://evil.example"}, 403)],
    ids=["host", "origin"],
)
async def test_the_checks_of_the_endpoint_hold_for_the_page(path: str, headers: Json, status: int) -> None:
    async with playground(asking_bridge()) as app:
        method = "POST" if path.endswith("open") else "GET"
        assert (await send(app, method, path, headers))[0] == status


@pytest.mark.parametrize("name", ["nothing.js", "..%2fplayground.py", "index.html", "playground.py"])
async def test_no_file_is_served_but_the_pages(name: str) -> None:
    async with playground(asking_bridge()) as app:
        assert (await send(app, "GET", f"/playground/{name}"))[0] == 404


async def test_a_browser_that_has_a_file_is_not_sent_it_again() -> None:
    async with playground(asking_bridge()) as app:
        _, _, first = await send(app, "GET", "/playground/main.js")
        headers = {"host": "localhost", "if-none-match": first.headers["etag"]}
        assert (await send(app, "GET", "/playground/main.js", headers))[:2] == (304, "")


async def test_a_state_is_opened_for_the_page() -> None:
    bridge = asking_bridge()
    async with playground(bridge) as app:
        status, found = await ask_for(app, "open", {"requestState": await sealed(bridge, app)})
        assert status == 200
        assert found["claims"]["target"] == "ask"
        assert found["state"]["questions"][0]["message"] == "Really?"


@pytest.mark.parametrize(
    "headers",
    [{"playground-token": ""}, {"playground-token": "0" * 64}, {"origin": ""}, {"origin": "http://localhost:9000"}],
    ids=["no token", "another token", "no origin", "another port"],
)
async def test_nobody_else_is_told(headers: dict[str, str]) -> None:
    bridge = asking_bridge()
    async with playground(bridge) as app:
        asked = {"requestState": await sealed(bridge, app)}
        status, answer = await ask_for(app, "open", asked, **headers)
        assert status == 403
        assert "claims" not in answer


async def test_what_was_made_for_somebody_else_stays_closed() -> None:
    def authenticate(scope: Any) -> Principal:
        return Principal("here", dict(scope["headers"]).get(b"authorization", b"").decode())

    bridge = asking_bridge(authenticate=authenticate)
    async with playground(bridge) as app:
        asked = {"requestState": await sealed(bridge, app, authorization="alice")}
        assert "claims" in (await ask_for(app, "open", asked, authorization="alice"))[1]
        for other in ({"authorization": "mallory"}, {}):
            assert await ask_for(app, "open", asked, **other) == (200, {"closed": "made for another principal"})


@pytest.mark.parametrize("state", ["", "nonsense", "é", "A" * 200])
async def test_what_is_no_state_stays_closed(state: str) -> None:
    async with playground(asking_bridge()) as app:
        status, answer = await ask_for(app, "open", {"requestState": state})
        assert status == 200
        assert set(answer) == {"closed"}


async def test_another_bridges_state_stays_closed() -> None:
    other = asking_bridge()
    elsewhere = other.asgi()
    async with elsewhere.lifespan(), playground(asking_bridge()) as app:
        _, answer = await ask_for(app, "open", {"requestState": await sealed(other, elsewhere)})
        assert "not in the ring" in answer["closed"]


async def test_the_token_gives_no_key_away() -> None:
    bridge = asking_bridge()
    async with playground(bridge) as app:
        token = await token_of(app)
        assert all(key.hex() not in token for key in bridge.keys.keys.values())
        assert len(token) == 64


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"{}", {}, 400),
        (b'{"requestState": 1}', {}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b'{"requestState": "' + b"A" * 1_100_000 + b'"}', {}, 413),
    ],
    ids=["broken", "no object", "deep", "missing", "another type", "media type", "too large"],
)
async def test_what_is_asked_badly_is_refused(body: bytes, headers: dict[str, str], status: int) -> None:
    async with playground(asking_bridge()) as app:
        sent = {**OWN, "playground-token": await token_of(app), **headers}
        assert (await send(app, "POST", "/playground/open", sent, body))[0] == status


@pytest.mark.parametrize(
    ("revision", "capabilities", "route", "reason"),
    [
        ("2026-07-28", {"elicitation": {}}, "rounds", "client_declared_it"),
        ("2026-07-28", {}, "refuse", "client_did_not_declare_elicitation"),
        ("2025-06-18", {"elicitation": {}}, "push", "client_declared_it"),
        ("2025-03-26", {"elicitation": {}}, "chat", "revision_before_2025-06-18"),
        ("1999-01-01", {}, "chat", "client_did_not_declare_elicitation"),
    ],
)
async def test_the_page_is_told_how_a_client_is_asked_and_why(
    revision: str, capabilities: Json, route: str, reason: str
) -> None:
    async with playground(asking_bridge()) as app:
        asked = {"revision": revision, "capabilities": capabilities, "info": {"name": "x"}}
        status, answer = await ask_for(app, "route", asked)
        assert status == 200
        assert answer["form"] == {"route": route, "reason": reason}


async def test_only_what_can_be_put_back_is() -> None:
    restarted: list[str] = []

    async def restart() -> None:
        restarted.append("again")

    async with playground(asking_bridge(), restart=restart) as app:
        assert await ask_for(app, "restart", {}) == (200, {})
        assert restarted == ["again"]
        assert (await ask_for(app, "anything", {}))[0] == 404
    async with playground(asking_bridge()) as app:
        assert (await ask_for(app, "restart", {}))[0] == 404


@pytest.mark.parametrize("options", [[], ["--playground"]], ids=["without", "with"])
def test_serve_has_the_page_only_where_it_is_asked_for(options: list[str]) -> None:
    port = free_port()
    command = [sys.executable, "-m", "bridge", "serve", "bridge.demo.helpdesk:bridge", "--port", str(port), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            await_accepting(server, port)
            reply = subprocess.run(
                [sys.executable, "-c", _STATUS, f"http://127.0.0.1:{port}/"], capture_output=True, text=True, check=True
            )
            assert reply.stdout.strip() == ("200" if options else "404")
        finally:
            server.terminate()
            said = server.communicate(timeout=20)[1]
    assert ("Its playground is at http://127.0.0.1" in said) is bool(options)


_STATUS = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1]).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def test_serve_says_that_the_page_needs_the_endpoint(tmp_path: Any) -> None:
    (tmp_path / "server.py").write_text('from bridge import Bridge\nbridge = Bridge("x", transports=("sse",))\n')
    command = [sys.executable, "-m", "bridge", "serve", f"{tmp_path}/server.py:bridge", "--playground", "--port", "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 1
    assert "--playground needs Streamable HTTP" in ran.stderr
