"""A modern server behind the bridge, that returns its questions: asked of every client, its state inside our seal."""

from collections import Counter
from typing import Any

import pytest

from bridge import Bridge
from bridge.testing import accept, connect, decline
from tests.conftest import Serve
from tests.upstreams.web import Handle, http_server

behaviour = pytest.mark.behaviour

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
ROOTS = {"roots": [{"uri": "file:///w"}]}
MORE = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}


def elicits(message: str) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": FORM}}


SAMPLING = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Sum up"}}], "maxTokens": 9},
}


def text(content: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], "resultType": "complete"}


def required(requests: dict[str, Any] | None = None, state: str | None = None) -> dict[str, Any]:
    result: dict[str, Any] = {"resultType": "input_required"}
    if requests is not None:
        result["inputRequests"] = requests
    return result if state is None else {**result, "requestState": state}


def two_rounds(state: str | None, given: dict[str, Any]) -> dict[str, Any]:
    if state is None:
        return required({"user_name": elicits("Who?")}, "first")
    if state == "first":
        assert set(given) == {"user_name"}
        return required({"user_name": elicits("Really?")}, f"second {given['user_name']['content']['name']}")
    return text(f"{state}: {given['user_name']}")


def all_at_once(state: str | None, given: dict[str, Any]) -> dict[str, Any]:
    if not given:
        return required({"a": elicits("Who?"), "b": SAMPLING, "c": {"method": "roots/list"}})
    return text(str([given["a"]["content"], given["b"]["model"], given["c"]["roots"]]))


def patient(state: str | None, given: dict[str, Any]) -> dict[str, Any]:
    return text("at last") if state == "s2" else required(state="s2" if state == "s1" else "s1")


RETURNS: dict[str, Any] = {
    "two_rounds": two_rounds,
    "all_at_once": all_at_once,
    "patient": patient,
    "endless": lambda state, given: required(state="again"),
    "novel": lambda state, given: {"resultType": "task", "task": {}},
}


def tools(calls: Counter[str]) -> Handle:
    """A server whose tools are named by what they return."""

    def call(params: dict[str, Any]) -> dict[str, Any]:
        calls[params["name"]] += 1
        return RETURNS[params["name"]](params.get("requestState"), params.get("inputResponses", {}))

    listed = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in RETURNS]
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "modern", "version": "1"}}
    results = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "resultType": "complete", **about},
        "tools/list": {"tools": listed, "resultType": "complete", "ttlMs": 1, "cacheScope": "public"},
    }

    def handle(message: dict[str, Any]) -> tuple[int, Any]:
        method = message["method"]
        if method == "tools/call":
            return 200, {"jsonrpc": "2.0", "id": message["id"], "result": call(message["params"])}
        if method in results:
            return 200, {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
        return 404, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "none"}}

    return handle


@pytest.fixture
def calls() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
@behaviour("UPS-3", "LEG-5")
async def test_questions_that_are_returned_are_asked_of_every_client(
    serve: Serve, calls: Counter[str], revision: str
) -> None:
    async with http_server(tools(calls)) as url, connect(await serve(Bridge.wrap(url)), revision=revision) as mcp:
        said = [accept({"name": "Ada"}), decline()]
        mcp.on_elicitation(lambda asked: said.pop(0))
        assert (await mcp.tools.call("two_rounds")).text() == "second Ada: {'action': 'decline'}"
        assert [asked.message for asked in mcp.asked] == ["Who?", "Really?"]
    assert calls["two_rounds"] == 3


@behaviour("UPS-3", "MOD-5")
async def test_the_servers_own_keys_reach_a_modern_client_and_its_state_does_not(
    serve: Serve, calls: Counter[str]
) -> None:
    call = {"name": "two_rounds", "arguments": {}}
    async with http_server(tools(calls)) as url, connect(await serve(Bridge.wrap(url))) as mcp:
        first = await mcp.request("tools/call", call)
        assert list(first["inputRequests"]) == ["user_name"]
        assert "first" not in first["requestState"]
        again = {**call, "inputResponses": {"user_name": accept({"name": "Ada"})}, "requestState": "first"}
        refused = await mcp.raw.request({"method": "tools/call", "params": again})
        assert refused["error"]["code"] == -32602
    assert calls["two_rounds"] == 1


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
@behaviour("UPS-3", "UPS-4", "ASK-18")
async def test_sampling_and_roots_of_a_modern_server_are_asked_too(
    serve: Serve, calls: Counter[str], revision: str
) -> None:
    async with (
        http_server(tools(calls)) as url,
        connect(await serve(Bridge.wrap(url)), revision=revision, capabilities=MORE) as mcp,
    ):
        mcp.on_elicitation(lambda asked: accept({"name": "Ada"}))
        mcp.on_request("sampling/createMessage", lambda params: SAMPLED)
        mcp.on_request("roots/list", lambda params: ROOTS)
        answered = (await mcp.tools.call("all_at_once")).text()
        assert answered == str([{"name": "Ada"}, "m", ROOTS["roots"]])


@behaviour("MOD-16")
async def test_a_state_without_questions_is_never_sent_on_and_the_call_made_again_so_often(
    serve: Serve, calls: Counter[str]
) -> None:
    async with http_server(tools(calls)) as url, connect(await serve(Bridge.wrap(url))) as mcp:
        assert (await mcp.tools.call("patient")).text() == "at last"
        endless = await mcp.tools.call("endless")
        assert endless.is_error
        assert "again and again" in endless.text()
    assert calls["patient"] == 3
    assert calls["endless"] == 10


@behaviour("UPS-13")
async def test_a_result_of_an_unknown_type_is_an_error_that_names_it(serve: Serve, calls: Counter[str]) -> None:
    async with http_server(tools(calls)) as url, connect(await serve(Bridge.wrap(url))) as mcp:
        novel = await mcp.tools.call("novel")
        assert novel.is_error
        assert "'task'" in novel.text()
    assert calls["novel"] == 1
