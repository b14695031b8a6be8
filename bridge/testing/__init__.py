"""For tests of tools that ask: an in-process client of any revision, and checks for stores and upstreams of one's own.

    async with connect(bridge, revision="2025-06-18") as mcp:
        mcp.on_elicitation(lambda request: accept({"confirm": True}))
        result = await mcp.tools.call("close_ticket", {"id": "T-1"})

The same test runs unchanged for a client that gets rounds, one that is pushed questions, and one that can only chat:
for that one the handler is driven through the fallback tool.
"""

from bridge.stores.check import check_store
from bridge.testing.answers import Asked, CallResult, HttpError, RpcError, accept, cancel, decline
from bridge.testing.client import Client, connect
from bridge.testing.http import AsgiHttp, HttpReply
from bridge.testing.kinds import KINDS, ClientKind
from bridge.upstreams.check import check_upstream

__all__ = [
    "KINDS",
    "AsgiHttp",
    "Asked",
    "CallResult",
    "Client",
    "ClientKind",
    "HttpError",
    "HttpReply",
    "RpcError",
    "accept",
    "cancel",
    "check_store",
    "check_upstream",
    "connect",
    "decline",
]
