"""For tests of servers: an in-process client of any revision, a pytest plugin, and checks for stores and upstreams.

    async with connect(bridge, revision="2025-06-18") as mcp:
        mcp.on_elicitation(lambda request: accept({"confirm": True}))
        result = await mcp.tools.call("close_ticket", {"id": "T-1"})

The same test runs unchanged for a client that gets rounds, one that is pushed questions, and one that can only chat:
for that one the handler is driven through the fallback tool. Under pytest the fixtures `mcp` and `mcp_each_client` give
a `Tester`, which is such a client and more: see `bridge.testing.plugin`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.kinds import KINDS, ClientKind
    from bridge.stores.check import check_store
    from bridge.testing.answers import Asked, CallResult, HttpError, RpcError, accept, cancel, decline
    from bridge.testing.client import Client, connect
    from bridge.testing.effects import Effects
    from bridge.testing.histories import History, HistoryChanged, replay
    from bridge.testing.http import AsgiHttp, HttpReply
    from bridge.testing.tester import Tester
    from bridge.upstreams.check import check_upstream

__all__ = [
    "KINDS",
    "AsgiHttp",
    "Asked",
    "CallResult",
    "Client",
    "ClientKind",
    "Effects",
    "History",
    "HistoryChanged",
    "HttpError",
    "HttpReply",
    "RpcError",
    "Tester",
    "accept",
    "cancel",
    "check_store",
    "check_upstream",
    "connect",
    "decline",
    "replay",
]

_HOMES = {
    "KINDS": "bridge.kinds",
    "AsgiHttp": "bridge.testing.http",
    "Asked": "bridge.testing.answers",
    "CallResult": "bridge.testing.answers",
    "Client": "bridge.testing.client",
    "ClientKind": "bridge.kinds",
    "Effects": "bridge.testing.effects",
    "History": "bridge.testing.histories",
    "HistoryChanged": "bridge.testing.histories",
    "HttpError": "bridge.testing.answers",
    "HttpReply": "bridge.testing.http",
    "RpcError": "bridge.testing.answers",
    "Tester": "bridge.testing.tester",
    "accept": "bridge.testing.answers",
    "cancel": "bridge.testing.answers",
    "check_store": "bridge.stores.check",
    "check_upstream": "bridge.upstreams.check",
    "connect": "bridge.testing.client",
    "decline": "bridge.testing.answers",
    "replay": "bridge.testing.histories",
}
"""Where each name is defined; imported when it is first asked for, as in `bridge`."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
