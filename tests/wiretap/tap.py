"""`Tap` judges one message at a time and keeps what was wrong; `Conversation` knows what a message answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .models import WireModels
from .rules import (
    BATCHES,
    MODERN,
    MODERN_ENVELOPE,
    REVISIONS,
    SUBSCRIPTION_ID,
    Direction,
    Kind,
    body_of,
    envelope_problems,
    era_problems,
    kind_of,
)
from .schemas import SPEC_FOLDER, ClosedSchemas

_CLOSED = {SPEC_FOLDER: ClosedSchemas(SPEC_FOLDER)} if SPEC_FOLDER else {}


class Tap:
    """Collects what breaks the revision it was sent under.

    Args:
        spec_folder: where `<revision>/schema.json` stand; None leaves the judging to `mcp_types` alone.

    One tap may listen to several apps: the nodes of one server share what it remembers of their sessions.
    """

    def __init__(self, spec_folder: Path | None = SPEC_FOLDER) -> None:
        self.violations: list[str] = []
        self.checked = 0
        self.sessions: dict[str, Conversation] = {}  # by Mcp-Session-Id
        self.endpoints: dict[str, Conversation] = {}  # by the endpoint of HTTP+SSE
        self._oracles: dict[str, ClosedSchemas | WireModels] = {"mcp_types": WireModels()}
        if spec_folder is not None:
            self._oracles["schema"] = _CLOSED.setdefault(spec_folder, ClosedSchemas(spec_folder))

    def check(
        self,
        message: Any,
        *,
        revision: str | None,
        method: str | None,
        direction: Direction = "server",
    ) -> None:
        """Judge one decoded message, or a batch of them.

        Args:
            revision: the revision it leaves under; None where nobody can know: then JSON-RPC only.
            method: of the request that a result answers; None for any. Requests and notifications name their own.
            direction: who sent it.
        """
        if isinstance(message, list):
            self.check_batch(message, revision=revision)
            for entry in message:
                self.check(entry, revision=revision, method=method, direction=direction)
            return
        self.checked += 1
        problems = list(self._problems(message, revision, method, direction))
        if problems:
            self.report(problems, message, revision=revision, method=method)

    def check_batch(self, batch: list[Any], *, revision: str | None) -> None:
        """Judge a batch as such, not its entries."""
        if revision not in (BATCHES, None):
            self.report([f"batches exist in {BATCHES} only"], batch, revision=revision)
        elif not batch:
            self.report(["an empty batch"], batch, revision=revision)

    def report(
        self, problems: list[str], message: Any, *, revision: str | None = None, method: str | None = None
    ) -> None:
        """Keep one violation: what is wrong with what was sent."""
        if isinstance(message, dict) and isinstance(message.get("method"), str):
            method = message["method"]
        lines = [f"[{revision or 'unknown revision'}] {method or 'unknown method'}", *problems]
        self.violations.append("\n  ".join([*lines, f"in {_shown(message)}"]))

    def assert_clean(self) -> None:
        """Raise AssertionError with all violations, if there are any."""
        if self.violations:
            raise AssertionError(f"{len(self.violations)} violations on the wire:\n" + "\n".join(self.violations))

    def _problems(self, message: Any, revision: str | None, method: str | None, direction: Direction) -> Iterator[str]:
        kind = kind_of(message) if isinstance(message, dict) else None
        if kind is None:
            yield "not a JSON-RPC message"
            return
        malformed = envelope_problems(kind, message)
        yield from malformed
        if revision is None or any(problem.startswith(("method:", "params:", kind)) for problem in malformed):
            return
        if revision not in REVISIONS:
            yield f"{revision} is no revision"
            return
        yield from self._revision_problems(kind, message, revision, method, direction)

    def _revision_problems(
        self, kind: Kind, message: dict[str, Any], revision: str, method: str | None, direction: Direction
    ) -> Iterator[str]:
        body, method = body_of(kind, message), message.get("method", method)
        yield from era_problems(kind, body, revision=revision, method=method, direction=direction)
        for name, oracle in self._oracles.items():
            for problem in oracle.problems(kind, body, revision=revision, method=method, direction=direction):
                yield f"{problem} ({name})"


class Asked(NamedTuple):
    """A request of the client; `revision` is None where its session says it."""

    method: str | None
    revision: str | None


class Conversation:
    """What one client asked: in a session, a modern request, a connection of stdio or WebSocket.

    Args:
        revision: None until the result of `initialize`, or the first modern request, says it.
        is_whole: everything the client said has been heard, so an answer to anything else is a violation.
    """

    def __init__(self, tap: Tap, revision: str | None = None, *, is_whole: bool = True) -> None:
        self.revision = revision
        self._tap = tap
        self._is_whole = is_whole
        self._asked: dict[tuple[type, Any], Asked] = {}
        self._in_flight: set[tuple[type, Any]] = set()

    def heard(self, message: Any) -> None:
        """Remember what the client sent, a decoded message or a batch; whatever is malformed is skipped."""
        for entry in message if isinstance(message, list) else [message]:
            if isinstance(entry, dict):
                self._remember(entry)

    def said(self, message: Any) -> None:
        """Check what the server sent, a decoded message or a batch."""
        if isinstance(message, list):
            self._tap.check_batch(message, revision=self.revision)
            for entry in message:
                self.said(entry)
            return
        is_answer = isinstance(message, dict) and kind_of(message) in ("result", "error")
        told_under = MODERN if _names_subscription(message) else self.revision
        method, revision = self._answered(message) if is_answer else (None, told_under)
        self._tap.check(message, revision=revision, method=method)

    def _remember(self, entry: dict[str, Any]) -> None:
        method = entry.get("method") if isinstance(entry.get("method"), str) else None
        params = entry.get("params")
        if method == "notifications/cancelled" and isinstance(params, dict):
            self._in_flight.discard(_key(params.get("requestId")))
        is_modern = has_modern_envelope(entry)
        if is_modern and self.revision is None:
            self.revision = MODERN
        key = _key(entry.get("id"))
        if "id" in entry and key not in self._in_flight:  # A second use of an id in flight is refused.
            self._in_flight.add(key)
            self._asked[key] = Asked(method, MODERN if is_modern else None)

    def _answered(self, message: dict[str, Any]) -> tuple[str | None, str | None]:
        key = _key(message.get("id"))
        asked = self._asked.get(key)
        self._in_flight.discard(key)
        if asked is None:
            if self._is_whole and "id" in message:
                self._tap.report(["answers an id that was never asked"], message, revision=self.revision)
            return None, self.revision
        result = message.get("result")
        if asked.method == "initialize" and asked.revision is None and isinstance(result, dict):
            self.revision = str(result.get("protocolVersion"))
        return asked.method, asked.revision or self.revision


def has_modern_envelope(entry: Any) -> bool:
    """Whether a decoded message names its revision in `_meta`, as modern requests do."""
    return MODERN_ENVELOPE in _meta(entry)


def _names_subscription(entry: Any) -> bool:
    """Whether a decoded message belongs to a modern stream of changes; a session beside it has none."""
    return SUBSCRIPTION_ID in _meta(entry)


def _meta(entry: Any) -> dict[str, Any]:
    params = entry.get("params") if isinstance(entry, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def _key(request_id: Any) -> tuple[type, Any]:
    """An id with its type: 1, "1" and 1.0 are three."""
    return type(request_id), request_id if isinstance(request_id, str | int | float) else repr(request_id)


def _shown(message: Any) -> str:
    return message if isinstance(message, str) else json.dumps(message, default=repr)[:2000]
