"""The Inspector's command line: each run is a client of its own that makes one request and can ask nobody.

By default it is legacy, so what asks is answered by chat; its modern self is told which capability it lacks.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.peers.cutting_proxy import CuttingProxy
from tests.peers.driving import FALLBACK_TOOL
from tests.peers.environments import environment, node

pytestmark = [pytest.mark.peers, pytest.mark.timeout(120)]
behaviour = pytest.mark.behaviour

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
_LAUNCHER = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
_RUN_SECONDS = 30
_FAILED, _TOOL_ERROR = 1, 5
"""Exit codes: of an error on the wire; of a result with `isError`, or a tool that is not listed."""


class Run(NamedTuple):
    """What a run has said."""

    code: int
    result: Any
    error: Any


class Inspector:
    """The command line, in front of one server.

    Args:
        url: of the server.
        home: where it keeps what it remembers.
    """

    def __init__(self, url: str, home: Path) -> None:
        self._url = url
        self._home = home

    def run(self, method: str, *options: str, era: str = "legacy") -> Run:
        """Make one request.

        Args:
            method: as `tools/list`.
            options: its params, as options of the command line.
            era: `legacy`, which is its default too, `modern` or `auto`.
        """
        installed = environment("inspector")
        command = [node(), _LAUNCHER, "--cli", self._url, "--format", "json", "--protocol-era", era, "--method", method]
        done = subprocess.run(
            [*command, *options],
            cwd=installed,
            env={**os.environ, "HOME": str(self._home)},
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
        )
        said = json.loads(done.stdout)["result"] if done.stdout else None
        return Run(done.returncode, said, json.loads(done.stderr)["error"] if done.stderr else None)

    def call(self, tool: str, era: str = "legacy", **arguments: Any) -> Run:
        """Call a tool."""
        return self.run("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments), era=era)

    def history(self) -> list[str]:
        """What was done."""
        done: list[str] = self.call("history", "modern").result["structuredContent"]
        return done


@pytest.fixture(scope="module")
def inspector(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    """The Inspector in front of a help desk."""
    return Inspector(shared_url, tmp_path_factory.mktemp("home"))


@behaviour("CHT-1")
@ERAS
def test_it_lists_the_fallback_tool_only_where_it_would_be_asked_by_chat(inspector: Inspector, era: str) -> None:
    listed = inspector.run("tools/list", "--strict", era=era)
    names = [tool["name"] for tool in listed.result["tools"]]
    assert listed.code == 0
    assert {"list_tickets", "assign_ticket", "close_ticket"} < set(names)
    assert (FALLBACK_TOOL in names) is (era == "legacy")


@ERAS
def test_it_calls_what_asks_nothing(inspector: Inspector, era: str) -> None:
    tickets = inspector.call("list_tickets", era)
    content = tickets.result["structuredContent"]
    assert len(content["result"] if era == "legacy" else content) == 4
    before = inspector.history()
    assigned = inspector.call("assign_ticket", era, id="T-2", agent="billing")
    assert (assigned.code, assigned.error) == (0, None)
    assert assigned.result["structuredContent"] == {"id": "T-2", "assigned": True, "agent": "billing"}
    assert inspector.history() == [*before, "assigned T-2 to billing"]


@behaviour("CHT-3", "CHT-7", "CHT-9")
def test_it_is_asked_by_chat_and_another_run_cannot_answer(inspector: Inspector) -> None:
    before = inspector.history()
    asked = inspector.call("close_ticket", id="T-1")
    assert (asked.code, asked.error) == (0, None)
    pending = asked.result["_meta"]["elicitationPending"]
    assert pending["message"] == 'Close T-1 ("Cannot log in") and mail the customer that it is resolved?'
    assert asked.result["structuredContent"] == {"elicitationPending": pending}
    assert asked.result["content"][0]["text"].startswith("Nothing has been done yet")
    answer = {"elicitId": pending["elicitId"], "action": "accept", "content": {"confirm": True}}
    refused = inspector.call(FALLBACK_TOOL, **answer)
    assert refused.code == _TOOL_ERROR
    assert f"No pending elicitation found for ID: {pending['elicitId']}" in refused.result["content"][0]["text"]
    assert inspector.history() == before


@pytest.mark.parametrize("era", ["modern", "auto"])
def test_it_is_told_which_capability_a_tool_needs(inspector: Inspector, era: str) -> None:
    before = inspector.history()
    refused = inspector.call("close_ticket", era, id="T-1")
    assert (refused.code, refused.result) == (_FAILED, None)
    assert refused.error["message"] == (
        'close_ticket needs what this client does not declare: {"elicitation":{"form":{}}}'
    )
    assert inspector.history() == before


@ERAS
def test_it_shows_an_error_of_a_tool_as_one(inspector: Inspector, era: str) -> None:
    unknown = inspector.call("close_ticket", era, id="T-9")
    assert unknown.code == _TOOL_ERROR
    assert "Unknown ticket T-9" in unknown.result["content"][0]["text"]


@ERAS
def test_it_lists_prompts_and_resources_and_gets_one_of_each(inspector: Inspector, era: str) -> None:
    prompts = inspector.run("prompts/list", era=era).result["prompts"]
    resources = inspector.run("resources/list", era=era).result["resources"]
    assert "summarize_ticket" in [prompt["name"] for prompt in prompts]
    assert "desk://tickets" in [resource["uri"] for resource in resources]
    prompt = inspector.run("prompts/get", "--prompt-name", "summarize_ticket", "--prompt-args", "id=T-2", era=era)
    assert "Invoice total is wrong" in prompt.result["messages"][0]["content"]["text"]
    resource = inspector.run("resources/read", "--uri", "desk://tickets/T-2", era=era)
    assert json.loads(resource.result["contents"][0]["text"])["title"] == "Invoice total is wrong"


@ERAS
def test_it_is_told_that_a_prompt_or_a_resource_asks(inspector: Inspector, era: str) -> None:
    why = "asks its user" if era == "legacy" else "needs what this client does not declare"
    triage = inspector.run("prompts/get", "--prompt-name", "triage", era=era)
    assert (triage.code, triage.result) == (_FAILED, None)
    assert f"triage {why}" in triage.error["message"]
    report = inspector.run("resources/read", "--uri", "desk://report", era=era)
    assert (report.code, report.result) == (_FAILED, None)
    assert f"desk://report {why}" in report.error["message"]


def test_it_declares_no_elicitation_in_either_era(proxy: CuttingProxy, tmp_path: Path) -> None:
    """What the other tests rest on."""
    inspector = Inspector(proxy.url, tmp_path)
    inspector.call("list_tickets")
    inspector.call("list_tickets", "modern")
    assert proxy.count("client", rb'"method":"initialize"') == 1
    assert proxy.count("client", rb'"io.modelcontextprotocol/clientCapabilities":') > 0
    assert proxy.count("client", rb'"elicitation"') == 0
