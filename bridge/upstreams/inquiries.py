"""What a legacy server asks: whose question it is, and how its answer goes back.

A question is handed to the call that it belongs to, and never to another: by the stream that carried it, or by whose
turn it is (`turns.py`). What cannot be told is refused. It knows no transport, and not how a request is made.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import anyio

from bridge.errors import RemoteError
from bridge.protocol.messages import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Json,
    Request,
    RequestId,
    error_message,
    result_message,
)
from bridge.upstreams.base import Failed, Finished
from bridge.upstreams.links import ASKS, Talk
from bridge.upstreams.turns import Turns

__all__ = ["Inquiries", "Outstanding", "Spawn"]

Spawn: TypeAlias = Callable[..., None]
"""Starts a task that somebody else owns."""

_log = logging.getLogger("bridge.upstream")


class Outstanding:
    """One request of ours that has no reply yet.

    Args:
        identity: its id.
        talk: takes what the server says meanwhile.
        on_reply: told at once when the reply has come.
    """

    __slots__ = ("arrived", "asking", "identity", "on_reply", "reply", "talk")

    def __init__(self, identity: int, talk: Talk | None, on_reply: Callable[[], None] | None) -> None:
        self.identity = identity
        self.talk = talk
        self.on_reply = on_reply
        self.reply: Finished | Failed | RemoteError | None = None
        self.arrived: anyio.Event | None = None
        self.asking: dict[RequestId, anyio.CancelScope] = {}
        """What the server asks for it, and is not answered yet."""

    def end(self, reply: Finished | Failed | RemoteError) -> None:
        """The reply has come, or it never will."""
        if self.reply is None:
            self.reply = reply
            if self.on_reply is not None:
                self.on_reply()
        if self.arrived is not None:
            self.arrived.set()


class Inquiries:
    """Answers the requests of one legacy server.

    Args:
        turns: whose turn it is.
        outstanding: the requests of ours that have no reply yet, by id.
        given_up: those that were cancelled and may still ask.
        names_requests: whether the transport tells with which request of ours a question comes.
        spawn: starts a task: each question waits in one of its own.
        say: sends a message to the server.
        ping: whether the server has answered a ping in time.
    """

    def __init__(
        self,
        turns: Turns,
        outstanding: Mapping[RequestId, Outstanding],
        given_up: Mapping[int, bool],
        *,
        names_requests: bool,
        spawn: Spawn,
        say: Callable[[Json], Awaitable[None]],
        ping: Callable[[], Awaitable[bool]],
    ) -> None:
        self._turns = turns
        self._outstanding = outstanding
        self._given_up = given_up
        self._names_requests = names_requests
        self._spawn = spawn
        self._say = say
        self._ping = ping

    async def requested(self, request: Request, related: RequestId | None) -> None:
        """Take a request of the server's.

        Args:
            request: the request.
            related: the request of ours with which it came, where the transport tells.
        """
        if request.method == "ping":
            self._spawn(self._say, result_message(request.id, {}))
        elif request.method in ASKS:
            asker = self.whose(related)
            if asker is None or asker.talk is None:
                reason = "The client can be asked only by a call under way, and which call asks cannot be told"
                _log.warning("a server's %s was refused: %s", request.method, reason)
                self._spawn(self._say, error_message(request.id, INVALID_REQUEST, reason))
            else:
                scope = asker.asking[request.id] = anyio.CancelScope()
                self._spawn(self._asked, request, asker, scope)
        else:
            text = f"Method not found: {request.method}"
            self._spawn(self._say, error_message(request.id, METHOD_NOT_FOUND, text))

    def whose(self, related: RequestId | None) -> Outstanding | None:
        """The request of ours that something of the server's belongs to; None where that cannot be told."""
        identity = self._turns.only if related is None else related
        if identity is not None:
            return self._outstanding.get(identity)
        callers = [asker for asker in self._outstanding.values() if asker.talk is not None]
        return callers[0] if len(callers) == 1 and not (self._turns.doubts or self._given_up) else None

    async def _asked(self, request: Request, asker: Outstanding, scope: anyio.CancelScope) -> None:
        """Have a question answered; its call gives up its turn meanwhile."""
        assert asker.talk is not None
        with scope:
            # What else its tasks ask at the same time comes before the answer to a ping. A server that answers none
            # while it waits runs nothing else either: then its call keeps its turn.
            if self._names_requests or not self._turns.has(asker.identity) or await self._ping():
                self._turns.leave(asker.identity)
            answer = await asker.talk.ask(request.method, request.params)
            await self._go_on(asker)
            del asker.asking[request.id]
            await self._say(_answer(request.id, answer))
            return
        asker.asking.pop(request.id, None)

    async def _go_on(self, asker: Outstanding) -> None:
        """Take the turn of a call again that waited for a person."""
        if not self._turns.has(asker.identity):
            await self._turns.take(asker.identity, again=True)
        if asker.identity not in self._outstanding:
            self._turns.leave(asker.identity)

    def withdraw(self, identity: Any) -> None:
        """The server does not want its question answered any more."""
        for asker in self._outstanding.values():
            scope = asker.asking.get(identity) if isinstance(identity, int | str) else None
            if scope is not None:
                scope.cancel()
                if not self._turns.has(asker.identity):
                    self._turns.doubts += 1
                    self._spawn(self._back, asker)

    async def _back(self, asker: Outstanding) -> None:
        """A call goes on without an answer: until it has its turn again, it could be the one that asks."""
        try:
            await self._go_on(asker)
        finally:
            self._turns.doubts -= 1


def _answer(identity: RequestId, answer: Finished | Failed) -> Json:
    if isinstance(answer, Failed):
        return error_message(identity, answer.code, answer.message, answer.data)
    return result_message(identity, answer.result)
