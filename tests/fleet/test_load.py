"""Short runs of the load: what a node and its store hold levels off, and idle sessions cost a call nothing."""

from pathlib import Path

import pytest

from tests.load.abandoned import abandoned
from tests.load.idle import idle
from tests.redis_server import redis_server

pytestmark = [pytest.mark.fleet, pytest.mark.anyio, pytest.mark.timeout(180)]
behaviour = pytest.mark.behaviour

SECONDS = 20


@behaviour("LEG-12")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis"])
async def test_what_abandoned_sessions_leave_behind_levels_off(tmp_path: Path, kind: str) -> None:
    with redis_server() as redis:
        url = {"memory": "memory", "sqlite": f"sqlite:///{tmp_path}/state.db", "redis": redis}[kind]
        found = await abandoned(url, SECONDS)
    assert found.opened > 50 * SECONDS, "too slow a machine to say anything"
    assert found.levels_off(), found


@behaviour("LEG-12")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis"])
async def test_a_call_is_as_fast_with_many_idle_sessions_and_open_questions(tmp_path: Path, kind: str) -> None:
    with redis_server() as redis:
        url = {"memory": "memory", "sqlite": f"sqlite:///{tmp_path}/state.db", "redis": redis}[kind]
        found = await idle(url, 2_000, 500)
    assert found.after.sessions == 2_001
    assert found.after.pending == 500
    assert found.loaded_call_ms <= 1.3 * found.call_ms, found  # 1.2 in the long run, which others disturb less
    assert found.bytes_per_session < 20_000, found
