"""Stores that a fleet has for itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.load.chaos import SIZES
from tests.redis_server import redis_server


@pytest.fixture(params=SIZES)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The URL of an empty store, and how many nodes share it: three a Redis, four a file."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/state.db", SIZES["sqlite"]
        return
    with redis_server() as url:
        yield url, SIZES["redis"]
