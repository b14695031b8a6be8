"""Who is asking: the hook that says so, and what is bound to its answer."""

from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from bridge import Bridge, Context, Denied, Principal
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.stores import Store
from bridge.testing import HttpReply, accept, connect
from tests.conftest import Serve

behaviour = pytest.mark.behaviour

REVISIONS = ("2025-06-18", "2026-07-28")
SECONDS = 10
BROKEN = "Invalid or expired requestState; send the call again without it"
NOT_FOUND = {"code": -32001, "message": "Session not found"}


class Name(BaseModel):
    name: str


def bearer(scope: Any) -> Principal | Denied | None:
    """`Bearer <user>.<any token>`; nobody without it."""
    value = dict(scope["headers"]).get(b"authorization", b"").decode()
    if not value:
        return None
    user, _, _ = value.removeprefix("Bearer ").partition(".")
    if user == "denied":
        return Denied(401, 'Bearer resource_metadata="https://x/.well-known/y"', "Token expired")
    if user == "forbidden":
        return Denied(403, 'Bearer error="insufficient_scope"', "The scope mcp is needed")
    return Principal("https://issuer", user)


async def bearer_async(scope: Any) -> Principal | Denied | None:
    await anyio.lowlevel.checkpoint()
    return bearer(scope)


def as_user(name: str, token: str = "t1") -> dict[str, str]:
    return {"authorization": f"Bearer {name}.{token}"}


def serving(authenticate: Any = bearer, store: Store | None = None) -> Bridge:
    bridge = Bridge("auth", elicitation=True, authenticate=authenticate, store=store)

    @bridge.tool
    async def who(ctx: Context) -> str:
        return f"{ctx.client.principal.issuer}|{ctx.client.principal.subject}"

    @bridge.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return answer.content.name if answer.content else answer.status

    return bridge


async def body_of(reply: HttpReply) -> Any:
    with anyio.fail_after(SECONDS):
        return await reply.json()


@behaviour("AUT-1")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("authenticate", [bearer, bearer_async])
async def test_a_tool_sees_the_principal_that_the_hook_named(serve: Serve, revision: str, authenticate: Any) -> None:
    app = await serve(serving(authenticate))
    async with connect(app, revision=revision, headers=as_user("ada")) as mcp:
        assert (await mcp.tools.call("who")).text() == "https://issuer|ada"
    async with connect(app, revision=revision) as mcp:
        assert (await mcp.tools.call("who")).text() == "|"


@behaviour("AUT-1")
async def test_the_hook_gets_the_scope(serve: Serve) -> None:
    scopes: list[Any] = []
    async with connect(await serve(serving(lambda scope: scopes.append(scope))), headers={"x-mine": "1"}) as mcp:
        await mcp.tools.list()
    assert scopes[-1]["type"] == "http"
    assert scopes[-1]["path"] == "/mcp"
    assert (b"x-mine", b"1") in scopes[-1]["headers"]


@behaviour("AUT-1")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("authenticate", [bearer, bearer_async])
async def test_a_denial_is_a_401_with_its_challenge(serve: Serve, revision: str, authenticate: Any) -> None:
    async with connect(await serve(serving(authenticate)), revision=revision, headers=as_user("ada")) as mcp:
        message = mcp._completed({"method": "tools/list"})
        reply = await mcp.raw.post(message, as_user("denied"))
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == 'Bearer resource_metadata="https://x/.well-known/y"'
        assert (await body_of(reply))["error"]["message"] == "Token expired"
        assert (await mcp.raw.post(b"not json", as_user("denied"))).status == 401, "before anything is read"


@behaviour("AUT-1")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_denial_may_be_a_403(serve: Serve, revision: str) -> None:
    async with connect(await serve(serving()), revision=revision, headers=as_user("ada")) as mcp:
        reply = await mcp.raw.post(mcp._completed({"method": "tools/list"}), as_user("forbidden"))
        assert reply.status == 403
        assert (await body_of(reply))["error"]["message"] == "The scope mcp is needed"


@behaviour("AUT-1")
@pytest.mark.xfail(strict=True, reason="http.py _who: the challenge is sent with 401 only")
async def test_a_403_carries_the_challenge_that_it_was_given(serve: Serve) -> None:
    async with connect(await serve(serving()), headers=as_user("ada")) as mcp:
        reply = await mcp.raw.post(mcp._completed({"method": "tools/list"}), as_user("forbidden"))
        assert reply.headers.get("www-authenticate") == 'Bearer error="insufficient_scope"'


@behaviour("AUT-1")
async def test_get_and_delete_are_denied_too(serve: Serve) -> None:
    async with connect(await serve(serving()), revision="2025-06-18", headers=as_user("ada")) as mcp:
        mcp._extra_headers.update(as_user("denied"))
        assert (await mcp.raw.get()).status == 401
        assert (await mcp.raw.delete()).status == 401
        mcp._extra_headers.update(as_user("ada"))
        assert (await mcp.tools.call("who")).text() == "https://issuer|ada"


@behaviour("AUT-1", "LEG-3")
@pytest.mark.parametrize("intruder", ["bob", "ad", "ada2", None])
async def test_another_s_session_is_an_unknown_session(serve: Serve, store: Store, intruder: str | None) -> None:
    app = await serve(serving(store=store))
    async with connect(app, revision="2025-06-18", headers=as_user("ada")) as mcp:
        async with connect(app, revision="2025-06-18", headers={} if intruder is None else as_user(intruder)) as other:
            answers = []
            for session_id in (mcp.session_id, "A" * 32):
                other.session_id = session_id
                ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
                notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                replies = [await other.raw.post(ping), await other.raw.post(notification)]
                replies += [await other.raw.get(), await other.raw.delete()]
                answers.append([(reply.status, reply.headers, await body_of(reply)) for reply in replies])
            assert answers[0] == answers[1], "the same words for foreign and unknown"
            assert [(status, body["error"]) for status, _, body in answers[0]] == [(404, NOT_FOUND)] * 4
            assert answers[0][0][2]["id"] == "p"
        assert (await mcp.tools.call("who")).text() == "https://issuer|ada"


@behaviour("AUT-1")
async def test_a_session_that_nobody_opened_is_not_found_by_a_principal(serve: Serve, store: Store) -> None:
    app = await serve(serving(store=store))
    async with connect(app, revision="2025-06-18") as mcp:
        reply = await mcp.raw.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, as_user("ada"))
        assert (reply.status, (await body_of(reply))["error"]) == (404, NOT_FOUND)


@behaviour("AUT-1", "PSH-1")
async def test_another_s_answer_reaches_no_question(serve: Serve) -> None:
    app = await serve(serving())
    async with (
        connect(app, revision="2025-06-18", headers=as_user("ada")) as mcp,
        connect(app, revision="2025-06-18", headers=as_user("bob")) as other,
    ):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": {}}}
        call = await mcp.raw.post(message)
        messages = call.messages()
        question = await anext(messages)
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": accept({"name": "Mallory"})}
        assert (await other.raw.post(answer)).status == 202
        other.session_id = mcp.session_id
        assert (await other.raw.post(answer)).status == 404
        mine = {"jsonrpc": "2.0", "id": question["id"], "result": accept({"name": "Ada"})}
        assert (await mcp.raw.post(mine)).status == 202
        with anyio.fail_after(SECONDS):
            assert (await anext(messages))["result"]["content"][0]["text"] == "Ada"


@behaviour("AUT-1", "MOD-5")
@pytest.mark.parametrize("intruder", ["bob", None])
async def test_another_s_request_state_is_refused(serve: Serve, store: Store, intruder: str | None) -> None:
    app = await serve(serving(store=store))
    params: Any = {"name": "ask", "arguments": {}}
    async with (
        connect(app, headers=as_user("ada")) as mcp,
        connect(app, headers={} if intruder is None else as_user(intruder)) as other,
        connect(app, headers=as_user("ada", "refreshed")) as refreshed,
    ):
        asked = await mcp.request("tools/call", params)
        assert asked["resultType"] == "input_required"
        responses = {key: accept({"name": "x"}) for key in asked["inputRequests"]}
        retry = {**params, "requestState": asked["requestState"], "inputResponses": responses}
        reply = await other.raw.post(other._completed({"id": 1, "method": "tools/call", "params": retry}))
        assert reply.status == 400
        error = (await body_of(reply))["error"]
        assert (error["code"], error["message"]) == (-32602, BROKEN)
        result = await refreshed.request("tools/call", retry)
        assert result["content"][0]["text"] == "x", "a refreshed token of the same subject keeps it"
        again = await other.raw.request({"id": 2, "method": "tools/call", "params": retry})
        assert again["error"]["message"] == BROKEN, "nor is its stored result another's"


@behaviour("AUT-1", "CHT-7")
@pytest.mark.parametrize("intruder", ["bob", "ada", None])
async def test_another_s_pending_chat_call_is_unknown(serve: Serve, store: Store, intruder: str | None) -> None:
    app = await serve(serving(store=store))
    async with (
        connect(app, revision="2025-03-26", headers=as_user("ada")) as mcp,
        connect(app, revision="2025-03-26", headers={} if intruder is None else as_user(intruder)) as other,
    ):
        asked = await mcp.request("tools/call", {"name": "ask", "arguments": {}})
        elicit_id = asked["_meta"][PENDING]["elicitId"]

        def answer(identity: str) -> Any:
            arguments = {"elicitId": identity, **accept({"name": "x"})}
            return {"name": FALLBACK_TOOL_NAME, "arguments": arguments}

        foreign = await other.request("tools/call", answer(elicit_id))
        unknown = await other.request("tools/call", answer("B" * 24))
        assert foreign["isError"] is True
        text = foreign["content"][0]["text"]
        assert text.startswith(f"No pending elicitation found for ID: {elicit_id}")
        assert text.replace(elicit_id, "B" * 24) == unknown["content"][0]["text"]
        mine = await mcp.request("tools/call", answer(elicit_id))
        assert mine["content"][0]["text"] == "x", "and it is not used up"


@behaviour("AUT-1")
async def test_a_refreshed_token_of_the_same_subject_keeps_everything(serve: Serve, store: Store) -> None:
    app = await serve(serving(store=store))
    async with connect(app, revision="2025-03-26", headers=as_user("ada", "one")) as mcp:
        asked = await mcp.request("tools/call", {"name": "ask", "arguments": {}})
        mcp._extra_headers.update(as_user("ada", "two"))
        assert (await mcp.tools.call("who")).text() == "https://issuer|ada"
        arguments = {"elicitId": asked["_meta"][PENDING]["elicitId"], **accept({"name": "x"})}
        result = await mcp.request("tools/call", {"name": FALLBACK_TOOL_NAME, "arguments": arguments})
        assert result["content"][0]["text"] == "x"
    async with connect(app, revision="2025-06-18", headers=as_user("ada", "one")) as mcp:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": {}}}
        messages = (await mcp.raw.post(message)).messages()
        question = await anext(messages)
        mcp._extra_headers.update(as_user("ada", "two"))
        await mcp.raw.post({"jsonrpc": "2.0", "id": question["id"], "result": accept({"name": "Ada"})})
        with anyio.fail_after(SECONDS):
            assert (await anext(messages))["result"]["content"][0]["text"] == "Ada"


PAIRS = [
    (Principal("a", "b"), Principal("b", "a")),
    (Principal("a:b", "c"), Principal("a", "b:c")),
    (Principal("1:a", "b"), Principal("a", "b")),
    (Principal("https://one", "ada"), Principal("https://two", "ada")),
    (Principal("i", "\u00e9"), Principal("i", "e\u0301")),
    (Principal("i", ""), Principal("i", " ")),
]


async def found_by(serve: Serve, one: Principal, two: Principal) -> int:
    """The HTTP status that `two` gets on a session of `one`."""

    def either(scope: Any) -> Principal:
        return one if (b"x-who", b"one") in scope["headers"] else two

    app = await serve(serving(either))
    async with connect(app, revision="2025-06-18", headers={"x-who": "one"}) as mcp:
        return (await mcp.raw.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"x-who": "two"})).status


@behaviour("AUT-1")
@pytest.mark.parametrize("pair", PAIRS, ids=repr)
async def test_principals_that_look_alike_are_two(serve: Serve, pair: tuple[Principal, Principal]) -> None:
    assert await found_by(serve, *pair) == 404
    assert await found_by(serve, pair[0], pair[0]) == 200


@behaviour("AUT-1")
@pytest.mark.xfail(strict=True, reason="clients.py Principal.name: without an issuer everybody is anonymous")
async def test_principals_without_an_issuer_are_two(serve: Serve) -> None:
    assert await found_by(serve, Principal("", "ada"), Principal("", "bob")) == 404


@behaviour("AUT-1")
async def test_a_hook_that_fails_lets_nobody_in(serve: Serve) -> None:
    failing = False

    def hook(scope: Any) -> Principal:
        if failing:
            raise RuntimeError("the identity provider is away")
        return Principal("i", "ada")

    app = await serve(serving(hook))
    faults: list[Exception] = []
    statuses: list[int] = []

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        async def seen(event: Any) -> None:
            if event["type"] == "http.response.start":
                statuses.append(event["status"])
            await send(event)

        try:
            await app(scope, receive, seen)
        except RuntimeError as fault:
            faults.append(fault)  # what an ASGI server answers with 500

    async with connect(guarded, revision="2025-06-18") as mcp:
        failing = True
        statuses.clear()
        await mcp.raw.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await mcp.raw.delete()
        assert all(status >= 400 for status in statuses)
        assert len(faults) + len(statuses) == 2
        failing = False
        assert (await mcp.tools.call("who")).text() == "i|ada"
