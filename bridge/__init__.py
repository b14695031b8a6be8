"""One MCP server for a fleet of clients that speak different revisions of the protocol."""

from bridge.app import Bridge
from bridge.asking.question import Answer
from bridge.asking.seal import KeyRing
from bridge.errors import BridgeError, ConfigurationError, ToolError
from bridge.keys import load_keys, random_keys
from bridge.protocol.clients import ClientProfile, Principal
from bridge.server import Denied, Options
from bridge.upstreams.context import Context

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Bridge",
    "BridgeError",
    "ClientProfile",
    "ConfigurationError",
    "Context",
    "Denied",
    "KeyRing",
    "Options",
    "Principal",
    "ToolError",
    "__version__",
    "load_keys",
    "random_keys",
]
