"""A summary as an object of the program's own JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from agentcore._arguments import MODEL, NUMBER, checked, optional
from agentcore._threads import Threads
from agentcore.condense.condenser import CondenserSpec
from agentcore.condense.outline import Outline
from agentcore.condense.summary import ask_for_summary, check_parts, forget_with, record_asking, to_summarise
from agentcore.condense.window import DOWN_TO, SOFT, is_due
from agentcore.errors import ModelError
from agentcore.events import Condensation
from agentcore.llm import Model
from agentcore.schema import check_schema, json_schema_of_type, schema_errors

_CHECKS: Final = Threads("summary_checks", 1)  # the first one imports jsonschema
_ASKED: Final = """\
(This is not from the user. The conversation has become too long, so everything above, except the first and the newest message \
of the user, is going to be replaced by a record of it that you write now. You go on with the work from it, and see nothing else \
of what happened.

Answer with one JSON object that fits this JSON Schema, and nothing else:

{schema}

Keep names as they are: paths, identifiers, commands, ids, numbers. Where a record of an earlier part stands above, take over \
what still holds of it. Do not call a tool.)"""


@checked(llm=optional(MODEL), soft=NUMBER, down_to=NUMBER)
@dataclass(frozen=True)
class Structured:
    """Puts an object in place of the oldest part of the history when that is large; a model writes it.

    An answer that does not fit is returned to the model once. What the log knows is added by code, as in a `Summary`.

    Raises:
        SchemaError: It is not a valid JSON Schema, or the type cannot be described by one.
        TypeError: An argument is not what it has to be.
        ValueError: `soft` and `down_to` are not parts of 1, the second one smaller.
    """

    schema: Any
    """A JSON Schema, or a type that pydantic knows, which is recorded as its JSON Schema."""
    llm: Model | None = None
    """The model that writes it; None is the agent's."""
    soft: float = SOFT
    """The part of the room at which the history is made shorter."""
    down_to: float = DOWN_TO
    """The part of the room that is left of it then."""

    def __post_init__(self) -> None:
        check_parts(self.soft, self.down_to)
        if isinstance(self.schema, Mapping):
            check_schema(self.json_schema)
        _ = self.json_schema

    @cached_property
    def json_schema(self) -> Mapping[str, JsonValue]:
        """The JSON Schema of the object."""
        given: Any = self.schema
        return cast("Mapping[str, JsonValue]", given) if isinstance(given, Mapping) else json_schema_of_type(given)

    async def condense(self, outline: Outline) -> Condensation | None:
        """Ask for the object.

        Raises:
            ModelError: The model wrote none that fits.
        """
        if not is_due(outline, self.soft) or not (items := to_summarise(outline, self.down_to)):
            return None
        words = _ASKED.format(schema=to_json(self.json_schema, indent=2).decode())
        read, written = await ask_for_summary(outline, items, words, self.llm)
        value, problems = await _CHECKS.run(self._read, written)
        if problems:
            again = f"{words}\n\n(An earlier answer of yours did not fit: {' '.join(problems)} Give the whole object, corrected.)"
            read, written = await ask_for_summary(outline, read, again, self.llm)
            value, problems = await _CHECKS.run(self._read, written)
        if problems:
            raise ModelError(f"The record of the history does not fit its schema: {' '.join(problems)}")
        text = f"## Record\n{to_json(value, indent=2).decode()}"
        return forget_with(outline, read, text, value)

    def record(self) -> CondenserSpec | None:
        """Return its parameters; None where its model cannot be recorded."""
        return record_asking("structured", self, schema=dict(self.json_schema))

    def _read(self, written: str) -> tuple[dict[str, JsonValue], list[str]]:
        """Return the object, and what is wrong with it."""
        fences = written.split("```")
        if len(fences) == 3 and not written.startswith("{"):
            written = fences[1].partition("\n")[2]
        try:
            value: JsonValue = from_json(written)
        except ValueError as error:
            return {}, [f"It is not JSON: {error}."]
        if not isinstance(value, dict):
            return {}, ["It is not a JSON object."]
        return value, schema_errors(self.json_schema, value)
