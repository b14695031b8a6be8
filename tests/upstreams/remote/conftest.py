"""What every test of this folder is held to: it leaves no process, no task and no descriptor behind."""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.wiretap import Tap

_SETTLE_SECONDS = 5


def _processes() -> set[int]:
    """The children of this process that are alive."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(folder.name))
    return found


def _tasks() -> "set[asyncio.Task[Any]]":
    """The tasks that are under way, without those by which the test runner waits."""
    return {task for task in asyncio.all_tasks() if "TestRunner" not in repr(task.get_coro())}


def _descriptors() -> int:
    """How many descriptors are open, but for those of /dev/null: uvloop keeps one for good."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += os.readlink(link) != os.devnull
    return found


@pytest.fixture(autouse=True)
async def nothing_left_behind(anyio_backend: object) -> AsyncIterator[None]:
    """Compare what is there before the test with what is there after it."""
    if sys.platform != "linux":
        yield
        return
    tasks, processes, descriptors = _tasks(), _processes(), _descriptors()
    yield
    gc.collect()
    with anyio.move_on_after(_SETTLE_SECONDS):
        # What has been told to end, such as the transport of a socket, does so within a moment.
        while _tasks() - tasks or _processes() - processes or _descriptors() > descriptors:  # noqa: ASYNC110
            await anyio.sleep(0.01)
    assert _tasks() - tasks == set()
    assert _processes() - processes == set()
    assert _descriptors() <= descriptors


@pytest.fixture
def tapped_upstream() -> Tap:
    """No tap here: these tests say on purpose what no client of a revision would, to see it carried as it is."""
    return Tap()
