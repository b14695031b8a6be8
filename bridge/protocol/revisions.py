"""The revisions of the protocol, and the one table of what differs between them.

`if revision >= …` appears nowhere: a revision is an object, and what it can hold is a field of that object.
Source: https://modelcontextprotocol.io/specification (the schema of each revision).
"""

from enum import Enum
from typing import Final

import msgspec

__all__ = ["LATEST_LEGACY", "LEGACY", "MODERN", "REVISIONS", "Era", "Revision", "negotiate"]


class Era(Enum):
    """How a client and a server know each other: by a session, or by what each request says."""

    LEGACY = "legacy"
    MODERN = "modern"


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One revision, and what its messages can hold.

    `tool_fields`, `definition_fields` (of prompts, resources and templates), `info_fields` and `server_capabilities`
    name the properties that the revision's schema defines there; what is not named is not sent.
    """

    name: str
    era: Era
    tool_fields: frozenset[str]
    definition_fields: frozenset[str]
    info_fields: frozenset[str]
    server_capabilities: frozenset[str]
    structured_content: bool = True
    """Results may hold `structuredContent` (before it: only `content`)."""
    structured_scalars: bool = False
    """`structuredContent` may be any JSON value; elsewhere it must be an object."""
    content_meta: bool = True
    """Content, resources and prompts may hold `_meta`."""
    resource_links: bool = True
    audio: bool = True
    icons: bool = False
    """Definitions and links may have icons."""
    rich_content: bool = False
    """Content blocks need no shaping: every kind and field of them is known."""
    progress_message: bool = True
    form_elicitation: bool = False
    """A client of this revision can say that it shows forms."""
    url_elicitation: bool = False
    """A client of this revision can say that it opens URLs."""
    url_ids: bool = False
    """A URL question has an `elicitationId`."""
    rich_forms: bool = False
    """A form may hold `mode`, defaults, titled choices (`oneOf`) and choices of several (arrays)."""
    rich_sampling: bool = False
    """What is sampled may use tools, and a message may hold several blocks."""
    batches: bool = False
    priming_events: bool = False
    """A stream starts with an event that has an id and no data, so that it can be resumed at once."""


_TOOL_2024: Final = frozenset({"name", "description", "inputSchema"})
_TOOL_2025_03: Final = _TOOL_2024 | {"annotations"}
_TOOL_2025_06: Final = _TOOL_2025_03 | {"title", "outputSchema", "_meta"}
_DEFINITION_2024: Final = frozenset(
    {"name", "description", "arguments", "uri", "uriTemplate", "mimeType", "size", "annotations"}
)
_DEFINITION_2025_06: Final = _DEFINITION_2024 | {"title", "_meta"}
_INFO_2024: Final = frozenset({"name", "version"})
_INFO_2025_06: Final = _INFO_2024 | {"title"}
_INFO_2025_11: Final = _INFO_2025_06 | {"icons", "description", "websiteUrl"}
_CAPABILITIES_2024: Final = frozenset({"experimental", "logging", "prompts", "resources", "tools"})
_CAPABILITIES_2025: Final = _CAPABILITIES_2024 | {"completions"}

_TABLE: Final = (
    Revision(
        name="2024-11-05",
        era=Era.LEGACY,
        tool_fields=_TOOL_2024,
        definition_fields=_DEFINITION_2024,
        info_fields=_INFO_2024,
        server_capabilities=_CAPABILITIES_2024,
        structured_content=False,
        content_meta=False,
        resource_links=False,
        audio=False,
        progress_message=False,
    ),
    Revision(
        name="2025-03-26",
        era=Era.LEGACY,
        tool_fields=_TOOL_2025_03,
        definition_fields=_DEFINITION_2024,
        info_fields=_INFO_2024,
        server_capabilities=_CAPABILITIES_2025,
        structured_content=False,
        content_meta=False,
        resource_links=False,
        batches=True,
    ),
    Revision(
        name="2025-06-18",
        era=Era.LEGACY,
        tool_fields=_TOOL_2025_06,
        definition_fields=_DEFINITION_2025_06,
        info_fields=_INFO_2025_06,
        server_capabilities=_CAPABILITIES_2025,
        form_elicitation=True,
    ),
    Revision(
        name="2025-11-25",
        era=Era.LEGACY,
        tool_fields=_TOOL_2025_06 | {"icons", "execution"},
        definition_fields=_DEFINITION_2025_06 | {"icons"},
        icons=True,
        rich_content=True,
        info_fields=_INFO_2025_11,
        server_capabilities=_CAPABILITIES_2025 | {"tasks"},
        form_elicitation=True,
        url_elicitation=True,
        url_ids=True,
        rich_forms=True,
        rich_sampling=True,
        priming_events=True,
    ),
    Revision(
        name="2026-07-28",
        era=Era.MODERN,
        tool_fields=_TOOL_2025_06 | {"icons"},
        definition_fields=_DEFINITION_2025_06 | {"icons"},
        icons=True,
        rich_content=True,
        info_fields=_INFO_2025_11,
        server_capabilities=_CAPABILITIES_2025 | {"extensions"},
        structured_scalars=True,
        form_elicitation=True,
        url_elicitation=True,
        rich_forms=True,
        rich_sampling=True,
    ),
)

REVISIONS: Final[dict[str, Revision]] = {revision.name: revision for revision in _TABLE}
"""Every revision that the bridge speaks, oldest first."""

LEGACY: Final[dict[str, Revision]] = {name: r for name, r in REVISIONS.items() if r.era is Era.LEGACY}
"""The revisions that are reached by `initialize`."""

LATEST_LEGACY: Final = LEGACY["2025-11-25"]

MODERN: Final = REVISIONS["2026-07-28"]
"""The revision whose requests stand alone."""


def negotiate(requested: object) -> Revision:
    """Choose the revision of a session from what its `initialize` asked for.

    A known legacy revision is kept; anything else gets the newest legacy one.
    Source: basic/lifecycle#version-negotiation of 2025-11-25.
    """
    return LEGACY.get(requested, LATEST_LEGACY) if isinstance(requested, str) else LATEST_LEGACY
