"""Sessions are opened and abandoned, 200 a second: what a node and its store hold levels off."""

import time
from typing import Any, Final, NamedTuple

import aiohttp
import anyio
import msgspec

from tests.load.clients import chat_session, facts, server
from tests.load.runs import STORES, Options, empty_store
from tests.load.server import Facts
from tests.operations.processes import EVENTS

__all__ = ["Abandoned", "abandoned", "run"]

PER_SECOND: Final = 200
IDLE_SECONDS: Final = 3
_SECONDS: Final = 180.0
_STREAM_EVERY: Final = 10
"""Each of so many opens a stream and drops it."""


class Abandoned(NamedTuple):
    """What was seen.

    Args:
        opened: how many sessions were opened.
        per_second: how many a second.
        middle: the node halfway.
        end: the node at the end.
    """

    opened: int
    per_second: float
    middle: Facts
    end: Facts

    def levels_off(self) -> bool:
        """Whether a node and its store hold at the end what they held before, within a tenth."""
        before, after = self.middle, self.end
        pairs = (
            (before.resident_bytes, after.resident_bytes),
            (before.descriptors + 10, after.descriptors),
            (before.tasks + 10, after.tasks),
            (before.sessions + PER_SECOND, after.sessions),
        )
        return all(later <= 1.1 * earlier for earlier, later in pairs)


def run(options: Options) -> list[dict[str, Any]]:
    """On each store, for three minutes."""
    figures = []
    for kind in STORES if options.only is None else (options.only,):
        with empty_store(kind) as (_, url):
            found = anyio.run(abandoned, url, options.seconds or _SECONDS)
        assert found.levels_off(), found
        figures.append({"store": kind, **msgspec.to_builtins(found._asdict())})
    return figures


async def abandoned(store: str, seconds: float) -> Abandoned:
    """Open sessions for so long.

    Args:
        store: the URL of an empty store.
        seconds: for how long.
    """
    with server(store, str(IDLE_SECONDS)) as url:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=50)) as http:
            opener = _Opener(http, url)
            began = time.monotonic()
            await opener.run(seconds * 0.6)
            middle = await facts(http, url)
            await opener.run(seconds * 0.4)
            end = await facts(http, url)
            return Abandoned(opener.opened, opener.opened / (time.monotonic() - began), middle, end)


class _Opener:
    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url
        self.opened = 0

    async def run(self, seconds: float) -> None:
        """Open sessions at the rate, or as fast as it goes."""
        limiter = anyio.CapacityLimiter(40)
        began, begun = time.monotonic(), 0
        async with anyio.create_task_group() as tasks:
            while (passed := time.monotonic() - began) < seconds:
                while begun < passed * PER_SECOND and limiter.available_tokens > 0:
                    begun += 1
                    await limiter.acquire_on_behalf_of(begun)
                    tasks.start_soon(self._open, begun, limiter)
                await anyio.sleep(0.005)

    async def _open(self, number: int, limiter: anyio.CapacityLimiter) -> None:
        try:
            session = await chat_session(self._http, self._url)
            if number % _STREAM_EVERY == 0:
                async with self._http.get(f"{self._url}/mcp", headers={**session, **EVENTS}) as stream:
                    stream.close()
            self.opened += 1
        finally:
            limiter.release_on_behalf_of(number)
