"""The bridge that the runs serve, by `python -m bridge serve tests/load/server.py:bridge`; it can be asked its size."""

import asyncio
import gc
import os
from typing import Any

from pydantic import BaseModel

from bridge import Bridge, Context, KeyRing
from bridge.session import SessionLimits
from bridge.stores import MemoryStore, open_store
from bridge.stores.redis import RedisStore

PATIENCE_SECONDS = float(os.environ.get("LOAD_STORE_PATIENCE_SECONDS", "10"))
IDLE_SECONDS = float(os.environ.get("LOAD_IDLE_SECONDS", "3600"))


class Confirm(BaseModel):
    confirm: bool


def _store() -> Any:
    url = os.environ.get("LOAD_STORE", "memory")
    return RedisStore(url, wait_seconds=PATIENCE_SECONDS) if url.startswith("redis:") else open_store(url)


store = _store()
bridge = Bridge(
    "load",
    elicitation=True,
    store=store,
    keys=KeyRing([b"k" * 32]),
    sessions=SessionLimits(idle_seconds=IDLE_SECONDS),
)


@bridge.tool
async def add(a: int, b: int) -> int:
    return a + b


@bridge.tool
async def close_ticket(id: str, ctx: Context) -> dict[str, bool]:  # noqa: A002 - the tool's argument
    answer = await ctx.elicit(f"Close {id}?", Confirm)
    return {"closed": answer.content is not None and answer.content.confirm}


@bridge.tool
async def size() -> dict[str, int]:
    """What only the process itself knows of its size."""
    gc.collect()
    kept = len(store._records.items) + len(store._logs.items) if isinstance(store, MemoryStore) else 0
    return {"tasks": len(asyncio.all_tasks()), "keys": kept}
