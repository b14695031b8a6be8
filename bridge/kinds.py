"""The kinds of client that a server has to do with, each defined once: for `check`, the testing kit and the pages.

They are what clients in the field declare, not every combination that a revision allows.
"""

from typing import Final

import msgspec

from bridge.protocol.clients import ClientProfile
from bridge.protocol.messages import Json
from bridge.protocol.revisions import REVISIONS, Revision

__all__ = ["KINDS", "ClientKind", "kind_named"]


class ClientKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of client.

    Args:
        name: one word for it, in commands, ids of tests and JSON.
        title: a short text for people.
        revision: the name of the revision that it speaks.
        capabilities: what it declares, as `initialize` or `_meta` holds it.
    """

    name: str
    title: str
    revision: str
    capabilities: Json

    @property
    def speaks(self) -> Revision:
        """The revision as an object."""
        return REVISIONS[self.revision]

    @property
    def info(self) -> Json:
        """What a client of this kind calls itself here: a `clientInfo`."""
        return {"name": self.name, "version": "1"}

    @property
    def profile(self) -> ClientProfile:
        """The kind as a client profile, with nobody in particular behind it."""
        return ClientProfile(self.speaks, self.capabilities, self.info)


KINDS: Final = (
    ClientKind(
        name="modern-forms",
        title="modern with forms",
        revision="2026-07-28",
        capabilities={"elicitation": {"form": {}}},
    ),
    ClientKind(name="modern", title="modern without forms", revision="2026-07-28", capabilities={}),
    ClientKind(
        name="2025-11-25-forms-urls",
        title="2025-11-25 with forms and URLs",
        revision="2025-11-25",
        capabilities={"elicitation": {"form": {}, "url": {}}},
    ),
    ClientKind(
        name="2025-06-18-forms",
        title="2025-06-18 with forms",
        revision="2025-06-18",
        capabilities={"elicitation": {}},
    ),
    ClientKind(name="2025-06-18-chat", title="2025-06-18, chat only", revision="2025-06-18", capabilities={}),
    ClientKind(name="2025-03-26", title="2025-03-26", revision="2025-03-26", capabilities={}),
    ClientKind(name="2024-11-05", title="2024-11-05", revision="2024-11-05", capabilities={}),
)
"""Every kind, the newest first. One URL serves them all."""


def kind_named(name: str) -> ClientKind:
    """Find a kind by its name.

    Raises:
        KeyError: there is none of that name; the text lists those that there are.
    """
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise KeyError(f"no client kind is called {name!r}; there are {', '.join(kind.name for kind in KINDS)}")
