"""The first oracle: the published schema of each revision, closed.

As published, the schemas allow any extra property and so prove little. Here every object that names its
properties allows no other, but those in `OPEN`. References are put in place and `allOf` is merged, so that
`additionalProperties: false` is enough and a check resolves nothing.
"""

import json
from collections.abc import Iterator
from functools import cache, cached_property, reduce
from itertools import groupby
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from .rules import OPEN, Direction, Kind

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "spec"
SPEC_FOLDER: Path | None = _BESIDE if _BESIDE.is_dir() else None

Schema = dict[str, Any]

# Any JSON: the generated definitions recurse, and leave out null.
_ANYTHING: dict[str, Schema] = {"JSONValue": {}, "JSONObject": {"type": "object"}, "JSONArray": {"type": "array"}}
_OTHER_SIDE: dict[Direction, Direction] = {"server": "client", "client": "server"}
_DISCRIMINATORS = ("const", "enum")


class ClosedSchemas:
    """The schemas of all revisions below one folder, each read when it is first needed."""

    def __init__(self, spec_folder: Path) -> None:
        self._of = cache(lambda revision: _Revision.read(spec_folder / revision / "schema.json"))
        self._validator = cache(self._build)

    def problems(self, kind: Kind, body: Any, *, revision: str, method: str | None, direction: Direction) -> list[str]:
        """What the closed schema finds wrong with the body of a message, as `path: reason`."""
        asks = kind == "result" and body.get("resultType") == "input_required"
        code = body.get("code") if kind == "error" else None
        validator = self._validator(revision, direction, kind, method, asks, code)
        if validator is None:
            return [f"{revision} has no {direction} {kind} for {method}"]
        prefix = kind if kind in ("result", "error") else ""
        return [
            f"{_path(prefix, leaf)}: {leaf.message[:300]}"
            for error in validator.iter_errors(body)
            for leaf in _leaves(error)
        ]

    def _build(
        self, revision: str, direction: Direction, kind: Kind, method: str | None, asks: bool, code: int | None
    ) -> Draft202012Validator | None:
        definitions = self._of(revision)
        schema: Schema | None
        if kind == "error":
            schema = definitions.error(code)
        elif kind == "result":
            schema = definitions.result(direction, method, asks=asks)
        else:
            schema = definitions.call(direction, kind, method)
        return None if schema is None else Draft202012Validator(schema)


class _Revision:
    """The definitions of one revision, handed out closed."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions

    @classmethod
    def read(cls, path: Path) -> "_Revision":
        document = json.loads(path.read_text(encoding="utf-8"))
        return cls(document.get("$defs") or document["definitions"])

    def result(self, direction: Direction, method: str | None, *, asks: bool) -> Schema | None:
        """The result that `direction` sends for a request of the other side; any of them for no method."""
        if method is None:
            return self.closed(self._definitions[f"{direction.title()}Result"])
        request = self._named(f"{_OTHER_SIDE[direction].title()}Request").get(method)
        if request is None:
            return None
        response = self._definitions.get(request.replace("Request", "ResultResponse"))
        choices = _references(response["properties"]["result"]) if response else []
        if asks and "InputRequiredResult" in choices:
            return self.closed(self._definitions["InputRequiredResult"])
        own = request.replace("Request", "Result")
        return self.closed(self._definitions[own if own in self._definitions else "EmptyResult"])

    def call(self, direction: Direction, kind: Kind, method: str | None) -> Schema | None:
        """A request or notification without its envelope, with the `_meta` that any `params` may have."""
        name = self._named(f"{direction.title()}{kind.title()}").get(method)
        if name is None:
            return None
        base = self.closed(self._definitions[f"JSONRPC{kind.title()}"])
        schema = _merge(base, self.closed(self._definitions[name]))
        required = sorted(set(schema["required"]) - {"jsonrpc", "id"})
        properties = {name: schema["properties"][name] for name in ("method", "params")}
        return {**schema, "required": required, "properties": properties}

    def error(self, code: int | None) -> Schema:
        """The error object, narrowed where the revision defines what belongs to this code."""
        name = "JSONRPCError" if "JSONRPCError" in self._definitions else "JSONRPCErrorResponse"
        return self._errors.get(code) or self.closed(self._definitions[name])["properties"]["error"]

    @cached_property
    def _errors(self) -> dict[int | None, Schema]:
        envelopes = [
            self.closed(definition)
            for name, definition in self._definitions.items()
            if name.endswith("Error") and "allOf" in definition.get("properties", {}).get("error", {})
        ]
        errors = [envelope["properties"]["error"] for envelope in envelopes]
        return {error["properties"]["code"]["const"]: error for error in errors}

    def _named(self, union: str) -> dict[str | None, str]:
        names = _references(self._definitions.get(union, {}))
        return {self._definitions[name]["properties"]["method"]["const"]: name for name in names}

    def closed(self, schema: Schema, *, is_open: bool = False) -> Schema:
        """The schema with references in place, `allOf` merged, and no property that it does not name."""
        if "$ref" in schema:
            (name,) = _references(schema)
            return _ANYTHING[name] if name in _ANYTHING else self.closed(self._definitions[name], is_open=is_open)
        if "allOf" in schema:
            return reduce(_merge, (self.closed(part) for part in schema["allOf"]))
        copy = {word: value for word, value in schema.items() if word not in ("description", "additionalProperties")}
        if isinstance(copy.get("type"), list) and "boolean" in copy["type"]:
            # TypeScript's `number` in a union was generated as an integer.
            copy["type"] = ["number" if name == "integer" else name for name in copy["type"]]
        if "items" in copy:
            copy["items"] = self.closed(copy["items"])
        if "anyOf" in copy:
            copy["anyOf"] = [self.closed(choice) for choice in copy["anyOf"]]
        if copy.get("properties"):
            copy["properties"] = {
                name: self.closed(inner, is_open=name in OPEN) for name, inner in copy["properties"].items()
            }
            if not is_open:
                copy["additionalProperties"] = False
        elif isinstance(schema.get("additionalProperties"), dict):
            copy["additionalProperties"] = self.closed(schema["additionalProperties"])
        return copy


def _references(schema: Schema) -> list[str]:
    """The names that a schema, or the choices of a union, refer to."""
    return [part["$ref"].rpartition("/")[2] for part in schema.get("anyOf", [schema]) if "$ref" in part]


def _merge(one: Schema, other: Schema) -> Schema:
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        ours, theirs = one["properties"], other["properties"]
        shared = {name: _merge(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()}
        merged["properties"] = {**ours, **theirs, **shared}
    if "required" in one and "required" in other:
        merged["required"] = sorted({*one["required"], *other["required"]})
    return merged


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """Of a failed `anyOf`, the errors of the choice that was most likely meant."""
    if not error.context:
        yield error
        return
    branches = [list(errors) for _, errors in groupby(error.context, key=lambda inner: inner.relative_schema_path[0])]
    for inner in min(branches, key=lambda errors: (any(e.validator in _DISCRIMINATORS for e in errors), len(errors))):
        yield from _leaves(inner)


def _path(prefix: str, error: ValidationError) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    return (prefix + "".join(steps)).lstrip(".") or "message"
