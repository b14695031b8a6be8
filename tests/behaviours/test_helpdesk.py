"""The help desk, by every kind of client: each tool, prompt and resource asks what it has to, and acts once."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import pytest

from bridge import Bridge
from bridge.demo.app import HelpDeskApp
from bridge.demo.connecting import FLOW_SECONDS, MAX_ASKS, Flows
from bridge.demo.desk import Desk
from bridge.demo.effects import RESERVATION_SECONDS
from bridge.demo.helpdesk import make
from bridge.stores import Store
from bridge.testing import AsgiHttp, Asked, Client, HttpReply, RpcError, accept, cancel, connect, decline
from tests.conftest import Serve
from tests.wiretap import Tap, tap_asgi

behaviour = pytest.mark.behaviour

LINKS = {"elicitation": {"form": {}, "url": {}}}
CLIENTS: dict[str, dict[str, Any]] = {
    "modern": {"capabilities": LINKS},
    "push-2025-11-25": {"revision": "2025-11-25", "capabilities": LINKS},
    "push-2025-06-18": {"revision": "2025-06-18"},
    "chat-2025-11-25": {"revision": "2025-11-25", "capabilities": {}},
    "chat-2025-06-18": {"revision": "2025-06-18", "capabilities": {}},
    "chat-2025-03-26": {"revision": "2025-03-26"},
    "chat-2024-11-05": {"revision": "2024-11-05"},
}
ASKABLE = [name for name in CLIENTS if not name.startswith("chat")]
CHATTING = [name for name in CLIENTS if name.startswith("chat")]
BASE_URL = "http://desk.example:8000"
TICKED, UNTICKED = accept({"confirm": True}), accept({"confirm": False})


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Each kind of client in turn, as arguments of `connect`."""
    return CLIENTS[request.param]


FORMS_ONLY = {
    "forms-2025-11-25": {"revision": "2025-11-25", "capabilities": {"elicitation": {"form": {}}}},
    "forms-2025-06-18": CLIENTS["push-2025-06-18"],
}
OPENING = [
    *(pytest.param(about, id=name) for name, about in CLIENTS.items() if name != "push-2025-06-18"),
    *(pytest.param(about, id=name) for name, about in FORMS_ONLY.items()),
]
"""Each kind of client that can be sent to a page, by a link or in the chat."""


class Clock:
    """A clock that a test sets."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Case(NamedTuple):
    """One call, and all that is to come of it.

    Args:
        tool: what is called.
        arguments: with what.
        answers: what the user says, question by question.
        value: what the result holds of this; None where it is an error.
        effects: the history afterwards.
    """

    tool: str
    arguments: dict[str, Any]
    answers: list[dict[str, Any]]
    value: dict[str, Any] | None
    effects: list[str]


T2 = {"id": "T-2"}
BOTH = {"first": "T-1", "second": "T-3"}
FIRE, HIGH, GENERAL = accept({"title": "Fire"}), accept({"priority": "high"}), accept({"agent": "general"})
PAY = {"id": "T-2", "amount": 20}
RESERVED = "reserved 20 for T-2 (R-1)"
PROD = {"environment": "production"}
CASES = [
    Case("close_ticket", T2, [TICKED], {"closed": True}, ["closed T-2"]),
    Case("close_ticket", T2, [UNTICKED], {"closed": False}, []),
    Case("close_ticket", T2, [decline()], {"closed": False}, []),
    Case("close_ticket", T2, [cancel()], {"closed": False}, []),
    Case("delete_ticket", T2, [accept({"id": "T-2"})], {"deleted": True}, ["deleted T-2"]),
    Case("delete_ticket", T2, [accept({"id": "T-3"})], {"deleted": False}, []),
    Case("delete_ticket", T2, [decline()], {"deleted": False}, []),
    Case("assign_ticket", T2, [GENERAL], {"agent": "general"}, ["assigned T-2 to general"]),
    Case("assign_ticket", {**T2, "agent": "billing"}, [], {"agent": "billing"}, ["assigned T-2 to billing"]),
    Case("assign_ticket", T2, [cancel()], {"assigned": False}, []),
    Case("open_ticket", {}, [FIRE, HIGH, GENERAL], {"opened": True, "id": "T-5"}, ["opened T-5"]),
    Case("open_ticket", {}, [FIRE, HIGH, decline()], {"opened": False}, []),
    Case("rename_ticket", T2, [accept({"title": "Paid twice"})], {"title": "Paid twice"}, ["renamed T-2"]),
    Case("rename_ticket", T2, [decline()], {"renamed": False}, []),
    Case("merge_tickets", BOTH, [accept({"id": "T-3"}), accept({})], {"kept": "T-3"}, ["merged T-1 into T-3"]),
    Case(
        "merge_tickets",
        BOTH,
        [accept({"id": "T-1"}), accept({"note": "same link"})],
        {"kept": "T-1", "note": "same link"},
        ["merged T-3 into T-1: same link"],
    ),
    Case("merge_tickets", BOTH, [decline(), accept({})], {"merged": False}, []),
    Case("merge_tickets", {"first": "T-1", "second": "T-1"}, [], {"merged": False}, []),
    Case("refund", PAY, [TICKED], {"refunded": True}, [RESERVED, "refunded 20 for T-2 (R-1)"]),
    Case("refund", PAY, [UNTICKED], {"refunded": False}, [RESERVED, "released 20 for T-2 (R-1)"]),
    Case("refund", PAY, [cancel()], {"refunded": False}, [RESERVED, "released 20 for T-2 (R-1)"]),
    Case("deploy", PROD, [accept({"approve": True})], {**PROD, "deployed": True}, ["deployed to production"]),
    Case(
        "deploy",
        PROD,
        [accept({"approve": True, "note": "Friday"})],
        {**PROD, "deployed": True},
        ["deployed to production: Friday"],
    ),
    Case("deploy", PROD, [accept({"approve": False})], None, []),
    Case("deploy", PROD, [decline()], None, []),
    Case("deploy", PROD, [cancel()], None, []),
]
ASKING = {case.tool: case for case in CASES if case.answers}


def answering(*answers: dict[str, Any]) -> Callable[[Asked], dict[str, Any]]:
    """A handler that gives these answers in turn."""
    left = list(answers)
    return lambda asked: left.pop(0)


@behaviour("ASK-1", "ASK-4", "ASK-6", "ASK-7", "ASK-13", "ASK-17", "CHT-6", "PSH-3")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.tool}-{[each['action'] for each in case.answers]}")
async def test_a_tool_asks_what_it_has_to_and_acts_once(serve: Serve, client: dict[str, Any], case: Case) -> None:
    bridge = make()
    desk = Desk(bridge.store)
    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(answering(*case.answers))
        result = await mcp.tools.call(case.tool, case.arguments)
        assert len(mcp.asked) == len(case.answers)
    assert result.is_error == (case.value is None), result.text()
    if case.value is not None:
        assert result.json().items() >= case.value.items()
    assert await desk.history() == case.effects


@behaviour("CHT-1", "CHT-4")
async def test_every_tool_is_listed_and_the_reading_ones_show_the_desk(serve: Serve, client: dict[str, Any]) -> None:
    async with connect(await serve(make()), **client) as mcp:
        names = {tool["name"] for tool in await mcp.tools.list()}
        assert names - {"sendElicitationResult"} == {
            *ASKING, "list_tickets", "history", "outbox", "connect_account"
        }  # fmt: skip
        mcp.on_elicitation(answering(TICKED))
        await mcp.tools.call("close_ticket", {"id": "T-1"})
        assert [ticket["status"] for ticket in (await mcp.tools.call("list_tickets")).json()][:2] == ["closed", "open"]
        assert (await mcp.tools.call("history")).json() == ["closed T-1"]
        (mail,) = (await mcp.tools.call("outbox")).json()
        assert "Cannot log in" in mail
        assert "Unknown ticket T-9" in (await mcp.tools.call("close_ticket", {"id": "T-9"})).text()


@behaviour("ANS-2", "ASK-20")
@pytest.mark.parametrize("name", ASKABLE)
async def test_an_answer_that_does_not_fit_ends_the_call_and_changes_nothing(serve: Serve, name: str) -> None:
    bridge = make()
    desk = Desk(bridge.store)
    async with connect(await serve(bridge), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(answering(accept({"approve": True, "note": "x" * 201})))
        result = await mcp.tools.call("deploy", PROD)
    assert result.error_code == "INVALID_INPUT"
    assert "note" in result.text()
    assert await desk.history() == []


@behaviour("ASK-3", "MOD-8")
async def test_deploying_asks_under_a_key_of_its_own_and_a_refusal_is_an_error(serve: Serve) -> None:
    async with connect(await serve(make())) as mcp:
        params: dict[str, Any] = {"name": "deploy", "arguments": PROD}
        asked = await mcp.request("tools/call", params)
        form = asked["inputRequests"]["deployment-approval"]["params"]["requestedSchema"]
        assert form["required"] == ["approve"]
        assert form["properties"]["note"]["maxLength"] == 200
        answers = {"deployment-approval": decline()}
        again = {**params, "requestState": asked["requestState"], "inputResponses": answers}
        refused = await mcp.request("tools/call", again)
    assert refused["isError"] is True
    assert "structuredContent" not in refused
    assert "Nothing was deployed" in refused["content"][0]["text"]


@behaviour("MOD-15")
@pytest.mark.parametrize("tool", [*ASKING, "connect_account"])
async def test_a_modern_client_without_forms_or_links_is_told_and_nothing_is_done(serve: Serve, tool: str) -> None:
    clock = Clock()
    bridge = make(now=clock)
    desk = Desk(bridge.store, clock)
    arguments = ASKING[tool].arguments if tool in ASKING else {"provider": "mail"}
    async with connect(await serve(bridge), capabilities={}) as mcp:
        with pytest.raises(RpcError) as refused:
            await mcp.tools.call(tool, arguments)
    mode = "url" if tool == "connect_account" else "form"
    assert refused.value.code == -32021
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {mode: {}}}}
    clock.seconds += RESERVATION_SECONDS
    released = "released 20 for T-2 (R-1), as nobody agreed in time"
    assert await desk.history() == ([RESERVED, released] if tool == "refund" else [])


@behaviour("ASK-6")
async def test_money_put_aside_is_released_when_nobody_agrees_in_time(serve: Serve, client: dict[str, Any]) -> None:
    clock = Clock()
    bridge = make(now=clock)
    desk = Desk(bridge.store, clock)
    released = "released 20 for T-2 (R-1), as nobody agreed in time"

    def too_late(asked: Asked) -> dict[str, Any]:
        clock.seconds += RESERVATION_SECONDS
        return TICKED

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(too_late)
        result = await mcp.tools.call("refund", PAY)
        assert result.json()["refunded"] is False
        assert "too late" in result.json()["reason"]
        assert await desk.history() == [RESERVED, released]
        assert await desk.outbox() == []
        mcp.on_elicitation(answering(TICKED))
        assert (await mcp.tools.call("refund", PAY)).json()["refunded"] is True
    assert (await desk.history())[2:] == ["reserved 20 for T-2 (R-3)", "refunded 20 for T-2 (R-3)"]


@behaviour("CHT-12")
@pytest.mark.parametrize("name", CHATTING)
async def test_where_a_model_may_not_consent_only_harmless_tools_ask_through_the_chat(serve: Serve, name: str) -> None:
    bridge = make(chat_consent="deny")
    desk = Desk(bridge.store)
    async with connect(await serve(bridge), **CLIENTS[name]) as mcp:
        for tool, case in ASKING.items():
            result = await mcp.tools.call(tool, case.arguments)
            assert result.error_code == "ELICITATION_NOT_SUPPORTED"
            assert "chat_consent" in result.text()
        assert not mcp.asked
        await mcp.tools.call("connect_account", {"provider": "mail"})
        assert len(mcp.asked) == 1
    assert await desk.history() == [RESERVED]


# --- Connecting an account


class Page:
    """The user's browser."""

    def __init__(self, bridge: Bridge, tasks: anyio.abc.TaskGroup) -> None:
        self._app = HelpDeskApp(bridge)
        self._tasks = tasks

    async def get(self, url: str) -> HttpReply:
        return await self._request("GET", url)

    async def press(self, url: str, origin: str | None = BASE_URL) -> HttpReply:
        return await self._request("POST", url, **({} if origin is None else {"origin": origin}))

    async def _request(self, method: str, url: str, **headers: str) -> HttpReply:
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}" == BASE_URL
        http = AsgiHttp(self._app, self._tasks, parts.path)
        reply = await http.request(method, {"host": parts.netloc, **headers})
        while (chunk := await reply._next()) is not None:
            reply.raw += chunk
        return reply


@asynccontextmanager
async def browser(bridge: Bridge) -> AsyncIterator[Page]:
    async with anyio.create_task_group() as tasks:
        yield Page(bridge, tasks)
        tasks.cancel_scope.cancel()


def link(asked: Asked) -> str:
    """The link that the user is shown."""
    assert asked.url is not None
    return asked.url


@behaviour("ASK-9", "CHT-13", "ASK-6")
@pytest.mark.parametrize("client", OPENING)
async def test_an_account_is_connected_once_its_page_is_completed(
    serve: Serve, client: dict[str, Any], store: Store
) -> None:
    bridge = make(store=store, base_url=BASE_URL)
    desk = Desk(bridge.store)
    async with browser(bridge) as page, connect(await serve(bridge), **client) as mcp:

        async def complete(asked: Asked) -> dict[str, Any]:
            looked = await page.get(link(asked))
            assert looked.status == 200
            assert b"mail account" in looked.raw
            assert (await page.press(link(asked))).status == 303
            return accept()

        mcp.on_elicitation(complete)
        result = await mcp.tools.call("connect_account", {"provider": "mail"})
        assert result.json() == {"provider": "mail", "connected": True}
        assert len(mcp.asked) == 1
        assert (await page.get(link(mcp.asked[0]))).status == 404, "a flow is for one call"
    assert await desk.history() == ["connected mail"]


@behaviour("ASK-9", "ASK-4")
@pytest.mark.parametrize("client", OPENING)
async def test_while_the_page_is_open_the_tool_asks_again_and_an_accept_is_no_proof(
    serve: Serve, client: dict[str, Any]
) -> None:
    bridge = make(base_url=BASE_URL)
    desk = Desk(bridge.store)
    async with browser(bridge) as page, connect(await serve(bridge), **client) as mcp:

        async def complete_the_second_time(asked: Asked) -> dict[str, Any]:
            if len(mcp.asked) == 2:
                await page.press(link(asked))
            return accept()

        mcp.on_elicitation(complete_the_second_time)
        assert (await mcp.tools.call("connect_account", {"provider": "mail"})).json()["connected"] is True
        first, second = mcp.asked
        assert "still open" in second.message
        assert first.url == second.url, "the handle is looked up again"
        assert await desk.history() == ["connected mail"]

        mcp.on_elicitation(lambda asked: accept())
        result = await mcp.tools.call("connect_account", {"provider": "mail"})
        assert result.is_error
        assert "still open" in result.text()
        assert len(mcp.asked) == 2 + MAX_ASKS
        assert mcp.asked[-1].url != first.url
        assert (await page.press(link(mcp.asked[-1]))).status == 404
    assert await desk.history() == ["connected mail"]


@behaviour("ASK-9", "ASK-17")
@pytest.mark.parametrize("client", OPENING)
async def test_a_page_that_is_completed_does_not_make_a_no_a_yes(serve: Serve, client: dict[str, Any]) -> None:
    bridge = make(base_url=BASE_URL)
    desk = Desk(bridge.store)
    async with browser(bridge) as page, connect(await serve(bridge), **client) as mcp:

        async def complete_and_decline(asked: Asked) -> dict[str, Any]:
            if len(mcp.asked) == 1:
                return accept()
            await page.press(link(asked))
            return decline()

        mcp.on_elicitation(complete_and_decline)
        result = await mcp.tools.call("connect_account", {"provider": "payments"})
    assert result.is_error
    assert "(decline)" in result.text()
    assert await desk.history() == []


@behaviour("ASK-9")
@pytest.mark.parametrize("client", OPENING)
async def test_an_expired_page_is_said_to_be_expired(serve: Serve, client: dict[str, Any]) -> None:
    bridge = make(base_url=BASE_URL)
    desk = Desk(bridge.store)

    async def forget(asked: Asked) -> dict[str, Any]:
        await Flows(bridge.store).end(link(asked).rpartition("/")[2])
        return accept()

    async with connect(await serve(bridge), **client) as mcp:
        mcp.on_elicitation(forget)
        result = await mcp.tools.call("connect_account", {"provider": "mail"})
    assert result.is_error
    assert "expired" in result.text()
    assert await desk.history() == []


@behaviour("PSH-8")
async def test_a_client_that_opens_links_is_told_when_the_page_is_done(serve: Serve) -> None:
    bridge = make(base_url=BASE_URL)
    async with browser(bridge) as page, connect(await serve(bridge), **CLIENTS["push-2025-11-25"]) as mcp:
        stream = await mcp.raw.get()

        async def complete(asked: Asked) -> dict[str, Any]:
            await page.press(link(asked))
            return accept()

        mcp.on_elicitation(complete)
        await mcp.tools.call("connect_account", {"provider": "calendar"})
        (asked,) = mcp.asked
        with anyio.fail_after(5):
            async for message in stream.messages():
                assert message["method"] == "notifications/elicitation/complete"
                assert message["params"] == {"elicitationId": asked.params["elicitationId"]}
                break


async def test_only_the_button_of_the_page_itself_completes_it() -> None:
    bridge = make(base_url=BASE_URL)
    flows = Flows(bridge.store)
    handle = await flows.begin("mail")
    url = f"{BASE_URL}/connect/{handle}"
    async with browser(bridge) as page:
        for origin in (None, "null", "https://evil.example", "http://desk.example"):
            assert (await page.press(url, origin)).status == 403
        looked = await page.get(url)
        assert b"<button>" in looked.raw
        assert looked.headers["cache-control"] == "no-store"
        assert "form-action 'self'" in looked.headers["content-security-policy"]
        assert await flows.state(handle) == "open"
        assert (await page.press(url)).status == 303
        assert (await page.press(url)).status == 303, "a second press changes nothing"
        assert await flows.state(handle) == "done"
        assert b"<button>" not in (await page.get(url)).raw
        for unknown in ("x" * 32, "x", "%00", "../x"):
            assert (await page.get(f"{BASE_URL}/connect/{unknown}")).status == 404
            assert (await page.press(f"{BASE_URL}/connect/{unknown}")).status == 404
    assert FLOW_SECONDS > 0


async def test_the_app_serves_the_bridge_beside_its_page_and_drains_it(tap: Tap) -> None:
    app = HelpDeskApp(make())
    async with connect(tap_asgi(app, tap), revision="2025-11-25") as mcp:
        assert (await mcp.tools.call("history")).json() == []
        stream = await mcp.raw.get()
        await app.drain()
        with anyio.fail_after(5):
            await stream.closed()
        await app.stop()


# --- Prompts and resources


async def ask_through(mcp: Client, method: str, **params: Any) -> dict[str, Any]:
    """Get a prompt or read a resource, and answer what it asks."""
    result = await mcp.request(method, params)
    while result.get("resultType") == "input_required":
        asked = result["inputRequests"].items()
        responses = {key: await mcp._answer(each["params"]) for key, each in asked}
        again = {**params, "inputResponses": responses, "requestState": result["requestState"]}
        result = await mcp.request(method, again)
    return result


@behaviour("ASK-19")
@pytest.mark.parametrize("name", ASKABLE)
async def test_a_prompt_and_a_resource_ask(serve: Serve, name: str) -> None:
    clock = Clock()
    bridge = make(now=clock)
    desk = Desk(bridge.store, clock)
    await desk.close("T-1")
    clock.seconds += 7200
    await desk.assign("T-2", "billing")
    async with connect(await serve(bridge), **CLIENTS[name]) as mcp:
        mcp.on_elicitation(
            answering(accept({"first": "normal"}), accept({"period": "hour"}), accept({"period": "day"}))
        )
        prompt = await ask_through(mcp, "prompts/get", name="triage")
        text = prompt["messages"][0]["content"]["text"]
        assert [line.split()[1] for line in text.splitlines()[2:]] == ["T-2", "T-3", "T-4"]
        report = await ask_through(mcp, "resources/read", uri="desk://report")
        assert report["contents"][0]["text"] == "# The last hour\n\n- assigned T-2 to billing"
        report = await ask_through(mcp, "resources/read", uri="desk://report")
        assert "- closed T-1" in report["contents"][0]["text"]
        assert [asked.message for asked in mcp.asked] == [
            "Which priority should come first?",
            "What period should the report cover?",
            "What period should the report cover?",
        ]


@behaviour("ASK-19")
@pytest.mark.parametrize("name", ASKABLE)
async def test_a_prompt_and_a_resource_take_a_no(serve: Serve, name: str) -> None:
    async with connect(await serve(make()), **CLIENTS[name]) as mcp:
        for method, params in (("prompts/get", {"name": "triage"}), ("resources/read", {"uri": "desk://report"})):
            with pytest.raises(RpcError) as refused:
                await ask_through(mcp, method, **params)
            assert refused.value.code == -32602
            assert "(decline)" in refused.value.message


@behaviour("ASK-19")
@pytest.mark.parametrize("name", CHATTING)
async def test_on_chat_a_prompt_and_a_resource_say_why_they_cannot_ask(serve: Serve, name: str) -> None:
    async with connect(await serve(make()), **CLIENTS[name]) as mcp:
        for method, params in (("prompts/get", {"name": "triage"}), ("resources/read", {"uri": "desk://report"})):
            with pytest.raises(RpcError) as refused:
                await mcp.request(method, params)
            assert refused.value.code == -32603
            assert "can be asked only while it calls a tool" in refused.value.message


async def test_plain_prompts_resources_and_completion_serve_every_client(serve: Serve, client: dict[str, Any]) -> None:
    async with connect(await serve(make()), **client) as mcp:
        prompts = (await mcp.request("prompts/list", {}))["prompts"]
        assert [prompt["name"] for prompt in prompts] == ["triage", "summarize_ticket"]
        assert [each["name"] for each in prompts[1]["arguments"]] == ["id"]
        summary = await mcp.request("prompts/get", {"name": "summarize_ticket", "arguments": {"id": "T-2"}})
        assert "Invoice total is wrong" in summary["messages"][0]["content"]["text"]

        resources = (await mcp.request("resources/list", {}))["resources"]
        assert [resource["uri"] for resource in resources] == ["desk://tickets", "desk://report"]
        (template,) = (await mcp.request("resources/templates/list", {}))["resourceTemplates"]
        assert template["uriTemplate"] == "desk://tickets/{id}"
        for uri in ("desk://tickets", "desk://tickets/T-3"):
            (contents,) = (await mcp.request("resources/read", {"uri": uri}))["contents"]
            assert "Login link expired" in contents["text"]
        with pytest.raises(RpcError, match="Unknown ticket T-9"):
            await mcp.request("resources/read", {"uri": "desk://tickets/T-9"})

        for reference in (
            {"type": "ref/prompt", "name": "summarize_ticket"},
            {"type": "ref/resource", "uri": "desk://tickets/{id}"},
        ):
            asked = {"ref": reference, "argument": {"name": "id", "value": "t-"}}
            found = await mcp.request("completion/complete", asked)
            assert found["completion"]["values"] == ["T-1", "T-2", "T-3", "T-4"]
        assert not mcp.asked
