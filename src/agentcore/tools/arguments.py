"""Arguments that do not fit, explained to the model that gave them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from pydantic import JsonValue, ValidationError

from agentcore._text import Mask, clip
from agentcore.errors import ToolArgumentsError
from agentcore.secrets.leaves import LeafMap
from agentcore.tools.json_text import decode_prefix

_GIVEN_LIMIT = 2_000
_VALUE_LIMIT = 200


def argument_error(
    tool_name: str, error: ValidationError, arguments: Mapping[str, Any], parameters: Mapping[str, Any], *, mask: Mask
) -> ToolArgumentsError:
    """Return an error that describes each wrong argument, the arguments that came, and the ones expected."""
    # A place and the value there, with all that it could have been: a union has an error for each of its branches.
    wrong: dict[tuple[str, str], dict[str, None]] = {}
    problems: dict[str, None] = {}
    for detail in error.errors(include_url=False, include_context=False):
        where = _place(detail["loc"], arguments, missing=detail["type"] == "missing")
        match detail["type"]:
            case "missing":
                problems[f"{where} is missing."] = None
            case "extra_forbidden":
                problems[f"{where} is not an argument of this tool."] = None
            case "question":  # a sentence about the question, which is no value of an argument
                problems[f"{detail['msg'].removesuffix('.')}."] = None
            case _:
                given = preview(detail["input"], _VALUE_LIMIT, mask=mask)
                wrong.setdefault((where, given), {})[_plain(detail["msg"])] = None
    for (where, given), sentences in wrong.items():
        problems[f"{where}{_joined(list(sentences))}, not {given}."] = None
    return ToolArgumentsError(tool_name, list(problems), preview(arguments, mask=mask), describe_parameters(parameters))


# What pydantic calls a type, for those who do not know Python.
_PLAIN_TYPES: Final = {
    "a valid string": "text",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid list": "a list",
    "a valid tuple": "a list",
    "a valid set": "a list",
    "a valid dictionary": "an object",
}
# What follows says how it was read, or repeats what was given.
_WHY: Final = re.compile(r"(, (unable to|got a number)| after validation).*")
_SUBJECTS: Final = frozenset({"Input", "Value", "String", "Tuple", "List", "Set", "Dictionary"})
_MUST: Final = " must be "


def _plain(message: str) -> str:
    """Return the sentence of an error without the words of the library that made it, to stand behind the place."""
    message = _WHY.sub("", message)
    for kind, plain in _PLAIN_TYPES.items():
        message = message.replace(kind, plain)
    if message.startswith("Input should be an object or "):
        message = "Input should be an object"
    kind, should, rest = message.partition(" should ")
    return f" must {rest}" if should and kind in _SUBJECTS else f": {message}"


def _joined(sentences: list[str]) -> str:
    """Join the alternatives at one place into one sentence. One of the right type, and wrong otherwise, is what was meant."""
    meant = [sentence for sentence in sentences if not sentence.startswith(_MUST)]
    if meant:
        return ";".join(meant)
    return _MUST + " or ".join(sentence.removeprefix(_MUST) for sentence in sentences)


def _place(loc: Sequence[int | str], arguments: Any, *, missing: bool) -> str:
    """Name the place in the arguments; what the location says besides (the branch of a union) means nothing to a model."""
    words = ""
    value = arguments
    for step in loc:
        if isinstance(value, dict) and (step in value or (missing and step == loc[-1])):
            words += f".{step}" if words else str(step)
            value = cast("dict[Any, Any]", value).get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value)):
            words += f"[{step}]"
            value = cast("list[Any]", value)[step]
    return f"`{words}`" if words else "The whole"


def preview(value: Any, limit: int = _GIVEN_LIMIT, *, mask: Mask) -> str:
    """Return a value as JSON, cut to a length that a model can read."""
    value = LeafMap(mask)(value)  # once more below: what is encoded in a text is encoded twice in the JSON of it
    return clip(json.dumps(value, ensure_ascii=False, default=str), limit, mask=mask)


def describe_parameters(parameters: Mapping[str, Any]) -> str:
    """Return one line with the name and type of each argument."""
    properties: dict[str, dict[str, JsonValue]] = parameters.get("properties", {})
    required: Sequence[str] = parameters.get("required", ())
    parts = [
        f"{name} ({_kind(schema)}{', required' if name in required else ''})" for name, schema in properties.items()
    ]
    return "; ".join(parts) or "no arguments"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(branch) for branch in schema["anyOf"]))
    kind = schema.get("type", "anything")
    if kind == "array" and schema.get("items"):
        return f"array of {_kind(schema['items'])}"
    return " or ".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind)


Schema = Mapping[str, Any]

_INTEGER: Final = re.compile(r"[+-]?\d{1,100}(\.0+)?")
_NUMBER: Final = re.compile(r"[+-]?\d{1,100}(\.\d{0,100})?([eE][+-]?\d{1,3})?")
_BOOLEANS: Final = {"true": True, "false": False}
_NULLS: Final = frozenset({"", "null", "none"})


def rename_keys(arguments: Mapping[str, JsonValue], schema: Schema) -> dict[str, JsonValue]:
    """Rename arguments to the names of the schema where they differ in case, hyphens and underscores only (`filePath`)."""
    known: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in known if name not in arguments]
    renamed: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        meant = [other for other in missing if _folded(other) == _folded(name)] if name not in known else []
        renamed[meant[0] if len(meant) == 1 and meant[0] not in renamed else name] = value
    return renamed


def drop_ignored(
    arguments: Mapping[str, JsonValue], ignored: Iterable[str | tuple[str, JsonValue]], schema: Schema
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return the arguments without those that change nothing (see `Tool.ignored`), and the names of the dropped ones."""
    known: Mapping[str, Any] = schema.get("properties", {})
    always = {_folded(each) for each in ignored if isinstance(each, str)}
    with_value = {(_folded(each[0]), _folded(str(each[1]))) for each in ignored if not isinstance(each, str)}
    dropped = tuple(
        name
        for name, value in arguments.items()
        if name not in known and (_folded(name) in always or (_folded(name), _folded(str(value))) in with_value)
    )
    return {name: value for name, value in arguments.items() if name not in dropped}, dropped


def coerce(value: JsonValue, schema: Schema) -> JsonValue:
    """Bring a value into the form that the schema wants, as far as that is beyond doubt."""
    types = _types(schema)
    if isinstance(value, str):
        value = _from_text(value, schema, types)
    elif types is not None and types <= {"string", "null"} and value is not None:
        value = _to_text(value)
    if isinstance(value, dict):
        return _fit_object(value, schema)
    if isinstance(value, list):
        return _fit_array(value, schema)
    return value


def _fit_object(value: dict[str, JsonValue], schema: Schema) -> JsonValue:
    branch = _branch(schema, "object", value)
    if branch is None:
        return value
    known: Mapping[str, Schema] = branch.get("properties", {})
    others: Schema | bool = branch.get("additionalProperties", True)
    fitted: dict[str, JsonValue] = {}
    for name, part in value.items():
        of_part = known.get(name, others)
        if part is None and not _nullable(of_part):
            continue  # a model's way of leaving it out
        fitted[name] = part if isinstance(of_part, bool) else coerce(part, of_part)
    return fitted


def _fit_array(value: list[JsonValue], schema: Schema) -> JsonValue:
    branch = _branch(schema, "array", value)
    if branch is None:
        return value
    places: list[Schema] = branch.get("prefixItems", [])
    items: Schema = branch["items"] if isinstance(branch.get("items"), dict) else {}
    return [coerce(part, places[number] if number < len(places) else items) for number, part in enumerate(value)]


def _branches(schema: Schema) -> Iterable[Schema]:
    if "anyOf" not in schema:
        yield schema
    for branch in schema.get("anyOf", ()):
        yield from _branches(branch)


def _branch(schema: Schema, kind: str, value: Any) -> Schema | None:
    """Find the one branch of a union that an object or array can be meant for, by its fixed properties if need be."""
    found = [branch for branch in _branches(schema) if kind in (_types(branch) or ())]
    if len(found) > 1 and isinstance(value, dict):
        found = [branch for branch in found if _tags_match(branch, cast("dict[str, Any]", value))]
    return found[0] if len(found) == 1 else None


def _tags_match(branch: Schema, value: Mapping[str, Any]) -> bool:
    properties: Mapping[str, Schema] = branch.get("properties", {})
    tags = {name: part["enum"] for name, part in properties.items() if "enum" in part}
    return bool(tags) and all(value[name] in allowed for name, allowed in tags.items() if name in value)


def _types(schema: Schema) -> set[str] | None:
    if "anyOf" in schema:
        types: set[str] = set()
        for branch in schema["anyOf"]:
            of_branch = _types(branch)
            if of_branch is None:
                return None
            types |= of_branch
        return types
    kind = schema.get("type")
    if kind is None:
        return None
    return {kind} if isinstance(kind, str) else set(kind)


def _nullable(schema: Schema | bool) -> bool:
    if isinstance(schema, bool):
        return schema
    types = _types(schema)
    return types is None or "null" in types


def _from_text(text: str, schema: Schema, types: set[str] | None) -> JsonValue:
    if types is None or "string" in types:
        return _from_choices(text, schema)
    word = text.strip()
    if types & {"object", "array"} and word[:1] in {"{", "["}:
        return _decoded(word, types, text)
    if "boolean" in types and word.lower() in _BOOLEANS:
        return _BOOLEANS[word.lower()]
    if types & {"integer", "number"} and _INTEGER.fullmatch(word):
        return int(word.split(".")[0])
    if "number" in types and _NUMBER.fullmatch(word):
        return float(word)
    return None if "null" in types and word.lower() in _NULLS else text


def _decoded(word: str, types: set[str], text: str) -> JsonValue:
    try:
        value, _ = decode_prefix(word)
    except ValueError:
        return text
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else None
    return value if kind in types else text


def _from_choices(text: str, schema: Schema) -> JsonValue:
    choices: list[Any] = []
    for branch in _branches(schema):
        if "enum" not in branch and branch.get("type") != "null":
            return text
        choices += branch.get("enum", ())
    if text in choices:
        return text
    meant = [choice for choice in choices if isinstance(choice, str) and _folded(choice) == _folded(text)]
    return meant[0] if len(meant) == 1 else text


def _to_text(value: JsonValue) -> JsonValue:
    """Make text of the pieces of a text, or of a number; an object may have been meant in more than one way."""
    if isinstance(value, list) and value and all(isinstance(piece, str) for piece in value):
        return "".join(cast("list[str]", value))
    return value if isinstance(value, dict | list) else json.dumps(value)


def _folded(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).casefold()
