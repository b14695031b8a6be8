"""A server that somebody else wrote, as an upstream: its lists, its calls, its news. It knows no transport of it."""

import logging
from collections.abc import Callable
from typing import Final, Literal

import anyio
import msgspec

from bridge.errors import ConfigurationError, RemoteError, UpstreamUnreachable
from bridge.protocol.clients import ClientProfile
from bridge.protocol.inbound import ParameterHeaders
from bridge.protocol.messages import INTERNAL_ERROR, INVALID_PARAMS, Json, notification
from bridge.protocol.revisions import LATEST_LEGACY
from bridge.upstreams.attending import Attending
from bridge.upstreams.base import (
    Call,
    Caller,
    CallRequest,
    Failed,
    Finished,
    Kind,
    Outcome,
    Policy,
    Said,
    Stopped,
    Surroundings,
    Visitor,
)
from bridge.upstreams.direct import Direct
from bridge.upstreams.elsewhere import Elsewhere
from bridge.upstreams.endings import failed
from bridge.upstreams.holds import Holds
from bridge.upstreams.known import KnownTools
from bridge.upstreams.links import Facts, News, Server
from bridge.upstreams.live import Live
from bridge.upstreams.reach import INFO, LinkLimits, Links
from bridge.upstreams.relaying import page_id
from bridge.upstreams.returned import Again, answers, read_returned
from bridge.upstreams.underway import UnderWay

__all__ = ["ToolRules", "WrapRules", "Wrapped"]

_CAPABILITY: Final[dict[Kind, str]] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resourceTemplates": "resources",
}
_LISTS: Final[dict[Kind, str]] = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
_CHANGES: Final = {f"notifications/{kind}/list_changed": kind for kind in ("tools", "prompts", "resources")}
_BRIDGED: Final = ("completions", "logging", "prompts", "resources", "tools")
"""The capabilities of a server that are handed on; extensions that the bridge does not know are not."""

_MAX_PAGES: Final = 200
_MAX_STATES: Final = 10
_log = logging.getLogger("bridge.upstream")


class ToolRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decides about one tool of a wrapped server.

    Args:
        resume: how it goes on after a question: `hold` (its call stays suspended) or `rerun` (it is called again).
        repeatable: whether running it twice does no harm, so that one that was cut off is run again.
        duplicates: an equal call while one waits on chat is the `same` call, or `separate`.
        keys: the names on the wire of its questions, in the order in which it asks, for clients that know them; what it
            asks beyond is `elicitation-1` and so on. A modern server names its questions itself.
    """

    resume: Literal["hold", "rerun"] | None = None
    repeatable: bool | None = None
    duplicates: Literal["same", "separate"] = "same"
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.keys)) < len(self.keys):
            raise ConfigurationError(f"each question needs a key of its own, not {self.keys!r}")


class WrapRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is wrapped.

    Args:
        resume: how its calls go on after a question: `hold` or `rerun`. A modern server that keeps nothing is called
            again whatever is said here, as its revision wants.
        repeatable: whether running its tools twice does no harm. `readOnlyHint` and `idempotentHint` say so too.
        tools: what is decided about single tools, by name.
        declare: `all`: elicitation is declared to it whatever the caller declares. `caller`: what the caller declares.
        max_holds: how many calls may be suspended in one process.
        call_seconds: how long one call may take, the time not counted while a person is asked.
        links: how many sessions with it there may be, how long unused ones live.
    """

    resume: Literal["hold", "rerun"] = "hold"
    repeatable: bool = False
    tools: dict[str, ToolRules] = {}
    declare: Literal["all", "caller"] = "all"
    max_holds: int = 256
    call_seconds: float = 3600.0
    links: LinkLimits = LinkLimits()


class Wrapped:
    """An upstream that somebody else wrote.

    Args:
        server: how it is reached.
        rules: how it is wrapped.
        elicitation: whether users may be asked.
        processes: over how many links the calls are spread that share one.
    """

    def __init__(self, server: Server, rules: WrapRules, *, elicitation: bool = True, processes: int = 1) -> None:
        self._server = server
        self._rules = rules
        self._elicitation = elicitation
        self._processes = processes
        self._tools = KnownTools(server.name)
        self._under_way = UnderWay()
        self._facts: Facts | None = None

    @property
    def capabilities(self) -> Json:
        """See `Upstream`."""
        assert self._facts is not None, "the upstream is not started"
        known = {name: value for name, value in self._facts.capabilities.items() if name in _BRIDGED}
        # Many servers log without declaring it; the bridge keeps the level for them.
        return {"logging": {}, **known}

    @property
    def held(self) -> int:
        """How many calls are suspended in this process."""
        return 0 if self._facts is None else len(self._holds)

    @property
    def said(self) -> Said | None:
        """See `Upstream`."""
        return None if self._facts is None else Said(info=self._facts.info, instructions=self._facts.instructions)

    async def start(self, around: Surroundings) -> None:
        """See `Upstream`: what the server says of itself, and its tools, are asked for now."""
        self._around = around
        # Without looking up for each call which event loop there is.
        self._new_scope: Callable[[], anyio.CancelScope] = type(anyio.CancelScope())
        self._holds: Holds[Live] = Holds(around.node_id, self._rules.max_holds)
        self._elsewhere = Elsewhere(around)
        self._attending = Attending(around, self._holds, self._run)
        await self._server.start(around.spawn)
        self._links = Links(
            self._server,
            self._news,
            self._rules.links,
            declare=self._rules.declare,
            elicitation=self._elicitation,
            processes=self._processes,
        )
        nobody = Visitor(ClientProfile(LATEST_LEGACY, {}, INFO), "start")
        try:
            self._facts = (await self._links.get(nobody)).link.facts
            listed = await self.list("tools", nobody)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._links.aclose()
                await self._server.aclose()
            if isinstance(error, RemoteError):
                raise UpstreamUnreachable(f"{self._server.name}: {error}") from None
            raise
        if isinstance(listed, Failed):
            _log.warning("%s does not list its tools: %s", self._server.name, listed.message)
        await self._links.end_session(nobody.id)
        around.spawn(self._holds.watch)
        around.spawn(self._end_holds)
        around.spawn(self._under_way.watch)
        around.spawn(self._links.watch)
        if around.store.shared:
            around.spawn(self._attending.serve)
            around.spawn(self._attending.watch)

    async def aclose(self) -> None:
        """See `Upstream`."""
        if self._facts is None:
            return
        await self._holds.end_all()
        await self._under_way.aclose()
        await self._links.aclose()
        await self._server.aclose()

    async def _end_holds(self) -> None:
        """Nobody can go on with them here once the process shuts down; their servers hear it while there is time."""
        await self._around.closing()
        await self._holds.end_all()

    async def end_session(self, session_id: str) -> None:
        """See `Upstream`."""
        await self._links.end_session(session_id)

    async def list(self, kind: Kind, caller: Caller) -> list[Json] | Failed:
        """See `Upstream`: all pages, as the caller's own link has them."""
        assert self._facts is not None
        if _CAPABILITY[kind] not in self._facts.capabilities:
            return []
        found: list[Json] = []
        params: Json = {}
        try:
            link = (await self._links.get(caller)).link
            for _ in range(_MAX_PAGES):
                page = await link.request(_LISTS[kind], params)
                if isinstance(page, Failed):
                    return page
                found += [entry for entry in page.result.get(kind, ()) if isinstance(entry, dict)]
                params = {"cursor": page.result.get("nextCursor")}
                if not params["cursor"]:
                    break
        except RemoteError as error:
            return self._lost(error)
        return self._tools.visible(found) if kind == "tools" else found

    async def tool(self, name: str) -> Json | None:
        """See `Upstream`: as it was last listed."""
        return self._tools.definition(name)

    def parameter_headers(self, tool: str) -> ParameterHeaders:
        """See `Upstream`."""
        return self._tools.headers(tool)

    def policy(self, tool: str) -> Policy:
        """See `Upstream`."""
        rules = self._rules.tools.get(tool)
        if rules is None:
            return Policy(repeatable=self._rules.repeatable)
        repeatable = self._rules.repeatable if rules.repeatable is None else rules.repeatable
        return Policy(duplicates=rules.duplicates, repeatable=repeatable)

    async def run(self, call: Call) -> Outcome:
        """See `Upstream`."""
        if self._tools.is_hidden(call.request.target) and call.request.method == "tools/call":
            return Failed(INVALID_PARAMS, f"Unknown tool: {call.request.target}")
        if call.journal.held:
            self._attending.forget(call.id)
        return await self._run(call)

    async def _run(self, call: Call) -> Outcome:
        """Run a call for whoever drives it, here or at another node."""
        live: Live | None = None
        if call.journal.held:
            live = self._holds.take(call.id)
            if live is None:
                came = await self._elsewhere.go_on(call)
                if came is not None:
                    return came
                if not await self._may_run_again(call.request):
                    return _lost_hold(call.request)
            call.journal.held = ""
        for _ in range(_MAX_STATES):
            run = live or self._begin(call)
            outcome = await (_drive(run, call) if isinstance(run, Live) else self._under_way.run(run))
            read, live = self._read(call, run.link_name, outcome), None
            if read is not None:
                return read
        return failed(call.request, f"{self._server.name} wants to be called again and again, and asks nothing")

    def _begin(self, call: Call) -> Live | Direct:
        request = call.request
        params = {**_params(request), **answers(call.journal)}
        if not self._server.asks_midway(request.method, request.target):
            return Direct(call, self._server.name, self._links, params, self._rules.call_seconds)
        rules = self._rules.tools.get(request.target)
        resume = rules.resume if rules is not None and rules.resume is not None else self._rules.resume
        live = Live(
            call,
            self._server.name,
            self._links,
            params,
            self._holds,
            hold=resume == "hold",
            seconds=self._rules.call_seconds,
            keys=() if rules is None else rules.keys,
            scope=self._new_scope(),
        )
        self._under_way.start(live)
        return live

    def _read(self, call: Call, link: str, outcome: Outcome) -> Outcome | None:
        """What a call came to; None where its server wants it again and asks nothing."""
        if isinstance(outcome, Stopped):
            return outcome
        read = read_returned(call.request, outcome, call.journal, link=link, not_secret=call.rules.not_secret)
        if not isinstance(read, Again):
            return read
        number = 1 if call.journal.upstream is None else call.journal.upstream.number
        call.journal.upstream = msgspec.structs.replace(read.upstream, number=number)
        return None

    async def _may_run_again(self, request: CallRequest) -> bool:
        """Whether a call whose suspension is lost may be run from the top."""
        if request.method != "tools/call" or self.policy(request.target).repeatable:
            return True
        annotations = (await self.tool(request.target) or {}).get("annotations", {})
        return annotations.get("readOnlyHint") is True or annotations.get("idempotentHint") is True

    async def complete(self, params: Json, caller: Caller) -> Finished | Failed:
        """See `Upstream`."""
        return await self._ask_for("completion/complete", params, caller)

    async def relay(self, method: str, params: Json, caller: Caller) -> Finished | Failed:
        """See `Upstream`."""
        assert self._facts is not None
        if method.startswith("notifications/"):
            try:
                await (await self._links.get(caller)).link.notify(method, params)
            except RemoteError as error:
                _log.info("%s did not hear %s: %s", self._server.name, method, error)
            return Finished({})
        if method == "logging/setLevel" and "logging" not in self._facts.capabilities:
            return Finished({})
        if method == "subscriptions/listen":
            return await self._reached(caller)
        return await self._ask_for(method, params, caller)

    async def _reached(self, caller: Caller) -> Finished | Failed:
        """A server tells changes to those who have a way to it."""
        try:
            await self._links.get(caller)
        except RemoteError as error:
            return self._lost(error)
        return Finished({})

    async def _ask_for(self, method: str, params: Json, caller: Caller) -> Finished | Failed:
        plain = {key: value for key, value in params.items() if key != "_meta"}
        try:
            return await (await self._links.get(caller)).request(method, plain)
        except RemoteError as error:
            return self._lost(error)

    def _lost(self, error: RemoteError) -> Failed:
        _log.warning("%s did not answer: %s", self._server.name, error)
        return Failed(INTERNAL_ERROR, f"{self._server.name} did not answer: {error}")

    def _news(self, link: str, session_id: str) -> News:
        """What takes the notifications of one link that belong to no call."""
        around = self._around

        async def take(method: str, params: Json) -> None:
            if method == "notifications/elicitation/complete":
                await around.completed(page_id(link, str(params.get("elicitationId"))))
            elif session_id and (method in _CHANGES or method in _OF_SESSION):
                await around.tell(session_id, notification(method, params or None))
            elif method in _CHANGES:
                await around.changed(_CHANGES[method], None)
            elif method == "notifications/resources/updated" and isinstance(params.get("uri"), str):
                await around.changed("resource", params["uri"])

        return take


_OF_SESSION: Final = frozenset({"notifications/resources/updated", "notifications/message"})


async def _drive(live: Live, call: Call) -> Outcome:
    """Go on with a call until it ends or asks; whoever drives it away takes it along."""
    try:
        return await live.advance(call)
    except BaseException:
        await live.cancel()
        raise


def _params(request: CallRequest) -> Json:
    meta: Json = {"_meta": request.meta} if request.meta else {}
    if request.method == "resources/read":
        return {"uri": request.target, **meta}
    if request.method == "prompts/get" and not request.arguments:
        return {"name": request.target, **meta}
    return {"name": request.target, "arguments": request.arguments, **meta}


def _lost_hold(request: CallRequest) -> Finished | Failed:
    text = (
        f"The call of {request.target} waited for this answer in a process that is gone, or for longer than it may. "
        "It may have partly run, and it was not run again."
    )
    return failed(request, text, "INTERRUPTED")
