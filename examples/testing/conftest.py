"""What the tests of the shop need: the server under test, as a fixture of the name `bridge`."""

import pytest
from shop import Shop, Till

from bridge import Bridge


@pytest.fixture
def till() -> Till:
    """A till of its own for each test."""
    return Till()


@pytest.fixture
def bridge(till: Till) -> Bridge:
    """The server that `mcp` and `mcp_each_client` connect to."""
    return Shop(till).bridge
