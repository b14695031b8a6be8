"""Every exception of the library.

    BridgeError
    ├── LocalError                    the author or the operator broke a rule
    │   ├── ConfigurationError        an option, target or file that cannot work (also a ValueError)
    │   ├── MissingExtraError         an optional part without its package (also an ImportError)
    │   ├── QuestionError             a question that cannot be asked as it is written
    │   └── ReplayError               a tool that did not run as its journal says it must
    ├── RemoteError                   the peer broke a rule
    │   ├── ProtocolError             a message that is not what its revision says
    │   ├── UpstreamLost              the server behind the bridge was cut off; a call may have run
    │   └── UpstreamUnreachable       the server behind the bridge did not get the request
    ├── StoreError
    │   ├── StoreFull                 the store has no room left; nothing was written
    │   └── StoreUnavailable          the store cannot be reached; nothing is known of what it holds
    └── ToolError                     what a tool says to the model: a result with `isError`

Suspension is no error and stands apart: `Suspended` is a `BaseException`, so that an author's
`except Exception` does not swallow it. Only the loop in `calls.py` catches it.
"""

__all__ = [
    "BridgeError",
    "ConfigurationError",
    "LocalError",
    "MissingExtraError",
    "ProtocolError",
    "QuestionError",
    "RemoteError",
    "ReplayError",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "Suspended",
    "ToolError",
    "UpstreamLost",
    "UpstreamUnreachable",
]


class BridgeError(Exception):
    """The root of what this library raises."""


class LocalError(BridgeError):
    """The author of a tool, or who runs the bridge, broke a rule."""


class ConfigurationError(LocalError, ValueError):
    """An option, target or file that cannot work. The text says which, and what would."""


class MissingExtraError(LocalError, ImportError):
    """An optional part was used without its package.

    Args:
        part: what was asked for, as the user would call it.
        extra: the extra of this distribution that brings it.
    """

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(f"{part} needs an extra package: pip install 'mcp-session-bridge[{extra}]'")
        self.part = part
        self.extra = extra


class QuestionError(LocalError):
    """A question that cannot be asked as it is written, such as one key for two questions."""


class ReplayError(LocalError):
    """A tool that did not run as its journal says it must, such as one that swallowed its suspension."""


class RemoteError(BridgeError):
    """The peer broke a rule."""


class ProtocolError(RemoteError):
    """A message that is not what its revision says.

    Args:
        code: the JSON-RPC error code that answers it.
        message: what was wrong, what was expected.
        data: the JSON value that goes with it, or None.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class UpstreamUnreachable(RemoteError):
    """The server behind the bridge did not get the request: nothing of it has run. The text says why."""


class UpstreamLost(RemoteError):
    """The server behind the bridge was cut off before it answered: the request may have run. The text says how."""


class StoreError(BridgeError):
    """A store failed."""


class StoreFull(StoreError):
    """The store has no room left: nothing was written, and nothing was evicted to make room."""


class StoreUnavailable(StoreError):
    """The store cannot be reached. What it holds is unknown, so nothing may be taken for absent."""


class ToolError(BridgeError):
    """What a tool says to the model: its text becomes a result with `isError`.

    Args:
        message: the text, which the model reads.
        code: one word for programs, such as `NOT_FOUND`; it stands in the result's `_meta`.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Suspended(BaseException):
    """A tool has stopped at a question that has no answer yet. Let it pass; the loop catches it."""
