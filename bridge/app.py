"""`Bridge`: what a user holds. It registers tools, wraps servers, and makes apps that serve them."""

import importlib
import logging
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, TypeVar, Unpack, overload
from weakref import WeakSet

import anyio

from bridge.application import Application, Serves
from bridge.asking.seal import KeyRing
from bridge.errors import ConfigurationError, MissingExtraError
from bridge.given import OptionFields, PromptFields, ResourceFields, ToolFields, check_options
from bridge.keys import keys_beside, random_keys
from bridge.publishing import Change
from bridge.server import Options, ServerInfo
from bridge.sessions import complete_page
from bridge.stores import MemoryStore, SealedStore, Store, open_store
from bridge.stores.sqlite import SqliteStore
from bridge.transports.pipes import take_streams
from bridge.transports.stdio import StdioTransport
from bridge.transports.websocket_server import WebSocketServer
from bridge.upstreams.base import AskingRules, Policy, Upstream
from bridge.upstreams.functions import Functions
from bridge.upstreams.targets import ServerOptions, server_maker
from bridge.upstreams.wrapped import Wrapped, WrapRules

__all__ = ["Application", "Bridge", "check_exposure"]

_log = logging.getLogger("bridge")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Bridge:
    """One MCP server for clients of every revision.

    Args:
        name: the server's name.
        version: the server's version.
        title: a name for people.
        instructions: how to use the server, for models.
        store: where sessions and open questions live: a `Store`, or its URL (`memory`, `sqlite:///state.db`,
            `redis://host`). Memory by default. What is stored beyond this process is encrypted.
        keys: the secrets that seal `requestState` and what is stored. Nodes of one fleet share them. By default a
            random one in memory, and with SQLite one that is kept beside the file.
        upstream: makes what each app serves in place of decorated functions; see `bridge.upstreams.base.Upstream`, and
            `wrap` for servers that exist.
        options: see `Options`.

    Raises:
        ConfigurationError: a store or option that cannot work, or no keys for a store that nodes share.
        MissingExtraError: an option needs a package that is not installed.
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
        upstream: Callable[[], Upstream] | None = None,
        **options: Unpack[OptionFields],
    ) -> None:
        check_options(options)
        info = {"name": name, "version": version}
        if title is not None:
            info["title"] = title
        self.server = ServerInfo(info=info, instructions=instructions)
        self.options = Options(**options)
        if self.options.metrics:
            # Said here, and not when the app is made.
            importlib.import_module("bridge.observing.metrics")
        self.store, self.keys = _at_rest(store, keys)
        self.functions = Functions(self.options.threads)
        self._make_upstream = upstream
        self._apps: WeakSet[Application] = WeakSet()

    @classmethod
    def wrap(
        cls,
        target: Any,
        *,
        name: str | None = None,
        instructions: str | None = None,
        store: Store | str | None = None,
        keys: KeyRing | None = None,
        server: ServerOptions | None = None,
        rules: WrapRules | None = None,
        **options: Unpack[OptionFields],
    ) -> "Bridge":
        """Make a bridge that serves a server which exists, unchanged.

            app = Bridge.wrap(mcp).asgi()
            Bridge.wrap("https://tools.example.com/mcp").run()
            Bridge.wrap(Command("node", ("server.js",))).run()

        Asking is switched on. A call of a legacy server that asks stays suspended at its question until the answer
        comes, since its code was written to run once.

        Args:
            target: a server object (of `mcp` 1 or 2, or FastMCP 2 to 4), the URL of a server (http, https, ws, wss), or
                a `Command` that speaks MCP over its stdin and stdout.
            name: how the server is called to clients; by default as it calls itself.
            instructions: likewise.
            store: as in `Bridge`.
            keys: as in `Bridge`.
            server: how the server is reached; see `ServerOptions`.
            rules: how its calls go on after a question, how many may wait, and so on; see `WrapRules`.
            options: see `Options`.

        Raises:
            ConfigurationError: a target that is no server, or options that cannot work.
            MissingExtraError: the target needs a package that is not installed.
        """
        reached, elicitation = server or ServerOptions(), options.setdefault("elicitation", True)
        make = server_maker(target, reached)

        def upstream() -> Upstream:
            return Wrapped(make(), rules or WrapRules(), elicitation=elicitation, processes=reached.processes)

        bridge = cls(name or "", instructions=instructions, store=store, keys=keys, upstream=upstream, **options)
        bridge.server = ServerInfo(info={} if name is None else {"name": name}, instructions=instructions)
        return bridge

    def make_upstream(self) -> Upstream:
        """What an app of this bridge serves: its functions, or a way of its own to the server that is wrapped."""
        return self.functions if self._make_upstream is None else self._make_upstream()

    @overload
    def tool(self, function: _Function) -> _Function: ...

    @overload
    def tool(self, **about: Unpack[ToolFields]) -> Callable[[_Function], _Function]: ...

    def tool(self, function: Callable[..., Any] | None = None, **about: Unpack[ToolFields]) -> Any:
        """Make a function a tool: `@bridge.tool`, or `@bridge.tool(name=…)`.

        The arguments' schema comes from the signature, the output schema from the return annotation. A parameter
        annotated `Context` is injected. The function may be sync or async; it returns JSON, a pydantic model or
        the like, or a `ToolResult`, and raises `ToolError` with what the model shall read.

        Args:
            function: the function.
            about: `name` (the function's by default), `title`, `description` (the docstring by default), `annotations`
                (hints such as `{"destructiveHint": True}`), `icons`, `meta`; `input_schema`: the JSON Schema of the
                arguments where no signature can say it, the function then takes them all as one dict; `on_invalid` and
                `not_secret` as in `Context.elicit`; `duplicates`: whether an equal call, made while one waits on chat,
                is the `same`.

        Returns:
            The function, unchanged.

        Raises:
            ConfigurationError: a name that is taken, or a signature that JSON arguments cannot fill.

        Source: server/tools#tool.
        """
        if function is None:
            return lambda decorated: self._add_tool(decorated, about)
        return self._add_tool(function, about)

    def _registers(self) -> Functions:
        """Where functions are registered; a bridge that wraps a server has none of its own."""
        if self._make_upstream is not None:
            raise ConfigurationError("this bridge wraps a server: register tools, prompts and resources there")
        return self.functions

    def _add_tool(self, function: _Function, about: ToolFields) -> _Function:
        options = self.options
        rules = AskingRules(
            on_invalid=about.get("on_invalid", options.on_invalid),
            not_secret=(*options.not_secret, *about.get("not_secret", ())),
        )
        policy = Policy(duplicates=about.get("duplicates", "same"))
        self._registers().add_tool(function, dict(about), rules, policy)
        self._announce("tools")
        return function

    def prompt(self, **about: Unpack[PromptFields]) -> Callable[[_Function], _Function]:
        """Make a function a prompt: `@bridge.prompt()`.

        Its parameters are the prompt's arguments, which arrive as texts. It returns a text (said by the user), a
        message with `role` and `content`, or a list of those. It may ask, where the client is not on chat.

        Args:
            about: `name`, `title`, `description`, `icons`, `meta`.

        Source: server/prompts.
        """

        def register(function: _Function) -> _Function:
            self._registers().add_prompt(function, dict(about))
            self._announce("prompts")
            return function

        return register

    def resource(self, uri: str, **about: Unpack[ResourceFields]) -> Callable[[_Function], _Function]:
        """Make a function a resource: `@bridge.resource("notes://today")`.

        A URI with variables, such as `notes://{day}`, makes a template, whose variables are the function's parameters.
        It returns a text, bytes, or JSON; `ToolError(…, "NOT_FOUND")` says that there is no such resource. It may ask,
        where the client is not on chat.

        Args:
            uri: the resource's URI, or a template of it.
            about: `name`, `title`, `description`, `mime_type`, `icons`, `meta`.

        Source: server/resources.
        """

        def register(function: _Function) -> _Function:
            self._registers().add_resource(function, uri, dict(about))
            self._announce("resources")
            return function

        return register

    def completion(self, reference: str, argument: str) -> Callable[[_Function], _Function]:
        """Make a function complete an argument: `@bridge.completion("greet", "name")`.

        It takes what was typed so far and the other arguments, and returns the texts to choose from.

        Args:
            reference: the prompt's name, or the resource template's URI.
            argument: the argument's name.

        Source: server/utilities/completion.
        """

        def register(function: _Function) -> _Function:
            return self._registers().add_completion(function, reference, argument)

        return register

    async def list_changed(self, kind: Literal["tools", "prompts", "resources"]) -> None:
        """Tell clients that a list is another one. What is registered while serving is told of by itself.

        Args:
            kind: which list: `tools`, `prompts` or `resources`.

        Source: server/tools#list-changed-notification.
        """
        await self._publish(Change(kind))

    async def resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource that it has new contents.

        Args:
            uri: the resource's URI.

        Source: server/resources#subscriptions.
        """
        await self._publish(Change("resource", uri))

    async def complete_url(self, elicitation_id: str) -> bool:
        """Tell the client whose user was sent to a page that it is done there.

        Args:
            elicitation_id: as it was given to `Context.elicit_url`.

        Returns:
            Whether a client that can be told is known.

        Source: client/elicitation#completion-notifications-for-url-mode-elicitation of 2025-11-25.
        """
        return await complete_page(self.store, elicitation_id)

    async def _publish(self, change: Change) -> None:
        for app in list(self._apps):
            if app.node.running:
                await app.publisher.publish(change)
                if self.store.shared:
                    return

    def _announce(self, kind: Literal["tools", "prompts", "resources"]) -> None:
        """Tell of a registration while the bridge is served."""
        for app in list(self._apps):
            if app.node.running:
                app.node.spawn(self._publish, Change(kind))
                return

    def asgi(self, *, path: str = "/mcp") -> "Application":
        """Make an ASGI app that serves the bridge.

        Args:
            path: where the MCP endpoint is; in an app that is mounted in another one, its path there.

        Returns:
            The app, one node, with a lifespan of its own; it also starts by itself with its first request.
        """
        serves = Serves(
            server=self.server,
            options=self.options,
            store=self.store,
            keys=self.keys,
            make_upstream=self.make_upstream,
        )
        app = Application(serves, path)
        self._apps.add(app)
        return app

    def run(self, host: str = "127.0.0.1", port: int = 8000, *, no_auth: bool = False) -> None:
        """Serve over HTTP until a signal ends it.

        Args:
            host: the address to bind.
            port: the TCP port.
            no_auth: that everybody who reaches an address beyond loopback may call the tools.

        Raises:
            ConfigurationError: an address beyond loopback, without authentication, and without `no_auth`.
            MissingExtraError: uvicorn is not installed.
        """
        check_exposure(host, self.options, no_auth=no_auth)
        try:
            from bridge.transports.uvicorn import serve
        except ImportError:
            raise MissingExtraError("Bridge.run", "serve") from None
        serve(self.asgi(), host, port)

    def run_websocket(self, host: str = "127.0.0.1", port: int = 8000, *, no_auth: bool = False) -> None:
        """Serve over WebSocket alone, at `/ws`, until a signal ends it. `run` serves it too, beside HTTP.

        Args:
            host: the address to bind.
            port: the TCP port.
            no_auth: that everybody who reaches an address beyond loopback may call the tools.

        Raises:
            ConfigurationError: an address beyond loopback, without authentication, and without `no_auth`.
        """
        check_exposure(host, self.options, no_auth=no_auth)
        uvloop = find_spec("uvloop") is not None
        anyio.run(self._serve_websocket, host, port, backend_options={"use_uvloop": uvloop})

    async def _serve_websocket(self, host: str, port: int) -> None:
        app = self.asgi()
        async with app.lifespan():
            name = app.name
            await WebSocketServer(app.parts).serve(host, port, lambda url: _log.info("%s is served at %s", name, url))

    def run_stdio(self) -> None:
        """Serve the client that started this process, over stdin and stdout, until stdin ends or a signal comes.

        Nothing but the protocol reaches stdout, not even what a tool prints: from now on that goes to stderr.

        Source: basic/transports/stdio.
        """
        incoming, outgoing = take_streams()
        uvloop = find_spec("uvloop") is not None
        try:
            anyio.run(self._serve_stdio, incoming, outgoing, backend_options={"use_uvloop": uvloop})
        finally:
            os.close(incoming)
            os.close(outgoing)

    async def _serve_stdio(self, incoming: int, outgoing: int) -> None:
        app = self.asgi()
        async with app.lifespan():
            await StdioTransport(app.parts, incoming, outgoing).serve(until_signal=True)


def _at_rest(given: Store | str | None, keys: KeyRing | None) -> tuple[Store, KeyRing]:
    """The store that is used, encrypted where others than this process could read it, and the ring that seals."""
    store: Store = open_store(given) if isinstance(given, str) else MemoryStore() if given is None else given
    if not (store.shared or store.durable):
        return store, keys or random_keys()
    if isinstance(store, SealedStore):
        return store, keys or store.ring
    if keys is None and isinstance(store, SqliteStore):
        keys = keys_beside(store.path)
    if keys is None:
        raise ConfigurationError(
            f"what is stored in {type(store).__name__} is encrypted, with keys that its nodes share: pass "
            "keys=load_keys(path); 'python -m bridge keys new FILE' makes one"
        )
    return SealedStore(store, keys), keys


def check_exposure(host: str, options: Options, *, no_auth: bool) -> None:
    """Refuse to serve everybody beyond this machine, unless that is said in words.

    Raises:
        ConfigurationError: naming what would allow it.
    """
    if host in ("localhost", "127.0.0.1", "::1") or options.authenticate is not None or no_auth:
        return
    raise ConfigurationError(
        f"{host} is reached from other machines, and nothing authenticates: anybody could call the tools. Bind "
        "127.0.0.1, pass authenticate=…, or say no_auth=True (--no-auth)"
    )
