"""The matrix judges what drivers report; a cell that is wrongly green would prove nothing."""

from typing import Any

import pytest

from tests.matrix.cells import Cell, Verdict, judge, unreachable
from tests.matrix.clients import CLIENTS
from tests.matrix.page import page, record
from tests.matrix.profiles import CHECKS, Json
from tests.matrix.servers import SERVERS

CLIENT = {client.name: client for client in CLIENTS}
SERVER = {server.name: server for server in SERVERS}


def _call(name: str, says: str = "", *asked: tuple[str, str], **other: Any) -> Json:
    result = {"content": [{"type": "text", "text": says}], **other.pop("result", {})}
    questions = [{"message": message, "by": way} for message, way in asked]
    call = {"name": name, "questions": questions, "refusals": [], "again": [], "progress": [], "error": None}
    return {**call, "result": result, **other}


def _report(way: str, *, tools: tuple[str, ...] = (), **instead: Json) -> Json:
    """What a driver reports when all is well, but for some checks."""
    calls = {
        "resources": _call("resources/list", result={"resources": [{"uri": "matrix://note"}]}),
        "prompts": _call("prompts/list", result={"prompts": [{"name": "greet"}]}),
        "add": _call("add", "5"),
        "accept": _call("ask_once", "closed T-1", ("Close T-1?", way)),
        "decline": _call("ask_once", "kept T-2", ("Close T-2?", way)),
        "twice": _call("ask_twice", "3 tea for Ada", ("Who orders tea?", way), ("How many tea for Ada?", way)),
        "progress": _call("count_up", "counted to 3", progress=[1, 2, 3]),
    }
    names = ("add", "ask_once", "ask_twice", "count_up", *tools)
    return {"report": {"tools": [{"name": name} for name in names], "calls": list((calls | instead).values())}}


def _statuses(client: str, said: Json, server: str = "mcp1-http", *, by_bridge: bool = True) -> dict[str, str]:
    verdicts = judge(CLIENT[client], SERVER[server], said, "http", by_bridge=by_bridge)
    assert list(verdicts) == list(CHECKS)
    return {check: verdict.status for check, verdict in verdicts.items()}


def _but(**other: str) -> dict[str, str]:
    return dict.fromkeys(CHECKS, "passed") | other


def test_a_client_that_shows_forms_passes_where_it_was_asked_by_forms() -> None:
    assert _statuses("mcp1-http", _report("form")) == _but()
    assert _statuses("mcp1-http", _report("chat")) == _but(accept="failed", decline="failed", twice="failed")


def test_a_client_that_chats_has_to_see_the_fallback_tool_and_only_that_client() -> None:
    with_fallback = _report("chat", tools=("sendElicitationResult",))
    assert _statuses("raw", with_fallback) == _but()
    assert _statuses("raw", _report("chat")) == _but(lists="failed")
    assert _statuses("mcp1-http", _report("form", tools=("sendElicitationResult",))) == _but(lists="failed")


def test_an_answer_without_a_question_is_no_pass() -> None:
    said = _report("form", decline=_call("ask_once", "kept T-2"))
    assert _statuses("mcp1-http", said) == _but(decline="failed")


@pytest.mark.parametrize("progress", [[], [1, 2], [1, 3, 2], [1, 2, 3, 3]])
def test_progress_has_to_be_complete_and_in_order(progress: list[int]) -> None:
    said = _report("form", progress=_call("count_up", "counted to 3", progress=progress))
    assert _statuses("mcp1-http", said) == _but(progress="failed")


def test_a_modern_client_without_elicitation_has_to_be_told_what_is_missing() -> None:
    told = {"code": -32021, "message": "no", "data": {"requiredCapabilities": {"elicitation": {"form": {}}}}}
    refused = _call("ask_once", error=told) | {"result": None}
    unnamed = _call("ask_once", error={"code": -32021, "message": "no"}) | {"result": None}
    said = _report("form", accept=refused, decline=refused, twice=unnamed)
    assert _statuses("mcp2-silent", said) == _but(accept="refused", decline="refused", twice="failed")


def test_no_other_session_may_answer_for_the_inspector() -> None:
    refusal = {"isError": True}
    first = {
        "accept": _call("ask_once", "No pending elicitation", ("Close T-1?", "chat"), result=refusal),
        "decline": _call("ask_once", "No pending elicitation", ("Close T-2?", "chat"), result=refusal),
        "twice": _call("ask_twice", "No pending elicitation", ("Who orders tea?", "chat"), result=refusal),
    }
    said = _report("chat", tools=("sendElicitationResult",), **first)
    assert _statuses("inspector", said) == _but(accept="refused", decline="refused", twice="refused")
    answered = {**first, "accept": _call("ask_once", "closed T-1", ("Close T-1?", "chat"))}
    said = _report("chat", tools=("sendElicitationResult",), **answered)
    assert _statuses("inspector", said)["accept"] == "failed"


def test_what_a_server_does_not_have_is_no_failure_and_a_failed_session_is_one_everywhere_else() -> None:
    statuses = _statuses("mcp1-http", {"failed": "boom"}, "everything-http")
    assert statuses == dict.fromkeys(CHECKS, "failed") | {"twice": "absent"}


def test_a_failure_says_who_where_what_and_what_came_instead() -> None:
    said = _report("form", accept=_call("ask_once", "kept T-1", ("Close T-1?", "form")))
    bridge = judge(CLIENT["ts1"], SERVER["mcp1-http"], said, "http", by_bridge=True)
    cell = Cell(client="ts1", server="mcp1-http", direct=None, bridge=bridge)
    assert cell.failures == ['ts1 at mcp1-http, accept: expected "closed T-1", came a result: kept T-1']


def test_reasons_do_not_differ_from_run_to_run() -> None:
    def why(port: int, name: str) -> str:
        said = {"failed": f"http://127.0.0.1:{port}/mcp: session {name} is gone"}
        return judge(CLIENT["ts1"], SERVER["mcp1-http"], said, "http", by_bridge=True)["add"].why

    assert why(41234, "013ac7cc9b544d92aaa6bcaf1ad8f79f") == why(9, "e71e8580-b7bc-4181-b901-2c9b603b59aa")


def test_who_speaks_no_common_transport_does_not_meet() -> None:
    program = SERVER["mcp1-ws"].program
    assert program is not None
    assert unreachable(CLIENT["mcp1-http"], program) is None
    verdicts = unreachable(CLIENT["raw"], program)
    assert verdicts is not None
    assert verdicts["add"] == Verdict("unreachable", "the server speaks WebSocket, the client Streamable HTTP")


def test_the_page_and_the_record_are_the_same_for_the_same_cells() -> None:
    passed = dict.fromkeys(CHECKS, Verdict("passed"))
    failed = {**passed, "accept": Verdict("failed", "why")}
    cells = [
        Cell(client=client.name, server=server.name, direct=failed, bridge=passed)
        for client in CLIENTS
        for server in SERVERS
    ]
    assert all(cell.adds == ["accept"] for cell in cells)
    assert page(CLIENTS, SERVERS, cells) == page(CLIENTS, SERVERS, cells)
    assert record(CLIENTS, SERVERS, cells) == record(CLIENTS, SERVERS, cells)
    assert "**6/6** (5/6)" in page(CLIENTS, SERVERS, cells)
