"""The calls that are suspended in this process, driven from others: this process does as their orders say.

Who drives a call may be lost meanwhile: then nobody wants it any more, and its server is told. The other side is
`elsewhere`.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import msgspec

from bridge.errors import StoreError
from bridge.node import LOOK_SECONDS
from bridge.protocol.messages import INTERNAL_ERROR
from bridge.upstreams.base import Call, Failed, Hold, Outcome, Stopped, Surroundings
from bridge.upstreams.holds import Holds
from bridge.upstreams.live import Live
from bridge.upstreams.orders import Asks, Cancel, Event, Gone, GoOn, Keep, Logged, Over, Post, Progressed

__all__ = ["Attending"]

_HEAR_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 1.0
_log = logging.getLogger("bridge.upstream")


class _Driven(msgspec.Struct):
    """A call that another node drives, or has left suspended at its questions for the moment."""

    driver: str
    node: str
    scope: anyio.CancelScope
    hold: Hold | None = None


class _FarOutlet:
    """What a call says meanwhile, for its client at another node; see `Outlet`."""

    def __init__(self, report: Callable[[Event], Awaitable[None]], order: GoOn) -> None:
        self._report = report
        self.wants_progress = order.wants_progress
        self.log_level = order.log_level

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `Outlet`."""
        if self.wants_progress:
            await self._report(Progressed(progress, total, message))

    async def waiting(self) -> None:
        """See `Outlet`: whoever asks the user says so."""

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """See `Outlet`."""
        if self.log_level is not None:
            await self._report(Logged(level, data, logger))

    async def leave(self) -> None:
        """See `Outlet`: its stream is another node's."""


class Attending:
    """Serves the orders of other nodes.

    Args:
        around: this process, and what it shares with others.
        holds: the calls that are suspended here.
        run: goes on with one of them.
    """

    def __init__(self, around: Surroundings, holds: Holds[Live], run: Callable[[Call], Awaitable[Outcome]]) -> None:
        self._around = around
        self._post = Post(around.store)
        self._holds = holds
        self._run = run
        self._driven: dict[str, _Driven] = {}
        self._stirred = anyio.Event()

    def forget(self, call_id: str) -> None:
        """This process itself goes on with a call."""
        self._driven.pop(call_id, None)

    async def serve(self) -> None:
        """Do as other nodes say, for as long as the process serves."""
        orders = self._post.orders(self._around.node_id)
        while True:
            try:
                entries = await orders.next(_HEAR_SECONDS)
            except StoreError as error:
                _log.warning("the orders of other nodes are not heard at the moment: %s", error)
                await anyio.sleep(_RETRY_SECONDS)
                continue
            for entry in entries:
                await self._obey(entry.value)

    async def _obey(self, said: bytes) -> None:
        try:
            order = Post.read_order(said)
        except msgspec.MsgspecError as error:
            # A node of another version: its call is lost to it, and others are not.
            _log.warning("an order of another node cannot be read: %s", error)
            return
        if isinstance(order, GoOn):
            self._around.spawn(self._go_on, order)
        else:
            await self._leave(order)

    async def watch(self) -> None:
        """End the calls whose drivers are lost, for as long as the process serves."""
        while True:
            if not self._driven:
                self._stirred = anyio.Event()
                await self._stirred.wait()
            await anyio.sleep(LOOK_SECONDS)
            for node in {driven.node for driven in self._driven.values()}:
                if not await self._is_alive(node):
                    for call_id in [name for name, driven in self._driven.items() if driven.node == node]:
                        await self._end(call_id)

    async def _is_alive(self, node: str) -> bool:
        try:
            return await self._around.is_alive(node)
        except StoreError:
            return True

    async def _go_on(self, order: GoOn) -> None:
        async def report(event: Event) -> None:
            await self._report(order.driver, event)

        live = self._holds.find(order.call_id)
        if live is None:
            return await report(Gone())
        call = msgspec.structs.replace(live.call, journal=order.journal, outlet=_FarOutlet(report, order), http=None)
        driven = self._driven[order.call_id] = _Driven(order.driver, order.node, anyio.CancelScope())
        self._stirred.set()
        outcome: Outcome | None = None
        try:
            with driven.scope:
                outcome = await self._run(call)
        finally:
            if not isinstance(outcome, Stopped) and self._driven.get(order.call_id) is driven:
                del self._driven[order.call_id]
        if isinstance(outcome, Stopped):
            driven.hold = outcome.hold
            if outcome.hold is not None:
                outcome.hold.on_over = lambda: self._around.spawn(report, Over())
            await report(Asks(outcome.questions, call.journal, outcome.hold is not None))
        elif outcome is not None:
            await report(outcome)
        return None

    async def _report(self, driver: str, event: Event) -> None:
        try:
            await self._post.report(driver, event)
        except StoreError as error:
            _log.warning("another node did not hear of its call: %s", error)
        except ValueError as error:
            _log.error("what a call came to cannot be sent to another node: %s", error)
            text = "The result cannot be sent; its details are in the server's log"
            await self._post.report(driver, Failed(INTERNAL_ERROR, text))

    async def _leave(self, order: Keep | Cancel) -> None:
        driven = self._driven.get(order.call_id)
        if driven is None or driven.driver != order.driver:
            return  # it is somebody else's by now
        if isinstance(order, Cancel):
            await self._end(order.call_id)
        elif driven.hold is not None:
            del self._driven[order.call_id]
            driven.hold.keep(order.until)

    async def _end(self, call_id: str) -> None:
        """Nobody wants a call any more."""
        driven = self._driven.pop(call_id)
        driven.scope.cancel()
        if driven.hold is not None:
            await driven.hold.cancel()
