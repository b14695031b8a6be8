"""Which transport serves which path of an ASGI app: the MCP endpoint where it was put, the others beside it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from bridge.protocol.messages import encode
from bridge.server import Transport
from bridge.transports.exchange import Receive, Send, refuse, send_json
from bridge.transports.gate import Refusal
from bridge.transports.health import Health
from bridge.transports.http import HttpTransport
from bridge.transports.parts import Parts
from bridge.transports.sse import SseTransport
from bridge.transports.websocket import WebSocketTransport, refuse_handshake

__all__ = ["Endpoints"]

Handler: TypeAlias = Callable[[Any, Receive, Send], Awaitable[None]]

_NOT_HERE: Final = Refusal(404, "Not found: the MCP endpoint is elsewhere")
_GET: Final = Refusal(405, "This endpoint takes GET and HEAD", ((b"allow", b"GET, HEAD"),))


class Endpoints:
    """Everything that an app serves.

    Args:
        parts: what answers.
        path: the MCP endpoint, such as `/mcp`; its siblings are `/ws`, `/sse`, `/messages`, `/healthz`,
            `/readyz` and `/metrics`.
    """

    def __init__(self, parts: Parts, path: str) -> None:
        beside = path.rpartition("/")[0]
        self._sockets = WebSocketTransport(parts)
        sse = SseTransport(parts)
        made: dict[Transport, dict[tuple[str, str], Handler]] = {
            "http": {("http", path): HttpTransport(parts)},
            "sse": {("http", f"{beside}/sse"): sse.stream, ("http", f"{beside}/messages"): sse.post},
            "websocket": {("websocket", f"{beside}/ws"): self._sockets},
        }
        chosen = [made[name] for name in parts.options.transports]
        self._handlers = {key: handler for handlers in chosen for key, handler in handlers.items()}
        if parts.metrics is not None:
            self._handlers["http", f"{beside}/metrics"] = _page(*parts.metrics)
        if parts.options.health:
            health = Health(parts.node)
            self._handlers |= {("http", f"{beside}/healthz"): health.alive, ("http", f"{beside}/readyz"): health.ready}

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve a request or a WebSocket; 404 where nothing is."""
        handler = self._handlers.get((scope["type"], scope["path"])) or self._within(scope)
        if handler is not None:
            await handler(scope, receive, send)
        elif scope["type"] == "http":
            await send_json(send, _NOT_HERE.status, encode({"error": _NOT_HERE.message}))
        else:
            await receive()
            await refuse_handshake(scope, send, _NOT_HERE)

    def _within(self, scope: Any) -> Handler | None:
        """The handler of a path that begins with where the app is mounted, or ends in a slash."""
        path, root = scope["path"], scope.get("root_path", "")
        inner = path[len(root) :] if root and path.startswith(root) else path
        return self._handlers.get((scope["type"], "/" + inner.strip("/")))

    async def drain(self) -> None:
        """Wait for the connections that the server would not wait for, once the node is closing."""
        await self._sockets.drain()


def _page(content_type: str, make: Callable[[], Awaitable[bytes]]) -> Handler:
    """Serves what is made when it is asked for."""

    async def serve(scope: Any, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await refuse(send, _GET)
            return
        body = await make()
        headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return serve
