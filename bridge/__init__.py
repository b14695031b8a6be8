"""One MCP server for a fleet of clients that speak different revisions of the protocol."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.app import Bridge
    from bridge.asking.question import Answer
    from bridge.asking.routes import ClientRule, RouteName
    from bridge.asking.seal import KeyRing
    from bridge.errors import BridgeError, ConfigurationError, ToolError
    from bridge.keys import keys_from_environment, load_keys, random_keys
    from bridge.protocol.clients import ClientProfile, Principal
    from bridge.routes.push import PushLimits
    from bridge.server import Denied, Options
    from bridge.session import SessionLimits
    from bridge.upstreams.context import Attempt, Context
    from bridge.upstreams.reach import LinkLimits
    from bridge.upstreams.results import ToolResult
    from bridge.upstreams.targets import Command, ServerOptions
    from bridge.upstreams.wrapped import ToolRules, WrapRules

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Attempt",
    "Bridge",
    "BridgeError",
    "ClientProfile",
    "ClientRule",
    "Command",
    "ConfigurationError",
    "Context",
    "Denied",
    "KeyRing",
    "LinkLimits",
    "Options",
    "Principal",
    "PushLimits",
    "RouteName",
    "ServerOptions",
    "SessionLimits",
    "ToolError",
    "ToolResult",
    "ToolRules",
    "WrapRules",
    "__version__",
    "keys_from_environment",
    "load_keys",
    "random_keys",
]

_HOMES = {
    "Answer": "bridge.asking.question",
    "Attempt": "bridge.upstreams.context",
    "Bridge": "bridge.app",
    "BridgeError": "bridge.errors",
    "ClientProfile": "bridge.protocol.clients",
    "ClientRule": "bridge.asking.routes",
    "Command": "bridge.upstreams.targets",
    "ConfigurationError": "bridge.errors",
    "Context": "bridge.upstreams.context",
    "Denied": "bridge.server",
    "KeyRing": "bridge.asking.seal",
    "LinkLimits": "bridge.upstreams.reach",
    "Options": "bridge.server",
    "Principal": "bridge.protocol.clients",
    "PushLimits": "bridge.routes.push",
    "RouteName": "bridge.asking.routes",
    "ServerOptions": "bridge.upstreams.targets",
    "SessionLimits": "bridge.session",
    "ToolError": "bridge.errors",
    "ToolResult": "bridge.upstreams.results",
    "ToolRules": "bridge.upstreams.wrapped",
    "WrapRules": "bridge.upstreams.wrapped",
    "keys_from_environment": "bridge.keys",
    "load_keys": "bridge.keys",
    "random_keys": "bridge.keys",
}
"""Where each public name is defined. It is imported when it is first asked for, so that what needs little of the
package, such as the pytest plugin in projects that do not use it, costs little."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
