"""Calls that end with a question, and are resumed with the answer: hours later, and in another process, if need be.

Above: the conversation, which records the question and the note, and calls `Tool.resume`. A question that a call waits for
while it runs is another thing: `ToolContext.question`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, final

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates
from agentcore._value import is_too_deep
from agentcore.events import QuestionAsked
from agentcore.secrets import find_masks
from agentcore.tools.question import Question

NOTE_LIMIT: Final = 1_000_000
"""The most characters of a note, as JSON."""


@final
class InputRequired(Exception):
    """Raised by a tool that cannot go on without an answer from a person: `raise InputRequired(Question(text="Which port?"), note)`.

    It ends the call without an answer for the model. The conversation asks the question and waits, through restarts too.
    Then it calls the tool's `resume` with the note and the answer. That may raise it again, to ask the next question.
    """

    def __init__(self, question: Question, note: JsonValue = None) -> None:
        """Take the question, and what the tool needs to go on.

        Args:
            question: The question.
            note: JSON that is recorded with the question, and handed back to `resume`. It is not meant for people.

        Raises:
            ValueError: The note is not JSON, or it is too large.
        """
        super().__init__(f"The answer to a question is required: {question.text}")
        self.question = question
        self.note: JsonValue = _plain(note)

    def asked(self, action_id: str) -> QuestionAsked:
        """Make the event that asks the question."""
        more = {"source": "environment", "resumes": True, "note": self.note, "typed_masks": find_masks(self.note)}
        return self.question.asked(action_id).model_copy(update=more)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """The end of a question, for the call that asked it."""

    note: JsonValue
    """The note that was raised with the question."""
    answer: JsonValue = None
    """The answer, which fits the question; None where it was declined."""
    declined: str | None = None
    """The reason why there is no answer; None where there is one."""


def _plain(note: JsonValue) -> JsonValue:
    try:
        text = json.dumps(note, allow_nan=False)
        plain: JsonValue = replace_lone_surrogates(json.loads(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The note of a question has to be JSON, and it is not: {error}.") from None
    if len(text) > NOTE_LIMIT:
        raise ValueError(
            f"The note of a question is too large: {len(text):,} characters, and {NOTE_LIMIT:,} is the most."
        )
    if is_too_deep(plain):
        raise ValueError("The note of a question is nested too deeply.")
    return plain
