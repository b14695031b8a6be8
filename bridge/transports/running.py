"""The requests under way on one connection: each a task of its own, cancelled by its id, ended with the connection."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

import anyio

from bridge.calls import Keeper
from bridge.eras.shutting_down import cut_off
from bridge.errors import StoreError
from bridge.node import Node
from bridge.protocol.messages import INTERNAL_ERROR, Json, Request, RequestId, encode, error_message

__all__ = ["STORE_AWAY", "ConnectionExchange", "RunningRequests", "Say"]

STORE_AWAY: Final = "The server's store is away; try again"
_log = logging.getLogger("bridge.connection")

Say = Callable[[bytes], Awaitable[None]]
"""Sends one message to the client."""


class ConnectionExchange:
    """A request under way; see `calls.Exchange`.

    Args:
        say: sends a message to the client.
        scope: what the request runs in.
        http: the ASGI scope of the connection, where it has one.
    """

    can_stream = True
    on_gone: Callable[[], None] | None = None
    on_delivered: Callable[[], Awaitable[None]] | None = None
    on_closing: Callable[[], None] | None = None
    keeper: Keeper | None = None

    def __init__(self, say: Say, scope: anyio.CancelScope, http: Mapping[str, Any] | None = None) -> None:
        self._say = say
        self._is_replied = False
        self._is_withdrawn = False
        self.scope = scope
        self.http = http
        self.questions: set[RequestId] = set()
        """The ids of what the client was asked and has not answered yet."""

    async def leave(self) -> None:
        """See `Exchange`: the stream is that of the connection."""

    def cancel(self) -> None:
        """End the request; its client is told."""
        self.scope.cancel()

    def withdraw(self) -> None:
        """The client does not want the request any more: nothing more is sent for it."""
        if self._is_withdrawn:
            return
        self._is_withdrawn = True
        if self.on_gone is None or self._is_replied:
            self.cancel()
        else:
            self.on_gone()

    async def send(self, message: Json) -> None:
        """Send a message before the reply."""
        if self._is_replied or self._is_withdrawn:
            return
        if "id" in message:
            self.questions.add(message["id"])
        elif message.get("method") == "notifications/cancelled":
            self.questions.discard(message["params"]["requestId"])
        await self._say(encode(message))

    async def finish(self, reply: bytes) -> None:
        """Send the reply, and do what goes with its delivery."""
        if self._is_replied or self._is_withdrawn:
            return
        # Noted first: a reply that is cut off in the middle is completed by who writes next, and is the only one.
        self._is_replied = True
        await self._say(reply)
        if self.on_delivered is not None:
            try:
                await self.on_delivered()
            except StoreError as error:
                _log.warning("a reply was delivered, and the store does not take it: %s", error)


class RunningRequests:
    """Runs requests.

    Args:
        node: the process.
        say: sends a message to the client.
        http: the ASGI scope of the connection, where it has one.
    """

    def __init__(self, node: Node, say: Say, http: Mapping[str, Any] | None = None) -> None:
        self._node = node
        self._say = say
        self._http = http
        self._exchanges: dict[RequestId, ConnectionExchange] = {}
        self._others = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, identity: RequestId) -> bool:
        return identity in self._exchanges

    def __len__(self) -> int:
        return len(self._exchanges) + self._others

    @property
    def is_asking(self) -> bool:
        """Whether a person at the client is being asked something."""
        return any(exchange.questions for exchange in self._exchanges.values())

    def answered(self, identity: RequestId) -> None:
        """The client has answered something."""
        for exchange in self._exchanges.values():
            exchange.questions.discard(identity)

    def start(self, request: Request, handle: Callable[[ConnectionExchange], Awaitable[Json]]) -> None:
        """Begin to answer a request.

        Args:
            request: the request; none with its id is under way.
            handle: gives the reply; it is cancelled with the request.
        """
        exchange = self._exchanges[request.id] = ConnectionExchange(self._say, self._node.new_scope(), self._http)
        self._spawn(self._run(request, handle, exchange))

    def start_other(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin something else that counts as a request, such as a batch."""
        self._others += 1
        self._spawn(self._run_other(work))

    def withdraw(self, identity: Any) -> bool:
        """The client does not want a request any more; return whether it is under way here."""
        exchange = self._exchanges.get(identity) if type(identity) in (int, str) else None
        if exchange is not None:
            exchange.withdraw()
        return exchange is not None

    async def finish(self, grace_seconds: float, cleanup_seconds: float) -> None:
        """Let what runs end. Who waits for the client waits in vain.

        Args:
            grace_seconds: after this, what still runs is cancelled.
            cleanup_seconds: how long what is cancelled may clean up.
        """
        for exchange in list(self._exchanges.values()):
            if exchange.on_closing is not None:
                exchange.on_closing()
        await self._wait(grace_seconds)
        for exchange in self._exchanges.values():
            exchange.cancel()
        await self._wait(cleanup_seconds)
        for task in self._tasks:
            # It waits for a client that does not read, or for a thread.
            task.cancel()
        await self._wait(cleanup_seconds)

    async def _wait(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # A task group would take a third of the time of a short call; `finish` sees to it that none is left behind.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_other(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:
            _log.exception("a part of a connection failed")
        finally:
            self._others -= 1

    async def _run(
        self,
        request: Request,
        handle: Callable[[ConnectionExchange], Awaitable[Json]],
        exchange: ConnectionExchange,
    ) -> None:
        try:
            with exchange.scope:
                await exchange.finish(await _reply(request, handle(exchange)))
            if exchange.scope.cancelled_caught:
                await exchange.finish(encode(cut_off(request)))
        finally:
            del self._exchanges[request.id]


async def _reply(request: Request, handled: Awaitable[Json]) -> bytes:
    try:
        return encode(await handled)
    except StoreError as error:
        _log.error("%s: %s", request.method, error)
        return encode(error_message(request.id, INTERNAL_ERROR, STORE_AWAY))
    except Exception:
        _log.exception("a request failed: %s", request.method)
        text = "Internal error; its details are in the server's log"
        return encode(error_message(request.id, INTERNAL_ERROR, text))
