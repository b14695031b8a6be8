"""`docs/errors.md` says what the code says, and every code of the library is on it."""

import ast
import importlib.util
import inspect
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from types import ModuleType

import pytest

from bridge import codes, errors
from bridge.protocol import messages

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "bridge").rglob("*.py"))
HTTP_MODULES = [
    *(ROOT / "bridge" / "transports").glob("*.py"),
    *(ROOT / "bridge" / name for name in ("app.py", "server.py", "protocol/inbound.py")),
]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_errors", ROOT / "docs" / "make_errors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def numbers(path: Path) -> Iterator[int]:
    """Every whole number that is written in a module."""
    for node in nodes(path):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            if type(node.operand.value) is int:
                yield -node.operand.value
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node.value


def result_codes(path: Path) -> Iterator[str]:
    """Every code that a module gives to a result, by `error_result`, `ToolError` or `failed`."""
    for node in nodes(path):
        name = ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in ("error_result", "ToolError", "failed"):
            position = 2 if name == "failed" else 1
            given = [*node.args[position : position + 1], *(word.value for word in node.keywords if word.arg == "code")]
            yield from (str(each.value) for each in given if isinstance(each, ast.Constant) and each.value is not None)


def test_the_page_is_what_the_generator_makes(generator: ModuleType) -> None:
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run: python -m docs.make_errors"


def test_every_exception_is_on_the_page_in_the_tree_and_in_the_list_of_names(generator: ModuleType) -> None:
    found = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, BaseException) and kind.__module__ == errors.__name__
    }
    assert found == set(errors.__all__)
    for name in found:
        assert f"### `{name}`" in generator.page()
        assert name in (inspect.getdoc(errors) or "")


def test_the_result_codes_of_the_table_are_those_that_the_library_uses() -> None:
    assert {code for path in MODULES for code in result_codes(path)} == set(codes.RESULT_CODES)


def test_the_json_rpc_codes_of_the_table_are_those_that_the_library_uses() -> None:
    known = {value for value in vars(messages).values() if type(value) is int and -33000 < value < -32000}
    assert known == set(codes.RPC_CODES)
    written = {number for path in MODULES for number in numbers(path) if -33000 < number < -32000}
    assert written == known


def test_the_http_statuses_of_the_table_are_those_that_the_library_uses() -> None:
    statuses = {status.value for status in HTTPStatus} - {HTTPStatus.OK}
    written = {number for path in HTTP_MODULES for number in numbers(path)}
    assert {number for number in written & statuses if number > 200} == set(codes.HTTP_STATUSES)


def test_the_tables_cannot_be_changed_and_say_something_of_everything(generator: ModuleType) -> None:
    for table in (codes.RESULT_CODES, codes.RPC_CODES, codes.HTTP_STATUSES):
        with pytest.raises(TypeError):
            table[0] = None  # type: ignore[index]
        for about in table.values():
            assert all(about)
            assert "|" not in "".join(about), "it would end a cell of the page's table"
