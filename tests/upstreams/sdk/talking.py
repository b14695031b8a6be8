"""A `Talk` that answers from a list, and what else the tests of servers in this process share."""

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio

from bridge.protocol.messages import Json
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.links import Hello

HELLO = Hello(
    capabilities={"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}},
    info={"name": "a client", "version": "1"},
)


class Talking:
    """Answers what it is asked from a list, and keeps what it was told.

    Args:
        answers: one for each question, in the order of asking; without one, the question waits until `release`.
    """

    def __init__(
        self, *answers: Finished | Failed, http: Mapping[str, Any] | None = None, level: str = "debug"
    ) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Json]] = []
        self.reports: list[tuple[float, float | None, str | None]] = []
        self.logs: list[tuple[str, Any, str | None]] = []
        self.wants_progress = True
        self.log_level: str | None = level
        self.is_waiting = False
        self.http = http
        self.has_asked = anyio.Event()
        self._released: asyncio.Future[Finished | Failed] | None = None

    async def ask(self, method: str, params: Json) -> Finished | Failed:
        self.asked.append((method, params))
        if self.answers:
            return self.answers.pop(0)
        self._released = asyncio.get_running_loop().create_future()
        self.has_asked.set()
        return await self._released

    def release(self, answer: Finished | Failed) -> None:
        assert self._released is not None
        self._released.set_result(answer)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.reports.append((progress, total, message))

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        self.logs.append((level, data, logger))


class Heard:
    """Takes news, and lets a test wait for it."""

    def __init__(self) -> None:
        self.news: list[tuple[str, Json]] = []
        self._more = anyio.Event()

    async def __call__(self, method: str, params: Json) -> None:
        self.news.append((method, params))
        self._more.set()

    async def wait(self, count: int = 1) -> list[tuple[str, Json]]:
        with anyio.fail_after(5):
            while len(self.news) < count:
                self._more = anyio.Event()
                await self._more.wait()
        return self.news


def accept(**content: Any) -> Finished:
    return Finished({"action": "accept", "content": content})


DECLINE = Finished({"action": "decline"})
CANCEL = Finished({"action": "cancel"})


def text(reply: Finished | Failed) -> str:
    """The text of a result of a tool."""
    assert isinstance(reply, Finished), reply
    return str(reply.result["content"][0]["text"])


def http_scope(**headers: str) -> dict[str, Any]:
    """The ASGI scope of a request with these headers."""
    return {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }


def tasks_left() -> list[str]:
    """The tasks that run and are not those of pytest."""
    coroutines = [task.get_coro() for task in asyncio.all_tasks()]
    return [name for name in map(str, coroutines) if "TestRunner" not in name]
