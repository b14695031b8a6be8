"""`Bridge`: what a user holds. It registers tools, and puts the parts together into an app."""

import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

import anyio

from bridge.asking.routes import RouteName
from bridge.asking.seal import KeyRing, Seal
from bridge.calls import Calls, Route
from bridge.claims import Claims
from bridge.eras.legacy import LegacyEra
from bridge.eras.modern import ModernEra
from bridge.errors import ConfigurationError, MissingExtraError
from bridge.keys import random_keys
from bridge.node import Node
from bridge.pending import Pending
from bridge.routes.chat import Chat, NoChat
from bridge.routes.push import Push, PushLimits
from bridge.routes.rounds import Refuse, Rounds
from bridge.server import Authenticate, Options, ServerInfo
from bridge.sessions import SessionLimits, Sessions
from bridge.stores import MemoryStore, Store, open_store
from bridge.transports.http import HttpTransport
from bridge.upstreams.functions import Functions, ToolAnnotations

__all__ = ["Application", "Bridge"]

_log = logging.getLogger("bridge")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _OptionFields(TypedDict, total=False):
    """The fields of `Options`, as arguments of `Bridge`."""

    elicitation: bool
    fallback: Literal["result", "off"]
    sessions: SessionLimits
    push: PushLimits
    round_seconds: float
    pending_seconds: float | None
    grace_seconds: float
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    list_ttl_seconds: float
    authenticate: Authenticate | None
    threads: int


class Bridge:
    """One MCP server for clients of every revision.

    Args:
        name: the server's name.
        version: the server's version.
        title: a name for people.
        instructions: how to use the server, for models.
        store: where sessions and open questions live: a `Store`, or its URL (`memory`, `sqlite:///state.db`,
            `redis://host`). Memory by default.
        keys: the secrets that seal `requestState`. Nodes of one fleet share them. By default a random one.
        options: see `Options`.

    Raises:
        ConfigurationError: a store or option that cannot work.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        instructions: str | None = None,
        store: Store | str | None = None,
        keys: KeyRing | None = None,
        **options: Unpack[_OptionFields],
    ) -> None:
        unknown = set(options) - set(Options.__struct_fields__)
        if unknown:
            known = ", ".join(Options.__struct_fields__)
            raise ConfigurationError(f"Bridge knows no option {', '.join(sorted(unknown))}; it knows {known}")
        info = {"name": name, "version": version}
        if title is not None:
            info["title"] = title
        self.server = ServerInfo(info=info, instructions=instructions)
        self.options = Options(**options)
        if isinstance(store, str):
            store = open_store(store)
        self.store: Store = MemoryStore() if store is None else store
        if keys is None and (self.store.shared or self.store.durable):
            _log.warning(
                "no key ring: a random key seals requestState, so that other processes, and this one after a restart, "
                "cannot open it; pass keys=load_keys(path)"
            )
        self.keys = random_keys() if keys is None else keys
        self.functions = Functions(self.options.threads)

    @overload
    def tool(self, function: _Function) -> _Function: ...

    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
    ) -> Callable[[_Function], _Function]: ...

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
    ) -> Any:
        """Make a function a tool: `@bridge.tool`, or `@bridge.tool(name=…)`.

        The arguments' schema comes from the signature, the output schema from the return annotation. A parameter
        annotated `Context` is injected. The function may be sync or async; it returns JSON, a pydantic model or
        the like, and raises `ToolError` with what the model shall read.

        Args:
            function: the function.
            name: the tool's name; the function's by default.
            title: a name for people.
            description: what it does, for models; the docstring by default.
            annotations: hints such as `{"destructiveHint": True}`.

        Returns:
            The function, unchanged.

        Raises:
            ConfigurationError: a name that is taken, or a signature that JSON arguments cannot fill.

        Source: server/tools#tool.
        """
        register = partial(
            self.functions.register, name=name, title=title, description=description, annotations=annotations
        )
        return register if function is None else register(function)

    def asgi(self, *, path: str = "/mcp") -> "Application":
        """Make an ASGI app that serves the bridge at `path`; mounted in another app, give its path there."""
        return Application(self, path)

    def run(self, host: str = "127.0.0.1", port: int = 8000) -> None:
        """Serve over HTTP until a signal ends it.

        Args:
            host: the address to bind.
            port: the TCP port.

        Raises:
            MissingExtraError: uvicorn is not installed.
        """
        try:
            from bridge.transports.uvicorn import serve
        except ImportError:
            raise MissingExtraError("Bridge.run", "serve") from None
        serve(self.asgi(), host, port)


class Application:
    """A bridge as an ASGI app: one node, with its own lifespan. It also starts by itself with its first request.

    Args:
        bridge: what to serve.
        path: where the MCP endpoint is.
    """

    def __init__(self, bridge: Bridge, path: str) -> None:
        self._bridge = bridge
        self._path = "/" + path.strip("/")
        self._endpoint: HttpTransport | None = None
        self._starting = anyio.Lock()
        self.node = Node(bridge.store)
        self.sessions = Sessions(self.node, bridge.options.sessions)

    async def start(self) -> None:
        """Begin to serve."""
        async with self._starting:
            if self._endpoint is None:
                await self.node.start()
                await self.sessions.start()
                self._endpoint = await self._build()

    async def stop(self) -> None:
        """End every stream and task. What is stored stays."""
        await self.drain()
        self._endpoint = None
        await self.node.stop()

    async def drain(self) -> None:
        """End streams, so that their clients go elsewhere."""
        self.node.closing.set()

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Serve while the context is open: for the lifespan of an app that this one is mounted in."""
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        if scope["type"] == "http":
            if not self._is_endpoint(scope):
                await _not_found(send)
                return
            if self._endpoint is None:
                await self.start()
            assert self._endpoint is not None
            await self._endpoint(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    def _is_endpoint(self, scope: Any) -> bool:
        path: str = scope["path"]
        if path == self._path:
            return True
        root = scope.get("root_path", "")
        inner = path[len(root) :] if root and path.startswith(root) else path
        return "/" + inner.strip("/") == self._path

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        try:
            await self.start()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _build(self) -> HttpTransport:
        """Put the parts together."""
        bridge, node, sessions = self._bridge, self.node, self.sessions
        options, upstream, store = bridge.options, bridge.functions, bridge.store
        claims = Claims(node)
        seal = Seal(bridge.keys, secrets.token_bytes(16))
        rounds = Rounds(seal, await _identity(store), bridge.server.info["name"], options.round_seconds)
        modern_routes: dict[RouteName, Route] = {RouteName.ROUNDS: rounds, RouteName.REFUSE: Refuse()}
        chat = Chat(sessions, Pending(store, options.pending_seconds), upstream)
        by_chat: Route = NoChat() if options.fallback == "off" else chat
        push = Push(sessions, by_chat, options.push)
        legacy_routes: dict[RouteName, Route] = {RouteName.PUSH: push, RouteName.CHAT: by_chat}
        modern_calls = Calls(upstream, claims, modern_routes, elicitation=options.elicitation)
        legacy_calls = Calls(upstream, claims, legacy_routes, elicitation=options.elicitation)
        modern = ModernEra(bridge.server, upstream, modern_calls, rounds, options)
        legacy = LegacyEra(bridge.server, upstream, legacy_calls, chat, sessions, options)
        return HttpTransport(node, modern, legacy, sessions, options)


async def _identity(store: Store) -> str:
    """The random id of a store, made with it: what is sealed over one store does not hold over another."""
    await store.put("store/id", secrets.token_urlsafe(16).encode(), ttl_seconds=None, if_version=0)
    record = await store.get("store/id")
    assert record is not None
    return record.value.decode()


async def _not_found(send: Any) -> None:
    body = b'{"error":"Not found: the MCP endpoint is elsewhere"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})
