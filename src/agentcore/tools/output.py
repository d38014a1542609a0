"""The output type of an agent: a type of the program's, or the JSON Schema of one, as a log holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, JsonValue

from agentcore.errors import SchemaError
from agentcore.schema import check_schema, json_schema_of, schema_errors


@dataclass(frozen=True)
class OutputSchema:
    """The output of an agent by its JSON Schema: `RunResult.output` is then plain data that fits it.

    A log holds an output type so, because it never decides which class is imported. The first one in a process imports
    jsonschema: make it in a worker thread where that must not block.

    Raises:
        SchemaError: `schema` is not a valid JSON Schema.
    """

    name: str
    """The name of the type, for people."""
    schema: Mapping[str, JsonValue]
    """The JSON Schema of the output."""

    def __post_init__(self) -> None:
        check_schema(self.schema)

    def record(self) -> dict[str, JsonValue]:
        """Write it down."""
        return {"name": self.name, "schema": dict(self.schema)}


def output_schema_of(output: type[BaseModel] | OutputSchema) -> dict[str, JsonValue]:
    """Return an output as a log holds it: its name and its JSON Schema.

    Raises:
        SchemaError: a field has a type that JSON Schema can't say.
    """
    if isinstance(output, OutputSchema):
        return output.record()
    return {"name": output.__name__, "schema": json_schema_of(output)}


def read_output(output: type[BaseModel] | OutputSchema, data: JsonValue) -> Any:
    """Return data as the output: a value of the type, or the data itself where there is a schema only.

    Raises:
        ValueError: it does not fit; the message has a sentence for each error.
    """
    if not isinstance(output, OutputSchema):
        return output.model_validate(data)
    try:
        errors = schema_errors(output.schema, data)
    except SchemaError as error:
        raise ValueError(str(error)) from error
    if errors:
        raise ValueError(" ".join(errors))
    return data
