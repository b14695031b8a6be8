"""What every driver shares, whatever SDK it drives: the plan it is given, the user and the model it plays, its report.

A driver runs inside the environment of its peer, so this knows neither `bridge` nor `tests`. The first line of stdin
is the plan; each later one is the name of an answer that may go out now. Each line of stdout is one JSON object:
`{"asked": …}` whenever a question is shown, `{"ended": …}` when a call is over, at the end `{"report": …}`.
Where the plan says that more follow, the next line is the plan for another server; what goes wrong with one of those
is `{"failed": …}`, and the driver goes on. A line with a `crowd` of plans has them all followed at once; what came of
each is `{"over": …}`, however far it came. `tests/peers/driving.py`, `tests/matrix/clients.py` and
`tests/fleet/crowd.py` are the other side.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import jsonschema

Json = dict[str, Any]
Requests = dict[str, Callable[..., Awaitable[Any]]]
"""By method, what an SDK has for it; the keywords are the request's params."""
OnProgress = Callable[[float], None] | None
CallTool = Callable[[str, Json, OnProgress], Awaitable[Json]]
_LATE_SECONDS = 2
"""How long a result waits for progress that an SDK still hands on."""
FALLBACK_TOOL = "sendElicitationResult"


class Plan:
    """What to do, and what came of it."""

    def __init__(self, plan: Json, told: asyncio.StreamReader) -> None:
        self.url: str = plan["url"]
        self.child: Json | None = plan["child"]
        """The `command`, `args` and `cwd` of a server to start instead, for a client over stdio."""
        self.transport: str = plan.get("transport") or ("http" if self.child is None else "stdio")
        """http, sse, ws or stdio."""
        self.mode: str = plan["mode"]
        self.can_be_asked: bool = plan["can_be_asked"]
        self.report: Json = {"tools": [], "calls": [], "notifications": [], "tools_afterwards": [], "errors": []}
        self._steps: list[list[Json]] = plan["steps"]
        self._expected: list[str] = plan["expected_notifications"]
        self._call_seconds: float = plan["call_seconds"]
        self._pause_seconds: float = plan.get("pause_seconds", 0)
        self._told = told
        self._open: list[_Call] = []
        self._may_go: dict[str, asyncio.Event] = {}
        self._notified = asyncio.Event()

    async def run(
        self,
        list_tools: Callable[[], Awaitable[list[Json]]],
        call_tool: CallTool,
        request: Callable[[str, Json], Awaitable[Json]],
        error_of: Callable[[Exception], Json],
    ) -> None:
        """Make the planned calls, those of one step at once.

        Args:
            list_tools: asks the server for its tools.
            call_tool: calls one, and asks for its progress where it is given what to call with it; its result is as it
                is on the wire.
            request: makes a request with another method, as `prompts/get`; its result likewise.
            error_of: what a failed call has for `error` in the report.
        """
        listener = asyncio.create_task(self._listen())
        try:
            self.report["tools"] = await list_tools()
            for step in self._steps:
                if self._pause_seconds:
                    await asyncio.sleep(self._pause_seconds)
                self._open = [_Call(planned) for planned in step]
                self.report["calls"] += [call.report for call in self._open]
                await asyncio.gather(*(self._make(call, call_tool, request, error_of) for call in self._open))
            while not set(self._expected) <= set(self.report["notifications"]):
                self._notified.clear()
                await self._notified.wait()
            self.report["tools_afterwards"] = await list_tools()
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def answer(self, asked: Json) -> Json:
        """Be the user: what is planned for this question, once it may go out. Either `action` or `error` is in it.

        Args:
            asked: its `message`, `requestedSchema` or `url`, and `elicitId` where it is asked in the chat.
        """
        message, elicit_id = asked["message"], asked.get("elicitId")
        for call in self._open:
            if call.answers and call.answers[0]["about"] in message:
                call.report["questions"].append(
                    {
                        "message": message,
                        "requestedSchema": asked.get("requestedSchema"),
                        "url": asked.get("url"),
                        "by": "form" if elicit_id is None else "chat",
                    }
                )
                answer = call.answers.pop(0)
                may_go = self._may_go.setdefault(answer["wait"], asyncio.Event()) if answer["wait"] else None
                say({"asked": {"message": message, "elicitId": elicit_id, "url": asked.get("url")}})
                if may_go is not None:
                    await may_go.wait()
                if answer.get("press"):
                    await asyncio.to_thread(_press, asked["url"])
                return answer
        self.report["errors"].append(f"no answer was planned for: {message}")
        return {"action": "cancel"}

    def notified(self, method: str) -> None:
        """Note a notification of the server's."""
        self.report["notifications"].append(method)
        self._notified.set()

    async def _make(
        self,
        call: "_Call",
        call_tool: CallTool,
        request: Callable[[str, Json], Awaitable[Json]],
        error_of: Callable[[Exception], Json],
    ) -> None:
        try:
            async with asyncio.timeout(self._call_seconds):
                if call.is_method:
                    result = await request(call.name, call.arguments)
                else:
                    result = await call_tool(call.name, call.arguments, call.moved if call.steps else None)
                pending = _pending(result)
                while pending is not None:
                    result = await self._pass_on(call, pending, call_tool)
                    pending = _pending(result) or (pending if call.was_refused(result) else None)
        except Exception as error:
            call.report["error"] = error_of(error)
        else:
            call.report["result"] = result
            with suppress(TimeoutError):
                await asyncio.wait_for(call.has_moved.wait(), _LATE_SECONDS)
        say({"ended": {"name": call.name, "arguments": call.arguments}})

    async def _pass_on(self, call: "_Call", pending: Json, call_tool: CallTool) -> Json:
        """Be the model: ask in the chat, and call the fallback tool."""
        asked, *_ = pending.get("questions") or [pending]  # of several, one at a time
        answer = await self.answer({**asked, "requestedSchema": asked["schema"]})
        given = {key: answer[key] for key in ("action", "content") if key in answer}
        arguments = {"elicitId": asked["elicitId"], **given}
        passed_on = (call_tool(FALLBACK_TOOL, arguments, None) for _ in range(answer["times"]))
        result, *again = await asyncio.gather(*passed_on)
        call.report["again"] += again
        if not result.get("isError"):
            # The SDK checks results against the schema of the tool it called; a model's host, of the one that asked.
            schema = next(tool.get("outputSchema") for tool in self.report["tools"] if tool["name"] == call.name)
            jsonschema.validate(result.get("structuredContent"), schema or {})
        return result

    async def _listen(self) -> None:
        while line := (await self._told.readline()).decode().strip():
            self._may_go.setdefault(line, asyncio.Event()).set()


class _Call:
    """A planned call and what came of it."""

    def __init__(self, planned: Json) -> None:
        self.name: str = planned["name"]
        self.arguments: Json = planned["arguments"]
        self.answers: list[Json] = planned["answers"]
        self.steps: int = planned.get("steps", 0)
        """How often it reports its progress."""
        self.has_moved = asyncio.Event()
        self.report: Json = {
            "name": self.name,
            "questions": [],
            "refusals": [],
            "again": [],
            "progress": [],
            "result": None,
            "error": None,
        }
        self._look()

    @property
    def is_method(self) -> bool:
        """Whether it is a request of its own instead of a tool's call."""
        return "/" in self.name

    def moved(self, progress: float) -> None:
        """Note how far it is."""
        self.report["progress"].append(progress)
        self._look()

    def _look(self) -> None:
        if len(self.report["progress"]) >= self.steps:
            self.has_moved.set()

    def was_refused(self, result: Json) -> bool:
        """Whether an answer was invalid and another one is planned."""
        if not result.get("isError") or not self.answers:
            return False
        self.report["refusals"].append(result["content"][0]["text"])
        return True


def _pending(result: Json) -> Json | None:
    pending: Json | None = result.get("_meta", {}).get("elicitationPending")
    return pending


def _press(page: str) -> None:
    """Be the user in a browser."""
    parts = urlsplit(page)
    with urlopen(Request(page, method="POST", headers={"Origin": f"{parts.scheme}://{parts.netloc}"})):
        pass


def _why(error: BaseException) -> str:
    """What went wrong, out of the groups that tasks wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)


def say(line: Json) -> None:
    """Tell the test something."""
    print(json.dumps(line), flush=True)


async def _one_of_many(converse: Callable[[Plan], Awaitable[None]], at: int, planned: Json) -> None:
    plan, failed = Plan(planned, asyncio.StreamReader()), None
    try:
        async with asyncio.timeout(planned["seconds"]):
            await converse(plan)
    except (Exception, BaseExceptionGroup) as error:
        failed = _why(error)
    say({"over": {"at": at, "failed": failed, "report": plan.report}})


def drive(converse: Callable[[Plan], Awaitable[None]]) -> None:
    """Read the plan, follow it, and print the report; likewise with the next one, while more follow."""

    async def main() -> None:
        told = asyncio.StreamReader(limit=2**24)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(told), sys.stdin
        )
        while line := await told.readline():
            planned: Json = json.loads(line)
            if "crowd" in planned:
                await asyncio.gather(*(_one_of_many(converse, at, each) for at, each in enumerate(planned["crowd"])))
                break
            plan = Plan(planned, told)
            if not planned.get("more_follow"):
                await converse(plan)
                pipe.close()
                say({"report": plan.report})
                return
            try:
                async with asyncio.timeout(planned["seconds"]):
                    await converse(plan)
            except (Exception, BaseExceptionGroup) as error:
                say({"failed": _why(error)})
            else:
                say({"report": plan.report})
        pipe.close()

    asyncio.run(main())
