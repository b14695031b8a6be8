"""What Prometheus reads at `/metrics`."""

import subprocess
import sys
from typing import Any

import aiohttp
import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bridge import Bridge, Context
from bridge.errors import StoreUnavailable
from bridge.observing import metrics as observed
from bridge.stores import MemoryStore, Store
from bridge.stores.base import Record
from bridge.testing import accept, check_store, connect
from tests.conftest import Serve
from tests.operations.processes import REPOSITORY, modern, serving

Series = dict[str, float]


def make(**options: Any) -> Bridge:
    bridge = Bridge("counted", elicitation=True, metrics=True, **options)

    @bridge.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @bridge.tool
    async def ask(ctx: Context) -> bool:
        return (await ctx.elicit("Really?", bool)).accepted

    @bridge.tool
    async def fail() -> str:
        raise ValueError("no")

    return bridge


async def look(app: Any) -> Series:
    """Every series, by its name and labels."""
    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    await app({"type": "http", "path": "/metrics", "root_path": "", "method": "GET", "headers": []}, None, send)
    assert sent[0]["status"] == 200
    return read(sent[1]["body"].decode())


def read(page: str) -> Series:
    return {
        f"{sample.name.removeprefix('mcp_bridge_')}{{{_labels(sample.labels)}}}": sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


async def test_calls_are_counted_by_the_route_that_asked_and_how_they_ended(serve: Serve) -> None:
    app = await serve(make())
    async with connect(app) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        await mcp.tools.call("add", {"a": 1, "b": 2})
        await mcp.tools.call("ask")
        await mcp.tools.call("fail")
        await mcp.tools.list()
        await mcp.raw.request({"method": "tools/call", "params": {"name": "nothing", "arguments": {}}})
    async with connect(app, revision="2025-06-18", info={"name": "forms", "version": "1"}) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        await mcp.tools.call("ask")
    async with connect(app, revision="2025-03-26", info={"name": "chats", "version": "1"}) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        await mcp.tools.call("ask")
    seen = await look(app)
    call = "calls_total{method=tools/call,outcome="
    assert seen[f"{call}complete,route=none}}"] == 3, "add, and each call that brought an answer"
    assert seen[f"{call}asked,route=rounds}}"] == 1
    assert seen[f"{call}complete,route=push}}"] == 1
    assert seen[f"{call}asked,route=chat}}"] == 1
    assert seen[f"{call}tool_error,route=none}}"] == 1
    assert seen[f"{call}error,route=none}}"] == 1
    assert seen["rounds_total{outcome=complete,route=rounds}"] == 1
    assert seen["rounds_total{outcome=complete,route=chat}"] == 1
    assert {name: value for name, value in seen.items() if name.startswith("questions_total")} == {
        f"questions_total{{route={route}}}": 1 for route in ("rounds", "push", "chat")
    }
    assert seen["sessions_opened_total{client=forms,revision=2025-06-18}"] == 1
    assert seen["sessions_opened_total{client=chats,revision=2025-03-26}"] == 1
    assert seen["sessions{}"] == 2
    assert seen["requests_total{method=tools/list,outcome=complete}"] >= 1
    assert seen["errors_total{code=-32602}"] == 1
    assert seen["store_seconds_count{operation=put}"] > 0


async def test_what_is_open_is_counted_while_it_is(serve: Serve) -> None:
    app = await serve(make())
    async with connect(app, revision="2025-06-18") as mcp, anyio.create_task_group() as tasks:
        asked, answered = anyio.Event(), anyio.Event()

        async def wait(question: Any) -> Any:
            asked.set()
            await answered.wait()
            return accept({"confirm": True})

        mcp.on_elicitation(wait)
        tasks.start_soon(mcp.tools.call, "ask")
        with anyio.fail_after(5):
            await asked.wait()
        assert (await look(app))["open_questions{route=push}"] == 1
        answered.set()
    assert (await look(app))["open_questions{route=push}"] == 0


async def test_what_clients_say_makes_no_series_without_end(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "MAX_CLIENTS", 3)
    app = await serve(make())
    for number in range(6):
        async with connect(app, revision="2025-06-18", info={"name": f"client {number}", "version": "1"}) as mcp:
            await mcp.raw.request({"method": f"made/up{number}", "params": {}})
    async with connect(app, revision="2025-06-18", info={"name": "x" * 1000, "version": "1"}):
        pass
    seen = await look(app)
    opened = {name: value for name, value in seen.items() if name.startswith("sessions_opened_total")}
    assert len(opened) == 4
    assert opened["sessions_opened_total{client=other,revision=2025-06-18}"] == 4
    assert seen["requests_total{method=other,outcome=error}"] == 6
    assert not any("made/up" in name for name in seen)


async def test_a_store_that_is_away_makes_no_page_wait_for_it_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(MemoryStore):
        away = False

        async def get(self, key: str) -> Record | None:
            if self.away:
                raise StoreUnavailable("away")
            return await super().get(key)

        async def count(self, family: str) -> int:
            if self.away:
                await anyio.sleep_forever()
            return await super().count(family)

    monkeypatch.setattr(observed, "_LOOK_SECONDS", 0.05)
    store = Away()
    app = make(store=store).asgi()
    async with app.lifespan():
        assert (await look(app))["sessions{}"] == 0
        store.away = True
        with pytest.raises(StoreUnavailable):
            await app.node.store.get("x")
        seen = await look(app)
        assert str(seen["sessions{}"]) == "nan"
        assert seen["store_errors_total{operation=get}"] == 1


async def test_a_store_that_is_looked_on_is_a_store_as_before() -> None:
    from bridge.observing.store import ObservedStore

    async def make_store() -> Store:
        return ObservedStore(MemoryStore(), lambda operation, seconds, did: None)

    await check_store(make_store)


async def test_nothing_is_served_or_counted_where_it_is_not_asked_for() -> None:
    app = Bridge("quiet").asgi()
    async with app.lifespan():
        with pytest.raises(AssertionError):
            await look(app)
        assert type(app.parts.modern).__name__ == "ModernEra"
        assert type(app.node.store) is MemoryStore


@pytest.mark.parametrize("how", ["bridge"])
async def test_a_real_process_serves_metrics(how: str) -> None:
    command = ("bridge", "demo", "--metrics", "--log-level", "warning", "--port")
    with serving(*command) as server:
        async with aiohttp.ClientSession() as http:
            async with http.post(f"{server.url}/mcp", **modern(1, "list_tickets", {})) as reply:
                assert reply.status == 200
            async with http.get(f"{server.url}/metrics") as reply:
                assert reply.headers["Content-Type"].startswith("text/plain")
                seen = read(await reply.text())
    assert sum(value for name, value in seen.items() if name.startswith("calls_total{")) == 1
    assert seen["process_resident_memory_bytes{}"] > 0


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("prometheus_client", "from bridge import Bridge; Bridge('b', metrics=True)", "metrics"),
        ("opentelemetry", "import bridge.observing.tracing", "otel"),
    ],
)
def test_without_its_package_a_part_says_which_extra_brings_it(package: str, code: str, extra: str) -> None:
    without = f"import sys; sys.modules[{package!r}] = None\n{code}"
    ran = subprocess.run(
        [sys.executable, "-c", without], capture_output=True, text=True, timeout=30, check=False, cwd=REPOSITORY
    )
    assert ran.returncode == 1
    assert f"pip install 'mcp-session-bridge[{extra}]'" in ran.stderr
    served = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules[{package!r}] = None\n{SERVES}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=REPOSITORY,
    )
    assert served.stdout.strip() == "served", served.stderr


SERVES = """
import anyio
from bridge import Bridge
async def main():
    app = Bridge("b").asgi()
    async with app.lifespan():
        print("served")
anyio.run(main)
"""
