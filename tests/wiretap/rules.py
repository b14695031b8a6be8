"""What holds for a message whatever a schema says: the JSON-RPC envelope, and what separates the eras."""

from typing import Any, Literal

Kind = Literal["request", "notification", "result", "error"]
Direction = Literal["server", "client"]
"""Who sent the message."""

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*LEGACY, MODERN)
BATCHES = "2025-03-26"

OPEN = frozenset(
    {"_meta", "arguments", "structuredContent", "inputSchema", "outputSchema", "metadata", "experimental"}
    | {"extensions", "data", "input"}
)
"""Properties whose inside belongs to someone else: a revision names some of it and forbids none of it."""

MODERN_ENVELOPE = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

_ENVELOPES: dict[Kind, tuple[frozenset[str], frozenset[str]]] = {
    # kind: (all members, those that may be absent). An error to a message whose id could not be read has none.
    "request": (frozenset({"jsonrpc", "id", "method", "params"}), frozenset({"params"})),
    "notification": (frozenset({"jsonrpc", "method", "params"}), frozenset({"params"})),
    "result": (frozenset({"jsonrpc", "id", "result"}), frozenset()),
    "error": (frozenset({"jsonrpc", "id", "error"}), frozenset({"id"})),
}
_MODERN_RESULT_FIELDS = frozenset({"resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"})
_ASKING_METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
_MODERN_CODES = frozenset({-32020, -32021, -32022})
_RETIRED_CODES = frozenset({-32002, -32042})


def kind_of(message: dict[str, Any]) -> Kind | None:
    """The kind of JSON-RPC message that this sets out to be."""
    if "method" in message:
        return "request" if "id" in message else "notification"
    if "error" in message:
        return "error"
    return "result" if "result" in message else None


def body_of(kind: Kind, message: dict[str, Any]) -> Any:
    """The part that a revision defines, without the envelope."""
    if kind in ("result", "error"):
        return message[kind]
    return {name: message[name] for name in ("method", "params") if name in message}


def envelope_problems(kind: Kind, message: dict[str, Any]) -> list[str]:
    """What breaks JSON-RPC 2.0, the same under every revision."""
    members, optional = _ENVELOPES[kind]
    problems = [f"{name}: no member of a JSON-RPC {kind}" for name in sorted(set(message) - members)]
    problems += [f"{name}: missing" for name in sorted(members - optional - set(message))]
    if message.get("jsonrpc", "2.0") != "2.0":
        problems.append(f"jsonrpc: {message['jsonrpc']!r} is not '2.0'")
    if "id" in message and (not isinstance(message["id"], str | int) or isinstance(message["id"], bool)):
        problems.append(f"id: {message['id']!r} is neither a string nor an integer")
    if "method" in message and not isinstance(message["method"], str):
        problems.append(f"method: {message['method']!r} is not a string")
    if kind in ("result", "error") and not isinstance(message[kind], dict):
        problems.append(f"{kind}: not an object")
    elif not isinstance(message.get("params", {}), dict):
        problems.append("params: not an object")
    elif kind == "error":
        problems += _error_problems(message["error"])
    return problems


def _error_problems(error: dict[str, Any]) -> list[str]:
    problems = [f"error.{name}: no member of an error" for name in sorted(set(error) - {"code", "message", "data"})]
    if not isinstance(error.get("code"), int) or isinstance(error.get("code"), bool):
        problems.append("error.code: not an integer")
    if not isinstance(error.get("message"), str):
        problems.append("error.message: not a string")
    return problems


def era_problems(kind: Kind, body: Any, *, revision: str, method: str | None, direction: Direction) -> list[str]:
    """What the prose of an era demands, or keeps from the other era. Only the server's side has such rules."""
    if direction == "client":
        return []
    if kind == "error":
        return _code_problems(body.get("code"), revision)
    if kind != "result":
        return []
    if revision != MODERN:
        return [f"result.{name}: a field of {MODERN}" for name in sorted(_MODERN_RESULT_FIELDS & set(body))]
    return _modern_result_problems(body, method)


def _modern_result_problems(result: dict[str, Any], method: str | None) -> list[str]:
    problems = []
    meta = result.get("_meta")
    if not isinstance(meta, dict) or SERVER_INFO not in meta:
        problems.append(f"result._meta: no {SERVER_INFO}")
    result_type = result.get("resultType")
    if result_type not in ("complete", "input_required"):
        problems.append(f"result.resultType: {result_type!r} is neither 'complete' nor 'input_required'")
    if result_type == "input_required":
        if method is not None and method not in _ASKING_METHODS:
            problems.append(f"result.resultType: {method} cannot ask")
        if not {"inputRequests", "requestState"} & set(result):
            problems.append("result: neither inputRequests nor requestState")
    return problems


def _code_problems(code: Any, revision: str) -> list[str]:
    if revision != MODERN:
        return [f"error.code: {code} is a code of {MODERN}"] if code == -32021 else []
    if code in _RETIRED_CODES:
        return [f"error.code: {code} was retired before {MODERN}"]
    reserved = isinstance(code, int) and -32099 <= code <= -32020
    return [f"error.code: {code} is reserved and undefined"] if reserved and code not in _MODERN_CODES else []
