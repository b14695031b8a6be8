"""What the run makes of what the suite says: nothing is known that is not so, and nothing is so that is not known."""

import json
from pathlib import Path

import pytest

from tests.conformance.legs import LEGS, Leg
from tests.conformance.page import page
from tests.conformance.running import Result, unlike
from tests.conformance.suite import Scenario, read_checks
from tests.conformance.verproxy import rewritten

GOOD, BAD = Scenario("good", (), ()), Scenario("bad", ("check: no",), ())


def leg(count: int = 2, **not_passed: str) -> Leg:
    return Leg(name="leg", title="a leg", revision="2026-07-28", count=count, not_passed=not_passed)


def test_a_leg_that_is_as_it_is_known_to_be_has_no_failures() -> None:
    assert unlike(leg(bad="a reason"), [GOOD, BAD]) == []


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (leg(), "bad did not pass: check: no"),
        (leg(bad="a reason", good="another"), "good passed, and is known not to"),
        (leg(bad="a reason", gone="another"), "there is no scenario gone"),
        (leg(3, bad="a reason"), "2 scenarios were run, not 3"),
    ],
    ids=str,
)
def test_whatever_is_not_as_known_is_a_failure(known: Leg, said: str) -> None:
    (failure,) = unlike(known, [GOOD, BAD])
    assert said in failure


@pytest.mark.parametrize(("status", "passed"), [("SUCCESS", True), ("WARNING", True), ("SKIPPED", False)])
def test_what_was_skipped_has_not_passed(tmp_path: Path, status: str, passed: bool) -> None:
    folder = tmp_path / "server-tools-list-2026-12-01T00-40-04-181Z"
    folder.mkdir()
    (folder / "checks.json").write_text(json.dumps([{"id": "check", "status": status}]))
    scenario = read_checks(folder / "checks.json", frozenset(), None)
    assert scenario.name == "tools-list"
    assert scenario.passed is passed


def test_every_reason_is_given_in_words_and_stands_on_the_page() -> None:
    results = [Result(each, (), ()) for each in LEGS]
    text = page(results)
    for each in LEGS:
        assert all(reason and reason in text for reason in each.not_passed.values())
        assert each.bare or each.name in text


def test_the_proxy_changes_nothing_but_the_revision_of_a_handshake() -> None:
    asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "x": [1]}}
    changed = rewritten(json.dumps(asked).encode(), "2024-11-05")
    assert changed is not None
    assert json.loads(changed) == {**asked, "params": {"protocolVersion": "2024-11-05", "x": [1]}}
    for other in (b"", b"[]", b'{"method":"tools/list"}', b'{"method":"initialize"}'):
        assert rewritten(other, "2024-11-05") is None
