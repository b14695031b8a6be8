"""How one form looks under one revision. What a dialect cannot show is left out here and still enforced later.

Source: client/elicitation#requested-schema of each revision.
"""

from typing import Any, Final

from bridge.asking.question import Question
from bridge.protocol.messages import Json
from bridge.protocol.revisions import Revision

__all__ = ["request_params", "requested_schema"]

_FORMATS: Final = ("email", "uri", "date", "date-time")
_SHOWN: Final = {
    "string": ("type", "title", "description", "minLength", "maxLength", "default", "enum", "oneOf"),
    "number": ("type", "title", "description", "minimum", "maximum", "default"),
    "integer": ("type", "title", "description", "minimum", "maximum", "default"),
    "boolean": ("type", "title", "description", "default"),
    "array": ("type", "title", "description", "minItems", "maxItems", "items", "default"),
}


def request_params(question: Question, revision: Revision) -> Json:
    """The params of `elicitation/create` for a question, as `revision` has them."""
    if question.url is not None:
        return {"mode": "url", "message": question.message, "url": question.url}
    assert question.schema is not None
    params = {"message": question.message, "requestedSchema": requested_schema(question.schema, revision)}
    return {"mode": "form", **params} if revision.rich_forms else params


def requested_schema(schema: Json, revision: Revision) -> Json:
    """A form's schema as `revision` can show it."""
    show = _rich if revision.rich_forms else _plain
    shown: Json = {
        "type": "object",
        "properties": {name: show(field) for name, field in schema["properties"].items()},
    }
    if schema.get("required"):
        shown["required"] = schema["required"]
    return shown


def _rich(field: Json) -> Json:
    kind = field["type"]
    shown: Json = {key: field[key] for key in _SHOWN[kind] if key in field}
    if kind == "string" and field.get("format") in _FORMATS:
        shown["format"] = field["format"]
    if kind == "integer":
        if "exclusiveMinimum" in field:
            shown["minimum"] = max(shown.get("minimum", field["exclusiveMinimum"] + 1), field["exclusiveMinimum"] + 1)
        if "exclusiveMaximum" in field:
            shown["maximum"] = min(shown.get("maximum", field["exclusiveMaximum"] - 1), field["exclusiveMaximum"] - 1)
    return shown


def _plain(field: Json) -> Json:
    """2025-06-18: no default but of a boolean, titles of choices beside them, no choice of several."""
    shown = _rich(field)
    if field["type"] != "boolean":
        shown.pop("default", None)
    titled: list[dict[str, Any]] | None = shown.pop("oneOf", None)
    if titled is not None:
        shown["enum"] = [option["const"] for option in titled]
        shown["enumNames"] = [option["title"] for option in titled]
    return shown
