"""The console: its login, its numbers, and what it does, on one node and on several."""

from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from bridge import Bridge
from bridge.pages.console import Console
from bridge.pages.door import MAX_ATTEMPTS, Door
from bridge.stores import Store
from bridge.testing import RpcError, connect
from tests.console.conftest import BEARER, TOKEN, Desk, Serve
from tests.upstreams.plain import Plain

HTML = {"accept": "text/html"}
OWN = {**HTML, "origin": "http://localhost:8000"}


async def logged_in(browser: httpx.AsyncClient) -> str:
    """Log in; return what the forms of the page carry."""
    reply = await browser.post("/console/login", data={"token": TOKEN}, headers=OWN)
    assert (reply.status_code, reply.headers["location"]) == (303, "/console")
    page = (await browser.get("/console", headers=HTML)).text
    return page.partition('name="form_token" value="')[2].partition('"')[0]


async def until(condition: Any) -> None:
    """Wait until something is so; a test's timeout ends it."""
    while not await condition():  # noqa: ASYNC110
        await anyio.sleep(0.01)  # what happens at another node tells nobody here


async def test_a_browser_logs_in_looks_and_logs_out(desk: Desk) -> None:
    async with desk.browser() as browser:
        asked = await browser.get("/console", headers=HTML)
        assert asked.status_code == 200
        assert 'name="token"' in asked.text
        assert "Live sessions" not in asked.text
        token = await logged_in(browser)
        assert "Live sessions" in (await browser.get("/console", headers=HTML)).text
        assert (await browser.get("/explain")).status_code == 200
        out = await browser.post("/console/logout", data={"form_token": token}, headers=OWN)
        assert out.status_code == 303
        assert (await browser.get("/explain")).status_code == 401


async def test_a_wrong_token_does_not_log_in_and_not_for_ever(desk: Desk) -> None:
    async with desk.browser() as browser:
        replies = [
            await browser.post("/console/login", data={"token": "wrong"}, headers=OWN) for _ in range(MAX_ATTEMPTS + 1)
        ]
        assert [reply.status_code for reply in replies] == [401] * MAX_ATTEMPTS + [429]
        assert "That is not the token." in replies[0].text
        right = await browser.post("/console/login", data={"token": TOKEN}, headers=OWN)
        assert right.status_code == 429
        assert (await browser.get("/console", headers=BEARER)).status_code == 429


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://localhost"])
async def test_a_login_that_comes_from_elsewhere_is_refused(desk: Desk, origin: str | None) -> None:
    headers = HTML if origin is None else {**HTML, "origin": origin}
    async with desk.browser() as browser:
        reply = await browser.post("/console/login", data={"token": TOKEN}, headers=headers)
        assert reply.status_code == 403
        assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("path", ["/console/end", "/console/cancel", "/console/logout"])
@pytest.mark.parametrize("wrong", ["origin", "form_token", "neither"])
async def test_a_form_that_is_not_the_consoles_own_does_nothing(desk: Desk, path: str, wrong: str) -> None:
    async with desk.client("2025-03-26") as client, desk.browser() as browser:
        token = await logged_in(browser)
        [session] = (await desk.get("/explain"))["sessions"]
        fields = {"session": session["handle"], "form_token": token if wrong == "origin" else "0" * 64}
        headers = {**OWN, "origin": "https://evil.example"} if wrong == "origin" else OWN
        if wrong == "neither":
            browser.cookies.clear()
        reply = await browser.post(path, data=fields, headers=headers)
        assert reply.status_code == (401 if wrong == "neither" else 403)
        await client.tools.list()


async def test_every_answer_trusts_no_other_host(desk: Desk) -> None:
    async with desk.browser() as browser:
        await logged_in(browser)
        for path in ("/console", "/console/console.css", "/console/console.js", "/console/icon.svg", "/explain"):
            reply = await browser.get(path, headers=HTML)
            policy = reply.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert "https://" not in reply.text
        assert (await browser.get("/console/view.py")).status_code == 404
        assert (await browser.get("/console", headers={"host": "evil.example"})).status_code == 421


async def test_everything_else_is_served_as_before(desk: Desk) -> None:
    async with desk.client("modern-forms") as client, desk.browser() as browser:
        assert [tool["name"] for tool in await client.tools.list()] == ["delete", "fail"]
        assert (await browser.get("/")).status_code == 404


@pytest.mark.parametrize("kind", ["2025-06-18-forms", "2025-06-18-chat"])
async def test_a_question_is_cancelled_by_any_node_and_its_call_goes_on_with_that(
    desks: Serve, store: Store, kind: str
) -> None:
    asking, other = await desks(store), await desks(store)
    async with asking.asking(kind) as ended:
        [session] = (await other.get("/explain"))["sessions"]
        fields = {"session": session["handle"], "question": session["questions"][0]["handle"]}
        assert (await other.post("/console/cancel", **fields)).json() == {"done": "cancelled"}

        async def happened() -> bool:
            return "the-argument: cancel" in asking.effects + other.effects

        await until(happened)
        if kind == "2025-06-18-forms":
            await until(lambda: _true(ended))
            assert ended == ["cancel: hush-hush"]
        [session] = (await other.get("/explain"))["sessions"]
        assert session["questions"] == []
        assert (await other.post("/console/cancel", **fields)).status_code == 404
    assert len(asking.effects + other.effects) == 1


async def _true(value: Any) -> bool:
    return bool(value)


async def test_a_session_is_ended_by_any_node(desks: Serve, store: Store) -> None:
    one = await desks(store)
    other = await desks(store) if store.shared else one
    async with one.client("2025-06-18-forms") as client:
        [session] = (await other.get("/console"))["explained"]["sessions"]
        assert (await other.post("/console/end", session=session["handle"])).json() == {"done": "ended"}
        assert (await other.post("/console/end", session=session["handle"])).status_code == 404

        async def refused() -> bool:
            try:
                await client.tools.list()
            except RpcError as error:
                return "Session not found" in error.message
            return False

        await until(refused)
        assert (await one.get("/console"))["explained"]["in_all"] == 0


async def test_a_call_of_a_wrapped_server_that_is_held_goes_on_when_its_question_is_cancelled(tmp_path: Path) -> None:
    plain = Plain(tmp_path)
    bridge = plain.bridge()
    app = bridge.asgi()
    desk = Desk(Console(app, app, Door(TOKEN)), bridge)
    async with app.lifespan(), connect(app, revision="2025-06-18", capabilities={}) as client:
        await client.request("tools/call", {"name": "close", "arguments": {"what": "it"}})
        assert app.counts is not None
        await app.counts.flush()
        shown = await desk.get("/console")
        assert shown["hour"]["held"] == 1
        [session] = shown["explained"]["sessions"]
        assert session["questions"][0]["held"] is True
        await desk.post("/console/cancel", session=session["handle"], question=session["questions"][0]["handle"])

        await plain.wrote("kept (cancel) it")
        assert plain.effects == ["began it", "kept (cancel) it"]
        await app.counts.flush()
        assert (await desk.get("/console"))["hour"]["held"] == 0


async def test_the_last_hour_is_that_of_all_nodes(desks: Serve, store: Store) -> None:
    one, other = await desks(store), await desks(store)
    for desk in (one, other):
        for kind in ("modern-forms", "modern", "2025-06-18-forms", "2025-06-18-chat"):
            async with desk.client(kind) as client:
                client.on_elicitation(lambda asked: {"action": "accept", "content": {"confirm": True}})
                if kind != "modern":
                    await client.tools.call("delete", {"what": "x"})
                else:
                    with pytest.raises(RpcError):
                        await client.tools.call("delete", {"what": "x"})
                    await client.tools.call("fail")
        await desk.app.counts.flush()  # type: ignore[attr-defined]
    hour = (await other.get("/console"))["hour"]
    totals = {name: sum(counts) for name, counts in hour["minutes"].items()}
    # A call in rounds or by chat runs twice; the one in the call's own stream once.
    assert totals == {"sessions": 4, "calls": 14, "rounds": 2, "pushed": 2, "chatted": 2, "refused": 2, "errors": 4}
    assert hour["nodes"] == 2
    assert all(len(counts) == 60 for counts in hour["minutes"].values())


async def test_nothing_is_counted_where_no_console_is_served() -> None:
    bridge = Bridge("plain")
    app = bridge.asgi()
    async with app.lifespan(), connect(app, revision="2025-06-18"):
        assert app.counts is None
        assert await bridge.store.scan("counts") == []
