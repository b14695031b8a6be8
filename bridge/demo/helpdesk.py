"""The help desk: an MCP server of tools, prompts and resources that ask. Each asks first and acts afterwards."""

import time
from collections.abc import Callable
from typing import Any

from bridge import Bridge, KeyRing
from bridge.demo.connecting import add_connecting
from bridge.demo.deploying import add_deploying
from bridge.demo.desk import Desk
from bridge.demo.prompts import add_prompts
from bridge.demo.reading import add_reading
from bridge.demo.refunding import add_refunding
from bridge.demo.tickets import add_tickets
from bridge.stores import Store

__all__ = ["bridge", "make"]


def make(
    *,
    store: Store | str | None = None,
    keys: KeyRing | None = None,
    now: Callable[[], float] = time.time,
    base_url: str = "http://127.0.0.1:8000",
    **options: Any,
) -> Bridge:
    """Make a help desk of its own.

    Args:
        store: where the desk, sessions and open questions live; see `Bridge`.
        keys: what seals `requestState`; see `Bridge`.
        now: the time, in seconds.
        base_url: where users reach its pages: see `HelpDeskApp`.
        options: see `Options`.
    """
    bridge = Bridge(
        "help-desk",
        version="1.0.0",
        title="Help desk",
        instructions="Tools of a help desk. Those that change something ask the user first.",
        elicitation=True,
        store=store,
        keys=keys,
        **options,
    )
    desk = Desk(bridge.store, now, bridge.resource_updated)
    add_reading(bridge, desk)
    add_tickets(bridge, desk)
    add_refunding(bridge, desk)
    add_deploying(bridge, desk)
    add_connecting(bridge, desk, base_url)
    add_prompts(bridge, desk)
    return bridge


bridge = make()
