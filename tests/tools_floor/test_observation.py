"""What the model is shown of an outcome, and what is recorded of it for programs."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock, TextBlock
from agentcore.tools import JsonObservation, Observation
from agentcore.tools.observation import observe

PICTURE = ImageBlock(data="aGk=", media_type="image/png")
DOCUMENT = DocumentBlock(data="aGk=", name="plan.pdf")


class Exit(Observation):
    code: int
    text: str

    @property
    def is_error(self) -> bool:
        return self.code != 0

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text, PICTURE)


class Town(BaseModel):
    name: str
    founded: dt.date


@dataclass
class Point:
    x: int
    y: int


def test_an_observation_is_its_fields_as_json_unless_it_says_otherwise() -> None:
    class Plain(Observation):
        n: int
        word: str = "ü"

    plain = Plain(n=1)
    assert plain.blocks() == (TextBlock(text='{"n":1,"word":"ü"}'),)
    assert plain.to_data() == {"n": 1, "word": "ü"}
    assert plain.is_error is False


def test_an_observation_of_ones_own_decides_what_is_shown_and_whether_it_is_an_error() -> None:
    seen = Exit(code=2, text="no such file")
    assert seen.blocks() == (TextBlock(text="no such file"), PICTURE)
    assert seen.to_data() == {"code": 2, "text": "no such file"}
    assert seen.is_error
    assert observe(seen, "t") is seen
    assert not Exit(code=0, text="").is_error


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (Town(name="Ulm", founded=dt.date(854, 7, 22)), {"name": "Ulm", "founded": "0854-07-22"}),
        ([Town(name="Ulm", founded=dt.date(854, 7, 22))], [{"name": "Ulm", "founded": "0854-07-22"}]),
        (Point(1, 2), {"x": 1, "y": 2}),
        ({"a": {1}}, {"a": [1]}),
        (["a", "b"], ["a", "b"]),
        ((1, 2.5, True, None), [1, 2.5, True, None]),
        (0, 0),
        (False, False),
        (math.nan, "NaN"),
        ([], []),
    ],
    ids=repr,
)
def test_everything_else_is_shown_as_json(result: object, value: object) -> None:
    seen = observe(result, "t")
    assert isinstance(seen, JsonObservation)
    assert seen.value == value
    assert seen.to_data() == {"value": value}


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        ("two words", (TextBlock(text="two words"),)),
        (None, (TextBlock(text="Done."),)),
        (PICTURE, (PICTURE,)),
        (["before", PICTURE], (TextBlock(text="before"), PICTURE)),
        (DOCUMENT, (DOCUMENT,)),
        ((DOCUMENT, "after"), (DOCUMENT, TextBlock(text="after"))),
    ],
)
def test_strings_and_blocks_are_shown_as_they_are_and_not_recorded_twice(
    result: object, blocks: Sequence[ResultBlock]
) -> None:
    seen = observe(result, "t")
    assert (seen.blocks(), seen.to_data()) == (blocks, {})


def test_what_json_can_not_say_is_an_error_that_names_tool_and_type() -> None:
    with pytest.raises(TypeError, match=r"'paint'.*object"):
        observe(object(), "paint")
    with pytest.raises(TypeError, match=r"'paint'.*bytes"):
        observe(b"\xff", "paint")
