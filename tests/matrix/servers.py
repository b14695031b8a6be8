"""The servers of the matrix: what each is, how it is started on its own, and how it is put behind the bridge."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from tests.matrix.processes import free_port, serving
from tests.matrix.profiles import EVERYTHING, OURS, Json, Profile
from tests.peers.environments import OF_NPM, install, node

Transport = Literal["http", "sse", "ws", "stdio"]
TRANSPORTS: dict[Transport, str] = {
    "http": "Streamable HTTP",
    "sse": "HTTP+SSE",
    "ws": "WebSocket",
    "stdio": "stdio",
}
_REPOSITORY = Path(__file__).parents[2]
_CHECKOUT = {"PYTHONPATH": str(_REPOSITORY)}
"""The environment in which `bridge` is this checkout's."""
_PROGRAMS = Path(__file__).parent / "servers"
_EVERYTHING = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
_IMPORT_FROM_HERE = "import(process.argv[1]).then((server) => server.main((name) => import(name), process.argv[2]))"
"""A module's imports are looked for beside its file; those of `node --eval`, in the folder where it runs."""
_PATHS: dict[Transport, str] = {"http": "http://127.0.0.1:{}/mcp", "sse": "http://127.0.0.1:{}/sse"}
_PATHS |= {"ws": "ws://127.0.0.1:{}/ws"}


class Place(NamedTuple):
    """Where a client finds a server: a URL, or a command to start."""

    transport: Transport
    url: str | None = None
    child: Json | None = None


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A server that runs by itself.

    Args:
        environment: where it runs.
        file: one of ours, beside this module; None for server-everything.
        transport: what it speaks.
    """

    environment: str
    file: str | None
    transport: Transport

    def command(self, port: int) -> list[str]:
        """What starts it; the port is of no use to stdio."""
        installed = str(install(self.environment))
        mode = [self.transport] if self.transport == "stdio" else [self.transport, str(port)]
        if self.file is None:
            kind = "streamableHttp" if self.transport == "http" else self.transport
            return [node(), f"{installed}/{_EVERYTHING}", kind]
        if self.environment in OF_NPM:
            return [node(), "--eval", _IMPORT_FROM_HERE, (_PROGRAMS / self.file).as_uri(), str(port)]
        return [installed, str(_PROGRAMS / self.file), *mode]

    @property
    def cwd(self) -> Path:
        """The folder where it runs."""
        return install(self.environment) if self.environment in OF_NPM else _REPOSITORY


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server of the matrix.

    Args:
        name: in short.
        title: for people.
        profile: what it is called for.
        program: itself, on its own; None for the native one, which does not exist without the bridge.
        in_process: the environment in which the bridge holds it as an object; None where it stays a program.
    """

    name: str
    title: str
    profile: Profile
    program: Program | None
    in_process: str | None = None


_MCP1 = "mcp1.py"
SERVERS: tuple[Server, ...] = (
    Server(name="native", title="native, `bridge.Bridge`", profile=OURS, program=None),
    Server(
        name="mcp1-object",
        title="mcp 1.30.0 FastMCP, in process",
        profile=OURS,
        program=Program(environment="bridge-mcp1", file=_MCP1, transport="http"),
        in_process="bridge-mcp1",
    ),
    *(
        Server(
            name=f"mcp1-{transport}",
            title=f"mcp 1.30.0 FastMCP over {TRANSPORTS[transport]}",
            profile=OURS,
            program=Program(environment="bridge-mcp1", file=_MCP1, transport=transport),
        )
        for transport in ("stdio", "http", "sse", "ws")
    ),
    Server(
        name="mcp2-object",
        title="mcp 2.3.0 MCPServer, in process, `ctx.elicit`",
        profile=OURS,
        program=Program(environment="bridge-mcp2", file="mcp2_elicit.py", transport="http"),
        in_process="bridge-mcp2",
    ),
    Server(
        name="mcp2-http-elicit",
        title="mcp 2.3.0 MCPServer over Streamable HTTP, `ctx.elicit`",
        profile=OURS,
        program=Program(environment="bridge-mcp2", file="mcp2_elicit.py", transport="http"),
    ),
    Server(
        name="mcp2-http",
        title="mcp 2.3.0 MCPServer over Streamable HTTP, `Resolve`",
        profile=OURS,
        program=Program(environment="bridge-mcp2", file="mcp2_resolve.py", transport="http"),
    ),
    Server(
        name="fastmcp4-object",
        title="FastMCP 4.2.3, in process",
        profile=OURS,
        program=Program(environment="bridge-fastmcp4", file="fastmcp4.py", transport="http"),
        in_process="bridge-fastmcp4",
    ),
    Server(
        name="everything-stdio",
        title="@modelcontextprotocol/server-everything over stdio",
        profile=EVERYTHING,
        program=Program(environment="everything", file=None, transport="stdio"),
    ),
    Server(
        name="everything-http",
        title="@modelcontextprotocol/server-everything over Streamable HTTP",
        profile=EVERYTHING,
        program=Program(environment="everything", file=None, transport="http"),
    ),
    Server(
        name="ts2-http",
        title="@modelcontextprotocol/server 2.4.0, `inputRequired`",
        profile=OURS,
        program=Program(environment="ts2server", file="ts2.mjs", transport="http"),
    ),
    Server(
        name="mcpuse-http",
        title="mcp-use 2.5.2, `inputRequired`",
        profile=OURS,
        program=Program(environment="mcpuse", file="mcpuse.mjs", transport="http"),
    ),
)


@contextmanager
def on_its_own(program: Program) -> Iterator[Place]:
    """Start a server; one over stdio is started by each client."""
    port = free_port()
    command = program.command(port)
    if program.transport == "stdio":
        yield _child(command, {})
    else:
        # server-everything takes its port from the environment.
        with serving(command, port, program.cwd, {"PORT": str(port)}):
            yield Place(program.transport, _PATHS[program.transport].format(port))


@contextmanager
def behind_the_bridge(server: Server) -> Iterator[dict[Transport, Place]]:
    """Start the bridge in front of a server, which is started too where it is a program; yield how to reach it."""
    if server.program is None:
        native = [sys.executable, str(_PROGRAMS / "native.py")]
        port = free_port()
        with serving([*native, "http", str(port)], port, _REPOSITORY, _CHECKOUT):
            yield {**_served(port), "stdio": _child([*native, "stdio"], _CHECKOUT)}
    elif server.in_process is not None:
        target = f"{_PROGRAMS / str(server.program.file)}:server"
        with _bridge(str(install(server.in_process)), target) as places:
            yield places
    elif server.program.transport == "stdio":
        with _bridge(sys.executable, "--", *server.program.command(0)) as places:
            yield places
    else:
        with on_its_own(server.program) as place, _bridge(sys.executable, str(place.url)) as places:
            yield places


@contextmanager
def _bridge(python: str, *target: str) -> Iterator[dict[Transport, Place]]:
    port = free_port()
    serve = [python, "-m", "bridge", "serve", "--port", str(port), "--log-level", "warning", *target]
    with serving(serve, port, _REPOSITORY, _CHECKOUT):
        yield {**_served(port), "stdio": _child([python, "-m", "bridge", "stdio", *target], _CHECKOUT)}


def _served(port: int) -> dict[Transport, Place]:
    """What one server in front of the bridge speaks."""
    return {transport: Place(transport, path.format(port)) for transport, path in _PATHS.items()}


def _child(command: list[str], env: dict[str, str]) -> Place:
    return Place("stdio", child={"command": command[0], "args": command[1:], "env": env})
