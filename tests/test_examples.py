"""The examples run as they are written, for a client of each kind, and the README's code does."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bridge import Bridge
from bridge.testing import accept, connect, decline
from tests.conftest import Serve

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CLIENTS: list[dict[str, Any]] = [{}, {"revision": "2025-06-18"}, {"revision": "2024-11-05"}]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_exposes_its_bridge(path: Path) -> None:
    assert isinstance(load(path).bridge, Bridge)


@pytest.mark.parametrize("client", CLIENTS, ids=str)
async def test_confirm_acts_only_on_a_yes(serve: Serve, client: dict[str, Any]) -> None:
    example = load(ROOT / "examples" / "confirm.py")
    async with connect(await serve(example.bridge), **client) as mcp:
        assert (await mcp.tools.call("close_ticket", {"ticket": "T-1"})).json()["closed"] is False
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        assert (await mcp.tools.call("close_ticket", {"ticket": "T-1"})).json() == {"closed": True}
    assert example.closed == ["T-1"]


@pytest.mark.parametrize("client", CLIENTS, ids=str)
async def test_step_charges_once(serve: Serve, client: dict[str, Any]) -> None:
    example = load(ROOT / "examples" / "step.py")
    async with connect(await serve(example.bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: decline())
        assert (await mcp.tools.call("buy", {"amount": 5})).text() == "Not bought."
    assert example.charges == [5]
    assert example.cancelled == [1]


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL))
async def test_the_readmes_code_runs(block: str) -> None:
    scope: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block, "README.md", "exec"), scope)
    tests = [item for name, item in scope.items() if name.startswith("test_")]
    assert tests or "bridge" in scope
    for test in tests:
        await test()
