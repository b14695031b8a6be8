"""The second oracle: the wire models that `mcp_types` publishes, by method and revision.

They know which methods a revision has; the shape of every legacy revision is that of 2025-11-25, so what one
of the older revisions lacks they do not miss. They ignore extra fields, which is why what they read is
written again and compared.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from mcp_types import methods
from pydantic import TypeAdapter, ValidationError

from .rules import OPEN, Direction, Kind

_SURFACES: dict[tuple[Direction, Kind], Any] = {
    ("server", "request"): methods.SERVER_REQUESTS,
    ("server", "notification"): methods.SERVER_NOTIFICATIONS,
    ("server", "result"): methods.SERVER_RESULTS,
    ("client", "request"): methods.CLIENT_REQUESTS,
    ("client", "notification"): methods.CLIENT_NOTIFICATIONS,
    ("client", "result"): methods.CLIENT_RESULTS,
}
_STUBS: dict[Kind, dict[str, Any]] = {
    "request": {"jsonrpc": "2.0", "id": 0},
    "notification": {"jsonrpc": "2.0"},
    "result": {},
}


class WireModels:
    """What `mcp_types` says about the body of a message."""

    def problems(self, kind: Kind, body: Any, *, revision: str, method: str | None, direction: Direction) -> list[str]:
        """What the wire model finds wrong, as `path: reason`; errors and unknown methods it cannot judge."""
        if kind == "error" or method is None or (revision == "2025-11-25" and "tasks/" in method):
            return []  # mcp_types leaves the tasks of 2025-11-25 out.
        target = _SURFACES[direction, kind].get((method, revision))
        if target is None:
            return [f"{revision} has no {direction} {kind} for {method}"]
        adapter = _adapter(target)
        frame = {**_STUBS[kind], **body}
        prefix = "result" if kind == "result" else ""
        try:
            read = adapter.validate_python(frame, strict=True, by_name=False)
        except ValidationError as invalid:
            return [f"{_path(prefix, error['loc'])}: {error['msg']}" for error in invalid.errors(include_url=False)]
        written = adapter.dump_python(read, by_alias=True, exclude_unset=True)
        return [f"{path}: not a field of the wire model" for path in _dropped(frame, written, prefix)]


@cache
def _adapter(target: Any) -> TypeAdapter[Any]:
    return TypeAdapter(target)


def _dropped(sent: Any, written: Any, path: str) -> Iterator[str]:
    """The paths of what was sent and not written again."""
    if isinstance(sent, dict) and isinstance(written, dict):
        for name, value in sent.items():
            inner = f"{path}.{name}".lstrip(".")
            if name not in written:
                yield inner
            elif name not in OPEN:
                yield from _dropped(value, written[name], inner)
    elif isinstance(sent, list) and isinstance(written, list):
        for index, (value, again) in enumerate(zip(sent, written, strict=True)):
            yield from _dropped(value, again, f"{path}[{index}]")


def _path(prefix: str, steps: tuple[int | str, ...]) -> str:
    return ".".join([prefix, *map(str, steps)]).lstrip(".") or "message"
