"""`python driver.py REVISION URL`: a client of a revision, who does with the suite's server all that it offers.

Between the two stands the bridge: it is the client that the suite sees, and what it is told comes from the other era.
"""

import json
import os
import sys
from typing import Any

import anyio

from bridge import Bridge, ServerOptions
from bridge.testing import Client, RpcError, accept, connect

_SECONDS = 12
_ECHO, _ECHOED = "json_schema_echo", "json_schema_2020_12_tool"
_CAPABILITIES = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
_VALUES: dict[str, Any] = {"number": 5, "integer": 5, "string": "us-west1", "boolean": True}


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments for a tool."""
    return {name: _VALUES.get(field.get("type"), "x") for name, field in schema.get("properties", {}).items()}


async def use(client: Client) -> None:
    """List everything, and call, read and get it."""
    tools = {tool["name"]: tool["inputSchema"] for tool in await client.tools.list()}
    calls = [(name, filled(schema)) for name, schema in tools.items()]
    if _ECHO in tools:
        calls = [(_ECHO, {"schema": tools[_ECHOED]})]
    wanted = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
    for name, arguments in [(call["name"], call["arguments"]) for call in wanted] if wanted else calls:
        await client.tools.call(name, arguments)
    for resource in await client.resources.list():
        await client.resources.read(resource["uri"])
    for prompt in await client.prompts.list():
        await client.prompts.get(prompt["name"])


async def main(revision: str, url: str) -> None:
    """Visit the suite's server through the bridge."""
    with anyio.fail_after(_SECONDS):
        # By itself the bridge also asks a modern server whether it begins sessions, which is a legacy request.
        server = ServerOptions(protocol="auto" if revision == "2026-07-28" else "modern")
        bridge = Bridge.wrap(url, server=server)
        async with connect(bridge, revision=revision, capabilities=_CAPABILITIES) as client:
            client.on_elicitation(lambda asked: accept({}))
            try:
                await use(client)
            except RpcError as error:
                # What the suite thinks of it stands in its checks; a mock may refuse what it does not test.
                print(f"refused: {error}", file=sys.stderr)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:3])
