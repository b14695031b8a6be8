"""`python verproxy.py PORT TARGET_PORT REVISION`: a proxy that makes every handshake one of another revision.

The suite's client always asks for 2025-11-25. Everything but the revision of its `initialize` goes through as it is.
"""

import json
import sys

from aiohttp import ClientSession, web

_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})


def rewritten(body: bytes, revision: str) -> bytes | None:
    """The body with another revision asked for; None where it is no handshake."""
    try:
        message = json.loads(body)
        if message["method"] != "initialize":
            return None
        message["params"]["protocolVersion"] = revision
    except (ValueError, KeyError, TypeError):
        return None
    return json.dumps(message).encode()


def make(target: str, revision: str) -> web.Application:
    """The proxy as an app."""

    async def handle(request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        body = await request.read()
        asked = rewritten(body, revision)
        if asked is not None and "MCP-Protocol-Version" in request.headers:
            headers = {name: value for name, value in headers.items() if name.lower() != "mcp-protocol-version"}
            headers["MCP-Protocol-Version"] = revision
        url = f"{target}{request.path_qs}"
        async with (
            ClientSession(auto_decompress=False) as session,
            session.request(request.method, url, headers=headers, data=asked or body) as reply,
        ):
            kept = {name: value for name, value in reply.headers.items() if name.lower() not in _HOP_BY_HOP}
            response = web.StreamResponse(status=reply.status, headers=kept)
            await response.prepare(request)
            async for chunk in reply.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    return app


if __name__ == "__main__":
    web.run_app(
        make(f"http://127.0.0.1:{sys.argv[2]}", sys.argv[3]), host="127.0.0.1", port=int(sys.argv[1]), print=None
    )
