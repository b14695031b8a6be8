"""Going on with a call that is suspended in another process, through the store that both share.

The answers go there, and what the call reports, asks or comes to comes back. A process that is gone is noticed by its
lease, and what it held is lost. The other side is `attending`.
"""

import logging
from collections.abc import Callable
from typing import Final

import anyio
import msgspec

from bridge.errors import StoreError
from bridge.node import LOOK_SECONDS
from bridge.stores.reader import LogReader
from bridge.upstreams.base import Call, Failed, Finished, Stopped, Surroundings
from bridge.upstreams.orders import Asks, Cancel, Event, Gone, GoOn, Keep, Logged, Order, Over, Post, Progressed

__all__ = ["Elsewhere"]

_TELL_SECONDS: Final = 5.0
_log = logging.getLogger("bridge.upstream")


class Elsewhere:
    """Drives calls that other nodes hold.

    Args:
        around: this process, and what it shares with others.
    """

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._post = Post(around.store)

    async def go_on(self, call: Call) -> Finished | Failed | Stopped | None:
        """Go on with a call where it is suspended.

        Args:
            call: its journal says where, and has the answers.

        Returns:
            What it came to; None where it is not, or no longer, suspended there: the process is gone, or its time is
            over.
        """
        holder = call.journal.held
        if holder == self._around.node_id or not self._around.store.shared or not await self._around.is_alive(holder):
            return None
        driver = self._post.new_driver()
        outlet = call.outlet
        order = GoOn(call.id, driver, self._around.node_id, call.journal, outlet.wants_progress, outlet.log_level)
        events = self._post.events(driver)
        try:
            await self._post.order(holder, order)
            came = await self._came(call, holder, events)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _tell(self._post, holder, Cancel(call.id, driver))
            raise
        if isinstance(came, Finished | Failed):
            call.journal.held = ""
        if not isinstance(came, Asks):
            return came
        for name in came.journal.__struct_fields__:
            setattr(call.journal, name, getattr(came.journal, name))
        hold = _Hold(self._around, self._post, call.id, holder, driver, events) if came.holds else None
        return Stopped(came.questions, hold=hold)

    async def _came(self, call: Call, holder: str, events: LogReader) -> Finished | Failed | Asks | None:
        """Hand on what the call reports, until it ends, asks, or is lost."""
        while True:
            for event in await _next(events, self._around, holder):
                if isinstance(event, Progressed):
                    await call.outlet.progress(event.progress, event.total, event.message)
                elif isinstance(event, Logged):
                    await call.outlet.log(event.level, event.data, event.logger)
                elif isinstance(event, Finished | Failed | Asks):
                    return event
                else:
                    return None


class _Hold:
    """A call that another process holds; see `Hold`."""

    def __init__(
        self, around: Surroundings, post: Post, call_id: str, holder: str, driver: str, events: LogReader
    ) -> None:
        self._around = around
        self._post = post
        self._call_id = call_id
        self._holder = holder
        self._driver = driver
        self._events = events
        self._listening = anyio.CancelScope()
        self._on_over: Callable[[], None] | None = None
        self.is_over = False

    @property
    def on_over(self) -> Callable[[], None] | None:
        """See `Hold`: it is heard of only while somebody wants to know."""
        return self._on_over

    @on_over.setter
    def on_over(self, told: Callable[[], None] | None) -> None:
        self._on_over = told
        self._listening.cancel()
        if told is not None:
            self._listening = anyio.CancelScope()
            self._around.spawn(self._listen, self._listening)

    def keep(self, until: float) -> None:
        """See `Hold`."""
        self.on_over = None
        self._around.spawn(_tell, self._post, self._holder, Keep(self._call_id, self._driver, until))

    async def cancel(self) -> None:
        """See `Hold`."""
        self.on_over = None
        with anyio.CancelScope(shield=True):
            await _tell(self._post, self._holder, Cancel(self._call_id, self._driver))

    async def _listen(self, scope: anyio.CancelScope) -> None:
        with scope:
            while not self.is_over:
                events = await _next(self._events, self._around, self._holder)
                self.is_over = any(isinstance(event, Over | Gone) for event in events)
            if self._on_over is not None:
                self._on_over()


async def _next(events: LogReader, around: Surroundings, holder: str) -> list[Event]:
    """Wait for what happens; `Gone` where the process is lost that could say so."""
    while True:
        entries = await events.next(LOOK_SECONDS)
        if not entries and not await around.is_alive(holder):
            # It may have spoken just before it ended.
            entries = await events.take()
            if not entries:
                return [Gone()]
        if entries:
            return [Post.read_event(entry.value) for entry in entries]


async def _tell(post: Post, holder: str, order: Order) -> None:
    """Tell a process what nobody waits for; where that cannot be, it ends what nobody drives by itself."""
    with anyio.move_on_after(_TELL_SECONDS):
        try:
            await post.order(holder, order)
        except (StoreError, msgspec.MsgspecError) as error:
            _log.warning("node %s was not told to %s: %s", holder, type(order).__name__.lower(), error)
