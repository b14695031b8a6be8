"""Nodes are killed while they work: no effect twice, none lost that was confirmed, and every call ends."""

from pathlib import Path

import pytest

from tests.load.chaos import chaos

pytestmark = [pytest.mark.fleet, pytest.mark.anyio, pytest.mark.timeout(240)]

SECONDS = 20


@pytest.mark.behaviour("MOD-10", "LEG-2")
async def test_no_effect_is_done_twice_and_none_is_lost_when_nodes_are_killed(
    shared: tuple[str, int], tmp_path: Path
) -> None:
    found = await chaos(tmp_path, *shared, SECONDS, seed=6)
    assert found.kills > 3
    assert found.verdict.faults == []
    assert found.verdict.confirmed > len(found.verdict.failed), found.reasons
