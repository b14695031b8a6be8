"""The port between the loop and what is wrapped: native functions, an SDK server object, a remote server.

An upstream runs a call with its journal. It finishes, fails, or stops at questions; it knows nothing of how they
get answered. Where going on means resuming a call that is still there, it hands out a `Hold`; otherwise the
call is run again from the top with the answers in its journal.
"""

import secrets
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from bridge.asking.checking import InvalidReply
from bridge.asking.journal import Journal
from bridge.asking.question import Question, Reply
from bridge.asking.routes import RouteName
from bridge.protocol.clients import ClientProfile
from bridge.protocol.inbound import ParameterHeaders
from bridge.protocol.messages import Json

__all__ = [
    "AskingRules",
    "Call",
    "CallRequest",
    "Failed",
    "Finished",
    "Hold",
    "Kind",
    "Outcome",
    "Outlet",
    "Policy",
    "Stopped",
    "Upstream",
]


class CallRequest(msgspec.Struct, frozen=True):
    """What a client called: a method, the name or URI it names, and its arguments."""

    method: str
    target: str
    arguments: Json


class Finished(msgspec.Struct, frozen=True, tag=True):
    """The call is over; this is its result, without anything that only one era has."""

    result: Json


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The call is over with a JSON-RPC error."""

    code: int
    message: str
    data: Any = None


class Hold(Protocol):
    """A call that is suspended at its questions and can be resumed."""

    async def resume(self, replies: dict[str, Reply]) -> "Outcome":
        """Hand the replies, by question key, to the suspended call and run it on."""
        ...

    async def cancel(self) -> None:
        """End the suspended call without an answer."""
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

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Report progress, if the client asked for it."""
        ...

    async def waiting(self) -> None:
        """Report that the call waits for its user, if the client asked for progress."""
        ...

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """Send a log message, if the client wants that level."""
        ...


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
    """

    duplicates: Literal["same", "separate"] = "same"


class Call(msgspec.Struct):
    """One call under way: what was called, by whom, with what is known so far.

    Args:
        id: names the call over all its runs; empty until it first needs a name: see `named`.
        request: what was called.
        client: who called.
        journal: what is known so far.
        outlet: where progress and logs go.
        route: finds the way that a form would take to this client.
        rules: how the call may ask.
        input_responses: the raw answers of this round, untrusted.
        fresh: the paths of the questions whose answers are new in this run.
    """

    id: str
    request: CallRequest
    client: ClientProfile
    journal: Journal
    outlet: Outlet
    route: Callable[[], RouteName]
    rules: AskingRules = AskingRules()
    input_responses: Json = {}
    fresh: frozenset[str] = frozenset()

    def named(self) -> str:
        """The call's id: at least 128 random bits, made when it is first asked for."""
        if not self.id:
            self.id = secrets.token_urlsafe(18)
        return self.id


Kind: TypeAlias = Literal["tools", "prompts", "resources", "resourceTemplates"]
"""What a server lists."""


class Upstream(Protocol):
    """What is wrapped."""

    @property
    def capabilities(self) -> Json:
        """The server capabilities that it brings, as the newest revision would have them."""
        ...

    async def list(self, kind: Kind) -> list[Json]:
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
        """Run a call (`tools/call`, `prompts/get` or `resources/read`), from the top, with its journal."""
        ...

    async def complete(self, params: Json) -> Finished | Failed:
        """Answer `completion/complete`."""
        ...
