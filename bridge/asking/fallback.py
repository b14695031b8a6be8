"""`sendElicitationResult`: the tool through which a model passes on what its user said in the chat.

Its definition, its texts, the reading of its arguments, and how an output schema makes room for the pending form.
Who sees the tool is decided in `routes.py`; what a call of it does, in `calls.py`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bridge.asking.question import ACTIONS, Question
from bridge.protocol.messages import Json

__all__ = [
    "FALLBACK_TOOL",
    "FALLBACK_TOOL_NAME",
    "PENDING",
    "FallbackCall",
    "pending_form",
    "pending_text",
    "read_call",
    "split_id",
    "unknown_text",
    "widened_output_schema",
]

FALLBACK_TOOL_NAME: Final = "sendElicitationResult"

_MARK: Final = "~"
"""Between the id of a pending call and the number of one of its questions."""

_MAX_DIGITS: Final = 4

PENDING: Final = "elicitationPending"
"""Where the pending form stands, in `_meta` and in `structuredContent`."""

FALLBACK_TOOL: Final[Json] = {
    "name": FALLBACK_TOOL_NAME,
    "description": (
        "Pass on the user's answer to a question that another tool has asked. Use it only with an elicitId from "
        "a tool's result, and only after the user has answered in this chat: never answer for the user. "
        "The tool that asked then goes on, and its result is the result of this call."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "elicitId": {"type": "string", "description": "The elicitId from the result of the tool that asked."},
            "action": {
                "type": "string",
                "enum": list(ACTIONS),
                "description": "accept: the user answered; decline: they said no; cancel: they want to stop.",
            },
            "content": {
                "type": "object",
                "description": "On accept, the user's answers, one property for each field asked for.",
            },
        },
        "required": ["elicitId", "action"],
    },
}


class FallbackCall(msgspec.Struct, frozen=True):
    """The arguments of a call of the fallback tool. `content` is whatever came; it is checked later."""

    elicit_id: str
    action: str
    content: Any = None


def read_call(arguments: Json) -> FallbackCall | str:
    """Read the fallback tool's arguments; return what is wrong with them as a sentence for the model."""
    elicit_id, action = arguments.get("elicitId"), arguments.get("action")
    if not isinstance(elicit_id, str) or not elicit_id:
        return 'elicitId is required: the text from the result of the tool that asked, such as "…".'
    if action not in ACTIONS:
        return f"action must be one of {', '.join(ACTIONS)}, not {action!r}."
    return FallbackCall(elicit_id, action, arguments.get("content"))


def unknown_text(elicit_id: str) -> str:
    """What a model gets whose `elicitId` names nothing that waits, for whatever reason."""
    return (
        f"No pending elicitation found for ID: {elicit_id}. It may have expired or been answered already. "
        "If the user still wants this, call the original tool again."
    )


def split_id(elicit_id: str) -> tuple[str, int | None]:
    """The id of a pending call, and the number of the question that is meant where it asks several."""
    head, mark, number = elicit_id.rpartition(_MARK)
    if mark and number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS:
        return head, int(number)
    return elicit_id, None


def pending_form(elicit_id: str, questions: list[Question], until: str, numbers: Sequence[int] = ()) -> Json:
    """The pending question for programs: `elicitId`, `message`, `schema`, `instructions`.

    Args:
        elicit_id: names the pending call.
        questions: what is asked, one or several.
        until: when it expires, as a text for people.
        numbers: where the call asks several: the number of each question, by which it can be answered alone.
    """
    if not numbers:
        return {**_one_form(elicit_id, questions[0]), "instructions": _instructions(elicit_id, until, questions)}
    alone = [_one_form(f"{elicit_id}{_MARK}{n}", q) for n, q in zip(numbers, questions, strict=True)]
    properties = {question.key: form["schema"] for question, form in zip(questions, alone, strict=True)}
    return {
        "elicitId": elicit_id,
        "message": "\n".join(question.shown for question in questions),
        "schema": {"type": "object", "properties": properties, "required": list(properties)},
        "instructions": _instructions(elicit_id, until, questions, numbers),
        "questions": alone,
    }


def _one_form(elicit_id: str, question: Question) -> Json:
    form: Json = {"elicitId": elicit_id, "message": question.shown}
    if question.url is not None:
        form["url"] = question.url
    form["schema"] = question.schema if question.schema is not None else {"type": "object", "properties": {}}
    return form


def pending_text(elicit_id: str, questions: list[Question], until: str, numbers: Sequence[int] = ()) -> str:
    """The pending question for the model. The order of its parts is part of the contract (CHT-3)."""
    parts = ["Nothing has been done yet: this call waits for an answer from the user.", ""]
    for question in questions:
        if numbers:
            parts.append(f"[{question.key}]")
        parts += [question.shown, ""]
        if question.url is not None:
            parts += ["The user has to open this link:", question.url, ""]
        elif question.schema is not None:
            parts += ["The user is asked for:", *_fields(question.schema), ""]
    parts.append(_instructions(elicit_id, until, questions, numbers))
    return "\n".join(parts)


def _instructions(elicit_id: str, until: str, questions: list[Question], numbers: Sequence[int] = ()) -> str:
    has_fields = any(question.url is None for question in questions)
    accepted = "answers" if has_fields else "says it is done"
    content = ' and "content" holding one property for each field' if has_fields else ""
    single = ""
    if numbers:
        content = ' and "content" holding one property for each question in brackets, with its fields'
        ids = ", ".join(f'"{elicit_id}{_MARK}{n}" for {q.key}' for n, q in zip(numbers, questions, strict=True))
        single = f"To answer one question alone, use as elicitId {ids}, with its fields as content. "
    return (
        "Ask the user now, in this chat, and wait; do not answer for them. "
        f"When the user {accepted}, call the tool {FALLBACK_TOOL_NAME} (its name may end in that) with "
        f'"elicitId": "{elicit_id}", "action": "accept"{content}. {single}'
        'If the user says no, send "action": "decline"; if they want to stop, "action": "cancel". '
        f"The question is open until {until}."
    )


def _fields(schema: Json) -> list[str]:
    required = schema.get("required", ())
    return [_field(name, field, name in required) for name, field in schema["properties"].items()]


def _field(name: str, field: Json, required: bool) -> str:
    facts = [field["type"]]
    choices = field.get("items", field)
    if "enum" in choices:
        facts.append("one of " + ", ".join(map(repr, choices["enum"])))
    for keyword in ("oneOf", "anyOf"):
        if keyword in choices:
            named = (f"{option['const']!r} ({option['title']})" for option in choices[keyword])
            facts.append("one of " + ", ".join(named))
    facts += [f"{key} {field[key]}" for key in ("minimum", "maximum", "minLength", "maxLength") if key in field]
    if "format" in field:
        facts.append(f"format {field['format']}")
    if "default" in field:
        facts.append(f"default {field['default']!r}")
    facts.append("required" if required else "optional")
    about = field.get("description") or field.get("title")
    return f"- {name} ({', '.join(facts)})" + (f": {about}" if about else "")


def widened_output_schema(schema: Json) -> Json:
    """An output schema that also allows the pending form, and whose own references still resolve.

    The root stays where it is: the form becomes one more property, and either the old `required` or the form must
    be there. A root that is itself a combination keeps its definitions at the root and becomes one alternative.
    """
    form = {"type": "object", "properties": {"elicitId": {"type": "string"}}, "required": ["elicitId"]}
    if any(keyword in schema for keyword in ("anyOf", "oneOf", "allOf", "not", "if", "$ref")):
        hoisted: Json = {key: schema[key] for key in ("$schema", "$defs", "definitions") if key in schema}
        inner = {key: value for key, value in schema.items() if key not in hoisted}
        pending = {"type": "object", "properties": {PENDING: form}, "required": [PENDING]}
        return {**hoisted, "type": "object", "anyOf": [inner, pending]}
    kept = {key: value for key, value in schema.items() if key != "required"}
    properties = {**schema.get("properties", {}), PENDING: form}
    either = [{"required": schema.get("required", [])}, {"required": [PENDING]}]
    return {**kept, "properties": properties, "anyOf": either}
