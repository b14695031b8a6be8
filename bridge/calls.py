"""The loop: run the call with its journal; it finishes, or stops at questions; a route gets them answered; go on.

The only place where routes and upstreams meet. Routes differ in how answers come: in the same request (push), in
the next one (rounds), by another tool (chat), or not at all (refuse). A route either records the answers, and the
loop goes on, or says how the request ends.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from bridge.asking.journal import MAX_JOURNAL_BYTES, Journal
from bridge.asking.question import Question
from bridge.asking.routes import ClientRule, RouteName, choose
from bridge.claims import AlreadyAnswered, Claims, Ending, Interrupted, Released
from bridge.protocol.messages import INTERNAL_ERROR, Json
from bridge.upstreams.base import (
    AskingRules,
    Call,
    Caller,
    CallRequest,
    Failed,
    Finished,
    Hold,
    Outlet,
    Stopped,
    Upstream,
)
from bridge.upstreams.endings import failed

__all__ = ["MAX_ROUNDS", "Calls", "Client", "Exchange", "Keeper", "Round", "Route", "Stored", "Waiting", "interrupted"]

MAX_ROUNDS: Final = 10
"""How often a call may be run again with new answers."""

_NOTHING: Final[frozenset[str]] = frozenset()
_log = logging.getLogger("bridge.calls")


class Stored(msgspec.Struct, frozen=True):
    """What is known of a call that goes on: its id, how often it was answered, and its journal."""

    call_id: str
    number: int
    journal: Journal


class Waiting(msgspec.Struct, frozen=True):
    """A question that was pushed, with what is needed to go on with its call once it is answered.

    Args:
        stored: what is known of the call.
        question: what was asked.
        question_id: the id of its request.
        position: where in the session's log its answer can be, at the earliest.
    """

    stored: Stored
    question: Question
    question_id: str
    position: int


class Keeper(Protocol):
    """Keeps what is known of a call, so that another node can go on with it for a client that comes back there."""

    @property
    def is_giving_up(self) -> bool:
        """Whether the node shuts down and leaves the call, which waits for an answer, to another."""
        ...

    async def waits(self, waiting: Waiting) -> None:
        """The call waits for an answer from now on."""
        ...

    async def goes_on(self, stored: Stored) -> None:
        """The call runs again with new answers; it is cancelled here where another node has it by now."""
        ...


class Exchange(Protocol):
    """One request and the way back to who made it, as a transport gives it to the loop."""

    on_gone: Callable[[], None] | None
    """What to do when the client has gone; None: the request is cancelled."""

    on_closing: Callable[[], None] | None
    """What to do when the node shuts down: by default the request goes on."""

    on_delivered: Any
    """What to do once the client has the reply: an async function, or None."""

    @property
    def keeper(self) -> Keeper | None:
        """Keeps what is known of the call; None where nobody else could go on with it."""
        ...

    @property
    def http(self) -> Mapping[str, Any] | None:
        """The ASGI scope of the request; None where it did not come over HTTP."""
        ...

    @property
    def can_stream(self) -> bool:
        """Whether messages can be sent before the reply."""
        ...

    async def send(self, message: Json) -> None:
        """Send a message before the reply."""
        ...

    async def leave(self) -> None:
        """End the stream where its client comes back for the rest; elsewhere it stays."""
        ...

    def cancel(self) -> None:
        """End the request: nobody wants its reply any more."""
        ...


class Client(Caller, Protocol):
    """Who made a request: the session of a legacy client, or what a modern request says of its client."""

    @property
    def unable(self) -> Mapping[str, str]:
        """For each mode in which the client turned out not to be askable, why."""
        ...


class Round(msgspec.Struct):
    """A call under way, with what its routes need to know.

    Args:
        client: who made the request.
        call: what the upstream gets.
        exchange: the request that is being answered.
        number: how often the call was answered before.
        hold: the call, where it is suspended at the questions that are being asked.
        waits_until: set by a route that leaves the call waiting for another request: until when, in seconds since the
            epoch; else 0.
    """

    client: Client
    call: Call
    exchange: Exchange
    number: int = 0
    hold: Hold | None = None
    waits_until: float = 0.0


class Route(Protocol):
    """One way in which a question takes to the user of a client."""

    async def ask(self, current: Round, questions: list[Question]) -> Ending | None:
        """Get questions answered.

        Returns:
            None when the answers are in the journal and the call can go on; otherwise how the request ends.
        """
        ...


class Calls:
    """Runs calls to their end.

    Args:
        upstream: what is wrapped.
        claims: what makes a round run once.
        routes: the way of each route name, for the clients of one era.
        rules: how calls may ask.
        client_rules: what the operator decided about some clients.
    """

    def __init__(
        self,
        upstream: Upstream,
        claims: Claims,
        routes: Mapping[RouteName, Route],
        *,
        rules: AskingRules,
        client_rules: Sequence[ClientRule] = (),
    ) -> None:
        self._upstream = upstream
        self._claims = claims
        self._routes = routes
        self._rules = rules
        self._client_rules = client_rules

    def begin(
        self,
        request: CallRequest,
        client: Client,
        outlet: Outlet,
        exchange: Exchange,
        stored: "Stored | None" = None,
        input_responses: Json | None = None,
        answered: Sequence[Question] = (),
    ) -> Round:
        """Make a call of a request, or of what is stored of one.

        Args:
            request: what was called.
            client: who called.
            outlet: where the call's progress and logs go.
            exchange: the request that is being answered.
            stored: what is known of the call, where it was answered before.
            input_responses: the raw answers of a modern retry.
            answered: the questions whose answers are new.
        """
        known = Stored("", 0, Journal()) if stored is None else stored
        fresh = frozenset(question.path for question in answered) if answered else _NOTHING
        call = Call(
            known.call_id,
            request,
            client,
            known.journal,
            outlet,
            lambda: choose(client.profile, "form", client.unable, self._client_rules).route,
            self._rules,
            input_responses or {},
            fresh,
            exchange.http,
        )
        return Round(client, call, exchange, known.number)

    async def run(self, current: Round) -> Ending | Released:
        """Run a call until it ends, or until its client has to be asked in another message.

        Args:
            current: the call; its journal gains what is answered meanwhile.
        """
        first = current.number
        while True:
            outcome = await self._upstream.run(current.call)
            if not isinstance(outcome, Stopped):
                return outcome
            ending = (
                await self._ask(current, outcome, first)
                if outcome.hold is None
                else await self._ask_holding(current, outcome, outcome.hold, first)
            )
            if ending is not None:
                return ending

    async def _ask(self, current: Round, stopped: Stopped, first: int) -> Ending | Released | None:
        """Get the questions of a call answered; None when it can go on."""
        if stopped.invalid is not None:
            if not stopped.acted and current.number == first:
                return Released(stopped.invalid.text, tuple(question.path for question in stopped.questions))
            return failed(current.call.request, stopped.invalid.text, "INVALID_INPUT")
        if (ended := _out_of_bounds(current)) is not None:
            return ended
        name, questions = self._next(current.client, stopped.questions)
        current.number += 1
        ending = await self._routes[name].ask(current, questions)
        if ending is None:
            current.call.fresh = frozenset(question.path for question in questions)
        return ending

    async def _ask_holding(self, current: Round, stopped: Stopped, hold: Hold, first: int) -> Ending | Released | None:
        """Likewise, where the call stays suspended meanwhile: it ends with whatever ends the asking."""
        current.hold, current.waits_until = hold, 0.0
        try:
            ending = await self._ask(current, stopped, first)
        except BaseException:
            await hold.cancel()
            raise
        finally:
            current.hold = None
        if ending is not None:
            if current.waits_until:
                hold.keep(current.waits_until)
            else:
                await hold.cancel()
        return ending

    async def resume(
        self,
        current: Round,
        *,
        round_id: str,
        answers: str,
        ttl_seconds: float,
        unknown: Finished | Failed,
        claimed: Callable[[], Awaitable[None]] | None = None,
    ) -> Ending | Released:
        """Run an answered round, once, whoever asks for it and however often.

        Args:
            current: the call, its journal holding the answers.
            round_id: names the round.
            answers: the digest of the answers.
            ttl_seconds: for how long the round could be presented again.
            unknown: what to say where the round was answered otherwise.
            claimed: what to do once the round is claimed, before it runs.
        """
        exchange = current.exchange

        def joined(leave: Callable[[], None]) -> None:
            exchange.on_gone = leave

        async def run() -> Ending | Released:
            if claimed is not None:
                await claimed()
            return await self.run(current)

        ending = await self._claims.once(
            round_id,
            answers,
            run,
            ttl_seconds=ttl_seconds,
            repeatable=await self.is_repeatable(current.call.request),
            cancel=exchange.cancel,
            joined=joined,
        )
        if isinstance(ending, AlreadyAnswered):
            return unknown
        if isinstance(ending, Interrupted):
            return interrupted(current.call.request)
        return ending

    def _next(self, client: Client, questions: list[Question]) -> tuple[RouteName, list[Question]]:
        """The questions that are asked now: those whose route is that of the first; a refusal comes before all."""
        found = [choose(client.profile, question.mode, client.unable, self._client_rules) for question in questions]
        routes = [choice.route for choice in found]
        name = RouteName.REFUSE if RouteName.REFUSE in routes else routes[0]
        return name, [question for question, route in zip(questions, routes, strict=True) if route is name]

    async def is_repeatable(self, request: CallRequest) -> bool:
        """Whether the tool says that running it twice does no harm."""
        if self._upstream.policy(request.target).repeatable:
            return True
        definition = await self._upstream.tool(request.target) if request.method == "tools/call" else None
        annotations = {} if definition is None else definition.get("annotations", {})
        return annotations.get("readOnlyHint") is True or annotations.get("idempotentHint") is True


def interrupted(request: CallRequest) -> Finished | Failed:
    """How a call ends that was cut off."""
    text = f"The call of {request.target} was interrupted. It may have partly run, and it was not run again."
    return failed(request, text, "INTERRUPTED")


def _out_of_bounds(current: Round) -> Ending | None:
    target = current.call.request.target
    if current.number >= MAX_ROUNDS:
        text = (
            f"Too many input rounds: {target} was answered {MAX_ROUNDS} times and asks again. "
            "A tool must ask the same questions, in the same words, each time it runs."
        )
        _log.error("%s", text)
        return failed(current.call.request, text)
    if current.call.journal.size() > MAX_JOURNAL_BYTES:
        _log.error("the answers and steps of %s take more than %d bytes", target, MAX_JOURNAL_BYTES)
        return Failed(INTERNAL_ERROR, f"The answers and steps of {target} take more than {MAX_JOURNAL_BYTES} bytes")
    return None
