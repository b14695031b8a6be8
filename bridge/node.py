"""One running process of the bridge: its identity, its lease, its tasks, and its one timer.

A node owns every task that is not a request's own. It knows nothing of what the tasks do.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup

from bridge.errors import StoreError
from bridge.stores.base import Store

__all__ = ["LOOK_SECONDS", "Node", "Watched"]

LOOK_SECONDS: Final = 0.75
"""How often who waits for another node looks whether that still lives: a lost one is noticed within 5 s."""

_LEASE_SECONDS: Final = 2.75
_HEARTBEAT_SECONDS: Final = 0.9
_DOUBT_SECONDS: Final = 1.5
"""How long after its lease was missed a node may still renew it: after a pause of the store all leases are over."""

_GONE: Final = b"gone"
_GONE_SECONDS: Final = 600.0
_PULSE_SECONDS: Final = 0.1
_log = logging.getLogger("bridge.node")


class Watched(Protocol):
    """A request under way. Most are over before the first pulse reaches them, and cost no task."""

    async def watch(self) -> None:
        """Look after the request from now on, until it is over."""
        ...


class Node:
    """The owner of a process's tasks.

    Args:
        store: where its lease stands, for others to see that it lives.
        shutdown_seconds: how long what runs may go on once the node shuts down.
    """

    def __init__(self, store: Store, shutdown_seconds: float = 10.0) -> None:
        self.id = ""
        """Made when the node starts, so that forked processes are different nodes."""
        self.store = store
        self._shutdown_seconds = shutdown_seconds
        self._closed_at = 0.0
        self._host: asyncio.Task[None] | None = None
        self._ready: asyncio.Event | None = None
        self._tasks: TaskGroup | None = None
        self._young: dict[Watched, None] = {}
        self._stirred: anyio.Event | None = None
        self.new_scope: Callable[[], anyio.CancelScope] = anyio.CancelScope
        """Makes a cancel scope; once the node runs, without looking up each time which event loop there is."""
        self.closing = anyio.Event()
        """Set when the node begins to shut down: nothing new runs, and streams end, so that clients go elsewhere."""

    @property
    def running(self) -> bool:
        """Whether tasks can be started."""
        return self._tasks is not None

    async def start(self) -> None:
        """Begin, once. An app that is mounted in another gets no lifespan, so the first request may come here."""
        if self._ready is None:
            self._ready = asyncio.Event()
            self.closing = anyio.Event()
            self.id = secrets.token_hex(8)
            self.new_scope = type(anyio.CancelScope())
            # The one bare task: nobody above could own a task group that has to outlive this request.
            self._host = asyncio.create_task(self._serve(self._ready), name=f"bridge node {self.id}")
        ready, host = self._ready, self._host
        await ready.wait()
        if self._tasks is None and host is not None:
            self._ready = self._host = None
            await host

    def close(self) -> None:
        """Begin to shut down."""
        if not self.closing.is_set():
            self._closed_at = anyio.current_time()
            self.closing.set()

    async def cut_off(self) -> None:
        """Wait until the node shuts down and the time is over that what runs then has."""
        await self.closing.wait()
        await anyio.sleep_until(self._closed_at + self._shutdown_seconds)

    async def stop(self) -> None:
        """End every task of the node and say that it is gone."""
        host, self._host = self._host, None
        if host is None:
            return
        self.close()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
        await host
        self._ready = None
        if self.store.shared:
            try:
                await self.store.put(f"node/{self.id}", _GONE, ttl_seconds=_GONE_SECONDS)
            except StoreError:
                _log.warning("the store is away; the lease of node %s runs out by itself", self.id)

    def spawn(self, run: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Start a task that ends with the node. What it raises is logged and ends nothing else."""
        if self._tasks is None:
            raise RuntimeError("the node is not running")
        self._tasks.start_soon(_guarded, run, args)

    def watch(self, request: Watched) -> None:
        """Have `request.watch()` run if the request is still there at a pulse to come."""
        self._young[request] = None
        if self._stirred is not None:
            self._stirred.set()
            self._stirred = None

    def forget(self, request: Watched) -> None:
        """The request is over."""
        self._young.pop(request, None)

    async def is_alive(self, node: str) -> bool:
        """Whether a node still holds its lease, or takes it up again within a moment."""
        if node == self.id:
            return True
        lease = await self.store.get(f"node/{node}") if self.store.shared else None
        if lease is None and self.store.shared:
            await anyio.sleep(_DOUBT_SECONDS)
            lease = await self.store.get(f"node/{node}")
        return lease is not None and lease.value != _GONE

    async def _serve(self, ready: asyncio.Event) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                if self.store.shared:
                    await self._renew()
                    tasks.start_soon(self._heartbeat)
                tasks.start_soon(self._pulse)
                ready.set()
        finally:
            self._tasks = None
            ready.set()

    async def _pulse(self) -> None:
        """Every request that was there a pulse ago gets a task of its own."""
        while True:
            if not self._young:
                self._stirred = anyio.Event()
                await self._stirred.wait()
            seen = list(self._young)
            await anyio.sleep(_PULSE_SECONDS)
            for request in seen:
                if request in self._young:
                    del self._young[request]
                    self.spawn(request.watch)

    async def _heartbeat(self) -> None:
        while True:
            await anyio.sleep(_HEARTBEAT_SECONDS)
            try:
                await self._renew()
            except StoreError as error:
                _log.warning("node %s could not renew its lease: %s", self.id, error)

    async def _renew(self) -> None:
        await self.store.put(f"node/{self.id}", b"", ttl_seconds=_LEASE_SECONDS)


async def _guarded(run: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
    try:
        await run(*args)
    except Exception:
        _log.exception("a task of the node failed")
