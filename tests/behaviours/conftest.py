"""What the tests of the transports begin with: a bridge whose tools do as `works` says, in process."""

from typing import Any

import pytest

from bridge import Bridge
from tests.behaviours.works import Work, make
from tests.conftest import Serve


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def bridge(work: Work) -> Bridge:
    """It has tools and a resource, and no prompts."""
    return make(work)


@pytest.fixture
async def app(bridge: Bridge, serve: Serve) -> Any:
    return await serve(bridge)
