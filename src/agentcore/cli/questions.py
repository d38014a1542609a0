"""Questions at the terminal: show one, and read its answer from a line of text."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue
from rich.console import Console

from agentcore.cli.console import DIM, WARN, Glyphs, print_line, print_text, styled
from agentcore.cli.text import one_line, printable
from agentcore.conversation import Answered, Declined
from agentcore.errors import AnswerRefused
from agentcore.events import QuestionAsked
from agentcore.tools import check_answer

_PROMPT = "Answer (Enter: later, /decline [reason]): "

_YES_OR_NO: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,1000}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]{1,3})?")
_BOUNDS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}


def parse_answer(question: QuestionAsked, text: str) -> JsonValue:
    """Return the answer that a line of text is: a choice or its number, yes or no, a number, text; JSON where it is none of these.

    Raises:
        AnswerRefused: It does not fit the question; the message says what to type.
    """
    text = text.strip()
    schema = question.answer_schema
    choices = _choices(question)
    shown = [_plain(choice) for choice in choices]
    if text in shown:
        return check_answer(question, choices[shown.index(text)])
    if text.isdecimal() and 0 < int(text[:9]) <= len(choices):
        return check_answer(question, choices[int(text[:9]) - 1])
    if schema is None or question.options:
        return check_answer(question, text)
    wanted = f"Type {describe_wanted(question)}"
    if choices:
        raise AnswerRefused(f"{wanted}, not {_quote(text)}.")
    match schema.get("type"):
        case "string":
            return check_answer(question, text)
        case "boolean":
            value = _YES_OR_NO.get(text.lower())
        case "integer":
            value = int(text) if _INTEGER.fullmatch(text) else None
        case "number":
            value = int(text) if _INTEGER.fullmatch(text) else float(text) if _NUMBER.fullmatch(text) else None
        case _:
            return _parse_json(question, text)
    try:
        if value is not None:
            return check_answer(question, value)
    except AnswerRefused as error:
        raise AnswerRefused(f"{wanted}, not {_quote(text)}. ({error})") from None
    raise AnswerRefused(f"{wanted}, not {_quote(text)}.")


def _parse_json(question: QuestionAsked, text: str) -> JsonValue:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        try:
            return check_answer(question, text)  # a schema without a type may take text
        except AnswerRefused:
            where = f": {error.msg}, at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
            raise AnswerRefused(f"This is not JSON{where}. Type {describe_wanted(question)}.") from None
    try:
        return check_answer(question, value)
    except AnswerRefused as refused:
        try:
            return check_answer(question, text)  # "42" may be meant as text
        except AnswerRefused:
            raise refused from None


def describe_wanted(question: QuestionAsked) -> str:
    """Return what is to be typed, in words: "yes or no", "a whole number, at least 1"."""
    schema = question.answer_schema
    if choices := _choices(question):
        return f"one of {one_line(', '.join(map(_plain, choices)))}, or its number"
    match None if schema is None else schema.get("type"):
        case None if schema is None:
            return "text"
        case "string":
            return "text"
        case "boolean":
            return "yes or no"
        case "integer":
            return ", ".join(["a whole number", *_bounds(schema or {})])
        case "number":
            return ", ".join(["a number", *_bounds(schema or {})])
        case _:
            return f"JSON that fits {one_line(json.dumps(schema, ensure_ascii=False))}"


def _choices(question: QuestionAsked) -> Sequence[JsonValue]:
    """Return the answers to choose from: the options, or those that the schema lists."""
    listed = None if question.answer_schema is None else question.answer_schema.get("enum")
    return question.options or (listed if isinstance(listed, list) else ())


def _bounds(schema: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, words in _BOUNDS.items():
        if isinstance(bound := schema.get(name), int | float) and not isinstance(bound, bool):
            yield f"{words} {bound}"


def _plain(choice: JsonValue) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice, ensure_ascii=False)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:97]}...")


def print_question(console: Console, question: QuestionAsked) -> None:
    """Print all of a question."""
    print_line(console, styled("Question", WARN))
    bar = f" {Glyphs(console.encoding).bar} "
    for line in printable(question.text).split("\n"):
        print_line(console, styled(bar, DIM).append(line))
    choices = _choices(question)
    for number, choice in enumerate(choices, 1):
        print_line(console, styled(bar, DIM).append(f"{number}. {one_line(_plain(choice))}"))
    if question.answer_schema is not None and not choices:
        print_line(console, styled(f"{bar}{describe_wanted(question)}", DIM))


async def ask_person(
    console: Console, question: QuestionAsked, read_line: Callable[[str], Awaitable[str | None]], by: str | None
) -> Answered | Declined | None:
    """Ask until there is an answer that fits; None leaves the question waiting."""
    print_question(console, question)
    while True:
        text = await read_line(_PROMPT)
        if text is None or not text.strip():
            return None
        word, _, reason = text.strip().partition(" ")
        if word == "/decline":
            return Declined(reason, by=by) if reason else Declined(by=by)
        try:
            return Answered(parse_answer(question, text), by=by)
        except AnswerRefused as error:
            print_text(console, printable(str(error)), WARN)
