"""Data checked against a JSON Schema that may come from anywhere: a server, a log, a program.

jsonschema does the checking, within bounds that it does not have itself. Nothing is fetched: a reference leads into the
schema itself, or to one of the published drafts. References that never end, and those that multiply, are an error. Patterns
are matched in linear time, so that no pair of pattern and text stops the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final, cast

from pydantic import JsonValue
from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema

from agentcore.errors import SchemaError

_MOST_ERRORS: Final = 20
_VALUE_LIMIT: Final = 200
# References that a check may follow: so many, and so many more for each value in the data.
_REFERENCES: Final = 10_000
_REFERENCES_PER_VALUE: Final = 20

_references_left: ContextVar[int] = ContextVar("references left")


def schema_errors(schema: Mapping[str, Any], data: JsonValue) -> list[str]:
    """Return what is wrong with the data, a sentence for each error, as a language model can read it; empty where it fits.

    Not checked are `format`, patterns with a look-around or a back-reference, and `unevaluatedProperties` beside
    `patternProperties`. The first check in a process imports
    jsonschema: make it, or call `check_schema`, in a worker thread where that must not block.

    Raises:
        SchemaError: the schema is not valid where the data meets it, or its references lead nowhere, out of it, or too far.
    """
    return SchemaCheck(schema).errors(data)


class SchemaCheck:
    """A schema that is prepared once, for data that is checked against it again and again; see `schema_errors`."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Take the schema, which must not change. Nothing is looked at yet."""
        self._schema = schema
        self._validator: Any = None

    def errors(self, data: JsonValue) -> list[str]:
        """Return what is wrong with the data, as `schema_errors` does.

        Raises:
            SchemaError: as `schema_errors`.
        """
        schema = self._schema
        token = _references_left.set(_REFERENCES + _REFERENCES_PER_VALUE * _count(data))
        try:
            if self._validator is None:
                draft = _bounded(_draft_of(schema), with_patterns=_has_pattern_properties(schema))
                self._validator = draft(schema, registry=_no_registry())
            return _sentences(self._validator.iter_errors(data))
        except RecursionError:
            raise SchemaError("The data can't be checked: its JSON Schema refers to itself without end.") from None
        except _TooMany:
            raise SchemaError("The data can't be checked: its JSON Schema has too many references to follow.") from None
        except Exception as error:
            # An invalid schema, which nobody has looked at before, makes any error at all.
            check_schema(schema)
            reference = getattr(error, "ref", None)
            reason = f"is odd: {error}" if reference is None else f"refers to {reference!r}, which is not in it"
            raise SchemaError(f"The data can't be checked: its JSON Schema {reason}. Nothing is fetched.") from error
        finally:
            _references_left.reset(token)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is not a valid JSON Schema.

    Raises:
        SchemaError: it is not one; the message says where.
    """
    draft = _draft_of(schema)
    try:
        errors = _sentences(draft(draft.META_SCHEMA).iter_errors(schema))
    except RecursionError:
        errors = ["it is nested too deeply."]
    if errors:
        raise SchemaError(f"This is not a valid JSON Schema: {errors[0]}")


class _TooMany(Exception):
    """The schema has led to more references than any honest one does."""


@cache
def _jsonschema() -> Any:
    # Here and nowhere else: with what it needs it takes as long to import as all of agentcore.
    import jsonschema  # noqa: PLC0415

    return jsonschema


def _draft_of(schema: Mapping[str, Any]) -> Any:
    drafts = _jsonschema()
    named = schema.get("$schema")
    return drafts.validators.validator_for(
        schema if isinstance(named, str) else {}, default=drafts.Draft202012Validator
    )


@cache
def _no_registry() -> Any:
    # A part of jsonschema, whose own default fetches what a reference names.
    import referencing  # noqa: PLC0415

    registry: Any = referencing.Registry
    return registry()


@cache
def _bounded(draft: Any, *, with_patterns: bool) -> Any:
    """Make a draft whose references are counted and whose patterns are matched in linear time."""
    known: Mapping[str, Any] = draft.VALIDATORS
    ours: dict[str, Any] = {
        keyword: _counted(known[keyword]) for keyword in ("$ref", "$dynamicRef", "$recursiveRef") if keyword in known
    }
    ours |= {"pattern": _pattern, "patternProperties": _pattern_properties}
    ours["additionalProperties"] = _additional_properties
    if with_patterns:
        # It would match the names of properties by means of `re`.
        ours["unevaluatedProperties"] = _unchecked
    return _jsonschema().validators.extend(draft, ours)


def _unchecked(*_: Any) -> tuple[()]:
    return ()


def _counted(follow: Any) -> Any:
    def counted(validator: Any, reference: Any, instance: Any, schema: Any) -> Iterator[Any]:
        left = _references_left.get()
        if left <= 0:
            raise _TooMany
        _references_left.set(left - 1)
        yield from follow(validator, reference, instance, schema) or ()

    return counted


def _pattern(validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance, unknown=True):
        yield _error(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, part in patterns.items():
            for name, value in instance.items():
                if _matches(pattern, name, unknown=False):
                    yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, additional: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [
        name
        for name in instance
        if name not in named and not any(_matches(each, name, unknown=True) for each in patterns)
    ]
    if additional is False:
        for name in extras:
            yield _error(f"{name!r} is not one of its properties")
    else:
        for name in extras:
            yield from validator.descend(instance[name], additional, path=name)


def _has_pattern_properties(value: Any) -> bool:
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        return "patternProperties" in parts or any(map(_has_pattern_properties, parts.values()))
    return isinstance(value, list) and any(map(_has_pattern_properties, cast("list[Any]", value)))


def _matches(pattern: str, text: str, *, unknown: bool) -> bool:
    found = _compiled(pattern)
    return unknown if found is None else found.isinstance_python(text)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> SchemaValidator | None:
    """Compile a pattern for the engine of pydantic, which needs time in proportion to the text; None where it can't."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except PatternError:
        return None


def _error(message: str) -> Exception:
    error: Exception = _jsonschema().exceptions.ValidationError(message)
    return error


def _sentences(errors: Iterator[Any]) -> list[str]:
    return list(dict.fromkeys(map(_sentence, islice(errors, _MOST_ERRORS))))


def _sentence(error: Any) -> str:
    closest = _jsonschema().exceptions.best_match([error])
    message = _message(closest)
    if closest.context:
        message += f" ({'; '.join(list(dict.fromkeys(map(_message, closest.context)))[:3])})"
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in closest.absolute_path)
    return f"`{place.removeprefix('.')}`: {message}." if place else f"{message}."


def _message(error: Any) -> str:
    message: str = error.message
    value = repr(error.instance)
    if len(value) > _VALUE_LIMIT:
        # Not cut: it may hold secrets, and half of one could not be masked any more.
        message = message.replace(value, "what is given")
    return message if len(message) <= 3 * _VALUE_LIMIT else f"it does not fit {error.validator!r} of the schema"


def _count(data: Any) -> int:
    count, waiting = 0, [data]
    while waiting:
        value = waiting.pop()
        count += 1
        if isinstance(value, dict):
            waiting.extend(cast("dict[str, Any]", value).values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Any]", value))
    return count
