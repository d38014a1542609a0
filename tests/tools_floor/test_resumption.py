"""What a call that asks is raised with, and what it is resumed with."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.tools import NOTE_LIMIT, InputRequired, Question


def test_the_event_has_the_question_the_note_and_the_masks_that_stood_in_it() -> None:
    question = Question(text="Which port?", answer_schema={"type": "integer"})
    event = InputRequired(question, {"state": "<secret:TOKEN>"}).asked("ev_1")
    assert (event.cause, event.text, event.answer_schema) == ("ev_1", "Which port?", {"type": "integer"})
    assert (event.resumes, event.live, event.source) == (True, False, "environment")
    assert (event.note, event.typed_masks) == ({"state": "<secret:TOKEN>"}, ("<secret:TOKEN>",))


def test_a_note_is_a_copy_of_its_own() -> None:
    note: dict[str, Any] = {"list": [1]}
    required = InputRequired(Question(text="?"), note)
    note["list"].append(2)
    assert required.note == {"list": [1]}
    assert InputRequired(Question(text="?")).note is None


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("note", "why"),
    [
        (b"bytes", "has to be JSON"),
        ({"x": float("inf")}, "has to be JSON"),
        ("x" * NOTE_LIMIT, "too large"),
        (deep(200), "too deeply"),
        (deep(100_000), "has to be JSON"),
    ],
)
def test_a_note_that_cannot_be_recorded_is_refused(note: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        InputRequired(Question(text="?"), note)


def test_it_says_which_question_it_is() -> None:
    assert str(InputRequired(Question(text="Which port?"))) == "The answer to a question is required: Which port?"
