"""The help desk over a real socket, for one test or for all of a module."""

from collections.abc import Iterator

import pytest

from tests.peers.cutting_proxy import CuttingProxy, cutting_proxy
from tests.peers.demo_server import demo_server


@pytest.fixture
def server_port() -> Iterator[int]:
    """A help desk of the test's own."""
    with demo_server() as port:
        yield port


@pytest.fixture(scope="module")
def shared_url() -> Iterator[str]:
    """The MCP endpoint of a help desk that the tests of a module share."""
    with demo_server() as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
def url(server_port: int) -> str:
    """The MCP endpoint of the test's help desk."""
    return f"http://127.0.0.1:{server_port}/mcp"


@pytest.fixture
def proxy(server_port: int) -> Iterator[CuttingProxy]:
    """A proxy in front of the test's help desk."""
    with cutting_proxy(server_port) as proxy:
        yield proxy
