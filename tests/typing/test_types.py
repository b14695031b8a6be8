"""The types that the library gives its users, as mypy (strict) and pyright see them."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RIGHT = [HERE / "asking.py", HERE / "clients.py"]
JSON_SCHEMA = HERE / "json_schema.py"
WRONG = HERE / "wrong.py"
SECONDS = 150

Checker = Callable[..., tuple[str, dict[str, set[int]]]]
"""From files to what the checker says, and the lines that it finds wrong, by file name."""

# A cold cache of mypy takes longer than the other tests together.
pytestmark = pytest.mark.timeout(SECONDS + 30)


def run(*arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return ran.stdout


def mypy(*files: Path) -> tuple[str, dict[str, set[int]]]:
    said = run("mypy", "--strict", "--no-error-summary", *map(str, files))
    found: dict[str, set[int]] = {}
    for match in re.finditer(r"^(.+?):(\d+)(?::\d+)?: error:", said, re.MULTILINE):
        found.setdefault(Path(match[1]).name, set()).add(int(match[2]))
    return said, found


def pyright(*files: Path) -> tuple[str, dict[str, set[int]]]:
    said = run("pyright", "--pythonpath", sys.executable, "--outputjson", *map(str, files))
    found: dict[str, set[int]] = {}
    for problem in json.loads(said)["generalDiagnostics"]:
        if problem["severity"] == "error":
            found.setdefault(Path(problem["file"]).name, set()).add(problem["range"]["start"]["line"] + 1)
    return said, found


@pytest.fixture(params=[mypy, pyright], ids=["mypy", "pyright"], scope="module")
def checker(request: pytest.FixtureRequest) -> Checker:
    if request.param is pyright:
        pytest.importorskip("pyright")
        try:
            # Its first run fetches pyright itself.
            run("pyright", "--version")
        except (AssertionError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"pyright cannot run here: {error}")
    checker: Checker = request.param
    return checker


def test_what_users_get_has_the_type_that_it_should_have(checker: Checker) -> None:
    said, found = checker(*RIGHT)
    assert found == {}, said


def test_an_answer_to_a_json_schema_in_a_variable_is_a_dict(checker: Checker) -> None:
    said, found = checker(JSON_SCHEMA)
    assert found == {}, said


def test_wrong_uses_are_found_and_nothing_else(checker: Checker) -> None:
    lines = WRONG.read_text().splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if "# error" in line}
    said, found = checker(WRONG)
    assert found == {WRONG.name: wanted}, said
