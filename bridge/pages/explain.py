"""`GET /explain`: each live session, how its user is asked and why, and what is open; JSON, or a plain page."""

from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bridge.explaining import Explained, Explainer, SessionExplained
from bridge.pages.answering import html, json, turned_away, wants_html
from bridge.pages.door import Door
from bridge.pages.markup import Markup, document, duration, mark, table
from bridge.pages.playground import Served
from bridge.server import Options
from bridge.stores.base import Store
from bridge.transports.gate import Gate

__all__ = ["EXPLAIN_PATH", "Explain"]

EXPLAIN_PATH: Final = "/explain"
_LIMIT: Final = 200


class Explain:
    """An ASGI app: `/explain`, and everything else as it was.

    Args:
        app: what serves MCP.
        store: where its sessions stand.
        options: how it is set up.
        door: who may look; None for everybody, where nothing of anybody is to be seen, as in a demo.
    """

    def __init__(self, app: Served, store: Store, options: Options, door: Door | None) -> None:
        self._app = app
        self._door = door
        self._gate = Gate(options.allowed_hosts, options.allowed_origins)
        self._explainer = Explainer(store, options)
        self._pages = Starlette(routes=[Route(EXPLAIN_PATH, self._show, methods=["GET"])])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        is_page = scope["type"] == "http" and scope["path"] == EXPLAIN_PATH
        await (self._pages if is_page else self._app)(scope, receive, send)

    async def start(self) -> None:
        """See `Served`."""
        await self._app.start()

    async def drain(self) -> None:
        """See `Served`."""
        await self._app.drain()

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
    body = mark("h1", "Sessions") + mark("p", f"{shown} shown of {explained.in_all} that are live.")
    return document("Sessions", body + Markup("").join(_session(session) for session in explained.sessions))


def _session(session: SessionExplained) -> Markup:
    name = " ".join(part for part in session.client.values() if part) or "a client without a name"
    about = mark("h2", f"{name}, {session.revision}")
    declared = ", ".join(session.capabilities) or "nothing"
    known = mark("p", f"Session {session.handle}. It declares {declared}.")
    routes = table(
        ("Mode", "Route", "Why", "What changes it"),
        [(route.mode, route.route, f"{route.reason}: {route.meaning}", route.setting) for route in session.routes],
    )
    if not session.questions:
        return about + known + routes + mark("p", "No question is open.")
    questions = table(
        ("Open question of", "Mode", "Route", "Since", "Held"),
        [
            (asked.tool, asked.mode, asked.route, duration(asked.age_seconds), "yes" if asked.held else "no")
            for asked in session.questions
        ],
    )
    return about + known + routes + questions
