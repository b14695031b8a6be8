"""The help desk's memory: whoever shares its store sees the same desk, and each effect once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge import ToolError
from bridge.demo.desk import Desk
from bridge.demo.helpdesk import make
from bridge.stores import MemoryStore, Store
from bridge.testing import accept, connect
from tests.conftest import FLEET_KEYS, Serve

SHARED = pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)
MORE_THAN_ARE_KEPT_IN_THE_LOG = 10_500


async def test_who_shares_a_store_sees_the_same_desk(store: Store) -> None:
    here, there = Desk(store), Desk(store)
    assert list(await here.tickets()) == list(await there.tickets()) == ["T-1", "T-2", "T-3", "T-4"]
    await here.close("T-1")
    opened = await there.open("Printer on fire", "high", "general")
    assert (await here.find("T-5")) == opened
    number = await here.reserve("T-5", 20)
    assert await there.refund("T-5", 20, number) is True
    assert await here.refund("T-5", 20, number) is False
    assert await here.outbox() == await there.outbox() == await Desk(store).outbox()
    assert await here.history() == await there.history() == await Desk(store).history()
    assert [line.split()[0] for line in await here.history()] == ["closed", "opened", "reserved", "refunded"]


async def test_effects_at_once_on_several_nodes_happen_once_each(store: Store) -> None:
    nodes = [Desk(store) for _ in range(3)]
    opened: list[str] = []
    deleted: list[bool] = []

    async def open_and_delete(desk: Desk, title: str) -> None:
        opened.append((await desk.open(title, "low", "general")).id)
        try:
            await desk.delete("T-4")
        except ToolError:
            deleted.append(False)
        else:
            deleted.append(True)

    async with anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(open_and_delete, nodes[number % 3], f"Case {number}")
    assert sorted(opened) == sorted(f"T-{number}" for number in range(5, 65)), "no number twice"
    assert deleted.count(True) == 1
    seen = [await desk.tickets() for desk in nodes]
    assert seen[0] == seen[1] == seen[2]
    assert len({ticket.title for ticket in seen[0].values()}) == 3 + 60


async def test_the_desk_is_whole_after_its_log_was_trimmed() -> None:
    store = MemoryStore()
    desk = Desk(store)
    for number in range(MORE_THAN_ARE_KEPT_IN_THE_LOG):
        await desk.rename("T-1", f"Case {number}")
    page = await store.read("demo/desk", limit=1)
    assert page.first_seq > 1
    late = Desk(store)
    assert (await late.find("T-1")).title == f"Case {MORE_THAN_ARE_KEPT_IN_THE_LOG - 1}"
    assert await late.history() == await desk.history()
    assert len(await late.history()) == MORE_THAN_ARE_KEPT_IN_THE_LOG


async def test_a_desk_whose_store_lost_its_data_begins_anew_with_the_others() -> None:
    store = MemoryStore()
    here, there = Desk(store), Desk(store)
    await here.close("T-1")
    await there.history()
    for desk in (here, there):
        desk._store = MemoryStore()
    assert await here.history() == await there.history() == []
    assert (await here.find("T-1")).status == "open"


async def test_a_desk_that_is_restarted_is_as_new_at_every_node(store: Store) -> None:
    here, there = Desk(store), Desk(store)
    await here.open("Printer on fire", "high", "general")
    await there.restart()
    assert await here.history() == []
    assert list(await here.tickets()) == ["T-1", "T-2", "T-3", "T-4"]
    assert (await here.open("Again", "high", "general")).id == "T-5"


@asynccontextmanager
async def two_nodes(serve: Serve, store: Store) -> AsyncIterator[tuple[Any, Any]]:
    yield await serve(make(store=store, keys=FLEET_KEYS)), await serve(make(store=store, keys=FLEET_KEYS))


@SHARED
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_who_watches_a_ticket_at_one_node_hears_of_its_change_at_another(
    serve: Serve, store: Store, revision: str
) -> None:
    uri = "desk://tickets/T-2"
    async with (
        two_nodes(serve, store) as (one, other),
        connect(one, revision=revision) as watcher,
        connect(other) as actor,
    ):
        if revision == "2026-07-28":
            wanted = {"notifications": {"resourceSubscriptions": [uri]}}
            stream = await watcher.raw.post(
                watcher._completed({"id": 1, "method": "subscriptions/listen", "params": wanted})
            )
        else:
            await watcher.request("resources/subscribe", {"uri": uri})
            stream = await watcher.raw.get()
        actor.on_elicitation(lambda asked: accept({"title": "Paid twice"}))
        await actor.tools.call("rename_ticket", {"id": "T-2"})
        with anyio.fail_after(5):
            async for message in stream.messages():
                if message["method"] == "notifications/resources/updated":
                    assert message["params"]["uri"] == uri
                    break
        assert "Paid twice" in (await watcher.request("resources/read", {"uri": uri}))["contents"][0]["text"]
