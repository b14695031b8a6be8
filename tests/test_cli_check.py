"""`check`: what it finds, what it prints, and how it ends."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge import Bridge, ClientRule, Context, RouteName
from bridge.asking.reasons import REASONS, reason_of
from bridge.cli.checking import Checked, KindReport, ToolCall, check_kinds
from bridge.kinds import KINDS
from tests.conftest import Serve

ROOT = Path(__file__).parent.parent
ASKS = '''
from bridge import Bridge, Context

desk = Bridge("desk", elicitation=True)
done = []


@desk.tool
async def close(id: str, ctx: Context) -> str:
    """Close a ticket."""
    answer = await ctx.elicit(f"Close {id}?", bool)
    done.append(id)
    print("closed", len(done))
    return f"{answer.status} {answer.content}"
'''


def run(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bridge", "check", *arguments]
    surroundings = {"PYTHONPATH": str(ROOT), "COLUMNS": "130", "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=folder, env=surroundings
    )


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(ASKS)
    return tmp_path


@pytest.fixture
def url(desk: Path) -> Iterator[str]:
    """The desk, served by a process of its own."""
    command = [sys.executable, "-m", "bridge", "serve", "desk.py:desk", "--port", "0"]
    surroundings = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=desk, env=surroundings) as server:
        assert server.stderr is not None
        try:
            for line in server.stderr:
                if found := re.search(r"http://\S+/mcp", line):
                    yield found[0]
                    break
            else:
                raise AssertionError("it ended")
        finally:
            server.terminate()
            server.communicate(timeout=20)


async def reports(serve: Serve, bridge: Bridge, call: ToolCall | None = None) -> dict[str, KindReport]:
    found = await check_kinds(Checked(app=await serve(bridge), options=bridge.options, call=call))
    assert [report.kind for report in found] == [kind.name for kind in KINDS]
    return {report.kind: report for report in found}


def asks(**options: Any) -> Bridge:
    bridge = Bridge("asks", **{"elicitation": True, **options})

    @bridge.tool
    async def close(ticket: str, ctx: Context) -> str:
        answer = await ctx.elicit(f"Close {ticket}?", bool)
        return f"{answer.status} {answer.content}"

    @bridge.tool
    async def connect(ctx: Context) -> str:
        return (await ctx.elicit_url("Open this", "https://example.com/x")).status

    return bridge


async def test_each_kind_is_told_how_it_is_asked_and_why_without_calling_anything(serve: Serve) -> None:
    found = await reports(serve, asks())
    assert {kind: (report.route, report.reason) for kind, report in found.items()} == {
        "modern-forms": ("rounds", "client_declared_it"),
        "modern": ("refuse", "client_did_not_declare_elicitation"),
        "2025-11-25-forms-urls": ("push", "client_declared_it"),
        "2025-06-18-forms": ("push", "client_declared_it"),
        "2025-06-18-chat": ("chat", "client_did_not_declare_elicitation"),
        "2025-03-26": ("chat", "revision_before_2025-06-18"),
        "2024-11-05": ("chat", "revision_before_2025-06-18"),
    }
    assert [kind for kind, report in found.items() if report.fallback_listed] == list(found)[4:]
    assert all(report.served and report.tools == ["close", "connect"] for report in found.values())
    assert all(report.result is None and not report.asked for report in found.values())


async def test_a_call_is_answered_as_each_kind_of_user_would(serve: Serve) -> None:
    call = ToolCall("close", {"ticket": "T-1"}, {"action": "accept", "content": {"confirm": True}})
    found = await reports(serve, asks(), call)
    refused = found.pop("modern")
    assert all(report.served and report.result == "accept True" for report in found.values())
    assert [report.asked[0].route for report in found.values()] == ["rounds", "push", "push", "chat", "chat", "chat"]
    assert all(report.asked[0].message == "Close T-1?" for report in found.values())
    assert not refused.served
    assert "-32021" in str(refused.failure)
    assert refused.setting == REASONS["client_did_not_declare_elicitation"].setting


async def test_a_question_by_url_is_explained_as_one(serve: Serve) -> None:
    found = await reports(serve, asks(), ToolCall("connect", {}, {"action": "accept"}))
    assert {kind: (report.route, report.reason) for kind, report in found.items()} == {
        "modern-forms": ("refuse", "client_did_not_declare_url"),
        "modern": ("refuse", "client_did_not_declare_elicitation"),
        "2025-11-25-forms-urls": ("push", "client_declared_it"),
        "2025-06-18-forms": ("chat", "revision_before_2025-11-25"),
        "2025-06-18-chat": ("chat", "client_did_not_declare_elicitation"),
        "2025-03-26": ("chat", "revision_before_2025-06-18"),
        "2024-11-05": ("chat", "revision_before_2025-06-18"),
    }


@pytest.mark.parametrize(
    ("options", "kind", "route", "reason"),
    [
        ({"elicitation": False}, "modern-forms", "refuse", "elicitation_switched_off"),
        ({"fallback": "off"}, "2025-06-18-chat", "refuse", "fallback_switched_off"),
        ({"client_rules": (ClientRule(name="modern", route=RouteName.CHAT),)}, "modern", "chat", "operator_rule"),
    ],
    ids=["asking-off", "fallback-off", "rule"],
)
async def test_what_the_operator_set_is_named_as_the_reason(
    serve: Serve, options: dict[str, Any], kind: str, route: str, reason: str
) -> None:
    report = (await reports(serve, asks(**options)))[kind]
    assert (report.route, report.reason) == (route, reason)
    assert report.setting == reason_of(reason).setting != ""


async def test_a_tool_that_is_not_there_is_named_with_those_that_are(serve: Serve) -> None:
    found = await reports(serve, asks(), ToolCall("opne", {}, {"action": "decline"}))
    assert {report.failure for report in found.values()} == {"there is no tool opne; there are close, connect"}


async def test_a_kind_that_takes_too_long_does_not_keep_the_others(serve: Serve) -> None:
    bridge = asks()

    @bridge.tool
    async def wait(ctx: Context) -> None:
        if ctx.client.revision.name != "2024-11-05":
            await anyio.sleep_forever()

    call = ToolCall("wait", {}, {"action": "decline"})
    checked = Checked(app=await serve(bridge), options=bridge.options, call=call, timeout_seconds=0.3)
    found = await check_kinds(checked)
    assert [report.failure for report in found] == ["nothing came within 0.3 s"] * 6 + [None]


def test_json_alone_stands_on_stdout_and_every_kind_served_ends_with_0(desk: Path) -> None:
    ran = run("desk.py:desk", "--json", folder=desk)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    found = json.loads(ran.stdout)
    assert [one["kind"] for one in found] == [kind.name for kind in KINDS]
    assert {"era", "revision", "tools", "fallback_listed", "route", "reason", "setting", "served"} <= found[0].keys()


def test_a_kind_that_is_not_served_ends_with_3_and_its_no_is_explained(desk: Path) -> None:
    ran = run("desk.py:desk", "--tool", "close", "--arguments", '{"id": "T-1"}', "--answer", "decline", folder=desk)
    assert ran.returncode == 3
    assert "6 of 7 kinds of clients are served through the bridge." in ran.stdout
    assert "client_did_not_declare_elicitation" in ran.stdout
    assert "To change it: " in ran.stdout
    assert "result of close" in ran.stdout
    assert "closed 6" in ran.stderr
    assert "closed 7" not in ran.stderr


def test_nothing_is_called_where_no_tool_is_named(desk: Path) -> None:
    assert run("desk.py:desk", folder=desk).stderr == ""


def test_what_a_tool_prints_does_not_reach_stdout_under_json(desk: Path) -> None:
    arguments = ["--tool", "close", "--arguments", '{"id": "T-1"}', "--json"]
    ran = run("desk.py:desk", *arguments, folder=desk)
    assert len(json.loads(ran.stdout)) == len(KINDS)
    assert "closed 6" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere.py:x"], 1, "there is no file nowhere.py"),
        (["http://127.0.0.1:9/mcp"], 1, "http://127.0.0.1:9/mcp"),
        (["http://127.0.0.1:9/mcp", "--direct"], 1, "http://127.0.0.1:9/mcp cannot be reached"),
        (["desk.py:desk", "--direct"], 1, "--direct takes the http or https URL"),
        (["desk.py:desk", "--answer", "cancel"], 2, "--tool"),
        (["desk.py:desk", "--tool", "close", "--arguments", "{"], 2, "--arguments"),
        (["desk.py:desk", "--tool", "close", "--answer", "[1]"], 2, "--answer"),
        ([], 2, "Missing argument"),
    ],
    ids=["target", "away", "direct-away", "direct-object", "no-tool", "no-json", "no-object", "no-target"],
)
def test_what_cannot_be_checked_is_said_with_its_exit_code(
    desk: Path, arguments: list[str], code: int, said: str
) -> None:
    ran = run(*arguments, folder=desk)
    assert ran.returncode == code, ran.stderr
    assert said in " ".join(ran.stderr.split())
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr


def test_a_url_is_checked_as_it_is_and_through_a_bridge(url: str) -> None:
    direct = run(url, "--direct", "--json", "--tool", "close", "--arguments", '{"id": "T-1"}')
    found = json.loads(direct.stdout)
    assert direct.returncode == 3
    assert [one["asked"][0]["route"] for one in found if one["asked"]] == ["rounds", "push", "push", *["chat"] * 3]
    through = run(url, "--json")
    assert through.returncode == 0, through.stderr


async def test_a_server_that_is_no_mcp_server_is_said_with_its_status() -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<h1>Not\nhere</h1>"})

    found = await check_kinds(Checked(app=page, options=None))
    assert {report.failure for report in found} == {"HTTP 404 <h1>Not here</h1>"}
    assert not any(report.served for report in found)


async def test_a_server_that_asks_a_client_that_shows_nothing_does_not_count_as_serving_it(serve: Serve) -> None:
    """As a server of the official SDK does, whose tools ask whoever calls."""
    plain = await serve(asks())

    async def careless(scope: Any, receive: Any, send: Any) -> None:
        """Says to the server that every client shows forms, and hides the fallback tool."""
        event = await receive()
        body = event["body"].replace(b'"capabilities":{}', b'"capabilities":{"elicitation":{}}')

        async def given() -> Any:
            return {**event, "body": body}

        await plain(scope, given, send)

    call = ToolCall("close", {"ticket": "T-1"}, {"action": "decline"})
    found = {one.kind: one for one in await check_kinds(Checked(app=careless, options=None, call=call))}
    chat = found["2025-06-18-chat"]
    assert (chat.served, chat.reason, chat.asked) == (False, "asked_what_was_not_declared", [])
    assert chat.setting == "Put the bridge before the server: python -m bridge serve TARGET"
    assert found["2025-06-18-forms"].served
