"""The console: a page and its JSON under `/console`, for who has the token. It wraps the app that serves MCP.

What it shows is read from the store, so any node shows all of them; what it does (cancel a question, end a session) is
done through the store too, wherever the call runs that is concerned.
"""

import logging
import time
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from bridge.application import Application
from bridge.counting import read_hour
from bridge.errors import StoreError
from bridge.explaining import Explainer
from bridge.pages.answering import HEADERS, html, is_from_its_own_page, json, turned_away, wants_html
from bridge.pages.beside import Beside
from bridge.pages.console.view import Filter, Overview, live, login_page, page
from bridge.pages.door import Door
from bridge.pages.palette import with_palette
from bridge.transports.gate import Gate
from bridge.transports.uvicorn import Drainable

__all__ = ["CONSOLE_PATH", "Console"]

CONSOLE_PATH: Final = "/console"

_LIMIT: Final = 100
_MAX_FORM_BYTES: Final = 4096
_FILES: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_SAID: Final = {
    "cancelled": "The question was cancelled; its call goes on with that.",
    "ended": "The session was ended.",
    "gone": "It is not there any more.",
}
_WRONG: Final = "That is not the token."
_TOO_MANY: Final = "Too many wrong tokens came from this address. Try again in a minute."
_log = logging.getLogger("bridge.console")


class Console(Beside):
    """An ASGI app: the console under `/console`, and everything else as it was.

    Args:
        app: what serves MCP, or a wrapper of it.
        core: the application within; not yet started, so that it counts from its beginning.
        door: who may look.
    """

    def __init__(self, app: Drainable, core: Application, door: Door) -> None:
        core.count()
        self._core = core
        self._door = door
        self._gate = Gate(core.options.allowed_hosts, core.options.allowed_origins)
        self._explainer = Explainer(core.store, core.options)
        self._files = {name: (files("bridge.pages.console") / "static" / name).read_bytes() for name in _FILES}
        self._files["console.css"] = with_palette(self._files["console.css"])
        pages = Starlette(
            routes=[
                Route(CONSOLE_PATH, self._show, methods=["GET"]),
                Route(f"{CONSOLE_PATH}/login", self._log_in, methods=["POST"]),
                Route(f"{CONSOLE_PATH}/logout", self._log_out, methods=["POST"]),
                Route(f"{CONSOLE_PATH}/cancel", self._cancel, methods=["POST"]),
                Route(f"{CONSOLE_PATH}/end", self._end, methods=["POST"]),
                Route(f"{CONSOLE_PATH}/{{name}}", self._file, methods=["GET"]),
            ]
        )
        super().__init__(app, pages, lambda path: path == CONSOLE_PATH or path.startswith(f"{CONSOLE_PATH}/"))

    async def _show(self, request: Request) -> Response:
        away = turned_away(request, self._gate, self._door)
        if away is not None:
            return html(login_page("")) if wants_html(request) and away.status_code == 401 else away
        try:
            overview = await self._overview(request)
        except StoreError as error:
            _log.error("%s", error)
            return json({"error": "the store is away; try again"}, 503, **{"Retry-After": "1"})
        if "x-live" in request.headers:
            return html(live(overview, self._door.form_token(request)))
        if wants_html(request):
            said = _SAID.get(request.query_params.get("done", ""), "")
            return html(page(overview, self._door.form_token(request), said))
        return json(overview)

    async def _overview(self, request: Request) -> Overview:
        asked = request.query_params
        shown = Filter(asked.get("client", "")[:100], asked.get("revision", "")[:20])
        return Overview(
            server=self._core.name,
            explained=await self._explainer.explain(client=shown.client, revision=shown.revision, limit=_LIMIT),
            hour=await read_hour(self._core.store, time.time()),
            shown=shown,
        )

    async def _log_in(self, request: Request) -> Response:
        refusal = self._gate.check(dict(request.scope["headers"]))
        if refusal is not None or not is_from_its_own_page(request):
            return html(login_page("This did not come from the login page. Try again here."), 403)
        entered = self._door.try_token(request, (await _fields(request)).get("token", ""))
        if entered != "in":
            _log.warning("a login at the console with a wrong token")
            return html(login_page(_WRONG if entered == "out" else _TOO_MANY), 401 if entered == "out" else 429)
        response = RedirectResponse(CONSOLE_PATH, 303, HEADERS)
        self._door.log_in(request, response)
        return response

    async def _log_out(self, request: Request) -> Response:
        refused, _ = await self._acts(request)
        if refused is not None:
            return refused
        response = RedirectResponse(CONSOLE_PATH, 303, HEADERS)
        self._door.log_out(response)
        return response

    async def _cancel(self, request: Request) -> Response:
        """Cancel a question: as if its user had."""
        refused, fields = await self._acts(request)
        if refused is not None:
            return refused
        ref = await self._explainer.find(fields.get("session", ""))
        found = None if ref is None else await self._explainer.find_question(ref, fields.get("question", ""))
        session = None if ref is None else await self._core.sessions.at(ref.key)
        if found is None or session is None:
            return _done(request, "gone")
        route, identity = found
        if route == "push":
            if not await self._core.sessions.withdraw(session, identity):
                return _done(request, "gone")
        else:
            # The call may go on for long, and what it then does is nobody's here to wait for.
            self._core.withdraw(session, identity)
        _log.info("a question of session %s was cancelled at the console", session.handle)
        return _done(request, "cancelled")

    async def _end(self, request: Request) -> Response:
        """End a session."""
        refused, fields = await self._acts(request)
        if refused is not None:
            return refused
        ref = await self._explainer.find(fields.get("session", ""))
        session = None if ref is None else await self._core.sessions.at(ref.key)
        if session is None:
            return _done(request, "gone")
        await self._core.sessions.end(session)
        _log.info("session %s was ended at the console", session.handle)
        return _done(request, "ended")

    async def _acts(self, request: Request) -> tuple[Response | None, dict[str, str]]:
        """The fields of a request that does something, or why it may not: a form has to be of a page of this login."""
        away = turned_away(request, self._gate, self._door)
        if away is not None:
            return away, {}
        fields = await _fields(request)
        by_header = "authorization" in request.headers
        if not by_header and not (
            is_from_its_own_page(request) and self._door.is_form(request, fields.get("form_token"))
        ):
            return json({"error": "this did not come from the console's own page: load it again"}, 403), {}
        return None, fields

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return json({"error": "Nothing here"}, 404)
        headers = {**HEADERS, "Cache-Control": "max-age=300"}
        return Response(self._files[name], 200, headers, _FILES[name])


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a small form; empty where it is none."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MAX_FORM_BYTES:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=8)) if body else {}


def _done(request: Request, what: str) -> Response:
    """Say what was done: to a program in JSON, to a browser on the page that it came from."""
    if not wants_html(request):
        return json({"done": what}, 404 if what == "gone" else 200)
    return RedirectResponse(f"{CONSOLE_PATH}?{urlencode({'done': what})}", 303, HEADERS)
