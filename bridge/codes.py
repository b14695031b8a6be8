"""Every code that a client of the bridge can meet: when it comes, and what to do.

Three tables, since there are three places where a call can fail: in the result of a tool, as a JSON-RPC error, and as
an HTTP status. `docs/errors.md` is made of them and of `errors.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["HTTP_STATUSES", "RESULT_CODES", "RPC_CODES", "Code"]


class Code(NamedTuple):
    """What is known of a code.

    Args:
        name: what it is called.
        comes: when it comes.
        remedy: what to do.
    """

    name: str
    comes: str
    remedy: str


RESULT_CODES: Final[Mapping[str, Code]] = MappingProxyType(
    {
        "INVALID_INPUT": Code(
            "Invalid input",
            "The arguments of a tool, or the answer to its question, do not fit the schema. The tool did not get past "
            "that question; the text has one line for each field that is wrong.",
            "Send a corrected answer to the same question: it is still open, in the same round or under the same "
            "`elicitId`. For arguments: correct them and call again. To have users asked again instead, say "
            '`on_invalid="reask"`.',
        ),
        "ELICITATION_DISABLED": Code(
            "Asking is switched off",
            "A tool asks its user, and the server was made without elicitation.",
            "Make the server with `Bridge(..., elicitation=True)`.",
        ),
        "ELICITATION_NOT_SUPPORTED": Code(
            "This client cannot be asked",
            "A tool asks, and no way leads to the user of this client: the fallback is off, a model may not pass "
            "consent on, too many questions are open in the session, or the client lacks sampling or roots. The tool "
            "did not get past its question.",
            'The text says which. Use a client that shows forms, or set `fallback="result"` or '
            '`chat_consent="allow"`; answer or cancel what is open.',
        ),
        "ELICITATION_TIMEOUT": Code(
            "Nobody has answered",
            "A question over a session had no answer in time: either it was withdrawn (`PushLimits.answer_seconds`), "
            "or its form stays open though the call has ended (`soft_deadline_seconds`).",
            "Call the tool again: with the same arguments where the form stays open, so that its answer counts.",
        ),
        "INTERRUPTED": Code(
            "Cut off in the middle",
            "The call went on with an answer and was cut off: it was cancelled, its client left, or its process ended; "
            "or the server behind the bridge was cut off while it ran, or the process is gone in which the call was "
            "suspended at its question. It may have partly run, and it was not run again.",
            "Look at what it did before calling it again. A tool that may run twice says so: `readOnlyHint` or "
            "`idempotentHint`; it is then run again.",
        ),
        "UPSTREAM_UNREACHABLE": Code(
            "The server behind the bridge is away",
            "A wrapped server did not get the call: it cannot be reached, or refused it unread. Nothing of it has run.",
            "Call again once the server is back. The text says what came instead of an answer.",
        ),
    }
)
"""What stands in a tool result's `_meta["mcp-session-bridge/code"]` and at the head of its text."""

RPC_CODES: Final[Mapping[int, Code]] = MappingProxyType(
    {
        -32700: Code(
            "Parse error",
            "The body is no JSON, is nested too deep, or holds what JSON text must not.",
            "Send one JSON-RPC message in UTF-8.",
        ),
        -32600: Code(
            "Invalid request",
            "JSON that is no JSON-RPC message, a batch, a session header that is missing or names an unsupported "
            "version, a header sent twice, an id that is in use, or anything else that the HTTP status names.",
            "The message says what is wrong.",
        ),
        -32601: Code(
            "Method not found",
            "The revision or the server does not have this method; `initialize` and `ping` among them in 2026-07-28.",
            "See the server's capabilities.",
        ),
        -32602: Code(
            "Invalid params",
            "An unknown tool, prompt, or reference; a resource that is not there (2026-07-28); a cursor or `_meta` "
            "that is none; `requestState` that is broken, expired, or of another call; a prompt or resource that "
            "raised `ToolError`, or whose user's answer does not fit.",
            "Correct the request. For `requestState`: send the call again without it.",
        ),
        -32603: Code(
            "Internal error",
            "The server failed (its log has the details), its store is away, or a prompt or resource cannot get its "
            "question answered: through the chat, for one, only a tool is.",
            "With HTTP 503: try again after `Retry-After`. Else see the message, or the server's log.",
        ),
        -32001: Code(
            "Session not found",
            "The session has ended or expired, or was never this caller's.",
            "Send `initialize` for a new one.",
        ),
        -32002: Code(
            "Resource not found",
            "A legacy session reads a resource that is not there; 2026-07-28 has -32602 for it.",
            "List the resources and templates.",
        ),
        -32020: Code(
            "Header mismatch",
            "A modern request's `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` or `Mcp-Param-*` is missing, or says "
            "something else than its body.",
            "Send the headers as the body has it; a proxy may have dropped or changed them.",
        ),
        -32021: Code(
            "Missing client capability",
            "A modern call needs something of the client that it does not declare; `data.requiredCapabilities` names "
            "it. The tool did not get past its question.",
            "Declare it in `_meta`, or use a client that has it. An operator can send such clients through the chat: "
            "`Options.client_rules`.",
        ),
        -32022: Code(
            "Unsupported protocol version",
            "A request without a session names a revision other than 2026-07-28.",
            "Choose one of `data.supported`. The earlier ones are reached by `initialize`.",
        ),
        -32042: Code(
            "Pages have to be opened first",
            "A server of 2025-11-25 behind the bridge wants pages opened, and does not say which. Where it does, the "
            "user is asked to open them instead, and the call is made again.",
            "See that server: its error must name them in `data.elicitations`.",
        ),
    }
)
"""JSON-RPC error codes. Source: basic/index of each revision."""

HTTP_STATUSES: Final[Mapping[int, Code]] = MappingProxyType(
    {
        202: Code(
            "Accepted",
            "A notification, or the answer to a question over a session, was taken. Also the empty reply to a request "
            "that its client has cancelled.",
            "Nothing: there is no body.",
        ),
        204: Code("No Content", "A DELETE has ended the session.", "Nothing."),
        400: Code(
            "Bad Request",
            "The message could not be taken; the JSON-RPC error in the body says why.",
            "See its code above.",
        ),
        401: Code(
            "Unauthorized",
            "`authenticate` does not know who is asking.",
            "Get a token as `WWW-Authenticate` says.",
        ),
        403: Code(
            "Forbidden",
            "An `Origin` that is not allowed, or a principal who may not.",
            "Add the origin to `allowed_origins`, or ask for the right.",
        ),
        404: Code(
            "Not Found",
            "Another path than the endpoint's; a session that is not found; a modern method that is not there.",
            "Check the URL (`/mcp` by default); for a session, send `initialize`.",
        ),
        405: Code(
            "Method Not Allowed",
            "Another verb than POST, or GET and DELETE without a session.",
            "POST the message.",
        ),
        406: Code(
            "Not Acceptable",
            "`Accept` allows neither JSON nor an event stream; or a GET does not allow an event stream.",
            "Send `Accept: application/json, text/event-stream`.",
        ),
        413: Code("Content Too Large", "The body is larger than the message says.", "Send less."),
        415: Code(
            "Unsupported Media Type",
            "`Content-Type` is not `application/json`.",
            "Send `Content-Type: application/json`.",
        ),
        421: Code(
            "Misdirected Request",
            "A `Host` that is not served here: a guard against DNS rebinding.",
            "Add it to `allowed_hosts`.",
        ),
        503: Code(
            "Service Unavailable",
            "The store is away, the process is shutting down, or there are too many sessions.",
            "Try again after `Retry-After`. For sessions: see `SessionLimits`.",
        ),
    }
)
"""HTTP statuses, apart from 200. On a live session the error of one request rides 200."""
