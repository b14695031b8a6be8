"""How one form looks under one revision. What a dialect cannot show is left out here and still enforced later.

Source: client/elicitation#requested-schema of each revision.
"""

from typing import Any, Final

from bridge.asking.question import Question
from bridge.protocol.messages import Json, encode
from bridge.protocol.revisions import Revision
from bridge.protocol.shaping import shape_block, shape_definition, shape_result

__all__ = ["fill_boxes", "read_shown", "request_params", "requested_schema"]

_FORMATS: Final = ("email", "uri", "date", "date-time")
_ROOT: Final = frozenset({"type", "properties", "required"})
_SHOWN: Final = {
    "string": ("type", "title", "description", "minLength", "maxLength", "default", "enum", "oneOf"),
    "number": ("type", "title", "description", "minimum", "maximum", "default"),
    "integer": ("type", "title", "description", "minimum", "maximum", "default"),
    "boolean": ("type", "title", "description", "default"),
    "array": ("type", "title", "description", "minItems", "maxItems", "items", "default"),
}


def request_params(question: Question, revision: Revision) -> Json:
    """The params of the request by which a question is asked, as `revision` has them.

    In a modern round nothing stands there that only sessions have (`elicitationId`).
    """
    if question.params is not None:
        shape = _sampling_with_tools if revision.rich_sampling else _plain_sampling
        return shape(question.params, revision)
    if question.url is not None:
        asked = {"mode": "url", "message": question.shown, "url": question.url}
        return {**asked, "elicitationId": question.elicitation_id} if revision.url_ids else asked
    assert question.schema is not None
    relayed = question.relayed
    schema = (
        relayed if relayed is not None and _can_take(relayed, revision) else requested_schema(question.schema, revision)
    )
    params = {"message": question.shown, "requestedSchema": schema}
    return {"mode": "form", **params} if revision.rich_forms else params


def _can_take(schema: Json, revision: Revision) -> bool:
    """Whether a schema that somebody else wrote says nothing that `revision` has no word for."""
    known = _ROOT | {"$schema"} if revision.rich_forms else _ROOT
    return schema.keys() <= known and all(_can_show(field, revision) for field in schema["properties"].values())


def _can_show(field: Json, revision: Revision) -> bool:
    kind = field.get("type")
    words = {*_SHOWN.get(kind, ()), "format", "enumNames"} if isinstance(kind, str) else set()
    if not field.keys() <= words or field.get("format", "uri") not in _FORMATS:
        return False
    if not (_has_choices(field, "oneOf") if kind != "array" else _has_items(field.get("items"))):
        return False
    return revision.rich_forms or (
        kind != "array" and "oneOf" not in field and (kind == "boolean" or "default" not in field)
    )


def _has_choices(field: Json, titled: str) -> bool:
    """Whether what it offers to choose from, if anything, is written in the words of the protocol."""
    options, values, names = field.get(titled, []), field.get("enum", []), field.get("enumNames", [])
    return (
        all(isinstance(option, dict) and option.keys() == {"const", "title"} for option in options)
        and all(isinstance(text, str) for option in options for text in option.values())
        and all(isinstance(value, str) for value in (*values, *names))
        and not (options and values)
        and len(names) in (0, len(values))
    )


def _has_items(items: Any) -> bool:
    if not isinstance(items, dict) or not _has_choices(items, "anyOf"):
        return False
    return items.keys() == {"anyOf"} or (items.keys() == {"type", "enum"} and items["type"] == "string")


def _sampling_with_tools(params: Json, revision: Revision) -> Json:
    """What is sampled, with the tools and their results as `revision` has them."""
    if "tools" in params:
        params = {**params, "tools": [shape_definition("tools", tool, revision) for tool in params["tools"]]}
    if "messages" in params:
        params = {**params, "messages": [_with_results(message, revision) for message in params["messages"]]}
    return params


def _with_results(message: Json, revision: Revision) -> Json:
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": [_result_block(block, revision) for block in content]}
    return {**message, "content": _result_block(content, revision)}


def _result_block(block: Json, revision: Revision) -> Json:
    return shape_result(block, revision) if block.get("type") == "tool_result" else block


def _plain_sampling(params: Json, revision: Revision) -> Json:
    """What is sampled without tools, and with one block in each message."""
    shaped = {key: value for key, value in params.items() if key not in ("tools", "toolChoice")}
    if "messages" in shaped:
        shaped["messages"] = [
            {"role": message["role"], "content": _plain_block(block, revision)}
            for message in shaped["messages"]
            for block in (message["content"] if isinstance(message["content"], list) else [message["content"]])
        ]
    return shaped


def _plain_block(block: Json, revision: Revision) -> Json:
    if block.get("type") in ("tool_use", "tool_result"):
        return {"type": "text", "text": encode(block).decode()}
    return shape_block(block, revision)


def requested_schema(schema: Json, revision: Revision) -> Json:
    """A form's schema as `revision` can show it."""
    fields: Json = {}
    required = list(schema.get("required", ()))
    for name, field in schema["properties"].items():
        if revision.rich_forms:
            fields[name] = _rich(field)
        elif field["type"] == "array":
            fields |= _boxes(name, field, schema)
            required = [other for other in required if other != name]
        else:
            fields[name] = _plain(field)
    shown: Json = {"type": "object", "properties": fields}
    return {**shown, "required": required} if required else shown


def read_shown(schema: Json, content: object, revision: Revision) -> object:
    """Content as the form has it, from content as `revision` shows the form: boxes become choices again."""
    if revision.rich_forms or not isinstance(content, dict):
        return content
    read = dict(content)
    for name, field in schema["properties"].items():
        if field["type"] != "array":
            continue
        boxes = _box_names(name, field, schema)
        given = {value: read.pop(box) for value, box in boxes.items() if box in read}
        if not given and name not in schema.get("required", ()):
            continue
        if not all(isinstance(ticked, bool) for ticked in given.values()):
            read[name] = given  # no list, and so no answer
            continue
        chosen = field.get("default", ())
        read[name] = [value for value in boxes if given.get(value, value in chosen)]
    return read


def fill_boxes(schema: Json, content: Json, shown: Json) -> Json:
    """Content as the form has it, as a client gives it that was shown boxes in place of a choice of several."""
    filled = dict(content)
    for name, field in schema["properties"].items():
        if field["type"] == "array" and name in filled and name not in shown["properties"]:
            chosen = filled.pop(name)
            filled |= {box: value in chosen for value, box in _box_names(name, field, schema).items()}
    return filled


def _rich(field: Json) -> Json:
    kind = field["type"]
    shown: Json = {key: field[key] for key in _SHOWN[kind] if key in field}
    if kind == "string" and field.get("format") in _FORMATS:
        shown["format"] = field["format"]
    if kind == "integer":
        if "exclusiveMinimum" in field:
            lowest = field["exclusiveMinimum"] + 1
            shown["minimum"] = max(shown.get("minimum", lowest), lowest)
        if "exclusiveMaximum" in field:
            highest = field["exclusiveMaximum"] - 1
            shown["maximum"] = min(shown.get("maximum", highest), highest)
    return shown


def _plain(field: Json) -> Json:
    """2025-06-18: no default but of a boolean, and titles of choices beside them."""
    shown = _rich(field)
    if field["type"] != "boolean":
        shown.pop("default", None)
    titled: list[dict[str, Any]] | None = shown.pop("oneOf", None)
    if titled is not None:
        shown["enum"] = [option["const"] for option in titled]
        shown["enumNames"] = [option["title"] for option in titled]
    return shown


def _boxes(name: str, field: Json, schema: Json) -> Json:
    """2025-06-18 has no choice of several: one box for each choice."""
    label = field.get("title") or name
    about = {"description": field["description"]} if "description" in field else {}
    chosen = field.get("default", ())
    names = _box_names(name, field, schema)
    return {
        names[value]: {"type": "boolean", "title": f"{label}: {title}", **about, "default": value in chosen}
        for value, title in _options(field)
    }


def _box_names(name: str, field: Json, schema: Json) -> dict[str, str]:
    """The field name of each choice's box, which no field of the form has."""
    names: dict[str, str] = {}
    for value, _ in _options(field):
        box = f"{name}: {value}"
        while box in schema["properties"] or box in names.values():
            box += "_"
        names[value] = box
    return names


def _options(field: Json) -> list[tuple[str, str]]:
    items = field["items"]
    if "enum" in items:
        return [(value, value) for value in items["enum"]]
    return [(option["const"], option["title"]) for option in items["anyOf"]]
