"""What is written ahead of a message that goes to one URL: the request line and the headers. Does no I/O."""

import re
from collections.abc import Mapping
from typing import Final

from bridge.errors import MissingExtraError, UpstreamUnreachable

try:
    from aiohttp import ClientRequest, InvalidURL
    from multidict import CIMultiDict
    from yarl import URL
except ImportError as error:
    raise MissingExtraError("a server at an http(s) URL", "remote") from error

__all__ = ["Place"]

_MAX_HEADS: Final = 256
_UNSENDABLE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Place:
    """A URL, and how requests to it begin; they begin alike nearly always, and each beginning is made once.

    Args:
        url: where requests go.
        headers: what goes with each of them.

    Raises:
        UpstreamUnreachable: the URL names no server.
    """

    def __init__(self, url: URL, headers: Mapping[str, str]) -> None:
        self.url: Final = url
        try:
            # What aiohttp connects for. Its headers hold `Host` and the credentials of the URL as well.
            self.request: Final = ClientRequest("GET", url, headers=headers)
        except InvalidURL as error:
            raise UpstreamUnreachable(f"no server can be reached at {error}") from None
        self._heads: dict[tuple[str, tuple[tuple[str, str], ...]], bytes] = {}

    def head(self, method: str, headers: Mapping[str, str]) -> bytes:
        """All that is sent of a request before the length of its body.

        Args:
            method: the HTTP method.
            headers: headers of this request, before those of every request.

        Raises:
            UpstreamUnreachable: a header that would be more than one.
        """
        key = (method, tuple(headers.items()))
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_HEADS:
                self._heads.clear()
            head = self._heads[key] = self._written(method, headers)
        return head

    def _written(self, method: str, headers: Mapping[str, str]) -> bytes:
        together: CIMultiDict[str] = CIMultiDict(self.request.headers)
        together.update(headers)
        for name, value in together.items():
            if _UNSENDABLE.search(name) or _UNSENDABLE.search(value):
                raise UpstreamUnreachable(f"the header {name!r} has a value that no HTTP header can have")
        lines = [f"{name}: {value}\r\n" for name, value in together.items()]
        # The bytes of a header that came from the server are kept as they came.
        return f"{method} {self.url.raw_path_qs} HTTP/1.1\r\n{''.join(lines)}".encode(errors="surrogateescape")
