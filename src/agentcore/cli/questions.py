"""Questions at the terminal: show one, and read its answer from a line of text."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from pydantic import JsonValue
from rich.console import Console

from agentcore.cli.console import DIM, WARN, Glyphs, print_line, print_text, styled
from agentcore.cli.text import one_line, printable
from agentcore.conversation import Answered, Declined
from agentcore.errors import AnswerRefused
from agentcore.events import QuestionAsked
from agentcore.tools import check_answer

_PROMPT = "Answer (Enter: later, /decline [reason]): "


def parse_answer(question: QuestionAsked, text: str) -> JsonValue:
    """Return the answer that a line of text is: the number of an option, JSON where the question has a schema, or the text.

    Raises:
        AnswerRefused: It does not fit the question.
    """
    text = text.strip()
    if text.isdecimal() and text not in question.options and 0 < int(text[:9]) <= len(question.options):
        return question.options[int(text) - 1]
    if question.answer_schema is None:
        return check_answer(question, text)
    try:
        value = json.loads(text)
    except ValueError:
        return check_answer(question, text)
    try:
        return check_answer(question, value)
    except AnswerRefused as refused:
        try:
            return check_answer(question, text)  # "42" may be meant as text
        except AnswerRefused:
            raise refused from None


def print_question(console: Console, question: QuestionAsked) -> None:
    """Print all of a question."""
    print_line(console, styled("Question", WARN))
    bar = f" {Glyphs(console.encoding).bar} "
    for line in printable(question.text).split("\n"):
        print_line(console, styled(bar, DIM).append(line))
    for number, option in enumerate(question.options, 1):
        print_line(console, styled(bar, DIM).append(f"{number}. {one_line(option)}"))
    if question.answer_schema is not None:
        schema = json.dumps(question.answer_schema, ensure_ascii=False)
        print_line(console, styled(f"{bar}as JSON that fits {one_line(schema)}", DIM))


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
