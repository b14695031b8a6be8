"""A gateway of one's own, built from the parts `protocol`, `asking` and `sessions`, without a `Bridge`.

It serves one tool that asks, to modern clients and to those of older revisions, at one URL. Modern clients get the
question as a result, the others through the fallback tool. Both ways carry the same sealed state, so the gateway keeps
nothing of a call; only the sessions of older clients are stored.

Run it with `python examples/custom_gateway.py`. What it leaves out, a `Bridge` has: forms in the middle of a call,
streams, cancellation, rounds that run at most once, checks of `Host` and `Origin`, tools that are async.
"""

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response as HttpResponse
from starlette.routing import Route

from bridge import Principal, SessionLimits, random_keys
from bridge.asking.checking import check_reply
from bridge.asking.dialects import request_params
from bridge.asking.fallback import FALLBACK_TOOL, FALLBACK_TOOL_NAME, PENDING, pending_form, pending_text, read_call
from bridge.asking.form import digest, form_of
from bridge.asking.journal import ROOT, Asked, Journal, Replay
from bridge.asking.question import Question, Reply
from bridge.asking.seal import BROKEN_SEAL, Broken, Claims, Seal
from bridge.errors import ProtocolError
from bridge.node import Node
from bridge.protocol.clients import ClientProfile, required_capability
from bridge.protocol.inbound import Rejected, check_modern, is_modern
from bridge.protocol.messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    Json,
    Notification,
    Request,
    decode,
    encode,
    error_message,
    result_message,
)
from bridge.protocol.revisions import MODERN
from bridge.protocol.shaping import modern_result
from bridge.sessions import Sessions
from bridge.stores import MemoryStore

NAME: Final = "gateway"
INFO: Final[Json] = {"name": NAME, "version": "1.0"}
NOBODY: Final = Principal("", "")
ROUND_SECONDS: Final = 3600.0
ORDER: Final[Json] = {
    "name": "order",
    "description": "Order something. Asks first.",
    "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
}
ordered: list[str] = []


def order(arguments: Json, replay: Replay) -> Json | None:
    """Run the tool with what is known so far: its result, or None where it has stopped at a question."""
    form, what = form_of(bool), str(arguments.get("what"))
    asked = Asked(digest=form.digest, message=f"Order {what}?", schema=form.schema)
    _, _, reply = replay.ask(ROOT, asked, "sure")
    if reply is None:
        return None
    if reply.status != "accept" or not form.read(reply.content):
        return said(f"{what} is not ordered.")
    ordered.append(what)
    return said(f"{what} is ordered.")


def said(text: str, *, is_error: bool = False) -> Json:
    """A text as a result."""
    return {"content": [{"type": "text", "text": text}], **({"isError": True} if is_error else {})}


class State(msgspec.Struct):
    """What a call carries from one request to the next, sealed."""

    arguments: Json
    question: Question
    journal: Journal


class Refused(Exception):
    """A request that ends with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None, status: int = 200) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.status = code, message, data, status


class Asking:
    """Runs the tool, and carries what it asked in a sealed text."""

    def __init__(self) -> None:
        self._seal = Seal(random_keys(), secrets.token_bytes(16))

    def run(self, arguments: Json, journal: Journal) -> Json | Question:
        """Run the tool: what it ends with, or what it asks."""
        replay = Replay(journal)
        result = order(arguments, replay)
        return result if result is not None else next(iter(replay.open.values()))

    def seal(self, state: State) -> str:
        """Seal a call that has asked."""
        return self._seal.seal(
            claims(time.time() + ROUND_SECONDS), msgspec.msgpack.encode(state), secrets.token_bytes(12)
        )

    def open(self, token: str) -> State | None:
        """Open a sealed call; None where it does not hold."""
        opened = self._seal.open(token, claims(), time.time())
        return None if isinstance(opened, Broken) else msgspec.msgpack.decode(opened, type=State)

    def answer(self, state: State, given: Any, *, by_chat: bool) -> Json | Question | str:
        """Go on with a call: what it ends with, what it asks now, or why the answer is none."""
        reply = check_reply(state.question, given, "chat" if by_chat else "form")
        if not isinstance(reply, Reply):
            return reply.text
        state.journal.record(state.question, reply)
        return self.run(state.arguments, state.journal)


def claims(expires_at: float = 0.0) -> Claims:
    """What a sealed call is bound to: here to this server and tool. The arguments are inside."""
    return Claims("process", NAME, NOBODY.name, "tools/call", ORDER["name"], digest({}), expires_at)


class ModernClients:
    """Requests that stand alone: the question is the result, the answer comes with the retry."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def handle(self, request: Request, headers: dict[bytes, bytes]) -> Json:
        """Answer one request."""
        checked = check_modern(request, headers)
        if isinstance(checked, Rejected):
            raise Refused(checked.code, checked.message, checked.data, checked.status)
        if request.method == "server/discover":
            return modern_result({"supportedVersions": [MODERN.name], "capabilities": {"tools": {}}, **FRESH}, INFO)
        if request.method == "tools/list":
            return modern_result({"tools": [ORDER], **FRESH}, INFO)
        if request.method != "tools/call" or request.params.get("name") != ORDER["name"]:
            raise Refused(METHOD_NOT_FOUND, f"Not here: {request.method}", status=404)
        return self._call(request.params, ClientProfile(MODERN, checked.capabilities, checked.info))

    def _call(self, params: Json, client: ClientProfile) -> Json:
        arguments, token = params.get("arguments", {}), params.get("requestState")
        if token is None:
            outcome: Json | Question | str = self._asking.run(arguments, journal := Journal())
        else:
            state = self._asking.open(str(token))
            if state is None or state.arguments != arguments:
                raise Refused(INVALID_PARAMS, BROKEN_SEAL, status=400)
            journal = state.journal
            outcome = self._asking.answer(
                state, params.get("inputResponses", {}).get(state.question.key), by_chat=False
            )
        if isinstance(outcome, str):
            return modern_result(said(outcome, is_error=True), INFO)
        if not isinstance(outcome, Question):
            return modern_result(outcome, INFO)
        if not client.declares("form"):
            needed = {"requiredCapabilities": required_capability("form")}
            raise Refused(MISSING_CLIENT_CAPABILITY, "order asks its user in a form", needed, 400)
        asked = {"method": outcome.method, "params": request_params(outcome, MODERN)}
        sealed = self._asking.seal(State(arguments, outcome, journal))
        return modern_result(
            {"inputRequests": {outcome.key: asked}, "requestState": sealed}, INFO, kind="input_required"
        )


FRESH: Final[Json] = {"ttlMs": 60_000, "cacheScope": "public"}
"""How long modern clients may keep what they list."""


class OlderClients:
    """Requests of a session: the model asks in the chat, and passes the answer on with the fallback tool."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def handle(self, request: Request) -> Json:
        """Answer one request of a session."""
        if request.method == "ping":
            return {}
        if request.method == "tools/list":
            return {"tools": [ORDER, FALLBACK_TOOL]}
        if request.method != "tools/call":
            raise Refused(METHOD_NOT_FOUND, f"Not here: {request.method}")
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if name == FALLBACK_TOOL_NAME:
            return self._answer(arguments)
        if name != ORDER["name"]:
            raise Refused(INVALID_PARAMS, f"Unknown tool: {name}")
        return self._ended(self._asking.run(arguments, journal := Journal()), arguments, journal)

    def _answer(self, arguments: Json) -> Json:
        given = read_call(arguments)
        if isinstance(given, str):
            return said(given, is_error=True)
        state = self._asking.open(given.elicit_id)
        if state is None:
            return said("Nothing waits under this elicitId: it may have expired.", is_error=True)
        outcome = self._asking.answer(state, {"action": given.action, "content": given.content}, by_chat=True)
        return self._ended(outcome, state.arguments, state.journal)

    def _ended(self, outcome: Json | Question | str, arguments: Json, journal: Journal) -> Json:
        if isinstance(outcome, str):
            return said(outcome, is_error=True)
        if not isinstance(outcome, Question):
            return outcome
        elicit_id, until = self._asking.seal(State(arguments, outcome, journal)), "an hour from now"
        form = pending_form(elicit_id, [outcome], until)
        return {**said(pending_text(elicit_id, [outcome], until)), "_meta": {PENDING: form}}


class Gateway:
    """The endpoint: it tells the eras apart, and holds the sessions of older clients."""

    def __init__(self) -> None:
        self.node = Node(MemoryStore())
        self._sessions = Sessions(self.node, SessionLimits())
        asking = Asking()
        self._modern, self._older = ModernClients(asking), OlderClients(asking)

    async def post(self, http: HttpRequest) -> HttpResponse:
        """Take one message."""
        headers = {name.lower(): value for name, value in http.headers.raw}
        try:
            message = decode(await http.body())
        except ProtocolError as error:
            return reply(error_message(msgspec.UNSET, error.code, error.message), 400)
        if isinstance(message, Notification):
            return HttpResponse(status_code=202)
        if not isinstance(message, Request):
            return HttpResponse(status_code=400)
        try:
            if is_modern(message.params, headers.get(b"mcp-protocol-version")):
                return reply(result_message(message.id, self._modern.handle(message, headers)))
            return await self._older_client(message, http.headers.get("mcp-session-id"))
        except Refused as refused:
            return reply(error_message(message.id, refused.code, refused.message, refused.data), refused.status)

    async def _older_client(self, request: Request, session_id: str | None) -> HttpResponse:
        if request.method == "initialize":
            session = await self._sessions.open(request.params, NOBODY)
            about = {"protocolVersion": session.record.revision, "capabilities": {"tools": {}}, "serverInfo": INFO}
            return reply(result_message(request.id, about), session_id=session.id)
        if session_id is None or await self._sessions.find(session_id, NOBODY) is None:
            return HttpResponse(status_code=400 if session_id is None else 404)
        return reply(result_message(request.id, self._older.handle(request)))

    async def delete(self, http: HttpRequest) -> HttpResponse:
        """End a session."""
        session = await self._sessions.find(http.headers.get("mcp-session-id", ""), NOBODY)
        if session is None:
            return HttpResponse(status_code=404)
        await self._sessions.end(session)
        return HttpResponse(status_code=204)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Serve while the context is open."""
        await self.node.start()
        await self._sessions.start()
        try:
            yield
        finally:
            await self.node.stop()


def reply(message: Json, status: int = 200, session_id: str | None = None) -> HttpResponse:
    """One message as an HTTP reply."""
    named = {} if session_id is None else {"Mcp-Session-Id": session_id}
    return HttpResponse(encode(message), status, named, "application/json")


def make_app() -> Starlette:
    """The gateway as an ASGI app."""
    gateway = Gateway()
    routes = [Route("/mcp", gateway.post, methods=["POST"]), Route("/mcp", gateway.delete, methods=["DELETE"])]
    return Starlette(routes=routes, lifespan=gateway.lifespan)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(make_app(), host="127.0.0.1", port=8000)
