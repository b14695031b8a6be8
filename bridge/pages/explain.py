"""`GET /explain`: each live session, how its user is asked and why, and what is open; JSON, or a plain page."""

from importlib.resources import files
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bridge.explaining import Explained, Explainer, SessionExplained
from bridge.pages.answering import HEADERS, html, json, turned_away, wants_html
from bridge.pages.beside import Beside
from bridge.pages.door import Door
from bridge.pages.markup import Markup, badge, document, duration, mark, table
from bridge.pages.palette import with_palette
from bridge.server import Options
from bridge.stores.base import Store
from bridge.transports.gate import Gate
from bridge.transports.uvicorn import Drainable

__all__ = ["EXPLAIN_PATH", "Explain"]

EXPLAIN_PATH: Final = "/explain"

_STYLE_PATH: Final = f"{EXPLAIN_PATH}/style.css"
_ICON_PATH: Final = f"{EXPLAIN_PATH}/icon.svg"
_LIMIT: Final = 200
_TITLE: Final = "Why each client is asked as it is"


class Explain(Beside):
    """An ASGI app: `/explain`, and everything else as it was.

    Args:
        app: what serves MCP.
        store: where its sessions stand.
        options: how it is set up.
        door: who may look; None for everybody, where nothing of anybody is to be seen, as in a demo.
    """

    def __init__(self, app: Drainable, store: Store, options: Options, door: Door | None) -> None:
        self._door = door
        self._gate = Gate(options.allowed_hosts, options.allowed_origins)
        self._explainer = Explainer(store, options)
        pages = Starlette(
            routes=[
                Route(EXPLAIN_PATH, self._show, methods=["GET"]),
                Route(_STYLE_PATH, self._styles, methods=["GET"]),
                Route(_ICON_PATH, self._picture, methods=["GET"]),
            ]
        )
        super().__init__(app, pages, {EXPLAIN_PATH, _STYLE_PATH, _ICON_PATH}.__contains__)
        static = files("bridge.pages.console") / "static"
        self._css = with_palette((static / "console.css").read_bytes())
        self._icon = (static / "icon.svg").read_bytes()

    async def _styles(self, request: Request) -> Response:
        return Response(self._css, 200, {**HEADERS, "Cache-Control": "max-age=300"}, "text/css; charset=utf-8")

    async def _picture(self, request: Request) -> Response:
        return Response(self._icon, 200, {**HEADERS, "Cache-Control": "max-age=300"}, "image/svg+xml")

    async def _show(self, request: Request) -> Response:
        away = turned_away(request, self._gate, self._door)
        if away is not None:
            return away
        asked = request.query_params
        explained = await self._explainer.explain(
            client=asked.get("client", ""), revision=asked.get("revision", ""), limit=_LIMIT
        )
        return html(_page(explained)) if wants_html(request) else json(explained)


def _page(explained: Explained) -> str:
    shown = len(explained.sessions)
    count = mark("p", f"{shown} shown of {explained.in_all} that are live", class_="pulse")
    top = mark(
        "header", mark("div", mark("h1", "Why each client is asked as it is"), class_="brand"), count, class_="top"
    )
    none = [mark("p", "No session is live. Modern clients need none: their every call says what they can do.")]
    cards = [_session(session) for session in explained.sessions] or none
    body = top + mark("main", mark("div", *cards, id="live"))
    return document(_TITLE, body, styles=(_STYLE_PATH,), icon=_ICON_PATH)


def _session(session: SessionExplained) -> Markup:
    name = " ".join(part for part in session.client.values() if part) or "a client without a name"
    declared = ", ".join(session.capabilities) or "nothing"
    routes = table(
        ("Mode", "Route", "Reason", "What it means", "What changes it"),
        [
            (route.mode, badge(route.route), mark("code", route.reason), route.meaning, route.setting or "–")
            for route in session.routes
        ],
    )
    return mark(
        "section",
        mark("h2", f"{name}, {session.revision}"),
        mark("p", f"Session {session.handle} declares {declared}.", class_="hint"),
        routes,
        _questions(session),
        class_="card",
    )


def _questions(session: SessionExplained) -> Markup:
    if not session.questions:
        return mark("p", "No question is open.", class_="hint")
    rows = [
        (
            mark("code", asked.tool),
            asked.mode,
            badge(asked.route),
            duration(asked.age_seconds),
            "held" if asked.held else "waits",
        )
        for asked in session.questions
    ]
    return table(("Open question of", "Mode", "Route", "Open for", "Its call"), rows)
