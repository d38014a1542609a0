"""Questions to a person: what one consists of, and which answers fit.

Above: the tool `ask_user`, and the conversation, which records questions and hands the answers over. A question is written
by a model, so that everything about it is bounded and checked before anybody sees it.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import json
from collections.abc import Sequence
from typing import Any, Final, Self

from pydantic import JsonValue, model_validator
from pydantic_core import PydanticCustomError

from agentcore._text import replace_lone_surrogates
from agentcore._value import Value, is_too_deep
from agentcore.errors import AnswerRefused, SchemaError
from agentcore.events import QuestionAsked
from agentcore.schema import check_schema, schema_errors

TEXT_LIMIT: Final = 4_000
"""The most characters of a question."""
SCHEMA_LIMIT: Final = 10_000
"""The most characters of an answer's schema, as JSON."""
OPTIONS_LIMIT: Final = 50
"""The most options."""
OPTION_LIMIT: Final = 500
"""The most characters of an option."""
ANSWER_LIMIT: Final = 30_000
"""The most characters of an answer, as JSON where it is not text: the model reads all of it."""


class Question(Value):
    """A question to a person, and which answers fit it: text, one of the options, or what the schema describes.

    Raises:
        ValueError: Something is missing, too long, or not a JSON Schema; the message says what.
    """

    positional_fields = ("text",)

    text: str
    answer_schema: dict[str, JsonValue] | None = None
    """The JSON Schema of the answer; None where it is text."""
    options: tuple[str, ...] = ()
    """The answers to choose from; empty where there is no choice."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if problem := _problem(self):
            # Not a ValueError: pydantic would write "Value error, " before its words.
            raise PydanticCustomError("question", "{words}", {"words": problem.removesuffix(".")})
        return self

    def asked(self, action_id: str, *, live: bool = False) -> QuestionAsked:
        """Make the event that asks it."""
        return QuestionAsked(
            source="environment" if live else "agent",
            cause=action_id,
            text=self.text,
            answer_schema=self.answer_schema,
            options=self.options,
            live=live,
        )


def _problem(question: Question) -> str | None:
    """Return what is wrong with a question; None where nothing is."""
    text, options = question.text, question.options
    if not text.strip():
        return "The text of the question is empty."
    if len(text) > TEXT_LIMIT:
        return f"The question is too long: {len(text):,} characters, and {TEXT_LIMIT:,} is the most."
    if len(options) > OPTIONS_LIMIT:
        return f"There are {len(options)} options, and {OPTIONS_LIMIT} is the most."
    if any(not option.strip() or len(option) > OPTION_LIMIT for option in options):
        return f"An option is empty, or longer than {OPTION_LIMIT} characters."
    if len(set(options)) < len(options):
        return "Two options are the same."
    return None if question.answer_schema is None else _schema_problem(question.answer_schema, options)


def _schema_problem(schema: dict[str, JsonValue], options: Sequence[str]) -> str | None:
    if is_too_deep(schema) or len(json.dumps(schema)) > SCHEMA_LIMIT:
        return f"The answer_schema is too large: {SCHEMA_LIMIT:,} characters of JSON is the most."
    try:
        check_schema(schema)
        # A part that is invalid where data meets it shows only there.
        misfits = [option for option in options or ("",) if schema_errors(schema, option)]
    except SchemaError as error:
        return str(error)
    if options and misfits:
        return f"The option {misfits[0]!r} does not fit the answer_schema: use one of the two."
    return None


def check_answer(question: QuestionAsked, value: Any) -> JsonValue:
    """Return an answer as plain JSON of its own.

    Raises:
        AnswerRefused: It does not fit the question; the message says why.
    """
    try:
        answer: JsonValue = replace_lone_surrogates(json.loads(json.dumps(value, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise AnswerRefused(f"The answer has to be JSON (text, numbers, lists, ...), and it is not: {error}.") from None
    size = len(show_answer(answer))
    if size > ANSWER_LIMIT:
        raise AnswerRefused(f"The answer is too long: {size:,} characters, and {ANSWER_LIMIT:,} is the most.")
    if is_too_deep(answer):
        raise AnswerRefused("The answer is nested too deeply.")
    if question.options and answer not in question.options:
        listed = ", ".join(map(repr, question.options))
        raise AnswerRefused(f"The answer has to be one of the options ({listed}), not {_short(answer)}.")
    if question.answer_schema is not None:
        try:
            problems = schema_errors(question.answer_schema, answer)
        except SchemaError as error:
            raise AnswerRefused(f"{error} Decline the question instead.") from error
        if problems:
            raise AnswerRefused(f"The answer does not fit the question's schema: {' '.join(problems)}")
    elif not isinstance(answer, str):
        raise AnswerRefused(f"The answer has to be text, not {_short(answer)}.")
    elif not answer.strip():
        raise AnswerRefused("The answer is empty. To leave the question unanswered, decline it.")
    return answer


def show_answer(answer: JsonValue) -> str:
    """Return an answer as a model reads it."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _short(answer: JsonValue) -> str:
    text = json.dumps(answer, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
