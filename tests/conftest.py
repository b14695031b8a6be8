"""Fixtures of all tests: a wire tap around everything that is served, and a store of each kind."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from bridge import Bridge, app
from bridge.asking.seal import KeyRing
from bridge.stores import MemoryStore, SealedStore, Store, open_store
from tests.behaviours.fleet import Fleet
from tests.redis_server import redis_server
from tests.wiretap import Tap, tap_asgi

Serve: TypeAlias = Callable[[Bridge], Awaitable[Any]]
"""Serves a bridge, as one more node, behind the wire tap: from a bridge to an ASGI app for `connect`."""


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what commands store without being told where out of the user's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def tap() -> Iterator[Tap]:
    """The wire tap of one test: what left the server against its revision fails the test."""
    tap = Tap()
    yield tap
    tap.assert_clean()


@pytest.fixture
async def closing() -> AsyncIterator[AsyncExitStack]:
    """What is closed after everything that is served has stopped."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def serve(tap: Tap, closing: AsyncExitStack) -> AsyncIterator[Serve]:
    """Serve bridges until the test is over."""
    async with AsyncExitStack() as stack:

        async def start(bridge: Bridge) -> Any:
            app = bridge.asgi()
            await stack.enter_async_context(app.lifespan())
            return tap_asgi(app, tap)

        yield start


@pytest.fixture
async def fleet(tap: Tap, closing: AsyncExitStack, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    """Nodes until the test is over."""
    async with AsyncExitStack() as stack:
        yield Fleet(tap, stack, monkeypatch)


FLEET_KEYS = KeyRing([bytes(range(32))])
"""What the nodes of a test's fleet share."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--default-store",
        choices=["memory", "sqlite", "redis"],
        default="memory",
        help="what a bridge keeps its state in where a test does not say: the whole suite runs on each",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--default-store") == "memory":
        return
    said = [item for item in items if "store" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=said)  # they run on each store in every run
    items[:] = [item for item in items if "store" not in getattr(item, "fixturenames", ())]
    for item in items:
        item.add_marker(pytest.mark.usefixtures("default_store"))


@pytest.fixture
async def default_store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    """Give each bridge without a store of its own one of the kind that was asked for."""
    kind = request.config.getoption("--default-store")
    at_rest = app._at_rest
    async with AsyncExitStack() as stack:

        def chosen(given: Store | str | None, keys: KeyRing | None) -> tuple[Store, KeyRing]:
            if given is not None:
                return at_rest(given, keys)
            store = _open(kind, request, tmp_path_factory.mktemp("store"))
            stack.push_async_callback(store.aclose)
            return at_rest(store, keys or FLEET_KEYS)

        monkeypatch.setattr(app, "_at_rest", chosen)
        yield


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A real Redis server for the whole session."""
    with redis_server() as url:
        yield url


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, closing: AsyncExitStack) -> Store:
    """A store of each kind in turn, empty; encrypted as a bridge does it."""
    store = _open(request.param, request, tmp_path)
    closing.push_async_callback(store.aclose)
    return store


def _open(kind: str, request: pytest.FixtureRequest, folder: Path) -> Store:
    if kind == "memory":
        return MemoryStore()
    if kind == "sqlite":
        return SealedStore(open_store(f"sqlite:///{folder}/state.db"), FLEET_KEYS)
    from bridge.stores.redis import RedisStore

    redis = RedisStore(request.getfixturevalue("redis_url"), prefix=f"test-{secrets.token_hex(4)}")
    return SealedStore(redis, FLEET_KEYS)
