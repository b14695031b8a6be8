"""How each of the servers and relays is started, and in which environment."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Final

from benchmarks.load import Connection, process
from tests.peers.environments import REQUIREMENTS, NotInstalled, install

__all__ = ["missing", "serving", "started"]

REQUIREMENTS.setdefault("mcp-proxy", ("mcp-proxy==0.13.0", "httptools", "uvloop"))

_ENVIRONMENTS: Final = {"fastmcp": "bridge-fastmcp4", "mcp-proxy": "mcp-proxy"}
"""Of the relays that cannot stand in ours; each has the event loop and the HTTP parser that ours has."""

_BARE_STDIO: Final = (sys.executable, "-m", "benchmarks.servers", "bare-stdio", "--beside-load")
_SERVERS: Final = frozenset({"bare", "mcp", "bridge", "wrapped"})


def missing(name: str) -> str | None:
    """Why a server or relay cannot be measured here; None where it can."""
    try:
        _python(_program(name))
    except NotInstalled as reason:
        return str(reason)
    return None


@contextmanager
def started(names: Iterable[str]) -> Iterator[dict[str, Connection]]:
    """Run servers and relays, and the bare server behind the relays, which is the server `direct`."""
    relays = sorted(set(names) - _SERVERS - {"direct"})
    with ExitStack() as stack:
        found = {name: stack.enter_context(serving(name)) for name in sorted(_SERVERS.intersection(names))}
        if relays or "direct" in names:
            found["direct"] = stack.enter_context(serving("bare", "--beside-load"))
            url = f"http://127.0.0.1:{found['direct'].port}/mcp"
            found |= {name: stack.enter_context(_relaying(name, url)) for name in relays}
        yield found


def serving(name: str, *flags: str) -> AbstractContextManager[Connection]:
    """Run a server."""
    return process(name, sys.executable, "-m", "benchmarks.servers", name, *flags)


def _relaying(name: str, url: str) -> AbstractContextManager[Connection]:
    target = _BARE_STDIO if name.endswith("-stdio") else (url,)
    program = _program(name)
    return process(name, _python(program), "-m", "benchmarks.relays", program, *target)


def _program(name: str) -> str:
    return name.removesuffix("-http").removesuffix("-stdio")


@cache
def _python(program: str) -> str:
    environment = _ENVIRONMENTS.get(program)
    return sys.executable if environment is None else str(install(environment))
