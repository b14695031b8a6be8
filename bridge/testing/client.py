"""The in-process client of any revision."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import msgspec

from bridge.app import Bridge
from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.protocol.inbound import META_CAPABILITIES, META_CLIENT_INFO, META_VERSION
from bridge.protocol.messages import Json, encode
from bridge.protocol.revisions import MODERN, REVISIONS, Era
from bridge.testing.answers import Asked, CallResult, Handler, HttpError, RpcError, decline
from bridge.testing.http import AsgiHttp, HttpReply

__all__ = ["Client", "connect"]

_MAX_QUESTIONS: Final = 64


class _Tools:
    """The tools, as the client sees and calls them."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    async def list(self) -> list[Json]:
        """The tools that this client is shown."""
        tools: list[Json] = (await self._client.request("tools/list", {}))["tools"]
        return tools

    async def call(self, name: str, arguments: Json | None = None) -> CallResult:
        """Call a tool and answer what it asks with the handler, until it has ended.

        Raises:
            RpcError: the call ended with a JSON-RPC error.
        """
        params = {"name": name, "arguments": arguments or {}}
        return CallResult(await self._client.call("tools/call", params))


class _Prompts:
    """The prompts, as the client sees and gets them."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    async def list(self) -> list[Json]:
        """The prompts that this client is shown."""
        prompts: list[Json] = (await self._client.request("prompts/list", {}))["prompts"]
        return prompts

    async def get(self, name: str, arguments: Mapping[str, str] | None = None) -> Json:
        """Get a prompt and answer what it asks with the handler: the result.

        Raises:
            RpcError: it ended with a JSON-RPC error.
        """
        return await self._client.call("prompts/get", {"name": name, "arguments": dict(arguments or {})})


class _Resources:
    """The resources, as the client sees and reads them."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    async def list(self) -> list[Json]:
        """The resources that this client is shown."""
        resources: list[Json] = (await self._client.request("resources/list", {}))["resources"]
        return resources

    async def read(self, uri: str) -> Json:
        """Read a resource and answer what it asks with the handler: the result.

        Raises:
            RpcError: it ended with a JSON-RPC error.
        """
        return await self._client.call("resources/read", {"uri": uri})


class _Raw:
    """Messages as they are, for tests of the wire."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    async def request(self, message: Json, *, complete: bool = True) -> Json:
        """Send a message and return the response message.

        Args:
            message: the message; what it has is kept.
            complete: whether to fill in `jsonrpc`, `id` and the `_meta` fields that a modern request must have.
        """
        return await self._client._exchange(self._client._completed(message) if complete else message)

    async def post(self, body: bytes | Json, headers: Mapping[str, str] | None = None) -> HttpReply:
        """Send a body with this client's headers, some of them replaced, and return the reply as it comes."""
        return await self._client._post(body, headers)

    async def get(self, last_event_id: str | None = None) -> HttpReply:
        """Open a stream."""
        headers = {**self._client._headers({}), "accept": "text/event-stream"}
        if last_event_id is not None:
            headers["last-event-id"] = last_event_id
        return await self._client._http.request("GET", headers)

    async def delete(self) -> HttpReply:
        """End the session."""
        return await self._client._http.request("DELETE", self._client._headers({}))


class Client:
    """A client of one revision. Made by `connect`."""

    def __init__(
        self, http: AsgiHttp, revision: str, capabilities: Json, info: Json, headers: Mapping[str, str]
    ) -> None:
        self.revision = REVISIONS[revision]
        self.capabilities = capabilities
        self.info = info
        self.session_id: str | None = None
        self.initialize_result: Json = {}
        self.notifications: list[Json] = []
        """Every notification that came, on whatever stream."""
        self.asked: list[Asked] = []
        """Every question that the handler got."""
        self.tools = _Tools(self)
        self.prompts = _Prompts(self)
        self.resources = _Resources(self)
        self.raw = _Raw(self)
        self._http = http
        self._extra_headers = dict(headers)
        self._handler: Handler = lambda asked: decline()
        self._requests: dict[str, Callable[[Json], Json | Awaitable[Json]]] = {}
        self._next_id = 0

    def on_elicitation(self, handler: Handler) -> None:
        """Set who answers questions; without a handler every question is declined.

        Args:
            handler: sync or async, from what is asked to what `accept`, `decline` or `cancel` returns.
        """
        self._handler = handler

    def on_request(self, method: str, handler: Callable[[Json], Json | Awaitable[Json]]) -> None:
        """Set who answers what the client itself is asked: `sampling/createMessage` or `roots/list`.

        Args:
            method: the request's method.
            handler: from its params to its result.
        """
        self._requests[method] = handler

    async def request(self, method: str, params: Json) -> Json:
        """Send a request and return its result.

        Args:
            method: the request's method.
            params: its params, without the `_meta` of a modern request, which is filled in.

        Raises:
            RpcError: it ended with a JSON-RPC error.
        """
        message = await self._exchange(self._completed({"method": method, "params": params}))
        if "error" in message:
            raise RpcError(message["error"])
        result: Json = message["result"]
        return result

    async def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification.

        Args:
            method: its method.
            params: its params; by default empty.
        """
        message: Json = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        await (await self._post(message, None)).closed()

    async def call(self, method: str, params: Json) -> Json:
        """Send a call, and answer what it asks, until its result is final.

        Args:
            method: `tools/call`, `prompts/get` or `resources/read`.
            params: its params.

        Returns:
            The result.

        Raises:
            RpcError: it ended with a JSON-RPC error.
        """
        result = await self.request(method, params)
        for _ in range(_MAX_QUESTIONS):
            if result.get("resultType") == "input_required":
                responses = {key: await self._respond(asked) for key, asked in result["inputRequests"].items()}
                again = {**params, "inputResponses": responses, "requestState": result["requestState"]}
                result = await self.request(method, again)
            elif PENDING in result.get("_meta", {}):
                pending = result["_meta"][PENDING]
                asked = pending["questions"][0] if "questions" in pending else pending
                answer = await self._answer({**asked, "requestedSchema": asked["schema"]})
                arguments = {"elicitId": asked["elicitId"], **answer}
                result = await self.request("tools/call", {"name": FALLBACK_TOOL_NAME, "arguments": arguments})
            else:
                return result
        raise AssertionError(f"{params} asked more than {_MAX_QUESTIONS} questions")

    async def _respond(self, request: Json) -> Json:
        """Answer a request of the server's; `KeyError` where nobody does."""
        if request["method"] == "elicitation/create":
            return await self._answer(request["params"])
        answer = self._requests[request["method"]](request.get("params", {}))
        return await answer if inspect.isawaitable(answer) else answer

    async def _answer(self, params: Json) -> Json:
        asked = Asked(params["message"], params.get("requestedSchema", {}), params.get("url"), params)
        self.asked.append(asked)
        answer = self._handler(asked)
        return await answer if inspect.isawaitable(answer) else answer

    async def _open(self) -> None:
        if self.revision.era is Era.MODERN:
            return
        params = {"protocolVersion": self.revision.name, "capabilities": self.capabilities, "clientInfo": self.info}
        message = self._completed({"method": "initialize", "params": params})
        reply = await self._post(message, None)
        body = await self._response(reply, message)
        if "error" in body:
            raise RpcError(body["error"])
        self.initialize_result = body["result"]
        # A server that keeps no sessions gives no id.
        self.session_id = reply.headers.get("mcp-session-id")
        await self.notify("notifications/initialized")

    def _completed(self, message: Json) -> Json:
        self._next_id += 1
        filled = {"jsonrpc": "2.0", "id": self._next_id, "params": {}, **message}
        if self.revision.era is Era.MODERN:
            meta = {META_VERSION: self.revision.name, META_CLIENT_INFO: self.info, META_CAPABILITIES: self.capabilities}
            given = filled["params"].get("_meta", {})
            filled["params"] = {**filled["params"], "_meta": {**meta, **given}}
        return filled

    def _headers(self, message: Json) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self.revision.era is Era.MODERN:
            headers["mcp-protocol-version"] = self.revision.name
            headers["mcp-method"] = str(message.get("method"))
            params = message.get("params", {})
            name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
            if name is not None:
                headers["mcp-name"] = str(name)
        elif self.session_id is not None:
            headers["mcp-session-id"] = self.session_id
            if self.revision.form_elicitation:
                headers["mcp-protocol-version"] = self.revision.name
        return {**headers, **self._extra_headers}

    async def _post(self, body: bytes | Json, headers: Mapping[str, str] | None) -> HttpReply:
        message = body if isinstance(body, dict) else {}
        merged = {**self._headers(message), **{name.lower(): value for name, value in (headers or {}).items()}}
        sent = {name: value for name, value in merged.items() if value != ""}
        return await self._http.request("POST", sent, encode(body) if isinstance(body, dict) else body)

    async def _exchange(self, message: Json) -> Json:
        """Post a request; serve what comes meanwhile; return the response."""
        return await self._response(await self._post(message, None), message)

    async def _response(self, reply: HttpReply, message: Json) -> Json:
        """Read a reply; serve what comes before the response.

        Raises:
            HttpError: it is no reply of an MCP server.
        """
        response: Json | None = None
        try:
            async for received in reply.messages():
                if "method" not in received:
                    response = received
                elif "id" in received:
                    await self._serve(received)
                else:
                    self.notifications.append(received)
        except msgspec.DecodeError:
            response = None
        if response is None or not ("result" in response or isinstance(response.get("error"), dict)):
            raise HttpError(str(message.get("method")), reply.status, reply.raw)
        return response

    async def _serve(self, request: Json) -> None:
        """Answer a request of the server's."""
        if request["method"] == "elicitation/create" or request["method"] in self._requests:
            answer: Json = {"result": await self._respond(request)}
        else:
            answer = {"error": {"code": -32601, "message": f"Method not found: {request['method']}"}}
        message = {"jsonrpc": "2.0", "id": request["id"], **answer}
        await (await self._post(message, None)).closed()


@asynccontextmanager
async def connect(
    target: Bridge | Any,
    *,
    revision: str = MODERN.name,
    capabilities: Json | None = None,
    info: Json | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Open an in-process client.

    Args:
        target: a `Bridge`, which is served for as long as the client is open, or an ASGI app that is served already.
        revision: what the client speaks.
        capabilities: what it declares; by default, that it shows forms, where its revision can say so.
        info: what it calls itself.
        headers: HTTP headers to add to every request.

    Returns:
        The client, initialized.
    """
    if capabilities is None:
        capabilities = {"elicitation": {}} if REVISIONS[revision].form_elicitation else {}
    about = {"name": "bridge.testing", "version": "1"} if info is None else info
    async with _served(target) as app, anyio.create_task_group() as tasks:
        client = Client(AsgiHttp(app, tasks), revision, capabilities, about, headers or {})
        await client._open()
        try:
            yield client
        finally:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _served(target: Any) -> AsyncIterator[Any]:
    if not isinstance(target, Bridge):
        yield target
        return
    app = target.asgi()
    async with app.lifespan():
        yield app
