"""Short runs of the load: what a node and its store hold levels off, and idle sessions cost a call nothing."""

import pytest

from tests.load.abandoned import abandoned
from tests.load.idle import idle
from tests.load.runs import STORES

pytestmark = [pytest.mark.fleet, pytest.mark.timeout(180)]
behaviour = pytest.mark.behaviour

SECONDS = 20


@behaviour("LEG-12")
@pytest.mark.parametrize("store", STORES)
def test_what_abandoned_sessions_leave_behind_levels_off(store: str) -> None:
    found = abandoned(store, SECONDS)
    sessions = found["thirds"][-1]["keys"]
    assert sessions >= 200 * found["idle_seconds"], "what is counted has to hold the sessions that have not expired"


@behaviour("LEG-12")
@pytest.mark.parametrize("store", STORES)
def test_a_call_is_as_fast_with_many_idle_sessions_and_open_questions(store: str) -> None:
    found = idle(store, 2_000, 500)
    for what in ("call", "question"):
        assert found[what]["processor_ratio"] <= 1.3, found  # 1.2 in the long run, which others disturb less
    before, with_sessions, _ = found["resident_bytes"]
    assert with_sessions - before < 2_000 * 20_000, found
