"""The relays that are measured, each in a process of its own: `python -m benchmarks.relays NAME TARGET...`.

A target is the URL of the server behind, or a command that serves over stdio. A relay prints its port on a line once
connections can be made, and runs until it is terminated. Each runs in an environment of its own program, with the same
event loop and the same HTTP parser, so this module imports only what all of them have.
"""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from benchmarks.process import OPTIONS, SERVER_CORE, App, keep_to, listener, serve

__all__ = ["RELAYS", "main"]

_START_SECONDS: Final = 30.0


def aiohttp(url: str) -> None:
    """The practical limit: it sends each body on over a pool of connections, and returns the reply unread."""
    from aiohttp import ClientSession, DummyCookieJar, TCPConnector
    from yarl import URL

    to = URL(url)
    session: ClientSession | None = None

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal session
        if scope["type"] != "http":
            return
        if session is None:
            session = ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar())
        body = (await receive())["body"]
        async with session.post(to, data=body, headers=_relayed(scope["headers"])) as reply:
            data = await reply.read()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    serve(app)


def _relayed(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[str, str]:
    return {
        name.decode(): value.decode()
        for name, value in headers
        if name in (b"content-type", b"accept") or name.startswith(b"mcp-")
    }


def bridge(*target: str) -> None:
    """This project, as `python -m bridge serve` runs it."""
    from bridge import Bridge
    from bridge.transports.uvicorn import settings
    from bridge.upstreams.targets import Command

    app = Bridge.wrap(target[0] if len(target) == 1 else Command(target[0], target[1:])).asgi()
    serve(app, settings(app, **OPTIONS))


def fastmcp(*target: str) -> None:
    """The proxy of FastMCP, with JSON replies."""
    from fastmcp.client.transports import StdioTransport
    from fastmcp.server import create_proxy

    behind = target[0] if len(target) == 1 else StdioTransport(target[0], list(target[1:]))
    app: App = create_proxy(behind).http_app(json_response=True)
    serve(app)


def mcp_proxy(*target: str) -> None:
    """mcp-proxy in front of a stdio server.

    In front of a URL stands a second one, which is a stdio server to the first: its only way to relay HTTP to HTTP.
    """
    if len(target) == 1:
        target = (sys.executable, "-m", "benchmarks.relays", "mcp-proxy-client", *target)
    with listener() as free:
        port = free.getsockname()[1]
    threading.Thread(target=_tell, args=(port,), daemon=True).start()
    _run_mcp_proxy("--pass-environment", "--log-level", "ERROR", "--port", str(port), "--", *target)


def mcp_proxy_client(url: str) -> None:
    """mcp-proxy as a stdio server in front of a URL."""
    _run_mcp_proxy("--log-level", "ERROR", "--transport", "streamablehttp", url)


def _run_mcp_proxy(*arguments: str) -> None:
    import uvloop
    from mcp_proxy.__main__ import main

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    sys.argv[1:] = arguments
    main()


def _tell(port: int) -> None:
    """Print the port once somebody listens at it: for a program that does not say so."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            print(port, flush=True)
            return


RELAYS: Final[dict[str, Callable[..., None]]] = {
    "aiohttp": aiohttp,
    "bridge": bridge,
    "fastmcp": fastmcp,
    "mcp-proxy": mcp_proxy,
    "mcp-proxy-client": mcp_proxy_client,
}


def main(name: str, *target: str) -> None:
    """Relay until terminated."""
    keep_to(SERVER_CORE)
    RELAYS[name](*target)


if __name__ == "__main__":
    main(*sys.argv[1:])
