"""`/healthz` and `/readyz`: whether the process is alive, and whether it can take calls, for what runs and balances it.

They are asked by address and by nobody in particular, so neither `Host` nor a principal is looked at, and they tell no
more than a word. Nothing here knows what is served.
"""

from typing import Any, Final

import anyio

from bridge.errors import StoreError
from bridge.node import Node
from bridge.protocol.messages import encode
from bridge.stores.base import STORE_ID
from bridge.transports.exchange import RETRY_AFTER, Receive, Send, refuse, send_json
from bridge.transports.gate import Refusal

__all__ = ["Health"]

ANSWER_SECONDS: Final = 2.0
"""How long the store may take to answer."""

KNOWN_SECONDS: Final = 1.0
"""How long an answer counts: however often it is asked, the store is asked no oftener."""

_NO_STORE: Final = "the store does not answer"
_METHODS: Final = Refusal(405, "This endpoint takes GET and HEAD", ((b"allow", b"GET, HEAD"),))
_FRESH: Final = (b"cache-control", b"no-store")


class Health:
    """Both endpoints.

    Args:
        node: the process, and its store.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._turn = anyio.Lock()
        self._reason: str | None = None
        self._known_until = 0.0

    async def alive(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve `/healthz`: 200, since somebody answers."""
        await _say(scope, send, None)

    async def ready(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve `/readyz`: 200 where calls can be taken, else 503 with the reason."""
        await _say(scope, send, await self._why_not())

    async def _why_not(self) -> str | None:
        if self._node.closing.is_set():
            return "the process is shutting down"
        async with self._turn:
            if anyio.current_time() >= self._known_until:
                self._reason = await self._ask_store()
                self._known_until = anyio.current_time() + KNOWN_SECONDS
            return self._reason

    async def _ask_store(self) -> str | None:
        with anyio.move_on_after(ANSWER_SECONDS):
            try:
                await self._node.store.get(STORE_ID)
                return None
            except StoreError:
                return _NO_STORE
        return _NO_STORE


async def _say(scope: Any, send: Send, reason: str | None) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        await refuse(send, _METHODS)
    elif reason is None:
        await send_json(send, 200, encode({"status": "ok"}), (_FRESH,))
    else:
        await send_json(send, 503, encode({"status": "unavailable", "reason": reason}), (*RETRY_AFTER, _FRESH))
