"""One MCP server for a fleet of clients that speak different revisions of the protocol."""

from bridge.app import Bridge
from bridge.asking.question import Answer
from bridge.asking.routes import ClientRule, RouteName
from bridge.asking.seal import KeyRing
from bridge.errors import BridgeError, ConfigurationError, ToolError
from bridge.keys import keys_from_environment, load_keys, random_keys
from bridge.protocol.clients import ClientProfile, Principal
from bridge.routes.push import PushLimits
from bridge.server import Denied, Options
from bridge.sessions import SessionLimits
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
