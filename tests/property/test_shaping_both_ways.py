"""Whatever one revision allows, as every other has it: allowed there, and nothing changes when it is shaped again.

The messages come from the published schemas, of servers of every revision, for clients of every revision.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.asking.checking import check_reply
from bridge.asking.dialects import request_params
from bridge.asking.question import Question, Reply
from bridge.protocol.messages import INVALID_PARAMS
from bridge.protocol.revisions import LEGACY, MODERN, REVISIONS, Era, Revision
from bridge.protocol.shaping import (
    modern_error_code,
    modern_result,
    shape_capabilities,
    shape_definition,
    shape_error_code,
    shape_info,
    shape_progress,
    shape_result,
    without_modern_fields,
)
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.relaying import Relayed, relay
from tests.property.from_schemas import drawn
from tests.wiretap import Tap
from tests.wiretap.schemas import SPEC_FOLDER

pytestmark = pytest.mark.skipif(SPEC_FOLDER is None, reason="the published schemas are not beside this checkout")
behaviour = pytest.mark.behaviour
target = pytest.mark.parametrize("target", REVISIONS.values(), ids=lambda revision: revision.name)
Case = dict[str, Any]

SOURCES = st.sampled_from(list(REVISIONS))
INFO = {"name": "server", "version": "1"}
KINDS = {
    "tools": ("Tool", "tools/list"),
    "prompts": ("Prompt", "prompts/list"),
    "resources": ("Resource", "resources/list"),
    "resourceTemplates": ("ResourceTemplate", "resources/templates/list"),
}
RESULTS = {"tools/call": "CallToolResult", "prompts/get": "GetPromptResult", "resources/read": "ReadResourceResult"}
CACHE = {"ttlMs": 0, "cacheScope": "private"}


def check(message: Case, revision: Revision, method: str | None = None, direction: Any = "server") -> None:
    """Hold a message against a revision."""
    tap = Tap()
    tap.check({"jsonrpc": "2.0", "id": 1, **message}, revision=revision.name, method=method, direction=direction)
    tap.assert_clean()


def finished(result: Case, revision: Revision, *, cached: bool = False) -> Case:
    """A result as it leaves under a revision."""
    if revision.era is Era.MODERN:
        return modern_result({**result, **(CACHE if cached else {})}, INFO)
    return without_modern_fields(result)


@behaviour("LEG-10")
@target
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_definition_of_any_revision(target: Revision, kind: str, data: st.DataObject) -> None:
    name, method = KINDS[kind]
    definition = data.draw(drawn(data.draw(SOURCES), name))
    shaped = shape_definition(kind, definition, target)
    check({"result": finished({kind: [shaped]}, target, cached=True)}, target, method)
    assert shape_definition(kind, shaped, target) == shaped


@behaviour("LEG-10", "LEG-5", "MOD-2")
@target
@pytest.mark.parametrize("method", RESULTS)
@given(data=st.data())
def test_a_result_of_any_revision(target: Revision, method: str, data: st.DataObject) -> None:
    result = data.draw(drawn(data.draw(SOURCES), RESULTS[method]))
    result.pop("resultType", None)  # read before: it decides what a result is
    shaped = finished(shape_result(result, target), target, cached=method == "resources/read")
    check({"result": shaped}, target, method)
    assert finished(shape_result(shaped, target), target, cached=method == "resources/read") == shaped
    for name in ("content", "messages", "contents"):
        assert len(shaped.get(name, ())) == len(result.get(name, ())), "nothing is left out without a word"


@behaviour("LEG-10")
@target
@given(data=st.data())
def test_what_a_server_of_any_revision_says_of_itself(target: Revision, data: st.DataObject) -> None:
    source = data.draw(SOURCES)
    info = shape_info(data.draw(drawn(source, "Implementation")), target)
    capabilities = shape_capabilities(data.draw(drawn(source, "ServerCapabilities")), target)
    assert shape_info(info, target) == info
    assert shape_capabilities(capabilities, target) == capabilities
    if target.era is Era.LEGACY:
        said = {"protocolVersion": target.name, "capabilities": capabilities, "serverInfo": info}
        check({"result": said}, target, "initialize")
    else:
        found = {"supportedVersions": [target.name], "capabilities": capabilities}
        check({"result": modern_result({**found, **CACHE}, info)}, target, "server/discover")


@behaviour("LEG-10")
@target
@given(data=st.data())
def test_progress_of_any_revision(target: Revision, data: st.DataObject) -> None:
    params = data.draw(drawn(data.draw(SOURCES), "ProgressNotification"))["params"]
    shaped = shape_progress({name: value for name, value in params.items() if name != "_meta"}, target)
    tap = Tap()
    message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": shaped}
    tap.check(message, revision=target.name, method=None)
    tap.assert_clean()
    assert shape_progress(shaped, target) == shaped


CODES = st.sampled_from([-32700, -32600, -32601, -32602, -32603, -32002, -32042, -32001, -32000, -1, 0, 7])
CODES |= st.integers(-32099, -32000) | st.integers(-40000, 40000)


@behaviour("UPS-8", "LEG-10")
@target
@given(code=CODES, method=st.sampled_from(list(RESULTS)), uri=st.booleans())
def test_an_error_of_any_code(target: Revision, code: int, method: str, uri: bool) -> None:
    data = {"uri": "a:b"} if uri else None

    def shape(code: int) -> int:
        if target.era is Era.MODERN:
            return modern_error_code(code)
        return shape_error_code(method, code, data)

    shaped = shape(code)
    assert shape(shaped) == shaped
    if target.era is Era.LEGACY:
        assert shaped == (-32002 if method == "resources/read" and code == INVALID_PARAMS and uri else code)
    elif shaped not in (-32020, -32021, -32022):
        check({"error": {"code": shaped, "message": "no", **({"data": data} if data else {})}}, target, method)


FORMS = [revision for revision in REVISIONS.values() if revision.form_elicitation]
showing = pytest.mark.parametrize("target", FORMS, ids=lambda revision: revision.name)


def asked(question: Question, revision: Revision) -> Case:
    """A question as it leaves under a revision: the request, or the result that holds it."""
    params = request_params(question, revision)
    request = {"method": question.method, "params": params} if params else {"method": question.method}
    if revision.era is Era.LEGACY:
        check(request, revision)
    else:
        result = modern_result({"inputRequests": {"key": request}, "requestState": "s"}, INFO, kind="input_required")
        check({"result": result}, revision, "tools/call")
    return params


def relayed(method: str, params: Case) -> Relayed | None:
    """The question; None where it is refused."""
    found = relay(method, params, link="l")
    assert isinstance(found, Relayed | Failed)
    return found if isinstance(found, Relayed) else None


@behaviour("ANS-9", "UPS-3")
@showing
@given(data=st.data())
def test_a_form_of_any_revision(target: Revision, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([revision.name for revision in FORMS]))
    params = data.draw(drawn(source, "ElicitRequest"))["params"]
    found = relayed("elicitation/create", params)
    if found is None or (found.asked.url is not None and not target.url_elicitation):
        return
    shown = asked(found.asked.question("key", "path", 0), target)
    again = relayed("elicitation/create", shown)
    assert again is not None
    twice = asked(again.asked.question("key", "path", 0), target)
    assert {**twice, "elicitationId": 0} == {**shown, "elicitationId": 0}


SAMPLED = [name for name in REVISIONS if REVISIONS[name].era is Era.LEGACY]


@behaviour("ASK-18", "LEG-10")
@target
@given(data=st.data())
def test_what_is_sampled_of_any_revision(target: Revision, data: st.DataObject) -> None:
    params = data.draw(drawn(data.draw(SOURCES), "CreateMessageRequest"))["params"]
    found = relayed("sampling/createMessage", params)
    assert found is not None
    shown = asked(found.asked.question("key", "path", 0), target)
    again = relayed("sampling/createMessage", shown)
    assert again is not None
    assert asked(again.asked.question("key", "path", 0), target) == shown


@behaviour("ASK-18", "UPS-3")
@pytest.mark.parametrize("source", LEGACY.values(), ids=lambda revision: revision.name)
@given(data=st.data())
def test_the_answer_of_a_client_of_any_revision_for_a_server_of_any(source: Revision, data: st.DataObject) -> None:
    client = data.draw(SOURCES)
    names = {"sampling/createMessage": "CreateMessageResult", "roots/list": "ListRootsResult"}
    method = data.draw(st.sampled_from(list(names)))
    raw = data.draw(drawn(client, names[method]))
    found = relayed(method, {"messages": [], "maxTokens": 1} if method.startswith("sampling") else {})
    assert found is not None
    reply = check_reply(found.asked.question("key", "path", 0), raw, "form")
    assert isinstance(reply, Reply)
    back = found.back(reply)
    assert isinstance(back, Finished)
    if client == source.name:
        check({"result": without_modern_fields(back.result)}, source, method, "client")
    assert MODERN.name not in str(back.result)


@behaviour("ASK-18", "UPS-8")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"messages": {}},
        {"messages": ["hello"]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": ["hello"]}]},
        {"messages": [{"content": {"type": "text", "text": "x"}}]},
        {"messages": [], "tools": ["t"]},
        {"messages": [], "tools": {}},
    ],
    ids=str,
)
def test_what_is_no_conversation_is_refused_before_it_is_shaped(params: Case) -> None:
    found = relay("sampling/createMessage", params, link="l")
    assert isinstance(found, Failed)
    assert found.code == INVALID_PARAMS


@behaviour("ASK-18", "LEG-10")
def test_tools_that_a_model_may_use_are_those_of_the_clients_revision() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "integer"}, "execution": {}}
    used = {"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": 3}
    params = {"messages": [{"role": "user", "content": used}], "maxTokens": 1, "tools": [tool]}
    found = relayed("sampling/createMessage", params)
    assert found is not None
    for name, kept in (("2025-11-25", {"result": 3}), ("2026-07-28", 3)):
        shown = asked(found.asked.question("key", "path", 0), REVISIONS[name])
        assert shown["messages"][0]["content"]["structuredContent"] == kept
        assert ("execution" in shown["tools"][0]) == (name == "2025-11-25")
