"""Whose question is it? On a transport that does not say, one call at a time is active in a session.

A call takes its turn before it is sent. While it waits for a person it has no turn, and takes one again before its
answer is forwarded, and before it is cancelled. So whatever the server asks comes from the one call that is active.
Where a call goes on without a turn, since its server has withdrawn a question, there is *doubt*: every question is
refused until that call has its turn again. This module knows no message.
"""

from collections import deque
from typing import Final

import anyio

__all__ = ["MAX_QUEUED", "TooManyQueued", "Turns"]

MAX_QUEUED: Final = 1024
"""How many calls of one session may wait for their turn."""


class TooManyQueued(Exception):
    """No more calls may wait for their turn."""


class Turns:
    """The turns of one session.

    Args:
        several: whether calls run beside each other all the same, at a server that is said not to ask; then nobody
            waits for a turn, and a question that comes while several are active is nobody's.
    """

    def __init__(self, *, several: bool = False) -> None:
        self._several = several
        self._active: set[int] = set()
        self._queue: deque[tuple[int, anyio.Event]] = deque()
        self.doubts = 0
        """How many calls go on at the server without having their turn."""

    @property
    def only(self) -> int | None:
        """The one call that is active; None where there is none, or more than one, or doubt."""
        return next(iter(self._active)) if len(self._active) == 1 and not self.doubts else None

    def has(self, call: int) -> bool:
        """Whether it is the turn of this call."""
        return call in self._active

    async def take(self, call: int, *, again: bool = False) -> None:
        """Wait for the turn of a call, in the order of asking for it.

        Args:
            call: the call.
            again: whether it had its turn before; it is then let in, however many wait.

        Raises:
            TooManyQueued: too many wait.
        """
        if self._several or not (self._active or self._queue):
            self._active.add(call)
            return
        if len(self._queue) >= MAX_QUEUED and not again:
            raise TooManyQueued
        entry = (call, anyio.Event())
        self._queue.append(entry)
        try:
            await entry[1].wait()
        except BaseException:
            if entry in self._queue:
                self._queue.remove(entry)
            else:
                self.leave(call)
            raise

    def leave(self, call: int) -> None:
        """The call has no turn any more: it waits for a person, or is over."""
        self._active.discard(call)
        if self._queue and not self._active:
            following, its_turn = self._queue.popleft()
            self._active.add(following)
            its_turn.set()
