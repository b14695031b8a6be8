"""The files that a page is made of: read once, small, and sent with what makes browsers trust nothing else."""

import gzip
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bridge.pages.palette import with_palette

__all__ = ["HEADERS", "Files"]

_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What goes with every file: no script but our own, and no request to any other host."""


class _File(msgspec.Struct, frozen=True):
    body: bytes
    packed: bytes
    media_type: str
    tag: str


class Files:
    """What stands in `static/`, by name."""

    def __init__(self) -> None:
        folder = files("bridge.pages") / "static"
        self._files = {
            entry.name: _file(entry.name, entry.read_bytes())
            for entry in folder.iterdir()
            if "." + entry.name.rpartition(".")[2] in _TYPES
        }

    def text(self, name: str) -> str:
        """The text of a file."""
        return self._files[name].body.decode()

    def respond(self, request: Request, name: str) -> Response:
        """Answer a request for a file; its browser asks each time whether it has a new one."""
        file = self._files.get(name)
        if file is None or name.endswith(".html"):
            return Response("Nothing here", 404, HEADERS, "text/plain")
        headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": file.tag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(None, 304, headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, 200, {**headers, "Content-Encoding": "gzip"}, file.media_type)
        return Response(file.body, 200, headers, file.media_type)


def _file(name: str, body: bytes) -> _File:
    if name.endswith(".css"):
        body = with_palette(body)
    digest = b64encode(sha256(body).digest()[:12]).decode()
    return _File(body, gzip.compress(body, mtime=0), _TYPES["." + name.rpartition(".")[2]], f'W/"{digest}"')
