"""What a test says to questions, and what it gets: questions, results, errors."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from bridge.protocol.messages import Json, encode
from bridge.upstreams.results import CODE_KEY

__all__ = ["Asked", "CallResult", "Handler", "HttpError", "RpcError", "accept", "cancel", "decline"]


class Asked(msgspec.Struct, frozen=True):
    """A question, as a handler gets it.

    Args:
        message: the text for the user.
        schema: the form that was asked, as this client was shown it; empty in URL mode.
        url: the page to open; None in form mode.
        params: all of what was asked.
    """

    message: str
    schema: Json
    url: str | None
    params: Json


def accept(content: Mapping[str, Any] | None = None) -> Json:
    """The answer of a user who filled the form in, or agreed to open a page.

    Args:
        content: the form's fields; None for a page.
    """
    return {"action": "accept"} if content is None else {"action": "accept", "content": dict(content)}


def decline() -> Json:
    """The answer of a user who said no."""
    return {"action": "decline"}


def cancel() -> Json:
    """The answer of a user who closed the question."""
    return {"action": "cancel"}


Handler: TypeAlias = Callable[[Asked], Json | Awaitable[Json]]
"""From a question to an `ElicitResult`: see `accept`, `decline`, `cancel`."""


class RpcError(Exception):
    """A call ended with a JSON-RPC error.

    Args:
        error: its `code`, `message` and `data`.
    """

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class HttpError(AssertionError):
    """What came in reply to a request is no response of an MCP server.

    Args:
        method: the request's method.
        status: the HTTP status.
        body: what came with it.
    """

    def __init__(self, method: str, status: int, body: bytes) -> None:
        super().__init__(f"no response to {method!r}: HTTP {status} {body!r}")
        self.status = status
        self.body = body


class CallResult(msgspec.Struct, frozen=True):
    """What a tool call ended with."""

    raw: Json

    @property
    def is_error(self) -> bool:
        """Whether the tool says that it failed."""
        return self.raw.get("isError") is True

    @property
    def error_code(self) -> str | None:
        """The code of an error of the bridge or of a `ToolError`, such as `INVALID_INPUT`."""
        code = self.raw.get("_meta", {}).get(CODE_KEY)
        return code if isinstance(code, str) else None

    def text(self) -> str:
        """All text of the result."""
        return "\n".join(block["text"] for block in self.raw["content"] if block["type"] == "text")

    def json(self) -> Any:
        """The structured result; where the revision has none, the JSON in the text."""
        if "structuredContent" not in self.raw:
            return msgspec.json.decode(self.text())
        content = self.raw["structuredContent"]
        # What is no object travels wrapped on a legacy session; the text has it as it is.
        if (
            isinstance(content, dict)
            and list(content) == ["result"]
            and self.text() == encode(content["result"]).decode()
        ):
            return content["result"]
        return content
