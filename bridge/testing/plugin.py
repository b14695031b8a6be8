"""The pytest plugin: fixtures that give an in-process client of the server under test.

A test takes `mcp`, or `mcp_each_client` to run once for each kind of client, and its project has a fixture `bridge`
that returns the server: a `Bridge`, or anything that `Bridge.wrap` takes. Tests are async; with neither pytest-asyncio
nor anyio's plugin asked for, this one runs them.

It is loaded in every project that has the package installed, so it imports nothing of it until a fixture is used.
"""

import inspect
import re
from collections.abc import Callable, Generator
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bridge.kinds import ClientKind
    from bridge.testing.tester import Tester

__all__ = ["bridge", "mcp", "mcp_each_client"]

_MARK = "mcp_clients"
_MAX_WIRE_LINES = 400
_tester = pytest.StashKey["Tester"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--mcp-update`."""
    parser.getgroup("mcp").addoption(
        "--mcp-update", action="store_true", help="write the saved wires and histories of MCP tests anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    text = "the kinds of client that `mcp` or `mcp_each_client` is, by name; asked=True: those whose user can be asked"
    config.addinivalue_line("markers", f"{_MARK}(*names, asked=False): {text}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with `mcp_each_client` once for each kind of client."""
    if "mcp_each_client" in metafunc.fixturenames:
        kinds = _kinds(metafunc.definition)
        metafunc.parametrize("mcp_each_client", kinds, ids=[kind.name for kind in kinds], indirect=True)


@pytest.fixture
def bridge() -> Any:
    """The server under test: to be defined in the project, which this only says."""
    pytest.fail(
        "the fixtures mcp and mcp_each_client need a fixture `bridge`: define one in conftest.py that returns the "
        "server under test, a Bridge or anything that Bridge.wrap takes",
        pytrace=False,
    )


@pytest.fixture
def mcp(request: pytest.FixtureRequest, bridge: Any) -> "Tester":
    """A client of the server that `bridge` returns: modern with forms, or what `mcp_clients` names."""
    kinds = _kinds(request.node) if request.node.get_closest_marker(_MARK) else _kinds(None)[:1]
    if len(kinds) != 1:
        named = ", ".join(kind.name for kind in kinds)
        pytest.fail(f"mcp is one client, and mcp_clients names {named}: take mcp_each_client", pytrace=False)
    return _made(request, bridge, kinds[0])


@pytest.fixture
def mcp_each_client(request: pytest.FixtureRequest, bridge: Any) -> "Tester":
    """A client of the server that `bridge` returns, of each kind in turn: the test runs once for each."""
    return _made(request, bridge, request.param)


def _made(request: pytest.FixtureRequest, target: Any, kind: "ClientKind") -> "Tester":
    from bridge.testing.tester import Tester

    if _tester in request.node.stash:
        pytest.fail("a test takes mcp or mcp_each_client, not both", pytrace=False)
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    update = request.config.getoption("--mcp-update") is True
    tester = request.node.stash[_tester] = Tester(target, kind, request.path.parent, name, update=update)
    return tester


def _kinds(item: Any) -> "tuple[ClientKind, ...]":
    """The kinds of client that a test is marked with; without a mark all."""
    from bridge.asking.routes import RouteName, choose
    from bridge.kinds import KINDS, kind_named

    marker = None if item is None else item.get_closest_marker(_MARK)
    if item is None or marker is None:
        return KINDS
    try:
        kinds = tuple(map(kind_named, marker.args)) or KINDS
    except KeyError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error.args[0]}") from None
    if marker.kwargs.get("asked"):
        return tuple(kind for kind in kinds if choose(kind.profile, "form").route is not RouteName.REFUSE)
    return kinds


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test run while its client is connected, in the same task."""
    tester = item.stash.get(_tester, None)
    if tester is not None and isinstance(item, pytest.Function):
        if not inspect.iscoroutinefunction(item.obj):
            pytest.fail(f"{item.name} uses a client, so it must be an async function", pytrace=False)
        item.obj = _connected(item.obj, tester)
    return (yield)


def _connected(test: Callable[..., Any], tester: "Tester") -> Callable[..., Any]:
    @wraps(test)
    async def connected(*args: Any, **kwargs: Any) -> None:
        async with tester.open():
            await test(*args, **kwargs)
            tester.check_answers()

    return connected


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test with a client that no other plugin runs."""
    if _tester not in pyfuncitem.stash or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    import anyio

    names = pyfuncitem._fixtureinfo.argnames
    anyio.run(partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Show what went over the wire where a test has failed."""
    report = yield
    tester = item.stash.get(_tester, None)
    if tester is not None and report.when == "call" and report.failed and tester.wire.exchanges:
        lines = tester.wire.text().splitlines()
        cut = [f"({len(lines) - _MAX_WIRE_LINES} lines before)"] if len(lines) > _MAX_WIRE_LINES else []
        report.sections.append((f"MCP wire, {tester.kind.title}", "\n".join([*cut, *lines[-_MAX_WIRE_LINES:]])))
    return report
