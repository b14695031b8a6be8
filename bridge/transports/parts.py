"""What a transport is given: the eras and what they stand on. It knows no Bridge."""

from collections.abc import Awaitable, Callable

import msgspec

from bridge.eras.ports import Legacy, Modern
from bridge.node import Node
from bridge.ownership import Ownership
from bridge.publishing import Publisher
from bridge.server import Options
from bridge.sessions import Sessions

__all__ = ["Parts"]


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """A bridge, put together.

    Args:
        node: the process.
        modern: answers modern requests.
        legacy: answers the messages of sessions.
        sessions: finds and opens sessions.
        ownership: whose the requests of sessions are.
        publisher: where streams hear of changes.
        options: how the bridge is set up.
        metrics: what `/metrics` says: its content type, and what makes the page; None where it is not served.
    """

    node: Node
    modern: Modern
    legacy: Legacy
    sessions: Sessions
    ownership: Ownership
    publisher: Publisher
    options: Options
    metrics: tuple[str, Callable[[], Awaitable[bytes]]] | None = None
