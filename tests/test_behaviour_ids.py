"""Every behaviour that is asked for has a test that names it."""

import ast
import re
from pathlib import Path

import pytest

from tests.behaviours.ids import ASKED, NOT_YET

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "shared" / "behaviours.md"


def named() -> set[str]:
    """The ids in `behaviour("…")` and `@pytest.mark.behaviour("…")` anywhere in the tests."""
    found: set[str] = set()
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("behaviour"):
                found |= {
                    arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
                }
    return found


def test_every_behaviour_that_is_asked_for_is_named_by_a_test() -> None:
    assert sorted(ASKED - named()) == []


def test_tests_name_only_behaviours_that_there_are() -> None:
    assert sorted(named() - ASKED - NOT_YET) == []
    assert not ASKED & NOT_YET


@pytest.mark.skipif(not SOURCE.exists(), reason="the list of behaviours is not beside this checkout")
def test_the_lists_hold_every_behaviour_of_the_source() -> None:
    assert set(re.findall(r"^- ([A-Z]{3}-\d+) ", SOURCE.read_text(), re.MULTILINE)) == ASKED | NOT_YET
