"""Checking an answer: what comes from a client becomes a `Reply`, or the reasons why it is none.

Accepted content is checked against exactly the schema that was asked, on every route, before a tool sees it.
"""

from collections.abc import Iterator
from datetime import date, datetime
from functools import lru_cache
from math import isfinite
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from bridge.asking.question import ACTIONS, Question, Reply
from bridge.asking.quick import quick_type
from bridge.protocol.messages import Json, canonical

__all__ = ["InvalidReply", "check_reply", "is_web_url", "lenient_content", "lenient_object"]

_MAX_SCHEMAS: Final = 2048
_MAX_DIGITS: Final = 64
_formats: Final = FormatChecker(formats=())


class InvalidReply(msgspec.Struct, frozen=True):
    """An answer that does not fit its question: one line for each thing that is wrong."""

    reasons: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentence and the reasons, for the client."""
        lines = "\n".join(f"- {reason}" for reason in self.reasons)
        return f"The answer does not match the requested schema:\n{lines}"


def check_reply(question: Question, raw: object, source: Literal["form", "chat", "page"]) -> Reply | InvalidReply:
    """Check what a client sent as the answer to a question.

    Args:
        question: what was asked.
        raw: the client's `ElicitResult`: `action`, and `content` on accept.
        source: how it came; from a chat, content is read as leniently as models write.

    Returns:
        The reply with defaults filled in, or why it is none. Content of a decline or cancel is ignored.

    Source: client/elicitation#response-actions.
    """
    if question.mode in ("sampling", "roots"):
        return _client_reply(question.mode, raw)
    action = raw.get("action") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or action not in ACTIONS:
        return InvalidReply(('action: must be "accept", "decline" or "cancel"',))
    if action != "accept":
        return Reply(action, None, source)
    if question.schema is None:
        return Reply("accept", None, source)
    content = raw.get("content")
    if source == "chat":
        content = lenient_content(question.schema, content)
    if not isinstance(content, dict):
        return InvalidReply(("content: an accepted form must have its fields in an object",))
    return _checked(question.schema, content, source)


def _exact(field: Json | None, value: Any) -> Any:
    """A whole number as one, however it was written: JSON Schema takes 3.0 for an integer."""
    if field is not None and field["type"] == "integer" and isinstance(value, float):
        return int(value)
    return value


def _is_in_range(value: object) -> bool:
    """Whether every whole number fits 64 bits: a longer one cannot be kept, nor be meant."""
    if isinstance(value, dict):
        return all(map(_is_in_range, value.values()))
    if isinstance(value, list):
        return all(map(_is_in_range, value))
    return not isinstance(value, int) or -_MAX_NUMBER <= value < _MAX_NUMBER


_MAX_NUMBER: Final = 2**63
_WANTED: Final = {"sampling": ("role", "content", "model"), "roots": ("roots",)}


def _client_reply(mode: str, raw: object) -> Reply | InvalidReply:
    """What a client answered for itself: a message that was sampled, or its roots."""
    if not isinstance(raw, dict):
        return InvalidReply((f"{mode}: the answer must be an object",))
    missing = tuple(f"{name}: is required" for name in _WANTED[mode] if name not in raw)
    return InvalidReply(missing) if missing else Reply("accept", raw)


def _checked(schema: Json, content: Json, source: Literal["form", "chat", "page"]) -> Reply | InvalidReply:
    fields = schema["properties"]
    if schema.get("additionalProperties") is not False:
        content = {name: value for name, value in content.items() if name in fields}
    missing = {
        name: field["default"]
        for name, field in fields.items()
        if "default" in field and name not in content and name not in schema.get("required", ())
    }
    filled = {**content, **missing} if missing else content
    check = _check(canonical(schema))
    if check.takes(filled):
        exact = {name: _exact(fields.get(name), value) for name, value in filled.items()}
        if _is_in_range(exact):
            return Reply("accept", exact, source)
        return InvalidReply(("content: a number is out of range",))
    return InvalidReply(tuple(sorted({_reason(error) for error in check.validator.iter_errors(filled)})))


class _Check(msgspec.Struct, frozen=True):
    """What content is checked with. The validator decides; what `quick` takes is valid."""

    validator: Draft202012Validator
    quick: type[msgspec.Struct] | None

    def takes(self, content: Json) -> bool:
        if self.quick is not None:
            try:
                msgspec.convert(content, self.quick)
                return True
            except msgspec.ValidationError:
                pass
        return bool(self.validator.is_valid(content))


@lru_cache(maxsize=_MAX_SCHEMAS)
def _check(schema: bytes) -> _Check:
    decoded = msgspec.json.decode(schema)
    return _Check(Draft202012Validator(decoded, format_checker=_formats), quick_type(decoded))


def _reason(error: ValidationError) -> str:
    if error.validator == "required":
        return error.message.replace("'", "").replace(" is a required property", ": is required")
    field = str(error.path[0]) if error.path else "content"
    if error.validator == "oneOf":
        return f"{field}: {error.instance!r} is not one of the choices"
    return f"{field}: {error.message}"


def is_web_url(url: str) -> bool:
    """Whether a text is an absolute http or https URL, as every reader of URLs would understand it."""
    if any(character <= " " or character == "\x7f" for character in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def lenient_content(schema: Json, content: object) -> object:
    """Read content as models write it: JSON in a text, `"true"`, a choice's title, one value for a list.

    What is not surely meant stays as it is, and fails the check: an empty text never becomes false.
    """
    content = _parsed(content)
    if not isinstance(content, dict):
        return content
    fields = schema["properties"]
    return {name: _lenient(fields[name], value) if name in fields else value for name, value in content.items()}


def lenient_object(content: object) -> Json:
    """Read the content of several questions, one property for each; what is no object has none."""
    parsed = _parsed(content)
    return parsed if isinstance(parsed, dict) else {}


def _parsed(content: object) -> object:
    if not isinstance(content, str):
        return content
    try:
        parsed: object = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return content
    return parsed


def _lenient(field: Json, value: Any) -> Any:
    kind = field["type"]
    if kind == "array":
        values = value if isinstance(value, list) else [value]
        return [_chosen(field["items"], item) for item in values]
    if kind == "string":
        return _chosen(field, value)
    if not isinstance(value, str):
        return int(value) if kind == "integer" and isinstance(value, float) and value.is_integer() else value
    text = value.strip()
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), value)
    try:
        if len(text) > _MAX_DIGITS:
            return value
        number = int(text) if kind == "integer" else float(text)
    except ValueError:
        return value
    return number if isfinite(number) else value


def _chosen(field: Json, value: Any) -> Any:
    """The choice that a value names: itself, or the one that has it for a title, whatever its case."""
    options = list(_options(field))
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value) if any(str(value) == const for const, _ in options) else value
    if not isinstance(value, str) or not options or any(value == const for const, _ in options):
        return value
    folded = value.strip().casefold()
    matches = [const for const, title in options if folded in (const.casefold(), title.casefold())]
    return matches[0] if len(matches) == 1 else value


def _options(field: Json) -> Iterator[tuple[str, str]]:
    titled: list[Json] = field.get("oneOf") or field.get("anyOf") or []
    for option in titled:
        yield option["const"], option["title"]
    for value in field.get("enum", ()):
        yield value, value


@_formats.checks("email")
def _email(value: object) -> bool:
    if not isinstance(value, str):
        return True
    local, _, domain = value.rpartition("@")
    return bool(local) and bool(domain) and not any(c.isspace() for c in value) and not domain.startswith(".")


@_formats.checks("uri")
def _uri(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) and bool(parts.netloc or parts.path) and not any(c.isspace() for c in value)


@_formats.checks("date")
def _date(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return len(value) == 10 and bool(date.fromisoformat(value))
    except ValueError:
        return False


@_formats.checks("date-time")
def _date_time(value: object) -> bool:
    """RFC 3339: a date, a time and an offset."""
    if not isinstance(value, str):
        return True
    try:
        return value[10:11] in ("T", "t", " ") and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
