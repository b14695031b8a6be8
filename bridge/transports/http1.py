"""Connections of HTTP/1.1 for uvicorn, with half the work for a request that uvicorn's own protocol has.

What is spared is work, not behaviour: what a turn of the event loop writes leaves at its end, a head is made once for
all replies that have the same, a connection has one timer instead of one for each request, and a request that is there
as a whole waits for nothing. It knows ASGI and bytes, and must not know what is served.
"""

import asyncio
import logging
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from bridge.transports.cycle import Cycle

__all__ = ["HttpProtocol"]

_TARGETS: Final = 64
_log = logging.getLogger("uvicorn.error")


class _Gathering:
    """A transport that writes at the end of a turn of the event loop what was written in it.

    Head and body take one system call. A peer on this machine, such as a proxy, is woken once by the replies of a turn
    that leave one right after the other, not by each: waking it takes a fifth of the time of a short call.
    """

    __slots__ = ("_loop", "_parts", "_size", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > HIGH_WATER_LIMIT:
            # The transport has to see it, to say when there is too much.
            self.flush()

    def flush(self) -> None:
        data, self._parts, self._size = b"".join(self._parts), [], 0
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    """One connection. What is not here is as uvicorn has it: errors, upgrades, limits, flow control."""

    cycle: Any
    """The newest request: a `Cycle`, or None."""
    parser: Any
    """None once the connection is lost."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._answering: Cycle | None = None
        self._idle_since: float | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Gathering(transport, self.loop))  # type: ignore[arg-type]

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for cycle in (self._answering, self.cycle):
            if cycle is not None:
                cycle.disconnect()
        self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        self.parser = None

    def eof_received(self) -> None:
        # The transport closes itself after this.
        self.transport.flush()  # type: ignore[attr-defined]

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser, scope = self.parser, self.scope
        version = parser.get_http_version()
        if version != "1.1":
            scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        if parser.should_upgrade() and self._should_upgrade():
            return
        scope["path"], scope["raw_path"], scope["query_string"] = _target(self.root_path, self.url)
        app: Any = self.app
        if self.limit_concurrency is not None and self.limit_concurrency <= max(len(self.connections), len(self.tasks)):
            app = service_unavailable
            _log.warning("Exceeded concurrency limit.")
        before = self.cycle
        cycle = self.cycle = Cycle(self, scope, version != "1.0" and parser.should_keep_alive())
        if before is None or before.response_complete:
            self._start(cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, app))  # type: ignore[arg-type]

    def _start(self, cycle: Cycle, app: Any) -> None:
        self._answering = cycle
        # The task leaves the set in its own last step: a done callback would cost a turn of the loop.
        cycle.task = self.loop.create_task(cycle.run(app))
        self.tasks.add(cycle.task)

    def on_body(self, body: bytes) -> None:
        if self._is_upgraded() or self.cycle is None or self.cycle.response_complete:
            return
        if self.cycle.take(body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        if not self._is_upgraded() and self.cycle is not None:
            self.cycle.take_end()

    def _is_upgraded(self) -> bool:
        return bool(self.parser.should_upgrade()) and self._should_upgrade()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start(*self.pipeline.pop())  # type: ignore[arg-type]
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._close_idle)

    def _unset_keepalive_if_required(self) -> None:
        """Something has come: the connection is not idle."""
        self._idle_since = None

    def _close_idle(self) -> None:
        """Close the connection if it has been idle for long enough; else look again when it could have been."""
        self._idle_timer = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left <= 0:
            self.timeout_keep_alive_handler()
        else:
            self._idle_timer = self.loop.call_later(left, self._close_idle)


@lru_cache(maxsize=_TARGETS)
def _target(root_path: str, url: bytes) -> tuple[str, bytes, bytes]:
    """The path, the raw path and the query of a request's target."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    if "%" in path:
        path = unquote(path)
    return root_path + path, root_path.encode("ascii") + parsed.path, parsed.query or b""
