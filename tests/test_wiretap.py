"""The wire tap bites: what conforms passes, and each kind of fault that the suite relies on it for is caught."""

import json
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import anyio
import pytest

from tests.wiretap import LEGACY, MODERN, REVISIONS, SPEC_FOLDER, Conversation, Tap, tap_asgi
from tests.wiretap.asgi import SseEvent, SseReader

needs_schemas = pytest.mark.skipif(SPEC_FOLDER is None, reason="../shared/spec is not beside this repository")
BOTH = [
    pytest.param(lambda: Tap(None), id="mcp_types"),
    pytest.param(Tap, id="schemas", marks=needs_schemas),
]
MakeTap = Callable[[], Tap]
Json = dict[str, Any]

SERVER = {"name": "desk", "version": "1"}
MODERN_FIELDS = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": SERVER}}
CACHE_FIELDS = {"ttlMs": 0, "cacheScope": "private"}
TEXT = [{"type": "text", "text": "done"}]
TOOL = {"name": "close", "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "$defs": {}}}
FORM = {"type": "object", "properties": {"why": {"type": "string", "maxLength": 9}}, "required": ["why"]}
ASK = {"method": "elicitation/create", "params": {"message": "Close?", "requestedSchema": FORM}}
CHOICE = {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}


def answer(result: Json, **envelope: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "result": result, **envelope}


def refusal(code: int, *, data: Any = None, **envelope: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", "data": data}, **envelope}


def modern(**result: Any) -> Json:
    return answer({**MODERN_FIELDS, **result})


def call(method: str, params: Json | None = None, **envelope: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, **envelope} | ({} if params is None else {"params": params})


def question(schema: Json | None = None, **params: Any) -> Json:
    return call("elicitation/create", {"message": "Close?", "requestedSchema": schema or FORM, **params}, id="q1")


def field(schema: Json) -> Json:
    return {"type": "object", "properties": {"field": schema}}


def initialized(revision: str, **capabilities: Any) -> Json:
    return answer({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": SERVER})


def asking(request: Json, **result: Any) -> Json:
    return modern(resultType="input_required", inputRequests={"k": request}, requestState="sealed", **result)


VALID: list[tuple[tuple[str, ...], str | None, Json]] = [
    (LEGACY, "tools/call", answer({"content": TEXT, "isError": True, "_meta": {"any/thing": [1]}})),
    (LEGACY, "tools/list", answer({"tools": [TOOL], "nextCursor": "2"})),
    (LEGACY, "ping", answer({})),
    (LEGACY, "logging/setLevel", answer({"_meta": {}})),
    (LEGACY, "prompts/get", answer({"messages": [{"role": "user", "content": TEXT[0]}]})),
    (LEGACY, "resources/read", answer({"contents": [{"uri": "a://b", "text": ""}]})),
    (LEGACY, "completion/complete", answer({"completion": {"values": ["a"], "total": 1}})),
    (LEGACY, None, call("notifications/progress", {"progressToken": 1, "progress": 0.5, "_meta": {"a": 1}})),
    (LEGACY, None, call("notifications/message", {"level": "info", "data": {"any": None}})),
    (REVISIONS, None, call("notifications/tools/list_changed")),
    (REVISIONS, "tools/call", refusal(-32602)),
    (REVISIONS, None, {key: value for key, value in refusal(-32700).items() if key != "id"}),
    (("2025-06-18", "2025-11-25"), "tools/call", answer({"content": TEXT, "structuredContent": {"x": {"y": 1}}})),
    (
        ("2025-06-18", "2025-11-25"),
        "tools/list",
        answer({"tools": [TOOL | {"outputSchema": TOOL["inputSchema"]}]}),
    ),
    (("2025-06-18", "2025-11-25"), None, question()),
    (("2025-06-18",), None, question(_meta={"progressToken": 1})),
    (("2025-06-18",), None, question(field({"type": "string", "enum": ["a"], "enumNames": ["A"]}))),
    (("2025-06-18",), None, question(field({"type": "number", "minimum": 0.5}))),
    (("2025-11-25",), None, question(field(CHOICE | {"default": "a"}), mode="form")),
    (("2025-11-25",), None, question(field({"type": "array", "items": {"type": "string", "enum": ["a"]}}))),
    (("2025-11-25",), None, call("notifications/elicitation/complete", {"elicitationId": "e"})),
    ((MODERN,), "tools/call", modern(content=TEXT, structuredContent=[1, None])),
    ((MODERN,), "tools/list", modern(tools=[TOOL | {"outputSchema": {"type": "array"}}], **CACHE_FIELDS)),
    ((MODERN,), "server/discover", modern(supportedVersions=[MODERN], capabilities={"tools": {}}, **CACHE_FIELDS)),
    ((MODERN,), "tools/call", asking(ASK)),
    ((MODERN,), "prompts/get", asking({"method": "roots/list"})),
    ((MODERN,), "tools/call", refusal(-32021, data={"requiredCapabilities": {"elicitation": {"form": {}}}})),
    (
        (MODERN,),
        "subscriptions/listen",
        modern(_meta=MODERN_FIELDS["_meta"] | {"io.modelcontextprotocol/subscriptionId": 1}),
    ),
]


class Wrong(NamedTuple):
    revisions: tuple[str, ...]
    method: str | None
    message: Json
    where: str
    is_for_schemas: bool = False
    """Only the closed schemas know: `mcp_types` has one shape for all legacy revisions, and open ones."""


BEFORE_STRUCTURE = ("2024-11-05", "2025-03-26")
WRONG = [
    Wrong(LEGACY, "tools/call", answer({"content": TEXT, "resultType": "complete"}), "result.resultType"),
    Wrong(LEGACY, "ping", answer({"resultType": "complete"}), "result.resultType"),
    Wrong(LEGACY, "tools/list", answer({"tools": [], "ttlMs": 1, "cacheScope": "public"}), "result.ttlMs"),
    Wrong(LEGACY, "tools/call", answer({"content": TEXT, "requestState": "x"}), "result.requestState"),
    Wrong(LEGACY, "tools/call", answer({}), "result"),
    Wrong(LEGACY, "tools/list", answer({"tools": [TOOL | {"invented": 1}]}), "result.tools[0]"),
    Wrong(LEGACY, "tools/call", answer({"content": [{"type": "text", "text": 1}]}), "result.content"),
    Wrong(LEGACY, "ping", answer({"invented": 1}), "result", is_for_schemas=True),
    Wrong(LEGACY, "server/discover", answer({}), "no server result for server/discover"),
    Wrong(LEGACY, "tools/call", refusal(-32021), "error.code"),
    Wrong(LEGACY, None, call("notifications/subscriptions/acknowledged", {"notifications": {}}), "no server"),
    Wrong(BEFORE_STRUCTURE, None, question(), "no server request for elicitation/create"),
    Wrong(
        BEFORE_STRUCTURE,
        "tools/call",
        answer({"content": TEXT, "structuredContent": {}}),
        "structuredContent",
        True,
    ),
    Wrong(BEFORE_STRUCTURE, "tools/list", answer({"tools": [TOOL | {"outputSchema": {}}]}), "outputSchema", True),
    Wrong(BEFORE_STRUCTURE, "tools/list", answer({"tools": [TOOL | {"title": "T"}]}), "'title'", True),
    Wrong(BEFORE_STRUCTURE, "tools/list", answer({"tools": [TOOL | {"_meta": {}}]}), "'_meta'", True),
    Wrong(("2024-11-05",), "tools/list", answer({"tools": [TOOL | {"annotations": {}}]}), "'annotations'", True),
    Wrong(("2024-11-05",), "initialize", initialized("2024-11-05", completions={}), "'completions'", True),
    Wrong(LEGACY, "initialize", initialized("2025-11-25", extensions={}), "extensions"),
    Wrong(("2025-06-18",), None, question(field(CHOICE)), "requestedSchema.properties.field", True),
    Wrong(("2025-06-18",), None, question(field({"type": "string", "default": "a"})), "'default'", True),
    Wrong(("2025-06-18",), None, question(mode="form"), "'mode'", True),
    Wrong(("2025-06-18",), None, question(FORM | {"$schema": "x"}), "'$schema'", True),
    Wrong(("2025-06-18", "2025-11-25"), None, question(FORM | {"additionalProperties": False}), "requestedSchema"),
    Wrong(
        ("2025-06-18", "2025-11-25"),
        None,
        question(field({"type": "object"})),
        "requestedSchema.properties.field",
        is_for_schemas=True,
    ),
    Wrong(("2025-06-18", "2025-11-25"), None, question(elicitationId="e"), "elicitationId"),
    Wrong((MODERN,), "tools/call", answer({"content": TEXT}), "result.resultType"),
    Wrong((MODERN,), "tools/call", answer({"content": TEXT, "resultType": "complete"}), "result._meta"),
    Wrong((MODERN,), "tools/call", modern(content=TEXT, resultType="task"), "result.resultType"),
    Wrong((MODERN,), "tools/call", modern(content=TEXT, **CACHE_FIELDS), "ttlMs"),
    Wrong((MODERN,), "tools/list", modern(tools=[]), "ttlMs"),
    Wrong((MODERN,), "tools/list", modern(tools=[TOOL | {"execution": {}}], **CACHE_FIELDS), "execution"),
    Wrong((MODERN,), "tools/list", asking(ASK), "tools/list cannot ask"),
    Wrong((MODERN,), "tools/call", asking(ASK, content=TEXT), "content"),
    Wrong((MODERN,), "tools/call", modern(resultType="input_required"), "neither inputRequests nor requestState"),
    Wrong((MODERN,), "tools/call", asking({**ASK, "params": {**ASK["params"], "_meta": {}}}), "_meta"),
    Wrong((MODERN,), "tools/call", asking({**ASK, "id": 1}), "result.inputRequests.k"),
    Wrong((MODERN,), "tools/call", asking(question(field({"type": "object"}))), "result.inputRequests.k"),
    Wrong((MODERN,), "ping", modern(), "no server result for ping"),
    Wrong((MODERN,), None, question(), "no server request for elicitation/create"),
    Wrong((MODERN,), None, call("notifications/elicitation/complete", {"elicitationId": "e"}), "no server"),
    Wrong((MODERN,), "resources/read", refusal(-32002), "error.code"),
    Wrong((MODERN,), "tools/call", refusal(-32042), "error.code"),
    Wrong((MODERN,), "tools/call", refusal(-32055), "error.code"),
    Wrong(
        (MODERN,),
        "tools/call",
        refusal(-32022, data={"supported": [MODERN]}),
        "error.data: 'requested'",
        is_for_schemas=True,
    ),
    Wrong(REVISIONS, "tools/call", refusal(-32602, id=None), "id: None"),
    Wrong(REVISIONS, "tools/call", answer({}, id=None), "id: None"),
    Wrong(REVISIONS, "tools/call", answer({}, id=True), "id: True"),
    Wrong(REVISIONS, None, question() | {"id": None}, "id: None"),
    Wrong(REVISIONS, "tools/call", answer({}, jsonrpc="1.0"), "jsonrpc: '1.0'"),
    Wrong(REVISIONS, "tools/call", answer({}, error={"code": 1, "message": ""}), "no member of a JSON-RPC error"),
    Wrong(REVISIONS, "tools/call", {"jsonrpc": "2.0", "id": 1}, "not a JSON-RPC message"),
    Wrong(REVISIONS, "tools/call", refusal(-32602) | {"error": {"code": "x"}}, "error.message"),
    Wrong(REVISIONS, None, call("notifications/tools/list_changed", {"invented": 1}), "params", is_for_schemas=True),
]


@pytest.mark.parametrize("make_tap", BOTH)
@pytest.mark.parametrize(("revisions", "method", "message"), VALID)
def test_what_conforms_passes(make_tap: MakeTap, revisions: tuple[str, ...], method: str | None, message: Json) -> None:
    tap = make_tap()
    for revision in revisions:
        tap.check(message, revision=revision, method=method)
    tap.assert_clean()
    assert tap.checked == len(revisions)


@pytest.mark.parametrize("make_tap", BOTH)
@pytest.mark.parametrize("revision", LEGACY)
def test_an_initialize_result_passes(make_tap: MakeTap, revision: str) -> None:
    tap = make_tap()
    tap.check(initialized(revision, tools={"listChanged": True}), revision=revision, method="initialize")
    tap.assert_clean()


@pytest.mark.parametrize("make_tap", BOTH)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.method}-{wrong.where}")
def test_what_does_not_conform_is_caught_and_placed(make_tap: MakeTap, wrong: Wrong) -> None:
    if wrong.is_for_schemas and make_tap is not Tap:
        pytest.skip("mcp_types cannot know")
    for revision in wrong.revisions:
        tap = make_tap()
        tap.check(wrong.message, revision=revision, method=wrong.method)
        assert len(tap.violations) == 1, revision
        assert wrong.where in tap.violations[0]
        assert revision in tap.violations[0]


@pytest.mark.parametrize("make_tap", BOTH)
def test_a_violation_names_revision_method_path_reason_and_message(make_tap: MakeTap) -> None:
    tap = make_tap()
    tap.check(answer({"content": [{"type": "text"}]}), revision="2025-06-18", method="tools/call")
    with pytest.raises(AssertionError, match="1 violations on the wire") as failed:
        tap.assert_clean()
    text = str(failed.value)
    for part in ("2025-06-18", "tools/call", "result.content", "text", json.dumps(answer({"content": TEXT}))[:30]):
        assert part in text


@needs_schemas
def test_of_several_choices_the_one_that_was_meant_is_explained() -> None:
    tap = Tap()
    block = {"type": "image", "data": "", "mimeType": "image/png", "text": "stray"}
    tap.check(answer({"content": [*TEXT, block]}), revision="2025-06-18", method="tools/call")
    assert "result.content[1]: Additional properties are not allowed ('text' was unexpected)" in tap.violations[0]


@pytest.mark.parametrize("make_tap", BOTH)
@pytest.mark.parametrize("revision", REVISIONS)
def test_batches_belong_to_one_revision(make_tap: MakeTap, revision: str) -> None:
    tap = make_tap()
    tap.check([refusal(-32602), refusal(-32601, id=2)], revision=revision, method=None)
    assert (not tap.violations) == (revision == "2025-03-26")
    tap.check([], revision=revision, method=None)
    assert tap.violations


@pytest.mark.parametrize("make_tap", BOTH)
def test_what_the_client_sends_can_be_judged_too(make_tap: MakeTap) -> None:
    tap = make_tap()
    sent = call("tools/call", {"name": "close", "arguments": {"id": None}}, id=1)
    accepted = answer({"action": "accept", "content": {"share": 0.5}})
    tap.check(sent, revision="2025-06-18", method=None, direction="client")
    tap.check(accepted, revision="2025-06-18", method="elicitation/create", direction="client")
    tap.assert_clean()
    tap.check(accepted, revision=MODERN, method="elicitation/create", direction="client")
    assert "no client result" in tap.violations[0]


@pytest.mark.parametrize("make_tap", BOTH)
def test_without_a_revision_only_json_rpc_counts(make_tap: MakeTap) -> None:
    tap = make_tap()
    tap.check(refusal(-32700), revision=None, method=None)
    tap.assert_clean()
    tap.check(refusal(-32700, id=None), revision=None, method=None)
    assert len(tap.violations) == 1


@pytest.mark.parametrize("make_tap", BOTH)
def test_checking_leaves_the_message_alone(make_tap: MakeTap) -> None:
    message = asking(ASK)
    before = deepcopy(message)
    make_tap().check(message, revision=MODERN, method="tools/call")
    assert message == before


def test_a_check_is_fast_enough_to_stand_in_every_test() -> None:
    tap = Tap()
    message = modern(content=TEXT)
    tap.check(message, revision=MODERN, method="tools/call")
    start = time.perf_counter()
    for _ in range(100):
        tap.check(message, revision=MODERN, method="tools/call")
    assert time.perf_counter() - start < 0.5  # 5 ms each on a busy machine; 0.1 ms on a quiet one


def test_an_answer_finds_its_method_by_an_id_that_keeps_its_type() -> None:
    tap = Tap(None)
    conversation = Conversation(tap, "2025-06-18")
    conversation.heard(call("ping", id=1))
    conversation.heard(call("tools/list", id="1"))
    conversation.said(answer({}, id=1))
    conversation.said(answer({"tools": []}, id="1"))
    conversation.said(answer({"tools": []}, id="1"))  # replayed
    tap.assert_clean()
    conversation.said(answer({}, id=1.0))
    assert "an id that was never asked" in tap.violations[0]


def test_the_second_request_under_an_id_in_flight_does_not_hide_the_first() -> None:
    tap = Tap(None)
    conversation = Conversation(tap, "2025-06-18")
    conversation.heard([call("tools/list", id=1), call("ping", id=1)])
    conversation.said(answer({"tools": []}))
    tap.assert_clean()


def test_one_connection_may_speak_both_eras() -> None:
    tap = Tap(None)
    conversation = Conversation(tap)
    conversation.heard(call("server/discover", {"_meta": ENVELOPE}, id=0))
    conversation.said(modern(supportedVersions=[MODERN], capabilities={}, **CACHE_FIELDS) | {"id": 0})
    conversation.heard(call("initialize", {}, id=1))
    conversation.said(initialized("2025-11-25"))
    conversation.heard(call("ping", id=2))
    conversation.said(answer({}, id=2))
    tap.assert_clean()
    assert conversation.revision == "2025-11-25"
    conversation.heard(call("initialize", {}, id=3))
    conversation.said(initialized("1999-01-01", id=3) | {"id": 3})
    assert "1999-01-01 is no revision" in tap.violations[0]


STREAM = (
    ": hello\r\n\r\n"
    "id: s:1\r\ndata:\r\n\r\n"
    'event: message\ndata: {"a":\ndata:"é"}\n\n'
    "retry: 5\rdata: {}\r\revent: endpoint\ndata: /messages\n\n"
).encode()


@pytest.mark.parametrize("size", range(1, 20))
def test_an_event_stream_is_read_however_it_is_cut(size: int) -> None:
    reader = SseReader()
    parts = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event for part in parts for event in reader.feed(part)] == [
        SseEvent("message", '{"a":\n"é"}'),
        SseEvent("message", "{}"),
        SseEvent("endpoint", "/messages"),
    ]


JSON_TYPE = {"content-type": "application/json"}
SSE_TYPE = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


def http(
    tap: Tap,
    sent: Any,
    status: int,
    headers: dict[str, str],
    *parts: bytes,
    method: str = "POST",
    path: str = "/mcp",
    **request_headers: str,
) -> list[Json]:
    """Drive one exchange with a canned response through the tap; returns what was passed on."""
    passed: list[Json] = []
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in request_headers.items()]
    address, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": address, "query_string": query.encode(), "headers": raw}
    body = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    incoming = iter(
        [{"type": "http.request", "body": body[:5], "more_body": True}, {"type": "http.request", "body": body[5:]}]
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        for count, part in enumerate(parts, 1):
            await send({"type": "http.response.body", "body": part, "more_body": True})
            assert len(passed) == count + 1, "the tap holds a part back"
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        return next(incoming)

    async def send(event: Any) -> None:
        passed.append(event)

    anyio.run(tap_asgi(app, tap), scope, receive, send)
    return passed


def as_json(message: Any) -> bytes:
    return json.dumps(message).encode()


def as_event(message: Any) -> bytes:
    return b"id: s:1\ndata: " + as_json(message) + b"\n\n"


def open_session(tap: Tap, revision: str, session_id: str = "s1") -> None:
    body = as_json(initialized(revision))
    http(tap, call("initialize", {}, id=1), 200, JSON_TYPE | {"mcp-session-id": session_id}, body[:9], body[9:])
    tap.assert_clean()


def test_a_session_has_the_revision_of_its_initialize_result() -> None:
    tap = Tap(None)
    open_session(tap, "2025-03-26")
    open_session(tap, "2025-06-18", "s2")
    http(tap, b"", 200, SSE_TYPE, as_event(question()), method="GET", mcp_session_id="s2")
    tap.assert_clean()
    http(tap, b"", 200, SSE_TYPE, as_event(question()), method="GET", mcp_session_id="s1")
    assert "[2025-03-26] elicitation/create" in tap.violations[0]


def test_in_a_stream_everything_is_judged_however_it_is_cut() -> None:
    tap = Tap(None)
    open_session(tap, "2025-06-18")
    progress = call("notifications/progress", {"progressToken": 1, "progress": 1})
    stream = b"id: s:0\ndata:\n\n: keep\n\n" + as_event(progress) + as_event(question()) + as_event(answer({}, id=7))
    cut = [stream[at : at + 7] for at in range(0, len(stream), 7)]
    http(tap, call("tools/call", {}, id=7), 200, SSE_TYPE, *cut, mcp_session_id="s1")
    assert len(tap.violations) == 1  # the result has no content
    assert "[2025-06-18] tools/call" in tap.violations[0]
    assert tap.checked == 4


def test_a_replayed_answer_is_still_held_against_its_method() -> None:
    tap = Tap(None)
    open_session(tap, "2025-06-18")
    http(tap, call("tools/list", id="7"), 200, SSE_TYPE, b"id: s:0\ndata:\n\n", mcp_session_id="s1")
    replay = as_event(answer({"tools": [{}]}, id="7"))
    http(tap, b"", 200, SSE_TYPE, replay, method="GET", mcp_session_id="s1", last_event_id="s:0")
    assert "[2025-06-18] tools/list" in tap.violations[0]


@pytest.mark.parametrize(
    ("params", "headers"),
    [({"_meta": ENVELOPE}, {}), ({}, {"mcp_protocol_version": MODERN})],
    ids=["by its envelope", "by its header"],
)
def test_a_modern_request_is_known(params: Json, headers: dict[str, str]) -> None:
    tap = Tap(None)
    sent = call("tools/call", {"name": "close", **params}, id=0)
    http(tap, sent, 200, JSON_TYPE, as_json(asking(ASK) | {"id": 0}), **headers)
    http(tap, sent, 404, JSON_TYPE, as_json(refusal(-32601, id=0)), **headers)
    tap.assert_clean()
    http(tap, sent, 200, JSON_TYPE, as_json(answer({"content": TEXT}, id=0)), **headers)
    assert f"[{MODERN}] tools/call" in tap.violations[0]


def test_what_was_refused_before_it_was_read_is_only_json_rpc() -> None:
    tap = Tap(None)
    no_id = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}
    http(tap, b"{", 400, JSON_TYPE, as_json(no_id))
    http(tap, call("ping", id=1), 404, JSON_TYPE, as_json(refusal(-32001)), mcp_session_id="unknown")
    http(tap, b"", 401, JSON_TYPE, b'{"error": "invalid_token"}')
    http(tap, b"", 200, {"content-type": "text/html"}, b"<p>page", method="GET", path="/")
    http(tap, b"", 202, {})
    tap.assert_clean()


@pytest.mark.parametrize(
    ("status", "headers", "body", "where"),
    [
        (200, {"content-type": "text/plain"}, as_json(answer({})), "content-type"),
        (200, JSON_TYPE, b"{", "what is not JSON"),
        (200, JSON_TYPE, b"{}", "what is not JSON-RPC"),
        (202, {}, b"null", "202 with a body"),
        (200, JSON_TYPE, as_json(answer({}, id="1")), "an id that was never asked"),
        (200, SSE_TYPE | {"cache-control": "no-cache"}, as_event(answer({})), "cache-control"),
        (200, SSE_TYPE | {"x-accel-buffering": "yes"}, as_event(answer({})), "x-accel-buffering"),
        (200, SSE_TYPE, b"data: {\n\n", "not JSON"),
    ],
)
def test_http_that_is_wrong_is_caught(status: int, headers: dict[str, str], body: bytes, where: str) -> None:
    tap = Tap(None)
    open_session(tap, "2025-06-18")
    http(tap, call("ping", id=1), status, headers, body, mcp_session_id="s1")
    assert len(tap.violations) == 1
    assert where in tap.violations[0]


def test_a_modern_response_names_no_session() -> None:
    tap = Tap(None)
    sent = call("tools/call", {"_meta": ENVELOPE}, id=1)
    http(tap, sent, 200, JSON_TYPE | {"mcp-session-id": "s1"}, as_json(modern(content=TEXT)))
    assert "mcp-session-id" in tap.violations[0]


def test_batches_over_http_are_matched_entry_by_entry() -> None:
    tap = Tap(None)
    open_session(tap, "2025-03-26")
    sent = [call("ping", id=2), call("tools/list", id=3)]
    http(tap, sent, 200, JSON_TYPE, as_json([answer({"tools": []}, id=3), answer({}, id=2)]), mcp_session_id="s1")
    tap.assert_clean()


def test_the_nodes_of_one_server_share_a_tap() -> None:
    tap = Tap(None)
    open_session(tap, "2025-06-18")  # each exchange wraps an app of its own
    http(tap, call("ping", id=5), 200, JSON_TYPE, as_json(answer({"ttlMs": 1}, id=5)), mcp_session_id="s1")
    assert "result.ttlMs" in tap.violations[0]


def test_the_stream_of_http_with_sse_is_joined_with_its_posts() -> None:
    tap = Tap(None)
    passed: list[Json] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(name.encode(), value.encode()) for name, value in SSE_TYPE.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"event: endpoint\ndata: /messages?s=1\n\n", "more_body": True}
        )
        for sent in (call("initialize", {}, id=1), call("tools/list", id=2)):
            await anyio.to_thread.run_sync(lambda sent=sent: http(tap, sent, 202, {}, path="/messages?s=1"))
        body = as_event(initialized("2024-11-05")) + as_event(answer({"tools": [{}]}, id=2))
        await send({"type": "http.response.body", "body": body})

    async def send(event: Any) -> None:
        passed.append(event)

    scope = {"type": "http", "method": "GET", "path": "/sse", "query_string": b"", "headers": []}
    anyio.run(tap_asgi(app, tap), scope, anyio.sleep_forever, send)
    assert len(tap.violations) == 1
    assert "[2024-11-05] tools/list" in tap.violations[0]


def test_a_websocket_is_one_conversation() -> None:
    tap = Tap(None)
    incoming = iter([{"type": "websocket.receive", "text": json.dumps(call("ping", {"_meta": ENVELOPE}, id=1))}])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept", "subprotocol": "mcp"})
        await receive()
        await send({"type": "websocket.send", "text": json.dumps(refusal(-32601))})
        await send({"type": "websocket.send", "text": json.dumps(modern())})
        await send({"type": "websocket.send", "bytes": b"{}"})

    async def receive() -> Any:
        return next(incoming)

    async def send(event: Any) -> None:
        pass

    anyio.run(tap_asgi(app, tap), {"type": "websocket", "path": "/ws", "headers": []}, receive, send)
    assert len(tap.violations) == 2
    assert "no server result for ping" in tap.violations[0]
    assert "not a text frame" in tap.violations[1]


def test_a_fault_of_the_tap_itself_is_not_hidden() -> None:
    tap = Tap(None)
    tap.check = None  # type: ignore[method-assign,assignment]
    passed = http(tap, call("ping", id=1), 200, JSON_TYPE, as_json(answer({})))
    assert len(passed) == 3
    assert "the tap itself failed" in tap.violations[0]
