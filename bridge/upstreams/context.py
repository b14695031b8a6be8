"""`Context`: what a native function is handed to ask, to record, to report. It knows no route and no revision."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeVar, overload

import msgspec

from bridge.asking.checking import InvalidReply, is_web_url
from bridge.asking.form import CONFIRM, digest, form_of
from bridge.asking.journal import ROOT, Asked, Replay
from bridge.asking.question import MAX_REASKS, Answer, Question, Reply
from bridge.asking.routes import RouteName
from bridge.errors import QuestionError, Suspended, ToolError
from bridge.protocol.clients import ClientProfile
from bridge.protocol.messages import Json
from bridge.upstreams.base import Call
from bridge.upstreams.endings import DISABLED
from bridge.upstreams.steps import Steps

__all__ = ["Attempt", "Context", "OnInvalid"]

Model = TypeVar("Model")
Result = TypeVar("Result")
OnInvalid = Literal["error", "reask"]

_log = logging.getLogger("bridge.tools")

_asked_before: ContextVar[str] = ContextVar("bridge_asked_before", default=ROOT)
"""The path of the last question of the task that runs. A task starts with that of the task that started it."""


class SpecialForm(Protocol):
    """What a type checker knows of a type that is no class, such as `Literal["red", "blue"]`; no mapping is one."""

    def __hash__(self) -> int: ...

    def __or__(self, other: Any, /) -> Any: ...


class Attempt(msgspec.Struct, frozen=True):
    """What `try_elicit` found.

    Args:
        status: `required` (return `result` from the tool to ask), `accept`, `decline` or `cancel`.
        data: what was filled in, checked, on accept; None in URL mode.
        result: what the tool returns to ask, when `required`.
    """

    status: Literal["required", "accept", "decline", "cancel"]
    data: Any = None
    result: Any = None


class Asking(msgspec.Struct, frozen=True):
    """What a tool returns to ask a question without being suspended."""

    question: Question


class _Read(msgspec.Struct, frozen=True):
    """How the answer of one question becomes what the author gets."""

    asked: Asked
    read: Callable[[Json], Any]
    confirms: bool = False


class Context:
    """One run of one call, as its author sees it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._replay = Replay(call.journal)
        self._steps: Steps | None = None
        self._invalid: InvalidReply | None = None
        self._over = False
        _asked_before.set(ROOT)

    @property
    def client(self) -> ClientProfile:
        """Who calls: `revision`, `capabilities`, `info` and `principal`."""
        return self._call.client

    @property
    def route(self) -> RouteName:
        """The way that a question in a form takes to this client's user."""
        return self._call.route()

    @property
    def input_responses(self) -> Json:
        """The raw answers of this round, as a modern client sent them: untrusted, unchecked, never to act on."""
        return self._call.input_responses

    @overload
    async def elicit(
        self,
        message: str,
        schema: type[Model],
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[Model]: ...

    @overload
    async def elicit(
        self,
        message: str,
        schema: Mapping[str, Any],
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[dict[str, Any]]: ...

    @overload
    async def elicit(
        self,
        message: str,
        schema: SpecialForm,
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[Any]: ...

    async def elicit(
        self,
        message: str,
        schema: Any,
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[Any]:
        """Ask the user of this call, and return the answer.

        The tool stops here and runs again from the top once the answer has come; then this returns at once. So
        ask first and act afterwards, and put what must happen once before a question into `step`.

        Args:
            message: the question, as the user reads it.
            schema: the form: a pydantic model, msgspec Struct, dataclass or TypedDict; `bool`, `str`, `int`, `float`,
                an Enum or Literal, or a list of one of those two; or a flat JSON Schema.
            key: the question's name on the wire; by default `elicitation-1`, `elicitation-2`, …
            on_invalid: what an answer that does not match does: `error` ends the call, `reask` asks again with the
                reasons, at most 3 times. By default as the tool or the bridge says.
            not_secret: free-text fields that sound like a secret and are none.

        Returns:
            The answer. `content` is an instance where `schema` is a class, a dict where it is a JSON Schema.

        Raises:
            TypeError: a field that a form cannot hold.
            QuestionError: the same key, or an equal question, open twice; or a field that asks for a secret.
            ToolError: with the code `ELICITATION_DISABLED`, where asking is switched off.

        Source: client/elicitation.
        """
        return self._answer(self._form(message, schema, on_invalid, not_secret), key)

    @overload
    def elicit_sync(
        self,
        message: str,
        schema: type[Model],
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[Model]: ...

    @overload
    def elicit_sync(
        self,
        message: str,
        schema: Mapping[str, Any],
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[dict[str, Any]]: ...

    @overload
    def elicit_sync(
        self,
        message: str,
        schema: SpecialForm,
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[Any]: ...

    def elicit_sync(
        self,
        message: str,
        schema: Any,
        *,
        key: str | None = None,
        on_invalid: OnInvalid | None = None,
        not_secret: Collection[str] = (),
    ) -> Answer[Any]:
        """Ask as `elicit` does, in a tool that is a plain function. No thread waits for the user.

        Args:
            message: as in `elicit`.
            schema: as in `elicit`.
            key: as in `elicit`.
            on_invalid: as in `elicit`.
            not_secret: as in `elicit`.

        Returns:
            The answer.

        Raises:
            TypeError: a field that a form cannot hold.
            QuestionError: as in `elicit`.
            ToolError: with the code `ELICITATION_DISABLED`, where asking is switched off.

        Source: client/elicitation.
        """
        return self._answer(self._form(message, schema, on_invalid, not_secret), key)

    async def elicit_all(self, questions: Mapping[str, tuple[str, Any]]) -> dict[str, Answer[Any]]:
        """Ask several questions in one round.

        Args:
            questions: for each key, the message and the schema, as in `elicit`.

        Returns:
            The answers, by key.

        Raises:
            TypeError: a field that a form cannot hold.
            QuestionError: a field that asks for a secret, or a key that another question of the call has.
            ToolError: with the code `ELICITATION_DISABLED`, where asking is switched off.

        Source: client/elicitation.
        """
        reads = {key: self._form(message, schema, None, ()) for key, (message, schema) in questions.items()}
        self._check_open()
        after = _asked_before.get()
        found = {key: self._replay.ask(after, read.asked, key) for key, read in reads.items()}
        _asked_before.set(digest([after, sorted(path for path, _, _ in found.values())]))
        if any(reply is None for _, _, reply in found.values()):
            raise Suspended(", ".join(found))
        answers: dict[str, Answer[Any]] = {}
        refused: Suspended | None = None
        for key, (_, question, reply) in found.items():
            assert reply is not None
            try:
                answers[key] = self._read(question, reply, reads[key])
            except Suspended as suspended:
                refused = suspended
        if refused is not None:
            raise refused
        self._replay.given.update(path for path, _, _ in found.values())
        return answers

    async def elicit_url(
        self, message: str, url: str, key: str | None = None, *, elicitation_id: str | None = None
    ) -> Answer[None]:
        """Ask the user to open a page, for what must not pass through the client.

        An accept says that the user agreed to open it, not that anything is done there: check that yourself.

        Args:
            message: why.
            url: an absolute http or https URL.
            key: as in `elicit`.
            elicitation_id: a name for `bridge.complete_url`, which tells the client that the page is done.

        Raises:
            QuestionError: a URL that is none.

        Source: client/elicitation#url-mode-elicitation-requests.
        """
        return self._answer(self._url(message, url, elicitation_id), key)

    async def try_elicit(self, key: str, message: str, schema_or_url: Any) -> Attempt:
        """Ask without being suspended: where the answer is not there, return `result` from the tool.

        Args:
            key: the question's name on the wire.
            message: the question, as the user reads it.
            schema_or_url: as in `elicit`, or the URL of a page to open.

        Returns:
            What is known of the answer. One that does not match makes it `required` again, with the reasons.
        """
        if isinstance(schema_or_url, str):
            wanted = self._url(message, schema_or_url, None)
        else:
            wanted = self._form(message, schema_or_url, "reask", ())
        self._check_open()
        path, question, reply = self._replay.ask(_asked_before.get(), wanted.asked, key)
        _asked_before.set(path)
        if reply is not None:
            try:
                answer = self._read(question, reply, wanted)
                self._replay.given.add(path)
                return Attempt(answer.status, answer.content)
            except Suspended:
                if self._invalid is not None:
                    raise
                question = self._replay.open[key]
        del self._replay.open[key]
        return Attempt("required", result=Asking(question))

    async def sample(self, messages: list[Json], max_tokens: int, **params: Any) -> Json:
        """Let the client's model write a message.

        Args:
            messages: the conversation, as `SamplingMessage` objects.
            max_tokens: how long the answer may be.
            params: more of the request's params, by their wire names, such as `systemPrompt` or `temperature`.

        Returns:
            The result: `role`, `content`, `model`.

        Raises:
            ToolError: the client does not declare sampling (or, with `tools`, that it samples with tools), or did not
                sample.

        Source: client/sampling.
        """
        if (
            "tools" in params
            and self.client.declares("sampling")
            and "tools" not in self.client.capabilities["sampling"]
        ):
            raise ToolError(
                "This client samples without tools only: it does not declare sampling.tools",
                "ELICITATION_NOT_SUPPORTED",
            )
        asked = {"messages": messages, "maxTokens": max_tokens, **params}
        return self._client_answer(Asked(digest=digest(asked), mode="sampling", params=asked))

    async def list_roots(self) -> list[Json]:
        """Return the client's roots: objects with `uri` and perhaps `name`.

        Raises:
            ToolError: the client does not declare roots, or did not tell.

        Source: client/roots.
        """
        roots: list[Json] = self._client_answer(Asked(digest="roots", mode="roots", params={}))["roots"]
        return roots

    @overload
    async def step(self, name: str, fn: Callable[[], Awaitable[Result]]) -> Result: ...

    @overload
    async def step(self, name: str, fn: Callable[[], Result]) -> Result: ...

    async def step(self, name: str, fn: Callable[[], Any]) -> Any:
        """Run `fn` once in this call, however often the tool runs again, and return its recorded result.

        A step that has begun is not broken off when another task of the tool stops at a question.

        Args:
            name: the step's name, unique in the tool.
            fn: what to do; sync or async. Its result must be JSON.

        Returns:
            What `fn` returned, as JSON has it: now, or when it ran.

        Raises:
            QuestionError: one name for two steps, or a result that is no JSON.
        """
        self._check_running()
        return await self._taken().take(name, fn)

    def step_sync(self, name: str, fn: Callable[[], Result]) -> Result:
        """Run `fn` once in this call, as `step` does, in a tool that is a plain function.

        Args:
            name: the step's name, unique in the tool.
            fn: what to do; a plain function. Its result must be JSON.

        Returns:
            What `fn` returned, as JSON has it: now, or when it ran.

        Raises:
            QuestionError: one name for two steps, or a result that is no JSON.
        """
        self._check_running()
        recorded: Result = self._taken().take_sync(name, fn)
        return recorded

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the client, if it asked for it.

        Args:
            progress: how much is done, rising; a value that is not above the last one is not sent.
            total: how much there is, where known.
            message: what is going on.
        """
        await self._call.outlet.progress(progress, total, message)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants that level.

        Args:
            level: `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
            data: any JSON value.
            logger: where it comes from.
        """
        await self._call.outlet.log(level, data, logger)

    async def debug(self, data: Any) -> None:
        """Send a log message of level `debug`.

        Args:
            data: any JSON value.
        """
        await self.log("debug", data)

    async def info(self, data: Any) -> None:
        """Send a log message of level `info`.

        Args:
            data: any JSON value.
        """
        await self.log("info", data)

    async def warning(self, data: Any) -> None:
        """Send a log message of level `warning`.

        Args:
            data: any JSON value.
        """
        await self.log("warning", data)

    async def error(self, data: Any) -> None:
        """Send a log message of level `error`.

        Args:
            data: any JSON value.
        """
        await self.log("error", data)

    async def close_stream(self) -> None:
        """End the connection of this call while it goes on, where its client comes back for the rest.

        So a long call holds no connection. Only a client of 2025-11-25 over HTTP comes back; for others nothing
        happens, and nothing is lost for any.

        Source: basic/transports#sending-messages-to-the-server of 2025-11-25.
        """
        await self._call.outlet.leave()

    def _form(self, message: str, schema: Any, on_invalid: OnInvalid | None, not_secret: Collection[str]) -> _Read:
        rules = self._call.rules
        form = form_of(schema)
        for name in form.secret:
            if name not in not_secret and name not in rules.not_secret:
                raise QuestionError(
                    f"the field {name!r} of {message!r} asks for a secret, which no form may. Use elicit_url, whose "
                    f"page the client does not see; if it is none, say not_secret=({name!r},)"
                )
        for name in form.described_secret:
            if name not in not_secret and name not in rules.not_secret:
                _log.warning("the description of the field %r of %r speaks of a secret", name, message)
        reask = MAX_REASKS if (on_invalid or rules.on_invalid) == "reask" else 0
        # A JSON Schema goes out as its author wrote it, where the client's revision has all its words.
        written = dict(schema) if isinstance(schema, Mapping) and not form.confirms and schema != form.schema else None
        asked = Asked(digest=form.digest, message=message, schema=form.schema, reask=reask, relayed=written)
        return _Read(asked, form.read, form.confirms)

    def _url(self, message: str, url: str, elicitation_id: str | None) -> _Read:
        if not is_web_url(url):
            raise QuestionError(f"elicit_url needs an absolute http or https URL, not {url!r}")
        named = elicitation_id or digest([self._call.named(), message, url])
        asked = Asked(digest=digest(url), mode="url", message=message, url=url, elicitation_id=named)
        return _Read(asked, lambda content: None)

    def _check_running(self) -> None:
        """A task that was left behind takes no more part: what it did now would not be recorded, and done twice."""
        if self._over:
            raise Suspended("the run of this tool is over")

    def _check_open(self) -> None:
        self._check_running()
        if not self._call.rules.elicitation:
            raise ToolError(DISABLED, "ELICITATION_DISABLED")

    def _answer(self, wanted: _Read, key: str | None) -> Answer[Any]:
        self._check_open()
        path, question, reply = self._replay.ask(_asked_before.get(), wanted.asked, key)
        _asked_before.set(path)
        if reply is None:
            raise Suspended(question.key)
        answer = self._read(question, reply, wanted)
        self._replay.given.add(path)
        return answer

    def _read(self, question: Question, reply: Reply, wanted: _Read) -> Answer[Any]:
        """Make the author's answer of a recorded one; one that breaks a rule which no form shows is forgotten."""
        if reply.status == "accept" and wanted.confirms and reply.content[CONFIRM] is not True:
            reply = Reply("decline", None, reply.source)
        if reply.status != "accept":
            return Answer(reply.status, None, reply.source)
        try:
            return Answer("accept", wanted.read(reply.content), reply.source)
        except ValueError as error:
            reasons = tuple(str(error).splitlines())
            if self._call.route() is RouteName.CHAT:
                # There an invalid answer never uses the question up: it stays open under its id.
                question = msgspec.structs.replace(question, reask=0)
            if not self._replay.refuse(question, reasons):
                known = () if self._invalid is None else self._invalid.reasons
                several = len(self._call.fresh) > 1
                named = tuple(f"{question.key}.{reason}" for reason in reasons) if several else reasons
                self._invalid = InvalidReply(known + named)
            raise Suspended(question.key) from None

    def _client_answer(self, asked: Asked) -> Json:
        self._check_running()
        path, question, reply = self._replay.ask(_asked_before.get(), asked, None)
        _asked_before.set(path)
        if reply is None:
            raise Suspended(question.key)
        self._replay.given.add(path)
        if reply.status != "accept":
            raise ToolError(
                f"The client did not answer {question.method}: {reply.content}", "ELICITATION_NOT_SUPPORTED"
            )
        answered: Json = reply.content
        return answered

    @property
    def _acted(self) -> bool:
        """Whether this run took a step, or went past an answer that the run before it did not have."""
        return self._replay.stepped or not self._call.fresh.isdisjoint(self._replay.given)

    def _taken(self) -> Steps:
        if self._steps is None:
            self._steps = Steps(self._replay)
        return self._steps
