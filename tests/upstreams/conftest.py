"""Fixtures of the tests of what is wrapped."""

from pathlib import Path

import pytest

from tests.upstreams.plain import Plain


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    return Plain(tmp_path)
