"""A bridge as an ASGI app: one node, put together from its parts, with its own lifespan."""

import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import msgspec

from bridge.asking.routes import RouteName
from bridge.asking.seal import KeyRing, Seal
from bridge.calls import Calls, Route
from bridge.claims import Claims
from bridge.counting import CountedCalls, Counts
from bridge.eras.legacy import LegacyEra
from bridge.eras.listening import Listening
from bridge.eras.modern import ModernEra
from bridge.eras.ports import Legacy, Modern
from bridge.errors import ConfigurationError, StoreError
from bridge.node import Node
from bridge.observing.onlookers import Onlookers
from bridge.ownership import Ownership
from bridge.pending import SessionPending
from bridge.publishing import Change, Publisher
from bridge.routes.chat import Chat, ChatRules, NoChat
from bridge.routes.push import Push
from bridge.routes.rounds import Refuse, RefuseOnSession, Rounds
from bridge.sealed_pending import SealedPending
from bridge.server import Options, ServerInfo
from bridge.session import Session
from bridge.sessions import Sessions, complete_page
from bridge.stores import SealedStore, Store
from bridge.transports.endpoints import Endpoints
from bridge.transports.exchange import RETRY_AFTER, send_store_away
from bridge.transports.gate import Refusal
from bridge.transports.parts import Parts
from bridge.transports.running import STORE_AWAY
from bridge.transports.signals import EndSignals
from bridge.transports.websocket import refuse_handshake
from bridge.upstreams.base import AskingRules, Said, Surroundings, Upstream
from bridge.upstreams.wrapped import Wrapped

__all__ = ["Application", "Serves"]

_log = logging.getLogger("bridge")


class Serves(msgspec.Struct, frozen=True, kw_only=True):
    """What an application serves, and how.

    Args:
        server: what the server says of itself.
        options: how it is set up.
        store: where sessions and open questions live.
        keys: what seals.
        make_upstream: makes what runs its calls.
    """

    server: ServerInfo
    options: Options
    store: Store
    keys: KeyRing
    make_upstream: Callable[[], Upstream]


class Application:
    """A bridge as an ASGI app: one node, with its own lifespan. It also starts by itself with its first request.

    Args:
        serves: what to serve, and how.
        path: where the MCP endpoint is.
    """

    def __init__(self, serves: Serves, path: str) -> None:
        self._serves = serves
        self._path = "/" + path.strip("/")
        self._parts: Parts | None = None
        self._endpoints: Endpoints | None = None
        self._starting = anyio.Lock()
        self._onlookers = Onlookers(serves.store, metrics=serves.options.metrics)
        self.node = Node(self._onlookers.store, serves.options.shutdown_seconds)
        self._signals = EndSignals(self.node.close)
        self.sessions = Sessions(self.node, serves.options.sessions)
        self.publisher = Publisher(self.node)
        self.upstream = serves.make_upstream()
        self.sessions.on_opened = self._session_opened
        self.sessions.on_ended = self._session_ended
        self.counts: Counts | None = None
        self._withdraw: Callable[[Session, str], Awaitable[None]] | None = None

    @property
    def name(self) -> str:
        """How the server is called; once it is started, a wrapped one as it calls itself."""
        return str(_named(self._serves.server, self.upstream.said).info.get("name", ""))

    @property
    def store(self) -> Store:
        """Where sessions and open questions live."""
        return self._serves.store

    @property
    def options(self) -> Options:
        """How it is set up."""
        return self._serves.options

    def count(self) -> None:
        """Count what happens once it has started, for a console that any node may show."""
        self.counts = Counts(self.node, lambda: self.upstream.held if isinstance(self.upstream, Wrapped) else 0)

    def withdraw(self, session: Session, elicit_id: str) -> None:
        """Cancel a question that waits for a chat answer, once the app serves; its call goes on with that."""
        if self._withdraw is not None:
            self.node.spawn(self._withdraw, session, elicit_id)

    async def start(self) -> None:
        """Begin to serve.

        Raises:
            ConfigurationError: the keys do not open what is stored.
            StoreError: the store cannot be reached, or failed.
            UpstreamUnreachable: the server that is wrapped cannot be reached.
        """
        async with self._starting:
            if self._endpoints is None:
                if isinstance(self._serves.store, SealedStore):
                    await self._serves.store.check_ring()
                await self.node.start()
                try:
                    await self.sessions.start()
                    await self.publisher.start()
                    await self.upstream.start(self._surroundings())
                    if self.counts is not None:
                        self.counts.start()
                    self._parts = await self._build()
                except BaseException:
                    with anyio.CancelScope(shield=True):
                        await self.upstream.aclose()
                        await self.node.stop()
                    raise
                self._endpoints = Endpoints(self._parts, self._path)
                self._signals.listen()

    async def stop(self) -> None:
        """End every stream and task. What is stored stays."""
        await self.drain()
        self._signals.stop()
        if self._parts is not None:
            await self.upstream.aclose()
        self._endpoints = self._parts = None
        await self.node.stop()

    async def drain(self) -> None:
        """End streams, so that their clients go elsewhere, and connections, once what runs on them has ended."""
        self.node.close()
        if self._endpoints is not None:
            await self._endpoints.drain()

    @property
    def shutdown_seconds(self) -> float:
        """How long what runs may go on once the process is told to end."""
        return self._serves.options.shutdown_seconds

    @property
    def parts(self) -> Parts:
        """What transports are made of; there while the app serves."""
        if self._parts is None:
            raise RuntimeError("the app is not started")
        return self._parts

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
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] in ("http", "websocket"):
            if self._endpoints is None:
                try:
                    await self.start()
                except (ConfigurationError, StoreError) as error:
                    _log.error("the bridge cannot start: %s", error)
                    await _unavailable(scope, receive, send)
                    return
            assert self._endpoints is not None
            await self._endpoints(scope, receive, send)

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

    def _session_opened(self, session: Session) -> None:
        if self.counts is not None:
            self.counts.add("sessions")

    def _session_ended(self, session_id: str) -> None:
        if self.node.running:
            self.node.spawn(self.upstream.end_session, session_id)

    def _surroundings(self) -> Surroundings:
        """What the upstream is given."""
        node, sessions, publisher, store = self.node, self.sessions, self.publisher, self.node.store

        async def changed(kind: Any, uri: str | None) -> None:
            await publisher.publish(Change(kind, uri))

        return Surroundings(
            node_id=node.id,
            store=store,
            is_alive=node.is_alive,
            spawn=node.spawn,
            changed=changed,
            tell=sessions.tell_session,
            completed=lambda elicitation_id: complete_page(store, elicitation_id),
            closing=lambda: node.closing.wait(),
        )

    async def _build(self) -> Parts:
        """Put the parts together."""
        serves, node, sessions = self._serves, self.node, self.sessions
        onlookers, options, store = self._onlookers, serves.options, node.store
        upstream = onlookers.upstream(self.upstream)
        claims = Claims(node)
        seal = Seal(serves.keys, secrets.token_bytes(16))
        server = _named(serves.server, upstream.said)
        await sessions.identity.look()
        identity, audience = sessions.identity, server.info["name"]
        rules = AskingRules(
            elicitation=options.elicitation, on_invalid=options.on_invalid, not_secret=options.not_secret
        )
        chat_rules = ChatRules(
            consent=options.chat_consent, wait_seconds=options.wait_seconds if options.fallback == "wait" else 0.0
        )
        sealed = SealedPending(seal, store, identity, audience, options.pending_seconds, options.round_seconds)
        visitors_chat = Chat(sealed, upstream, claims, None, chat_rules)
        sessions_chat = Chat(
            SessionPending(store, options.pending_seconds, options.round_seconds),
            upstream,
            claims,
            sessions,
            chat_rules,
            options.client_rules,
        )
        no_chat = NoChat() if options.fallback == "off" else None
        rounds = Rounds(seal, identity, audience, options.round_seconds)
        push = Push(sessions, store, no_chat or sessions_chat, options.push, options.client_rules)
        modern_routes: dict[RouteName, Route] = {
            RouteName.ROUNDS: rounds,
            RouteName.REFUSE: Refuse(),
            RouteName.CHAT: no_chat or visitors_chat,
        }
        legacy_routes: dict[RouteName, Route] = {
            RouteName.PUSH: push,
            RouteName.CHAT: no_chat or sessions_chat,
            RouteName.REFUSE: RefuseOnSession(),
        }
        make_calls = Calls if self.counts is None else partial(CountedCalls, self.counts)
        modern_calls, legacy_calls = (
            make_calls(upstream, claims, onlookers.routes(routes), rules=rules, client_rules=options.client_rules)
            for routes in (modern_routes, legacy_routes)
        )
        listening = Listening(upstream, self.publisher)
        era = LegacyEra(server, upstream, legacy_calls, sessions_chat, push, sessions, options)
        self._withdraw = era.withdraw
        modern: Modern = ModernEra(server, upstream, modern_calls, rounds, visitors_chat, listening, options)
        legacy: Legacy = era
        modern, legacy = onlookers.eras(modern, legacy)
        return Parts(
            node=node,
            modern=modern,
            legacy=legacy,
            sessions=sessions,
            ownership=Ownership(node),
            publisher=self.publisher,
            options=options,
            metrics=onlookers.page(self.upstream),
        )


async def _unavailable(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send_store_away(send)
    else:
        await receive()
        await refuse_handshake(scope, send, Refusal(503, STORE_AWAY, RETRY_AFTER))


def _named(given: ServerInfo, said: Said | None) -> ServerInfo:
    """What the server says of itself: what the operator gave goes before what a wrapped server says."""
    if said is None:
        return given
    info = {**said.info, **given.info}
    return ServerInfo(
        info={"name": "mcp-session-bridge", "version": "0.0.0", **info},
        instructions=said.instructions if given.instructions is None else given.instructions,
    )
