"""How each of the servers and relays is started, and in which environment."""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.load import Connection, process
from tests.peers.environments import REQUIREMENTS, NotInstalled, install
from tests.redis_server import redis_server

__all__ = ["missing", "serving", "started"]

REQUIREMENTS.setdefault("mcp-proxy", ("mcp-proxy==0.13.0", "httptools", "uvloop"))

_ENVIRONMENTS: Final = {"fastmcp": "bridge-fastmcp4", "mcp-proxy": "mcp-proxy"}
"""Of the relays that cannot stand in ours; each has the event loop and the HTTP parser that ours has."""

_WAY: Final = re.compile("-(http|stdio|sqlite|redis)$")
_BARE_STDIO: Final = (sys.executable, "-m", "benchmarks.servers", "bare-stdio", "--beside-load")
_STORES: Final = ("bridge-sqlite", "bridge-redis")
_SERVERS: Final = frozenset({"bare", "mcp", "bridge", "wrapped", *_STORES})


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
        found = {name: stack.enter_context(_served(name)) for name in sorted(_SERVERS.intersection(names))}
        if relays or "direct" in names:
            found["direct"] = stack.enter_context(serving("bare", "--beside-load"))
            url = f"http://127.0.0.1:{found['direct'].port}/mcp"
            found |= {name: stack.enter_context(_relaying(name, url)) for name in relays}
        yield found


@contextmanager
def _served(name: str) -> Iterator[Connection]:
    with ExitStack() as stack:
        flags = ("--store", stack.enter_context(_store(name))) if name in _STORES else ()
        yield stack.enter_context(serving(_program(name), *flags))


@contextmanager
def _store(name: str) -> Iterator[str]:
    """A new file, or a Redis server, which shares the core of the load as one on another machine would none of ours."""
    if name.endswith("-redis"):
        with redis_server() as url:
            yield url
    else:
        with TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/state.db"


def serving(name: str, *flags: str) -> AbstractContextManager[Connection]:
    """Run a server."""
    return process(name, sys.executable, "-m", "benchmarks.servers", name, *flags)


def _relaying(name: str, url: str) -> AbstractContextManager[Connection]:
    target = _BARE_STDIO if name.endswith("-stdio") else (url,)
    program = _program(name)
    return process(name, _python(program), "-m", "benchmarks.relays", program, *target)


def _program(name: str) -> str:
    return _WAY.sub("", name)


@cache
def _python(program: str) -> str:
    environment = _ENVIRONMENTS.get(program)
    return sys.executable if environment is None else str(install(environment))
