"""The tools that every agent has, to finish and to think, and the output that it finishes with."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, TypeAdapter, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError, to_json

from agentcore.display import DisplayBlock, MarkdownBlock, TableBlock
from agentcore.errors import SchemaError
from agentcore.messages import ResultBlock
from agentcore.schema import check_schema, json_schema_of_type, plain_schema, schema_errors
from agentcore.tools.context import ToolContext
from agentcore.tools.definition import Action, Arguments, Tool, ToolAnnotations, ToolSpec
from agentcore.tools.observation import Observation, TextObservation


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


def output_schema_of(output: Any) -> dict[str, JsonValue]:
    """Return an output, a type or an `OutputSchema`, as a log holds it: its name and its JSON Schema.

    Raises:
        SchemaError: it is not a type, or one that JSON Schema can't say.
    """
    if isinstance(output, OutputSchema):
        return output.record()
    name = output.__name__ if isinstance(output, type) else str(output).replace("typing.", "")
    return {"name": name, "schema": json_schema_of_type(output)}


def read_output(output: Any, data: JsonValue) -> Any:
    """Return data as the output: a value of the type, or the data itself where there is a schema only.

    Raises:
        ValueError: it does not fit; the message has a sentence for each error.
    """
    if not isinstance(output, OutputSchema):
        return TypeAdapter[Any](output).validate_python(data)
    try:
        errors = schema_errors(output.schema, data)
    except SchemaError as error:
        raise ValueError(str(error)) from error
    if errors:
        raise ValueError(" ".join(errors))
    return data


class FinishAction(Action):
    """The work is done, or can't be."""

    # These two are imported with everything else: their descriptions are told without reading their source.
    model_config = ConfigDict(use_attribute_docstrings=False)

    message: str = Field(description="What to tell the user: what was done, what was found, and what is left.")


class FinishObservation(Observation):
    """The result of the work."""

    message: str
    result: JsonValue = None
    """The output, where the agent has a model for it."""

    def to_content(self) -> Sequence[str | ResultBlock]:
        return ("The work is marked as finished.",)


class ThinkAction(Action):
    """A thought."""

    model_config = ConfigDict(use_attribute_docstrings=False)

    thought: str = Field(description="The thought, in as many words as it needs.")


_HARMLESS: Final = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

# What models send with any call, out of habit.
_IGNORED: Final = ("security_risk",)

# What models call the message where they do not call it that.
_OTHER_NAMES: Final = ("text", "summary", "answer", "final_answer", "response", "content", "task_completed")


def finish_tool(output: Any = None) -> Tool[FinishAction, FinishObservation]:
    """Make the tool with which the agent says that it is done.

    With an output, the agent gives that too: the action has it as `result`, checked, and typed where there is a type.

    Args:
        output: A type that pydantic knows, or an `OutputSchema`.

    Raises:
        SchemaError: the output's schema can't be told to a model.
    """
    spec = ToolSpec(name="finish", params={} if output is None else {"output": output_schema_of(output)})
    action = FinishAction if output is None else _action_with(output)
    described = "Say that the work is done, or that it can't be done and why. Nothing happens after it."
    if output is not None:
        described += " Give the result in the form that its fields ask for."
    return Tool(
        name="finish",
        description=described,
        action=action,
        execute=_finish,
        annotations=ToolAnnotations(title="Finish", **_HARMLESS),
        resources=(),
        aliases=("submit", "done", "complete", "attempt_completion"),
        normalize=partial(_normalize_finish, _OTHER_NAMES if output is not None else (*_OTHER_NAMES, "result")),
        ignored=("command", *_IGNORED),
        finishes=True,
        display_call=_show_finish,
        display_answer=_show_nothing,
        spec=spec,
    )


def think_tool() -> Tool[ThinkAction, TextObservation]:
    """Make the tool with which the agent writes down a thought, and does nothing else."""
    return Tool(
        name="think",
        description=(
            "Write down a thought: a plan, a comparison of ways to go on, what a result means. "
            "It changes nothing and finds out nothing."
        ),
        action=ThinkAction,
        execute=_think,
        annotations=ToolAnnotations(title="Think", **_HARMLESS),
        resources=(),
        ignored=_IGNORED,
        display_call=lambda action: (MarkdownBlock(text=action.thought),),
        display_answer=_show_nothing,
        spec=ToolSpec(name="think"),
    )


def _action_with(output: Any) -> type[FinishAction]:
    class FinishWith(FinishAction):
        # There is no source to look for attribute docstrings in, and looking would read files.
        model_config = ConfigDict(use_attribute_docstrings=False)

    result: Any = output
    if isinstance(output, OutputSchema):
        annotation = WithJsonSchema(plain_schema(output.schema))
        result = Annotated[JsonValue, AfterValidator(partial(_checked, output)), annotation]
    fields: dict[str, Any] = {"result": (result, Field(description="The result of the work."))}
    return create_model("FinishAction", __base__=FinishWith, __module__=__name__, **fields)


def _checked(output: OutputSchema, data: JsonValue) -> JsonValue:
    try:
        return read_output(output, data)
    except ValueError as error:
        # Not the error itself: pydantic would write "Value error, " before its words, and more behind them.
        raise PydanticCustomError("output", "{words}", {"words": str(error).removesuffix(".")}) from error


def _normalize_finish(other_names: Sequence[str], arguments: Arguments) -> Arguments:
    if "message" in arguments:
        return arguments
    for name in other_names:
        if isinstance(arguments.get(name), str):
            return {"message" if key == name else key: value for key, value in arguments.items()}
    return arguments


async def _finish(action: FinishAction, ctx: ToolContext) -> FinishObservation:  # noqa: ARG001 every executor is given it
    data = cast("dict[str, JsonValue]", action.model_dump(mode="json"))
    return FinishObservation(message=action.message, result=data.get("result"))


async def _think(action: ThinkAction, ctx: ToolContext) -> TextObservation:  # noqa: ARG001 every executor is given it
    return TextObservation(text="The thought is written down.")


def _show_finish(action: FinishAction) -> Sequence[DisplayBlock]:
    message = MarkdownBlock(text=action.message, place="message")
    if not hasattr(action, "result"):
        return (message,)
    result: JsonValue = action.model_dump(mode="json")["result"]
    fields = result if isinstance(result, dict) else {"result": result}
    rows = [(name, value if isinstance(value, str) else to_json(value).decode()) for name, value in fields.items()]
    return message, TableBlock(rows=tuple(rows))


def _show_nothing(_action: Action, _observation: Observation) -> Sequence[DisplayBlock]:
    """Show nothing of an answer that says only to the model that it was heard."""
    return (MarkdownBlock(text=""),)
