"""The plain schema of a pydantic model."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from pydantic import BaseModel, JsonValue
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from agentcore.errors import SchemaError
from agentcore.schema.plain import plain_schema

__all__ = ["json_schema_of", "schema_of"]


class _Generator(GenerateJsonSchema):
    # A default that JSON can't say is still a default; the model is only told that the field may be left out.
    ignored_warning_kinds: AbstractSet[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # pyright: ignore[reportIncompatibleVariableOverride] pydantic declares a set and only reads it


def json_schema_of(model: type[BaseModel]) -> dict[str, JsonValue]:
    """Return the JSON Schema of what the model is made from, with references, as data is checked against it.

    Raises:
        SchemaError: a field has a type that JSON Schema can't say.
    """
    try:
        return model.model_json_schema(schema_generator=_Generator)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = str(error).split("\n", 1)[0]
        raise SchemaError(f"The model {model.__qualname__!r} can't be said in JSON Schema: {reason}") from error


def schema_of(model: type[BaseModel]) -> dict[str, JsonValue]:
    """Give the plain JSON Schema of what the model is made from: an object, its fields by the names they have in JSON.

    Raises:
        SchemaError: a field has a type that JSON Schema can't say, or the model is not an object.
    """
    schema = plain_schema(json_schema_of(model))
    if schema.get("type") != "object":
        raise SchemaError(
            f"The model {model.__qualname__!r} is not an object in JSON, and arguments are one: give it fields."
        )
    schema.setdefault("properties", {})
    return schema
