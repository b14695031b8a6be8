"""The help desk as an ASGI app: its bridge, the page at which an account is connected, and its playground.

Needs Starlette.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from bridge import Bridge, __version__
from bridge.demo.connecting import Flow, Flows, elicitation_ids
from bridge.demo.desk import Desk
from bridge.demo.tickets import closing_source
from bridge.pages import Playground, PlaygroundRules
from bridge.pages.beside import Beside

__all__ = ["HelpDeskApp", "help_desk_playground"]

_STYLE: Final = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { display: grid; min-height: 90vh; place-items: center; margin: 1rem }
main { max-width: 26rem }
h1 { font-size: 1.4rem; margin: 0 }
button { font: inherit; padding: .5rem 1.5rem; border: 0; border-radius: .4rem; background: #1a5fb4; color: #fff }
button:focus-visible { outline: 3px solid #99c1f1 }
"""
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    # Not `no-referrer`: under that a browser posts the form with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Help desk</title>
<style>{style}</style>
<main>
<h1>{title}</h1>
{body}
</main>
</html>
"""


class HelpDeskApp(Beside):
    """The bridge at `/mcp`, and its page at `/connect/<handle>`.

    Looking at the page changes nothing: a link may be opened by whoever checks it for the user. Only its button does,
    and only on the page itself: the handle cannot be guessed, and a form on another site is refused by its `Origin`.

    Args:
        bridge: the help desk, as `make` makes it.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._flows = Flows(bridge.store)
        pages = Starlette(
            routes=[
                Route("/connect/{handle}", self._show, methods=["GET"]),
                Route("/connect/{handle}", self._complete, methods=["POST"]),
            ]
        )
        super().__init__(bridge.asgi(), pages, lambda path: path.startswith("/connect/"))

    async def _show(self, request: Request) -> Response:
        flow = await self._flows.find(request.path_params["handle"])
        return _GONE if flow is None else _page(flow)

    async def _complete(self, request: Request) -> Response:
        if not _is_from_its_own_page(request):
            return _html("Refused", "<p>This did not come from the page itself. Open the link again.</p>", 403)
        handle = request.path_params["handle"]
        flow = await self._flows.complete(handle)
        if flow is None:
            return _GONE
        for elicitation_id in elicitation_ids(handle):
            await self._bridge.complete_url(elicitation_id)
        return RedirectResponse(request.url.path, 303, _HEADERS)


def help_desk_playground(app: HelpDeskApp, bridge: Bridge) -> Playground:
    """The help desk with its playground at `/`, where what was done to it can be undone.

    Args:
        app: the help desk.
        bridge: its bridge.
    """
    desk = Desk(bridge.store)
    title = str(bridge.server.info["title"])
    rules = PlaygroundRules(title=lambda: title, version=__version__, snippet=closing_source(), restart=desk.restart)
    return Playground(app, bridge.options, bridge.keys, rules)


def _is_from_its_own_page(request: Request) -> bool:
    """Browsers say with each POST where it comes from."""
    origin = urlsplit(request.headers.get("origin", ""))
    return bool(origin.netloc) and origin.netloc == request.headers.get("host")


def _page(flow: Flow) -> Response:
    if flow.done:
        return _html("Done", "<p>Go back to where you were asked: the help desk goes on there.</p>")
    question = f"<p>Let the help desk use your {escape(flow.provider)} account?</p>"
    return _html("Connect an account", question + '\n<form method="post"><button>Connect</button></form>')


def _html(title: str, body: str, status: int = 200) -> Response:
    return HTMLResponse(_PAGE.format(title=title, style=_STYLE, body=body), status, _HEADERS)


_GONE: Final = _html("Nothing here", "<p>This link has expired, or was none. Start again where it was given.</p>", 404)
