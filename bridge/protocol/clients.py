"""What one client is: built once, at the edge, and handed on as an object."""

import msgspec

from bridge.protocol.messages import Json
from bridge.protocol.revisions import Revision

__all__ = ["ANONYMOUS", "ClientProfile", "Principal", "required_capability"]


class Principal(msgspec.Struct, frozen=True):
    """Who is authenticated behind a request. Never token bytes: a refreshed token keeps it.

    Args:
        issuer: who vouches for the subject, such as the URL of an authorization server.
        subject: the issuer's name of the user or machine.
    """

    issuer: str
    subject: str

    @property
    def name(self) -> str:
        """One text that no other principal has, to be part of a key."""
        return f"{len(self.issuer)}:{self.issuer}:{self.subject}" if self.issuer or self.subject else ""


ANONYMOUS = Principal("", "")
"""Everybody, where nothing authenticates."""


class ClientProfile(msgspec.Struct, frozen=True):
    """One client: what it speaks, what it can do, what it calls itself, and who is behind it.

    Args:
        revision: the revision of this request (modern) or of the session (legacy).
        capabilities: the client's capabilities as it declared them.
        info: its `clientInfo`, or an empty object.
        principal: who is authenticated behind it.
    """

    revision: Revision
    capabilities: Json
    info: Json
    principal: Principal = ANONYMOUS

    def declares(self, mode: str) -> bool:
        """Whether the client says that it can be asked in `mode`: `form`, `url`, `sampling` or `roots`.

        An empty `elicitation` means form mode. Source: client/elicitation#capabilities.
        """
        if mode in ("sampling", "roots"):
            return isinstance(self.capabilities.get(mode), dict)
        declared = self.capabilities.get("elicitation")
        if not isinstance(declared, dict):
            return False
        if mode == "url":
            return self.revision.url_elicitation and "url" in declared
        if not self.revision.form_elicitation:
            return False
        return "form" in declared or "url" not in declared or not self.revision.url_elicitation


def required_capability(mode: str) -> Json:
    """The client capability that a mode needs, as -32021 names it."""
    return {mode: {}} if mode in ("sampling", "roots") else {"elicitation": {mode: {}}}
