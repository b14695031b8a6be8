"""One session with a server of `mcp` 1.x in this process, as a `Wire`: in-memory streams, and a task that serves them.

Whatever the server sends, it sends from the task of the handler that does, so that its request is known.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint
from anyio.streams.memory import MemoryObjectSendStream

from bridge.errors import UpstreamUnreachable
from bridge.protocol.messages import Json, Response
from bridge.upstreams.sdk.living import end
from bridge.upstreams.sdk.scopes import connection_of
from bridge.upstreams.sdk.v1_messages import from_sdk, related_id, to_sdk
from bridge.upstreams.wires import Closed, Receive

__all__ = ["WireV1"]

_auth: Final = import_module("mcp.server.auth.middleware.auth_context")

_GRACE_SECONDS: Final = 5.0
_SETTLING_STEPS: Final = 4
"""How many steps of the event loop a server takes between reading a request and running its handler."""

_log = logging.getLogger("bridge.upstream")


class _Outgoing:
    """What the server takes for its write stream.

    Args:
        receive: takes what the server sends.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._one_by_one = anyio.Lock()
        self._is_closed = False

    async def send(self, sent: Any) -> None:
        if self._is_closed:
            raise anyio.ClosedResourceError
        message = from_sdk(sent)
        related = message.id if isinstance(message, Response) else related_id(sent)
        async with self._one_by_one:
            try:
                await self._receive(message, related)
            except Exception:
                # Whatever fails on this side is none of the handler that happens to send.
                _log.exception("a message of a server got lost")

    async def aclose(self) -> None:
        self._is_closed = True

    async def __aenter__(self) -> "_Outgoing":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class WireV1:
    """A `Wire` that is a session of a server object.

    Args:
        low: the low-level server.
        name: how to call it in a log.
        context: the context variables that its handlers see.
    """

    names_requests = True

    def __init__(self, low: Any, name: str, context: contextvars.Context) -> None:
        self._low = low
        self._name = name
        self._context = context
        self._incoming: MemoryObjectSendStream[Any] | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self, receive: Receive, closed: Closed) -> None:
        """See `Wire`."""
        incoming, served = anyio.create_memory_object_stream[Any](0)
        options = self._low.create_initialization_options()
        serving = self._low.run(served, _Outgoing(receive), options)
        self._incoming = incoming
        self._task = asyncio.get_running_loop().create_task(
            serving, name=f"a session of {self._name}", context=self._context
        )
        self._task.add_done_callback(_told(closed))

    async def send(self, message: Json, http: Mapping[str, Any] | None = None) -> None:
        """See `Wire`."""
        if self._incoming is None:
            raise UpstreamUnreachable(f"the session of {self._name} is over")
        request = connection_of(http)
        if request is not None:
            self._authenticate(request.scope.get("user"))
        if message.get("method") == "notifications/cancelled":
            # The SDK forgets to cancel a handler that it has not started yet.
            for _ in range(_SETTLING_STEPS):
                await checkpoint()
        try:
            await self._incoming.send(to_sdk(message, request))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise UpstreamUnreachable(f"the session of {self._name} is over") from None

    async def initialized(self, revision: str) -> None:
        """See `Wire`."""

    async def listen(self) -> None:
        """See `Wire`."""

    async def aclose(self) -> None:
        """See `Wire`."""
        if self._task is None or self._incoming is None:
            return
        task, incoming = self._task, self._incoming
        self._task = self._incoming = None
        with anyio.CancelScope(shield=True):
            # What was cancelled just now must hear of that, and not of a connection that is closed.
            for _ in range(_SETTLING_STEPS):
                await checkpoint()
            await incoming.aclose()
        await end(task, grace_seconds=_GRACE_SECONDS)

    def _authenticate(self, user: object) -> None:
        """Let `get_access_token()` find the user, who is the same throughout a session, but whose token changes."""
        variable = _auth.auth_context_var
        if isinstance(user, _auth.AuthenticatedUser) and self._context.get(variable) is not user:
            self._context.run(variable.set, user)


def _told(closed: Closed) -> Callable[["asyncio.Task[None]"], None]:
    def tell(task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        closed("the server has ended the session" if error is None else f"the server failed: {error!r}")

    return tell
