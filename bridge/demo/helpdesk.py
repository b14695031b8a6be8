"""The help desk: an MCP server of tools, prompts and resources that ask. Each asks first and acts afterwards."""

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
    desk: Desk | None = None,
    base_url: str = "http://127.0.0.1:8000",
    **options: Any,
) -> Bridge:
    """Make a help desk of its own.

    Args:
        store: where sessions and open questions live; see `Bridge`.
        keys: what seals `requestState`; see `Bridge`.
        desk: what it remembers; by default a new one.
        base_url: where users reach its pages: see `HelpDeskApp`.
        options: see `Options`.
    """
    desk = Desk() if desk is None else desk
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
    add_reading(bridge, desk)
    add_tickets(bridge, desk)
    add_refunding(bridge, desk)
    add_deploying(bridge, desk)
    add_connecting(bridge, desk, base_url)
    add_prompts(bridge, desk)
    return bridge


bridge = make()
