"""Fixtures of the tests of what is wrapped: what leaves for it is tapped too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.upstreams.remote.modern import ModernLink
from bridge.upstreams.session import LegacyLink
from tests.upstreams.plain import Plain
from tests.wiretap import Tap
from tests.wiretap.upstream import TappedCarrier, TappedWire


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    return Plain(tmp_path)


@pytest.fixture(autouse=True)
def tapped_upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tap]:
    """Judge every message to a server behind the bridge; one that breaks its revision fails the test."""
    tap = Tap()
    session, modern = LegacyLink.__init__, ModernLink.__init__

    def tapped_session(self: LegacyLink, wire: Any, *args: Any, **options: Any) -> None:
        session(self, TappedWire(wire, tap), *args, **options)

    def tapped_modern(self: ModernLink, carrier: Any, *args: Any, **options: Any) -> None:
        modern(self, TappedCarrier(carrier, tap), *args, **options)

    monkeypatch.setattr(LegacyLink, "__init__", tapped_session)
    monkeypatch.setattr(ModernLink, "__init__", tapped_modern)
    yield tap
    tap.assert_clean()
