"""Hearing what any node of the fleet appends: one subscription for all waiters of a process.

It must not know how logs are kept. A waiter that is rung looks for itself.
"""

import asyncio
import random
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Final

import anyio
from redis import exceptions as fails

from bridge.errors import StoreUnavailable
from bridge.stores.redis_servers import Servers
from bridge.stores.wakes import Bell, Wakes

__all__ = ["RedisWakes"]

_PING_SECONDS: Final = 5  # silence on the channel after which it is asked whether the server is still there
_LOOK_SECONDS: Final = 2  # how often waiters look by themselves on a Cluster, whose nodes may lose what is published
_RETRY_SECONDS: Final = 0.5
_CANCELS: Final = 20  # how often the task is told to end; the library may swallow it
_CANCEL_SECONDS: Final = 0.25  # how long it may take each time


class RedisWakes:
    """The subscription. Its task begins with the first waiter and ends with `aclose`.

    Args:
        servers: where to subscribe.
        channel: what to.
        wait_seconds: how long a waiter waits for a server that is away.
    """

    def __init__(self, servers: Servers, channel: str, wait_seconds: float) -> None:
        self._servers = servers
        self._channel = channel
        self._wait_seconds = wait_seconds
        self._wakes = Wakes()
        self._listener: asyncio.Task[None] | None = None
        self._subscribed = asyncio.Event()

    def listening(self, logs: Iterable[str]) -> AbstractContextManager[Bell]:
        """Hand out a bell that rings for each of `logs` once this is subscribed."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name=f"wakes of the Redis store {self._channel}")
        return self._wakes.listening(logs)

    async def until_subscribed(self) -> None:
        """Wait until nothing is missed from now on.

        Raises:
            StoreUnavailable: the server stays away.
        """
        with anyio.move_on_after(self._wait_seconds):
            await self._subscribed.wait()
            return
        raise StoreUnavailable(f"no wakes from Redis for {self._wait_seconds} s")

    async def aclose(self) -> None:
        """End the task; who still waits is rung."""
        for _ in range(_CANCELS):
            if self._listener is None or self._listener.done():
                break
            # The library may swallow one, as when it comes in the middle of a reconnection.
            self._listener.cancel()
            await asyncio.wait([self._listener], timeout=_CANCEL_SECONDS)
        self._subscribed.set()
        self._wakes.ring_all()

    async def _listen(self) -> None:
        while True:
            listener = self._servers.listener()
            try:
                async with listener.pubsub() as pubsub:
                    await pubsub.subscribe(self._channel)
                    await self._hear(pubsub)
            except (fails.RedisError, OSError):
                self._subscribed.clear()
                self._wakes.ring_all()  # they may miss something now: they look, and wait for the next line
            finally:
                await listener.aclose()
            await anyio.sleep(_RETRY_SECONDS * random.uniform(0.1, 1))

    async def _hear(self, pubsub: Any) -> None:
        pinged, looks_at = False, time.monotonic() + _LOOK_SECONDS
        silent_seconds = _LOOK_SECONDS if self._servers.lossy else _PING_SECONDS
        while True:
            message = await pubsub.get_message(timeout=silent_seconds)
            if self._servers.lossy and time.monotonic() >= looks_at:
                self._wakes.ring_all()
                looks_at = time.monotonic() + _LOOK_SECONDS
            if message is None:
                if pinged:
                    raise fails.ConnectionError("no answer to a ping")
                await pubsub.ping()
            elif message["type"] == "message":
                self._wakes.ring(message["data"].decode())
            elif message["type"] == "subscribe":  # comes also after redis-py connected again by itself
                self._subscribed.set()
                self._wakes.ring_all()
            pinged = message is None
