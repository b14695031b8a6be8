"""The playground: a page on which a person plays every kind of client. It wraps the app that serves MCP.

The page is an MCP client like any other, and calls the same endpoint. What only the server can tell it, it asks for
with requests of its own (`/playground/…`), which are answered to this very page alone: the same checks of `Host`,
`Origin` and authentication as for MCP, an `Origin` that is this host, and a token that only who could read the page
has. It is told of a `requestState` only what was sealed for the same principal: nobody sees what is somebody else's.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from bridge.asking.seal import Broken, KeyRing
from bridge.pages.beside import Beside
from bridge.pages.files import HEADERS, Files
from bridge.pages.kinds import explained
from bridge.pages.opening import opened
from bridge.pages.rendering import About, rendered
from bridge.protocol.clients import Principal
from bridge.protocol.messages import Json
from bridge.server import Options
from bridge.transports.admission import Admission
from bridge.transports.gate import Gate, Refusal
from bridge.transports.uvicorn import Drainable

__all__ = ["Playground", "PlaygroundRules"]

MAX_ASKED_BYTES: Final = 1024 * 1024
"""How much the page may send with one of its own requests; a `requestState` holds a journal of 256 KiB at most."""

_TOKEN_HEADER: Final = "playground-token"
_INDEX: Final = "index.html"


class PlaygroundRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a playground shows beside what the bridge says.

    Args:
        title: the server's name for people, once it is known.
        version: of the bridge.
        snippet: the code of one tool, to show; empty for none.
        restart: puts what is served back to how it was, where that can be.
    """

    title: Callable[[], str]
    version: str
    snippet: str = ""
    restart: Callable[[], Awaitable[None]] | None = None


class Playground(Beside):
    """An ASGI app: the page at `/`, what belongs to it under `/playground/`, and everything else as it was.

    Args:
        app: what serves MCP, at `/mcp`.
        options: how the bridge is set up: who may come in.
        keys: what seals `requestState`.
        rules: what the page shows.
    """

    def __init__(self, app: Drainable, options: Options, keys: KeyRing, rules: PlaygroundRules) -> None:
        self._options = options
        self._keys = keys
        self._rules = rules
        self._files = Files()
        self._gate = Gate(options.allowed_hosts, options.allowed_origins)
        self._admission = Admission(options)
        self._token = _token(keys)
        self._answers: dict[str, Callable[[Json, Principal], Awaitable[Json]]] = {
            "open": self._open,
            "route": self._route,
        }
        if rules.restart is not None:
            self._answers["restart"] = self._restart
        pages = Starlette(
            routes=[
                Route("/", self._show, methods=["GET"]),
                Route("/playground/{name}", self._file, methods=["GET"]),
                Route("/playground/{name}", self._answer, methods=["POST"]),
            ]
        )
        super().__init__(app, pages, lambda path: path == "/" or path.startswith("/playground/"))

    async def _show(self, request: Request) -> Response:
        refusal = self._gate.check(dict(request.scope["headers"]))
        if refusal is not None:
            return _refused(refusal)
        about = About(
            title=self._rules.title(),
            version=self._rules.version,
            token=self._token,
            rules=self._options.client_rules,
            snippet=self._rules.snippet,
            can_restart=self._rules.restart is not None,
        )
        return HTMLResponse(rendered(self._files.text(_INDEX), about), headers={**HEADERS, "Cache-Control": "no-store"})

    async def _file(self, request: Request) -> Response:
        refusal = self._gate.check(dict(request.scope["headers"]))
        return self._files.respond(request, request.path_params["name"]) if refusal is None else _refused(refusal)

    async def _answer(self, request: Request) -> Response:
        """Answer a request of the page's own."""
        principal = await self._admission.admit(request.scope, dict(request.scope["headers"]))
        if isinstance(principal, Refusal):
            return _refused(principal)
        answer = self._answers.get(request.path_params["name"])
        if answer is None:
            return _json({"error": "there is no such thing to ask for"}, 404)
        if not self._is_from_the_page(request):
            return _json({"error": "this did not come from the page itself: load it again"}, 403)
        asked = await _read(request)
        if isinstance(asked, Refusal):
            return _refused(asked)
        try:
            return _json(await answer(asked, principal))
        except KeyError as missing:
            return _json({"error": f"{missing.args[0]} is missing, or of another type"}, 400)

    def _is_from_the_page(self, request: Request) -> bool:
        """Browsers say with each POST where it comes from, and let no other site send a header like the token's."""
        origin = urlsplit(request.headers.get("origin", ""))
        is_own = bool(origin.netloc) and origin.netloc == request.headers.get("host")
        return is_own and hmac.compare_digest(request.headers.get(_TOKEN_HEADER, "").encode(), self._token.encode())

    async def _open(self, asked: Json, principal: Principal) -> Json:
        found = opened(self._keys, _field(asked, "requestState", str), principal)
        return {"closed": found.reason} if isinstance(found, Broken) else found

    async def _restart(self, asked: Json, principal: Principal) -> Json:
        if self._rules.restart is not None:
            await self._rules.restart()
        return {}

    async def _route(self, asked: Json, principal: Principal) -> Json:
        revision, capabilities = _field(asked, "revision", str), _field(asked, "capabilities", dict)
        return explained(revision, capabilities, _field(asked, "info", dict), self._options.client_rules, principal)


def _token(keys: KeyRing) -> str:
    """The same at every node that has the same keys, as the page and its requests may meet different ones."""
    return hmac.new(keys.keys[keys.first], b"mcp-session-bridge playground", hashlib.sha256).hexdigest()


def _field(asked: Json, name: str, kind: type) -> Any:
    value = asked.get(name)
    if not isinstance(value, kind):
        raise KeyError(name)
    return value


async def _read(request: Request) -> Json | Refusal:
    """The body of a request, which is a JSON object."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Refusal(415, "Content-Type must be application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_ASKED_BYTES:
            return Refusal(413, f"The body is larger than {MAX_ASKED_BYTES} bytes")
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return Refusal(400, "The body must be a JSON object")


def _refused(refusal: Refusal) -> Response:
    response = _json({"error": refusal.message}, refusal.status)
    response.raw_headers.extend(refusal.headers)
    return response


def _json(value: Json, status: int = 200) -> Response:
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(value), status, headers, "application/json")
