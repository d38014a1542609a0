"""The tool with which an agent asks the user a question."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Sequence
from typing import Final, Self

from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agentcore.display import DisplayBlock, MarkdownBlock
from agentcore.tools.context import ToolContext
from agentcore.tools.definition import Action, Arguments, Tool, ToolAnnotations, ToolSpec
from agentcore.tools.observation import TextObservation
from agentcore.tools.question import Question, show_answer


class AskUserAction(Action):
    """The question to ask."""

    # It is imported with everything else: its descriptions are told without reading its source.
    model_config = ConfigDict(use_attribute_docstrings=False)

    text: str = Field(description="The question, with all that a person needs to answer it.")
    answer_schema: dict[str, JsonValue] | None = Field(
        default=None,
        description="A JSON Schema that the answer has to fit, where it is not text.",
    )
    options: tuple[str, ...] = Field(default=(), description="Answers to choose from, where it is a choice.")

    @property
    def question(self) -> Question:
        """The question."""
        return Question(text=self.text, answer_schema=self.answer_schema or None, options=self.options)

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            _ = self.question
        except ValidationError as error:
            words = error.errors(include_url=False)[0]["msg"]
            raise PydanticCustomError("question", "{words}", {"words": words}) from error
        return self


def _normalize(arguments: Arguments) -> Arguments:
    if "text" in arguments:
        return arguments
    for name in ("question", "message", "prompt"):
        if isinstance(arguments.get(name), str):
            return {"text" if key == name else key: value for key, value in arguments.items()}
    return arguments


async def _ask(action: AskUserAction, ctx: ToolContext) -> TextObservation:
    # Reached only where another tool calls it: from within a call that runs.
    answer = await ctx.question(action.text, action.question.answer_schema, action.options)
    return TextObservation(text=show_answer(answer))


def _show(action: AskUserAction) -> Sequence[DisplayBlock]:
    options = "".join(f"\n{number}. {option}" for number, option in enumerate(action.options, 1))
    return (MarkdownBlock(text=f"{action.text}\n{options}" if options else action.text),)


ask_user: Final = Tool(
    name="ask_user",
    description=(
        "Ask the user a question and wait for the answer. Ask when you cannot find out yourself and a wrong guess would "
        "cost more than waiting. Calls after it in the same reply are not run."
    ),
    action=AskUserAction,
    execute=_ask,
    question=lambda action: action.question,
    # This tool is made when it is imported: validating its values would have pydantic build their schemas then.
    annotations=ToolAnnotations.model_construct(
        title="Ask the user", read_only=True, destructive=False, idempotent=True, open_world=False
    ),
    resources=(),
    aliases=("ask_question", "ask_followup_question", "ask_human", "AskUserQuestion"),
    normalize=_normalize,
    ignored=("security_risk",),
    display_call=_show,
    spec=ToolSpec.model_construct(name="ask_user"),
)
"""The tool with which an agent asks the user a question: `Agent(llm=..., tools=[ask_user])`.

The call does not run: the conversation settles as waiting, also for days and through restarts, and the answer
(`conversation.answer`) is the call's observation.
"""
