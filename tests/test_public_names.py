"""What the packages promise by name: sorted, there, and at the same place for Python and for type checkers."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ["bridge", "bridge.testing"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_there_and_none_is_twice(name: str) -> None:
    package = import_module(name)
    assert len(set(package.__all__)) == len(package.__all__)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing


@pytest.mark.parametrize("name", PACKAGES)
def test_a_type_checker_finds_each_name_where_python_does(name: str) -> None:
    package = import_module(name)
    tree = ast.parse((ROOT / name.replace(".", "/") / "__init__.py").read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imports = {
        alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imports == package._HOMES
    assert set(imports) == set(package.__all__) - {"__version__"}
