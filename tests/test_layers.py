"""Imports go one way: a module imports only from layers above it, or from its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LAYERS = (
    "errors",
    "codes",
    "protocol",
    "asking",
    "kinds",
    "keys",
    "stores",
    "node",
    "publishing",
    "session",
    "sessions",
    "upstreams",
    "content",
    "wanted",
    "claims",
    "calls",
    "counting",
    "ownership",
    "pending",
    "sealed_pending",
    "routes",
    "server",
    "explaining",
    "eras",
    "observing",
    "transports",
    "application",
    "pages",
    "given",
    "app",
    "testing",
    "demo",
    "cli",
    "__main__",
)
"""From the top, as in docs/architecture.md. `__init__.py` only hands names on and stands outside the order."""

ROOT = Path(__file__).parent.parent / "bridge"
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
PURE = ("protocol", "asking")
IMPURE = {"anyio", "asyncio", "time", "random", "socket", "os", "threading", "secrets", "pathlib"}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""
            if node.module == "bridge":
                yield from (f"bridge.{alias.name}" for alias in node.names)


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_layers_above_it(path: Path) -> None:
    own = LAYERS.index(layer(path))
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "bridge" and len(parts) > 1 and parts[1] in LAYERS:
            assert LAYERS.index(parts[1]) <= own, f"{path.relative_to(ROOT)} imports {name}, which is below it"


@pytest.mark.parametrize("path", [path for path in MODULES if layer(path) in PURE], ids=lambda path: path.name)
def test_the_core_does_no_io_and_knows_no_clock(path: Path) -> None:
    assert IMPURE.isdisjoint(name.split(".")[0] for name in imported(path))
    tree = ast.parse(path.read_text())
    assert not any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in ast.walk(tree))


def test_every_module_is_in_a_layer() -> None:
    assert {layer(path) for path in MODULES} <= set(LAYERS)
