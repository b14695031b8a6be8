"""Nodes are killed while they work: no effect twice, none lost that was confirmed, and every call ends."""

from pathlib import Path

import pytest

from tests.load.chaos import chaos

pytestmark = [pytest.mark.fleet, pytest.mark.anyio, pytest.mark.timeout(240)]

SECONDS = 20


@pytest.mark.behaviour("MOD-10", "LEG-2")
@pytest.mark.parametrize(("kind", "size"), [("redis", 3), ("sqlite", 4)])
async def test_no_effect_is_done_twice_and_none_is_lost_when_nodes_are_killed(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, size: int
) -> None:
    store = f"{request.getfixturevalue('redis_url')}" if kind == "redis" else f"sqlite:///{tmp_path}/state.db"
    found = await chaos(tmp_path, store, size, SECONDS, seed=6)
    print(found)
    assert found.kills > 3
    assert found.verdict.faults == []
    assert found.verdict.confirmed > len(found.verdict.failed), found.reasons
