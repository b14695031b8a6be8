"""How pages for operators answer: what they send with everything, as JSON or as HTML, and who is turned away."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from bridge.pages.door import Door, Entered
from bridge.pages.files import HEADERS as FILE_HEADERS
from bridge.transports.gate import Gate

__all__ = ["HEADERS", "html", "is_from_its_own_page", "json", "turned_away", "wants_html"]

HEADERS: Final = {
    **FILE_HEADERS,
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    # Not `no-referrer`: under that a browser posts forms with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What goes with every answer."""

_TOO_MANY: Final = "Too many wrong tokens came from this address; try again in a minute"
_NEEDED: Final = "The console token is needed: send Authorization: Bearer <token>"


def json(value: Any, status: int = 200, **headers: str) -> Response:
    """Answer with JSON."""
    body = msgspec.json.format(msgspec.json.encode(value), indent=2)
    return Response(body, status, {**HEADERS, **headers}, "application/json")


def html(text: str, status: int = 200) -> HTMLResponse:
    """Answer with a page."""
    return HTMLResponse(text, status, HEADERS)


def wants_html(request: Request) -> bool:
    """Whether a person looks: browsers name text/html, programs do not."""
    return "text/html" in request.headers.get("accept", "")


def is_from_its_own_page(request: Request) -> bool:
    """Whether a POST comes from a page of this host. Browsers say with each where it comes from."""
    scheme, _, host = request.headers.get("origin", "").partition("://")
    return scheme in ("http", "https") and bool(host) and host == request.headers.get("host")


def turned_away(request: Request, gate: Gate, door: Door | None) -> Response | None:
    """Why a request gets nothing: its host, or that it does not have the token. None where it may pass."""
    refusal = gate.check(dict(request.scope["headers"]))
    if refusal is not None:
        return json({"error": refusal.message}, refusal.status)
    entered: Entered = "in" if door is None else door.entered(request)
    if entered == "in":
        return None
    if entered == "too_many":
        return json({"error": _TOO_MANY}, 429, **{"Retry-After": "60"})
    return json({"error": _NEEDED}, 401, **{"WWW-Authenticate": 'Bearer realm="console"'})
