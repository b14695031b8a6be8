"""An ASGI app that hands every request on to a URL, so that what drives an app in process drives a server elsewhere.

It knows nothing of MCP: what it is for is to see a server as it is, without a bridge between.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from bridge.errors import MissingExtraError, UpstreamUnreachable
from bridge.protocol.messages import encode

__all__ = ["Direct"]

_CONNECT_SECONDS: Final = 10.0
_OURS: Final = frozenset({"host", "content-length"})


class Direct:
    """The server at a URL, as an ASGI app.

    Args:
        url: the MCP endpoint, http or https.
        headers: what to add to every request, such as its `Authorization`.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = dict(headers)
        self._session: Any = None
        self.unreachable: UpstreamUnreachable | None = None
        """Why the server did not get a request, once it did not."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Keep connections while the context is open.

        Raises:
            MissingExtraError: aiohttp is not installed.
        """
        try:
            import aiohttp
        except ImportError:
            raise MissingExtraError("check --direct", "remote") from None
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as self._session:
            yield

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI: one HTTP request."""
        import aiohttp

        body = (await receive())["body"]
        given = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        headers = {**{name: value for name, value in given.items() if name not in _OURS}, **self._headers}
        try:
            async with self._session.request(scope["method"], self._url, data=body, headers=headers) as reply:
                await send({"type": "http.response.start", "status": reply.status, "headers": _headers(reply.headers)})
                async for chunk in reply.content.iter_any():
                    await send({"type": "http.response.body", "body": chunk.replace(b"\r", b""), "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except aiohttp.ClientError as error:
            self.unreachable = UpstreamUnreachable(f"{self._url} cannot be reached: {error}")
            await send({"type": "http.response.start", "status": 502, "headers": []})
            await send({"type": "http.response.body", "body": encode({"error": str(error)})})


def _headers(found: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """The headers of a reply, the media type without its parameters."""
    lowered = {name.lower(): value for name, value in found.items()}
    if "content-type" in lowered:
        lowered["content-type"] = lowered["content-type"].partition(";")[0].strip()
    return [(name.encode(), value.encode("latin-1")) for name, value in lowered.items()]
