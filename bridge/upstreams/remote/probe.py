"""Which era is a server of? Found by `server/discover`, never by a call of a user.

Source: basic/versioning#backward-compatibility-with-initialization-based-versions of 2026-07-28.
"""

from collections.abc import Callable
from typing import Any, Final

import anyio
import msgspec

from bridge.errors import RemoteError, UpstreamUnreachable
from bridge.protocol.inbound import META_SERVER_INFO
from bridge.protocol.messages import (
    HEADER_MISMATCH,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    Json,
    Response,
    request_message,
)
from bridge.protocol.revisions import LATEST_LEGACY, LEGACY, MODERN
from bridge.upstreams.links import Facts, Hello
from bridge.upstreams.remote.carriers import Carrier
from bridge.upstreams.remote.envelope import Envelope
from bridge.upstreams.remote.multiplexing import WireCarrier
from bridge.upstreams.wires import Wire

__all__ = [
    "PROBE_SECONDS",
    "Legacy",
    "contradicts_itself",
    "discover_message",
    "found",
    "initialize_message",
    "probe_wire",
]

PROBE_SECONDS: Final = 30.0
"""How long a server may take until it says something that tells what it is."""

_QUIET_SECONDS: Final = 5.0
"""How long a server may be silent once it has said anything at all, by which it was seen to run."""

_MODERN_ERRORS: Final = frozenset({HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION})
_INFO: Final = {"name": "mcp-session-bridge", "version": "0"}
_HELLO: Final = Hello(capabilities={"elicitation": {"form": {}, "url": {}}}, info=_INFO)


class Legacy(msgspec.Struct, frozen=True):
    """The server is legacy."""


def discover_message() -> Json:
    """The request by which a modern server is known."""
    return request_message(1, "server/discover", Envelope(_HELLO).params({}, 1, None))


def initialize_message(identity: int) -> Json:
    """The request by which a legacy server is known."""
    hello = {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": _INFO}
    return request_message(identity, "initialize", hello)


def found(name: str, response: Response) -> Facts | Legacy:
    """Read the answer to `server/discover`.

    Args:
        name: the server's, for errors.
        response: its answer.

    Returns:
        What a modern server says of itself, or that it is legacy.

    Raises:
        UpstreamUnreachable: it is modern and no revision is spoken by both.
    """
    if isinstance(response.error, dict):
        code, data = response.error.get("code"), response.error.get("data")
        if code not in _MODERN_ERRORS:
            return Legacy()
        if code == UNSUPPORTED_VERSION:
            return _by_versions(name, data.get("supported") if isinstance(data, dict) else None)
        raise UpstreamUnreachable(f"{name} is modern and refused server/discover: {response.error.get('message')}")
    result = response.result if isinstance(response.result, dict) else {}
    versions = result.get("supportedVersions")
    if not isinstance(versions, list):
        # Some legacy servers answer anything with an empty result.
        return Legacy()
    return _facts(result) if MODERN.name in versions else _by_versions(name, versions)


def contradicts_itself(response: Response) -> bool:
    """Whether a server refused the revision that it says it speaks, as one does on its way from one to the next."""
    error = response.error if isinstance(response.error, dict) else {}
    data = error.get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    return error.get("code") == UNSUPPORTED_VERSION and isinstance(supported, list) and MODERN.name in supported


def _by_versions(name: str, versions: Any) -> Legacy:
    known = versions if isinstance(versions, list) else []
    if any(version in LEGACY for version in known if isinstance(version, str)):
        return Legacy()
    raise UpstreamUnreachable(f"{name} supports the revisions {known}; the bridge speaks {MODERN.name} and legacy ones")


def _facts(result: Json) -> Facts:
    meta, capabilities = result.get("_meta"), result.get("capabilities")
    info = meta.get(META_SERVER_INFO) if isinstance(meta, dict) else None
    instructions = result.get("instructions")
    return Facts(
        revision=MODERN,
        capabilities=capabilities if isinstance(capabilities, dict) else {},
        info=info if isinstance(info, dict) else {},
        instructions=instructions if isinstance(instructions, str) else None,
    )


class _Ended(msgspec.Struct, frozen=True):
    """The server ended the connection instead of an answer."""

    why: str


async def probe_wire(name: str, make_wire: Callable[[], Wire]) -> Facts | Legacy:
    """Probe a server over a shared connection of its own, which is ended afterwards.

    Args:
        name: the server's, for errors.
        make_wire: makes a wire to it.

    Raises:
        UpstreamUnreachable: it cannot be reached, or is no MCP server.
    """
    outcome = await _ask(name, make_wire(), discover_first=True)
    if isinstance(outcome, _Ended):
        # Some legacy servers end at whatever comes before `initialize`.
        outcome = await _ask(name, make_wire(), discover_first=False)
    if isinstance(outcome, _Ended):
        raise UpstreamUnreachable(
            f"{name} is no MCP server: it was sent server/discover, then initialize, and each time {outcome.why};"
            " run it by hand to see what it needs"
        )
    return outcome


async def _ask(name: str, wire: Wire, *, discover_first: bool) -> Facts | Legacy | _Ended:
    carrier = WireCarrier(wire, name)
    try:
        await carrier.open()
        response = None
        try:
            if discover_first:
                response = await _within(carrier, getattr(wire, "spoke", None))
            initialized = response is None and await _initializes(carrier)
        except RemoteError as error:
            return _Ended(str(error).removeprefix(f"{name}: "))
    finally:
        with anyio.CancelScope(shield=True):
            await carrier.aclose()
    if response is not None:
        return found(name, response)
    if initialized:
        return Legacy()
    raise UpstreamUnreachable(
        f"{name} is no MCP server: it answered neither server/discover nor initialize within {PROBE_SECONDS:g} seconds;"
        " run it by hand to see what it does"
    )


async def _within(carrier: Carrier, spoke: Any) -> Response | None:
    """Wait for the answer; None for silence, which counts from the first output where there is one to see."""
    response: Response | RemoteError | None = None
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            nonlocal response
            try:
                response = await carrier.carry(discover_message(), {}, None)
            except RemoteError as error:
                response = error
            tasks.cancel_scope.cancel()

        tasks.start_soon(wait)
        with anyio.move_on_after(PROBE_SECONDS - _QUIET_SECONDS):
            if spoke is not None:
                await spoke.wait()
        await anyio.sleep(_QUIET_SECONDS)
        tasks.cancel_scope.cancel()
    if isinstance(response, RemoteError):
        raise response
    return response


async def _initializes(carrier: Carrier) -> bool:
    """Whether the server answers `initialize`, as every legacy one does."""
    with anyio.move_on_after(PROBE_SECONDS):
        await carrier.carry(initialize_message(2), {}, None)
        return True
    return False
