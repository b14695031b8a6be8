"""The port between the loop and what is wrapped: native functions, an SDK server object, a remote server.

An upstream runs a call with its journal. It finishes, fails, or stops at questions; it knows nothing of how they
get answered. Where going on means resuming a call that is still there, it hands out a `Hold`; otherwise the
call is run again from the top with the answers in its journal.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import anyio
import msgspec

from bridge.asking.checking import InvalidReply
from bridge.asking.journal import Journal
from bridge.asking.question import Question
from bridge.asking.routes import RouteName
from bridge.protocol.clients import ClientProfile
from bridge.protocol.inbound import ParameterHeaders
from bridge.protocol.messages import Json
from bridge.stores.base import Store

__all__ = [
    "AskingRules",
    "Call",
    "CallRequest",
    "Caller",
    "Deaf",
    "Failed",
    "Finished",
    "Hold",
    "Kind",
    "Outcome",
    "Outlet",
    "Policy",
    "Said",
    "Stopped",
    "Surroundings",
    "Upstream",
    "Visitor",
]


class CallRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client called: a method, the name or URI it names, its arguments, and what of `_meta` is nobody's here."""

    method: str
    target: str
    arguments: Json
    meta: Json = {}


class Finished(msgspec.Struct, frozen=True, tag=True):
    """The call is over; this is its result, without anything that only one era has."""

    result: Json


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The call is over with a JSON-RPC error."""

    code: int
    message: str
    data: Any = None


class Hold(Protocol):
    """A call that is suspended at its questions: `Upstream.run` goes on with it once the journal has their answers."""

    @property
    def on_over(self) -> Callable[[], None] | None:
        """Told when nobody's answer is wanted any more: the call has ended, or has withdrawn its question."""
        ...

    @on_over.setter
    def on_over(self, told: Callable[[], None] | None) -> None: ...

    @property
    def is_over(self) -> bool:
        """Whether nobody's answer is wanted any more."""
        ...

    def keep(self, until: float) -> None:
        """Stay suspended after the request that asked has ended, until then (seconds since the epoch)."""
        ...

    async def cancel(self) -> None:
        """End the suspended call without an answer; its server is told."""
        ...


class Stopped(msgspec.Struct, frozen=True):
    """The call has stopped at questions that have no answer yet.

    `invalid` is set where a recorded answer broke a rule that its form could not show: the question is then still
    open, and its answer is forgotten. `acted` says whether this run took a step, or went past a new answer, so that
    it may have done something that must not be done again.
    """

    questions: list[Question]
    hold: Hold | None = None
    acted: bool = False
    invalid: InvalidReply | None = None


Outcome: TypeAlias = Finished | Failed | Stopped


class Outlet(Protocol):
    """What a running call may send to its client before it is over; dropped where the client cannot get it."""

    @property
    def wants_progress(self) -> bool:
        """Whether the client asked for progress."""
        ...

    @property
    def log_level(self) -> str | None:
        """The lowest level of log messages that the client wants, or None for none."""
        ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Report progress, if the client asked for it."""
        ...

    async def waiting(self) -> None:
        """Report that the call waits for its user, if the client asked for progress."""
        ...

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """Send a log message, if the client wants that level."""
        ...

    async def leave(self) -> None:
        """End the stream of the call, if its client comes back for the rest."""
        ...


class Deaf:
    """An outlet to nobody.

    Args:
        wants_progress: whether progress is reported to it all the same.
        log_level: the lowest level of log messages that it is sent, or None for none.
    """

    def __init__(self, *, wants_progress: bool = False, log_level: str | None = None) -> None:
        self.wants_progress = wants_progress
        self.log_level = log_level

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Outlet`."""

    async def waiting(self) -> None:
        """See `Outlet`."""

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """See `Outlet`."""

    async def leave(self) -> None:
        """See `Outlet`."""


class AskingRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a call may ask.

    Args:
        elicitation: whether asking users is switched on.
        on_invalid: what an answer that does not match does: `error` ends the call, `reask` asks again.
        not_secret: free-text fields that sound like a secret and are none.
    """

    elicitation: bool = True
    on_invalid: Literal["error", "reask"] = "error"
    not_secret: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is decided for one tool, and not told to clients.

    Args:
        duplicates: an equal call while one waits on chat is the `same` call, or `separate`.
        repeatable: whether the operator says that running it twice does no harm.
    """

    duplicates: Literal["same", "separate"] = "same"
    repeatable: bool = False


class Caller(Protocol):
    """Who calls: the session of a legacy client, or what a modern request says of its client."""

    @property
    def profile(self) -> ClientProfile:
        """What the client is."""
        ...

    @property
    def id(self) -> str:
        """The id of its session; empty where it has none."""
        ...

    @property
    def log_level(self) -> str | None:
        """The lowest level of log messages that its session wants, where it said so."""
        ...

    @property
    def subscriptions(self) -> Sequence[str]:
        """The URIs that its session has subscribed to."""
        ...


class Visitor(msgspec.Struct, frozen=True):
    """A caller of whom nothing is known beyond what it says; see `Caller`."""

    profile: ClientProfile
    id: str = ""
    log_level: str | None = None
    subscriptions: tuple[str, ...] = ()


class Call(msgspec.Struct):
    """One call under way: what was called, by whom, with what is known so far.

    Args:
        id: names the call over all its runs; empty until it first needs a name: see `named`.
        request: what was called.
        caller: who called.
        journal: what is known so far.
        outlet: where progress and logs go.
        route: finds the way that a form would take to this client.
        rules: how the call may ask.
        input_responses: the raw answers of this round, untrusted.
        fresh: the paths of the questions whose answers are new in this run.
        http: the ASGI scope of the client's request, where it came over HTTP.
    """

    id: str
    request: CallRequest
    caller: Caller
    journal: Journal
    outlet: Outlet
    route: Callable[[], RouteName]
    rules: AskingRules = AskingRules()
    input_responses: Json = {}
    fresh: frozenset[str] = frozenset()
    http: Mapping[str, Any] | None = None

    @property
    def client(self) -> ClientProfile:
        """What the client is."""
        return self.caller.profile

    def named(self) -> str:
        """The call's id: at least 128 random bits, made when it is first asked for."""
        if not self.id:
            self.id = secrets.token_urlsafe(18)
        return self.id


Kind: TypeAlias = Literal["tools", "prompts", "resources", "resourceTemplates"]
"""What a server lists."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a wrapped server says of itself.

    Args:
        info: its `serverInfo`.
        instructions: how to use it, for models.
    """

    info: Json
    instructions: str | None = None


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What an upstream is given by the process that runs it.

    Args:
        node_id: names the process, among those that share its store.
        store: what they share.
        is_alive: whether a process of that id still serves.
        spawn: starts a task that ends with the process; what it raises is logged.
        changed: tells clients that a list (`tools`, `prompts`, `resources`) or the resource at a URI has changed.
        tell: sends a notification to one legacy session, by its id, on the stream that belongs to no call.
        completed: tells the client of a URL question that its page is done, by the question's `elicitation_id`.
        closing: waits until the process begins to shut down; what is suspended is ended then.
    """

    node_id: str
    store: Store
    is_alive: Callable[[str], Awaitable[bool]]
    spawn: Callable[..., None]
    changed: Callable[[str, str | None], Awaitable[None]]
    tell: Callable[[str, Json], Awaitable[None]]
    completed: Callable[[str], Awaitable[bool]]
    closing: Callable[[], Awaitable[None]] = anyio.sleep_forever


class Upstream(Protocol):
    """What is wrapped."""

    @property
    def capabilities(self) -> Json:
        """The server capabilities that it brings, as the newest revision would have them."""
        ...

    @property
    def said(self) -> Said | None:
        """What it says of itself; None where that is the bridge's to say."""
        ...

    async def start(self, around: Surroundings) -> None:
        """Begin to serve.

        Raises:
            UpstreamUnreachable: what is wrapped cannot be reached.
        """
        ...

    async def aclose(self) -> None:
        """End: what is suspended is cancelled, sessions are closed."""
        ...

    async def end_session(self, session_id: str) -> None:
        """The session of a legacy client has ended."""
        ...

    async def list(self, kind: Kind, caller: Caller) -> list[Json] | Failed:
        """The definitions of a kind, in a fixed order, as the newest revision would have them."""
        ...

    async def tool(self, name: str) -> Json | None:
        """The definition of one tool, or None."""
        ...

    def parameter_headers(self, tool: str) -> ParameterHeaders:
        """The parameters of a tool that travel in HTTP headers too."""
        ...

    def policy(self, tool: str) -> Policy:
        """What is decided for a tool."""
        ...

    async def run(self, call: Call) -> Outcome:
        """Run a call (`tools/call`, `prompts/get` or `resources/read`) with its journal: from the top, or, where it is
        suspended at questions, on from there."""
        ...

    async def complete(self, params: Json, caller: Caller) -> Finished | Failed:
        """Answer `completion/complete`."""
        ...

    async def relay(self, method: str, params: Json, caller: Caller) -> Finished | Failed:
        """Take what a client says beside its calls: `logging/setLevel`, `resources/subscribe`,
        `resources/unsubscribe`, the notification `notifications/roots/list_changed`, or, without params,
        `subscriptions/listen`: that it wants to hear of changes."""
        ...
