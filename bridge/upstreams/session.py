"""A session with a legacy server, over whatever carries its messages: ids, `initialize`, requests under way.

What the server asks meanwhile is the matter of `inquiries.py`. Source: basic/lifecycle of 2025-11-25.
"""

import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import anyio
from msgspec import UNSET

from bridge.errors import RemoteError, UpstreamLost, UpstreamUnreachable
from bridge.protocol.messages import (
    INTERNAL_ERROR,
    Json,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    notification,
    request_message,
)
from bridge.protocol.revisions import LATEST_LEGACY, LEGACY
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.inquiries import Inquiries, Outstanding, Spawn
from bridge.upstreams.links import Facts, Hello, News, Talk
from bridge.upstreams.turns import TooManyQueued, Turns
from bridge.upstreams.wires import Wire

__all__ = ["LegacyLink"]

_TAKE_TURNS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""What may ask, and so must be told apart. Source: basic/patterns/mrtr#supported-requests of 2026-07-28."""

_UNCANCELLED: Final = frozenset({"initialize", "ping"})
"""What is not cancelled at the server: it must not be, or there is nothing to cancel."""

_INITIALIZE_SECONDS: Final = 30.0
_CLEANUP_SECONDS: Final = 5.0
_FENCE_SECONDS: Final = 15.0
PING_SECONDS: Final = 2.0
"""How long a server that has just asked may take to answer a ping."""

_log = logging.getLogger("bridge.upstream")


class LegacyLink:
    """A `Link` that is a session with a legacy server.

    Args:
        wire: what carries its messages.
        news: takes what belongs to no request.
        spawn: starts a task that somebody else owns: a question waits in one of its own.
        several: whether calls may be active beside each other although the wire does not tell whose question comes.
    """

    def __init__(self, wire: Wire, news: News, spawn: Spawn, *, several: bool = False) -> None:
        self._wire = wire
        self._news = news
        self._spawn = spawn
        self._ids = itertools.count(1)
        self._under_way: dict[RequestId, Outstanding] = {}
        self._turns = Turns(several=several or wire.names_requests)
        self._given_up: dict[int, bool] = {}
        """The calls that were cancelled and may still ask, and whether the server has been told."""
        self._inquiries = Inquiries(
            self._turns,
            self._under_way,
            self._given_up,
            names_requests=wire.names_requests,
            spawn=spawn,
            say=self._say,
            ping=self._ping,
        )
        self._facts: Facts | None = None
        self._why_closed: str | None = None

    @property
    def facts(self) -> Facts:
        """See `Link`."""
        assert self._facts is not None, "the session is not open"
        return self._facts

    @property
    def names_requests(self) -> bool:
        """See `Link`."""
        return self._wire.names_requests

    @property
    def is_open(self) -> bool:
        """See `Link`."""
        return self._why_closed is None

    async def open(self, hello: Hello) -> None:
        """Connect, and initialize the session.

        Raises:
            UpstreamUnreachable: that failed; the wire is closed.
        """
        try:
            await self._wire.open(self._received, self._closed)
            with anyio.fail_after(_INITIALIZE_SECONDS):
                await self._initialize(hello)
        except TimeoutError:
            await self._give_up()
            text = f"it did not answer initialize within {_INITIALIZE_SECONDS:g} seconds"
            raise UpstreamUnreachable(text) from None
        except UpstreamLost as lost:
            await self._give_up()
            raise UpstreamUnreachable(f"it did not answer initialize: {lost}") from None
        except BaseException:
            await self._give_up()
            raise

    async def _initialize(self, hello: Hello) -> None:
        params = {
            "protocolVersion": LATEST_LEGACY.name,
            "capabilities": hello.capabilities,
            "clientInfo": hello.info,
        }
        reply = await self.request("initialize", params)
        if isinstance(reply, Failed):
            raise UpstreamUnreachable(f"it refused initialize: {reply.message} ({reply.code})")
        version = reply.result.get("protocolVersion")
        revision = LEGACY.get(version) if isinstance(version, str) else None
        if revision is None:
            known = ", ".join(LEGACY)
            raise UpstreamUnreachable(f"it speaks the revision {version!r}, and the bridge one of {known}")
        capabilities, info = reply.result.get("capabilities"), reply.result.get("serverInfo")
        instructions = reply.result.get("instructions")
        self._facts = Facts(
            revision=revision,
            capabilities=capabilities if isinstance(capabilities, dict) else {},
            info=info if isinstance(info, dict) else {},
            instructions=instructions if isinstance(instructions, str) else None,
        )
        await self._wire.initialized(revision.name)
        await self._wire.send(notification("notifications/initialized"))
        await self._wire.listen()

    async def _give_up(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._wire.aclose()
        self._closed("it could not be opened")

    async def request(self, method: str, params: Json, talk: Talk | None = None) -> Finished | Failed:
        """See `Link`."""
        if self._why_closed is not None:
            raise UpstreamUnreachable(self._why_closed)
        identity = next(self._ids)
        if method not in _TAKE_TURNS:
            return await self._requested(identity, method, params, talk)
        try:
            await self._turns.take(identity)
        except TooManyQueued:
            return Failed(INTERNAL_ERROR, "Too many calls wait for this server, which answers one at a time")
        try:
            reply = await self._requested(identity, method, params, talk)
        except BaseException as error:
            if isinstance(error, RemoteError) or self._why_closed is not None:
                self._turns.leave(identity)
            else:
                self._given_up.setdefault(identity, self._turns.has(identity))
                self._spawn(self._fence, identity)
            raise
        self._turns.leave(identity)
        return reply

    async def _requested(
        self,
        identity: int,
        method: str,
        params: Json,
        talk: Talk | None,
        on_reply: Callable[[], None] | None = None,
    ) -> Finished | Failed:
        under_way = self._under_way[identity] = Outstanding(identity, talk, on_reply)
        if talk is not None and talk.wants_progress:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": identity}}
        try:
            http = None if talk is None else talk.http
            await self._wire.send(request_message(identity, method, params), http)
            if under_way.reply is None:
                under_way.arrived = anyio.Event()
                await under_way.arrived.wait()
        except RemoteError:
            # A reply that has come counts, whatever became of the connection afterwards.
            if under_way.reply is None:
                raise
        except BaseException:
            for scope in under_way.asking.values():
                scope.cancel()
            if method not in _UNCANCELLED and (method not in _TAKE_TURNS or self._turns.has(identity)):
                await self._cancel(identity)
            raise
        finally:
            del self._under_way[identity]
            for scope in under_way.asking.values():
                scope.cancel()
        reply = under_way.reply
        assert reply is not None
        if isinstance(reply, RemoteError):
            raise reply
        return reply

    async def _cancel(self, identity: int) -> None:
        """Tell the server that nobody waits any more."""
        with anyio.CancelScope(shield=True):
            await self.notify("notifications/cancelled", {"requestId": identity, "reason": "nobody waits for it"})

    async def _fence(self, identity: int) -> None:
        """See a call that was given up off: until the server has answered a ping, what it asks may be that call's.

        No other call is active for as long. One that waited for a person is given up in its turn, too.
        """
        if not self._turns.has(identity):
            await self._turns.take(identity, again=True)
        try:
            if not self._given_up[identity]:
                await self._cancel(identity)
                self._given_up[identity] = True
            with anyio.move_on_after(_FENCE_SECONDS) as waited:
                # The turn is over at once with the reply: what comes right after it is not the cancelled call's.
                await self._requested(next(self._ids), "ping", {}, None, lambda: self._turns.leave(identity))
            if waited.cancelled_caught:
                _log.warning("a server did not answer a ping after a call was cancelled; its session is closed")
                await self.aclose()
        except RemoteError as error:
            _log.info("a session ended while a call was cancelled: %s", error)
        finally:
            del self._given_up[identity]
            self._turns.leave(identity)

    async def _ping(self) -> bool:
        with suppress(RemoteError), anyio.move_on_after(PING_SECONDS):
            await self.request("ping", {})
            return True
        return False

    async def notify(self, method: str, params: Json) -> None:
        """See `Link`."""
        await self._say(notification(method, params) if params else notification(method))

    async def _say(self, message: Json) -> None:
        if self._why_closed is not None:
            return
        try:
            with anyio.fail_after(_CLEANUP_SECONDS):
                await self._wire.send(message)
        except (RemoteError, TimeoutError) as error:
            _log.info("a message did not reach its server: %s", error)

    async def aclose(self) -> None:
        """See `Link`."""
        if self._why_closed is None:
            for under_way in list(self._under_way.values()):
                for scope in under_way.asking.values():
                    scope.cancel()
                if under_way.talk is not None:
                    await self._cancel(under_way.identity)
            for identity, is_told in list(self._given_up.items()):
                if not is_told:
                    await self._cancel(identity)
            self._closed("the bridge has closed the session")
        with anyio.CancelScope(shield=True):
            await self._wire.aclose()

    def _closed(self, reason: str) -> None:
        """Nothing can come in any more: whoever waits for it is told."""
        if self._why_closed is not None:
            return
        self._why_closed = reason
        for under_way in self._under_way.values():
            for scope in under_way.asking.values():
                scope.cancel()
            under_way.end(UpstreamLost(reason))

    async def _received(self, message: Message, related: RequestId | None) -> None:
        if isinstance(message, Response):
            under_way = self._under_way.get(message.id)
            if under_way is not None:
                under_way.end(_reply(message))
        elif isinstance(message, Request):
            await self._inquiries.requested(message, related)
        elif isinstance(message, Notification):
            await self._notified(message, related)
        else:
            _log.warning("a server sent what is no JSON-RPC message: %s", message.reason)

    async def _notified(self, message: Notification, related: RequestId | None) -> None:
        params = message.params
        if message.method == "notifications/progress":
            await self._progress(params)
        elif message.method == "notifications/message":
            under_way = self._inquiries.whose(related)
            if under_way is None or under_way.talk is None:
                await self._news(message.method, params)
            else:
                await under_way.talk.log(str(params.get("level")), params.get("data"), params.get("logger"))
        elif message.method == "notifications/cancelled":
            self._inquiries.withdraw(params.get("requestId"))
        else:
            await self._news(message.method, params)

    async def _progress(self, params: Json) -> None:
        token, progress = params.get("progressToken"), params.get("progress")
        under_way = self._under_way.get(token) if isinstance(token, int | str) else None
        if under_way is not None and under_way.talk is not None and isinstance(progress, int | float):
            await under_way.talk.progress(progress, params.get("total"), params.get("message"))


def _reply(message: Response) -> Finished | Failed:
    if message.error is UNSET:
        assert message.result is not UNSET
        return Finished(message.result)
    error = message.error
    code = error.get("code")
    return Failed(code if type(code) is int else INTERNAL_ERROR, str(error.get("message", "")), error.get("data"))
