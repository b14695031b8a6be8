"""Which server object is it? Only what is loaded already can be one, so that no SDK is imported to find out."""

import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from bridge.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from bridge.upstreams.sdk.v1 import InProcessV1
    from bridge.upstreams.sdk.v2 import InProcessV2

__all__ = ["Lifespan", "Protocol", "server_of"]

Lifespan: TypeAlias = Literal["session", "once"]
Protocol: TypeAlias = Literal["auto", "modern", "legacy"]

_SUPPORTED: Final = {"mcp": ((1, 20), (3, 0)), "fastmcp": ((2, 14), (5, 0))}
"""The versions that are known to work: from the first, to before the second."""

_KINDS: Final = (
    ("fastmcp", "fastmcp.server.server", "FastMCP", "_mcp_server"),
    ("mcp", "mcp.server.mcpserver.server", "MCPServer", "_lowlevel_server"),
    ("mcp", "mcp.server.fastmcp.server", "FastMCP", "_mcp_server"),
    ("mcp", "mcp.server.lowlevel.server", "Server", None),
)
"""Every class of servers: its distribution, module and name, and where it keeps its low-level server."""


def server_of(
    target: object, *, lifespan: Lifespan = "session", protocol: Protocol = "auto"
) -> "InProcessV1 | InProcessV2 | None":
    """Wrap a server object of an SDK.

    Args:
        target: `FastMCP` or `Server` of `mcp` 1.x, `MCPServer` or `Server` of `mcp` 2.x, `FastMCP` of `fastmcp`.
        lifespan: of `mcp` 1.x, whether its lifespan is entered for each session, as over HTTP, or once for all.
            Everywhere else it is entered once.
        protocol: the era in which a server of `mcp` 2.x is driven; `auto`: the one in which most of it works.

    Returns:
        The server, not started; None for what is no server of a known SDK.

    Raises:
        ConfigurationError: the version of its SDK is not supported, or it cannot be driven in that era.
    """
    for distribution, module, class_name, inner in _KINDS:
        kind = getattr(sys.modules.get(module), class_name, None)
        if kind is not None and isinstance(target, kind):
            is_fastmcp = distribution == "fastmcp"
            if is_fastmcp:
                _supported_version("fastmcp")
            low = target if inner is None else getattr(target, inner)
            if _supported_version("mcp") < (2, 0):
                return _first_generation(target if is_fastmcp else None, low, lifespan, protocol)
            return _second_generation(low, target, is_fastmcp, protocol)
    return None


def _first_generation(outer: Any, low: Any, lifespan: Lifespan, protocol: Protocol) -> "InProcessV1":
    if protocol == "modern":
        raise ConfigurationError(
            'protocol="modern" needs a server of mcp 2.x; those of mcp 1.x know only legacy clients'
        )
    try:
        from bridge.upstreams.sdk.v1 import InProcessV1
    except ModuleNotFoundError:
        raise MissingExtraError("A server of mcp 1.x", "sdk") from None
    return InProcessV1(low, name=_name(low), fastmcp=outer, lifespan=lifespan)


def _second_generation(low: Any, outer: Any, is_fastmcp: bool, protocol: Protocol) -> "InProcessV2":
    try:
        from bridge.upstreams.sdk.v2 import InProcessV2
    except ModuleNotFoundError:
        raise MissingExtraError("A server of mcp 2.x", "sdk") from None
    if protocol == "auto":
        protocol = "legacy" if is_fastmcp else "modern"
    return InProcessV2(low, name=_name(low), protocol=protocol, outer=outer)


def _name(low: Any) -> str:
    return f"the server {low.name!r} in this process"


def _supported_version(distribution: str) -> tuple[int, int]:
    """The version that is installed.

    Raises:
        ConfigurationError: it is not supported, or cannot be found out.
    """
    first, end = _SUPPORTED[distribution]
    wanted = f"{distribution} >= {first[0]}.{first[1]}, < {end[0]}"
    try:
        found = metadata.version(distribution)
        major, minor = (int(part) for part in found.split(".")[:2])
    except (metadata.PackageNotFoundError, ValueError):
        raise ConfigurationError(f"the version of {distribution} cannot be found out; supported is {wanted}") from None
    if not first <= (major, minor) < end:
        raise ConfigurationError(f"{distribution} {found} is installed; supported is {wanted}")
    return major, minor
