"""A fleet whose nodes share nothing but their store: real clients notice nothing of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.demo.desk import Desk
from tests.fleet.conversations import conversation, judge
from tests.fleet.crowd import Crowd
from tests.fleet.nodes import Fleet, fleet

pytestmark = [pytest.mark.fleet, pytest.mark.anyio, pytest.mark.timeout(240)]
behaviour = pytest.mark.behaviour

CONVERSATIONS = 200


@pytest.fixture
def nodes(shared: tuple[str, int], tmp_path: Path) -> Iterator[Fleet]:
    """A fleet on either kind of store."""
    with fleet(tmp_path, *shared) as running:
        yield running


@behaviour("LEG-2", "LEG-7", "MOD-8", "CHT-8", "CHT-14")
async def test_every_effect_happens_once_though_every_request_goes_to_another_node(nodes: Fleet) -> None:
    store = nodes.open_store()
    desk = Desk(store)
    planned = [await conversation(desk, f"Case {number}") for number in range(CONVERSATIONS)]
    crowd = Crowd(nodes.url, planned)
    try:
        told = crowd.told()
    finally:
        crowd.end()
    assert [each.failed for each in told if each.failed] == []
    verdict = await judge(store, [(each.conversation, each.calls) for each in told])
    await store.aclose()
    assert verdict.failed == []
    assert verdict.faults == []
    assert verdict.confirmed == sum(len(each.deeds) for each in planned)
    nodes.assert_nothing_crashed()
