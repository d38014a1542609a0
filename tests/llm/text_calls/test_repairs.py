"""Calls as models really write them."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.llm.text_calls.stream import CallBegan, CallEnded, Piece, TextDecoder, Thinking, WasThinking, Words
from agentcore.messages import ToolSchema

_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "text": {"type": "string"},
        "line": {"type": "integer"},
        "force": {"type": "boolean"},
        "options": {"type": "object"},
        "tags": {"type": "array"},
        "until": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
}
WRITE = ToolSchema(name="write", description="Writes.", parameters=_PARAMETERS)
LOOK = ToolSchema(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


def read(text: str, *, cut_off: bool = False) -> list[Piece]:
    reader = TextDecoder({"write": WRITE, "look": LOOK})
    found: list[Piece] = []
    for piece in [*reader.feed(text), *reader.finish(cut_off=cut_off)]:
        if isinstance(piece, Words) and found and isinstance(found[-1], Words):
            found[-1] = Words(found[-1].text + piece.text)
        elif not isinstance(piece, CallBegan):
            found.append(piece)
    return found


def only(text: str) -> Any:
    """Read a text that is one call and nothing else."""
    (found,) = read(text)
    assert isinstance(found, CallEnded)
    return found.arguments


def call(**arguments: Any) -> CallEnded:
    return CallEnded("write", arguments)


def test_a_call_is_read_with_its_types() -> None:
    assert only(
        "<function=write>\n<parameter=path>007</parameter>\n<parameter=line>7</parameter>\n"
        "<parameter=force>true</parameter>\n"
        '<parameter=options>{"a": [1, null]}</parameter>\n<parameter=tags>["x"]</parameter>\n'
        "<parameter=until>null</parameter>\n</function>"
    ) == {"path": "007", "line": 7, "force": True, "options": {"a": [1, None]}, "tags": ["x"], "until": None}
    assert only("<function=look>\n</function>") == {}
    assert only("<function=look></function>") == {}


@pytest.mark.parametrize("end", ["", "\n", "\n</function", "\n</func", "\n</"])
def test_a_missing_end_is_put_there(end: str) -> None:
    assert only(f"<function=write>\n<parameter=path>a</parameter>{end}") == {"path": "a"}


def test_a_call_without_parameters_may_miss_its_end_too() -> None:
    assert read("Done.\n<function=look>\n") == [Words("Done."), CallEnded("look", {})]


def test_a_missing_end_before_the_next_call_is_put_there() -> None:
    text = (
        "<function=write>\n<parameter=path>a</parameter>\n<function=write>\n<parameter=path>b</parameter>\n</function>"
    )
    assert read(text) == [call(path="a"), call(path="b")]


def test_a_missing_end_of_a_parameter_is_put_there() -> None:
    assert only("<function=write>\n<parameter=path>a\n</function>") == {"path": "a"}
    assert only("<function=write>\n<parameter=path>a\n<parameter=line>7</parameter>\n</function>") == {
        "path": "a",
        "line": 7,
    }
    text = "<function=write>\n<parameter=path>a\n</function>\n\n<function=write>\n<parameter=path>b</parameter>\n</function>"
    assert read(text) == [call(path="a"), call(path="b")]


@pytest.mark.parametrize(
    "wrapped", ["<tool_call>\n{}\n</tool_call>", "<tool_call>{}</tool_call>\n", "{}\n</tool_call>"]
)
def test_a_wrapper_around_a_call_is_taken_off(wrapped: str) -> None:
    text = wrapped.replace("{}", "<function=write>\n<parameter=path>a</parameter>\n</function>")
    assert read(text) == [call(path="a")]
    assert read(f"I write.\n{text}") == [Words("I write."), call(path="a")]


def test_a_wrapper_may_stand_for_the_end_of_the_call() -> None:
    text = "<tool_call>\n<function=write>\n<parameter=path>a</parameter>\n</tool_call>"
    assert only(text) == {"path": "a"}


def test_each_of_several_wrapped_calls_is_read() -> None:
    one = "<tool_call>\n<function=write>\n<parameter=path>{}</parameter>\n</function>\n</tool_call>\n"
    assert read(one.replace("{}", "a") + one.replace("{}", "b")) == [call(path="a"), call(path="b")]


def test_an_equals_sign_in_place_of_the_end_of_a_tag_is_understood() -> None:
    assert only("<function=write>\n<parameter=path=a.py</parameter>\n<parameter=line=7</parameter>\n</function>") == {
        "path": "a.py",
        "line": 7,
    }
    assert only("<function=write>\n<parameter=text=a > b</parameter>\n</function>") == {"text": "a > b"}


def test_a_tag_of_the_call_that_is_not_closed_is_understood() -> None:
    assert only("<function=write\n<parameter=path>a</parameter>\n</function>") == {"path": "a"}
    assert only('<function="write"><parameter="path">a</parameter></function>') == {"path": "a"}


def test_arguments_that_are_one_json_object_are_understood() -> None:
    assert only('<function=write>{"path": "</function>", "line": 7}</function>') == {"path": "</function>", "line": 7}
    assert only('<function=write>\n{"path": "a"}\n') == {"path": "a"}


def test_words_before_and_after_a_call_are_words() -> None:
    text = "I write.\n\n<function=write>\n<parameter=path>a</parameter>\n</function>\n\nNow I wait."
    assert read(text) == [Words("I write."), call(path="a"), Words("Now I wait.")]


def test_thinking_whose_end_alone_is_there_is_thinking() -> None:
    text = "I should write.\n</think>\n\n<function=write>\n<parameter=path>a</parameter>\n</function>"
    assert read(text) == [Words("I should write."), WasThinking(), call(path="a")]
    assert read("Hm.</think><function=look></function>")[1:] == [WasThinking(), CallEnded("look", {})]
    assert read("Hm.\n</think>\n\nThe answer.") == [Words("Hm."), WasThinking(), Words("The answer.")]
    assert read("</think>\nThe answer.") == [Words("The answer.")]


def test_thinking_between_its_tags_is_thinking_and_calls_in_it_are_none() -> None:
    text = "<think>\nI could <function=look></function>.\n</think>\n\n<function=look>\n</function>"
    assert read(text) == [Thinking("I could <function=look></function>."), CallEnded("look", {})]
    assert read("<think>On and on") == [Thinking("On and on")]


def test_who_speaks_about_tags_is_not_misread() -> None:
    for text in (
        "The tag `</think>` ends thinking.",
        "A call begins with `<function=`, then its name.",
        "Wrap it in <tool_call> if you like.",
        "a </function> of b",
        "a < b",
        "I <think> so.",
    ):
        assert read(text) == [Words(text)]


@pytest.mark.parametrize(
    "value",
    [
        "echo '</parameter>' and more",
        "</parameter></div>",
        "echo '</function>'",
        "<function=a>\n<parameter=x>1</parameter>\n</function>",
        "see <function=look> and </function>",
        "<parameter=other>1</parameter>",
        "<parameter=other>1</parameter>\n<parameter=more>2</parameter>\nand so on",
        "a\n</function>\nb",
        "<tool_call></tool_call>",
        "&lt;div&gt;",
        "&lt;/parameter&gt;",
    ],
)
def test_a_value_may_hold_the_tags(value: str) -> None:
    text = f"<function=write>\n<parameter=text>{value}</parameter>\n<parameter=line>7</parameter>\n</function>"
    assert only(text) == {"text": value, "line": 7}
    assert read(f"{text}\n\n{text}\nDone.") == [call(text=value, line=7)] * 2 + [Words("Done.")]


def test_a_value_that_opens_a_tag_and_never_closes_it_ends_where_it_does() -> None:
    text = "<function=write>\n<parameter=text>grep '<function=look>' x</parameter>\n</function>"
    assert only(text) == {"text": "grep '<function=look>' x"}
    assert read(f"{text}\n{text}") == [call(text="grep '<function=look>' x")] * 2
    more = text.replace("\n</function>", "\n<parameter=line>7</parameter>\n</function>")
    assert only(more) == {"text": "grep '<function=look>' x", "line": 7}


def test_tags_that_a_model_escaped_are_the_tags() -> None:
    assert only("<function=write>\n<parameter=text>a &lt;/function> b</parameter>\n</function>") == {
        "text": "a </function> b"
    }


def test_indentation_is_kept() -> None:
    text = "<function=write>\n<parameter=text>\n    def f():\n\n        pass\n\n</parameter>\n</function>"
    assert only(text) == {"text": "    def f():\n\n        pass\n"}


@pytest.mark.parametrize(
    "text",
    [
        "<function=write>\n<parameter=text>half a fi",
        "<function=write>\n<parameter=text>half </parameter> a fi",
        "<function=write>\n<parameter=te",
        "<function=write>\n<par",
        "<function=write>\n<",
        '<function=write>\n{"path": "a',
        "<function=write>\nls -la\n</function>",
        "<function=write>\n<parameter=path>a</parameter>\nls -la\n</function>",
        "<function=write>\n<parameter=path>a</parameter>\n<parameter=path>b</parameter>\n</function>",
        "<function=write>\n<parameter>a</parameter>\n</function>",
    ],
)
def test_what_looks_like_a_call_and_cannot_be_read_is_given_as_it_is(text: str) -> None:
    assert read(f"Now.\n{text}\n") == [Words("Now."), CallEnded("write", text)]


def test_a_name_that_was_cut_off_is_a_call_that_cannot_be_read() -> None:
    assert read("<function=wri") == [CallEnded("wri", "<function=wri")]


@pytest.mark.parametrize("text", ["<function=write>\n<parameter=path>a</parameter>\n", "<function=look>\n"])
def test_a_call_that_is_not_closed_is_not_whole_where_the_reply_was_cut_off(text: str) -> None:
    (found,) = read(text, cut_off=True)
    assert isinstance(found, CallEnded)
    assert found.arguments == text.strip()
    (closed,) = read(f"{text}</function>", cut_off=True)
    assert isinstance(closed, CallEnded)
    assert isinstance(closed.arguments, dict)


def test_what_follows_a_call_that_cannot_be_read_is_read() -> None:
    bad = "<function=write>\nls\n</function>"
    assert read(f"{bad}\n<function=look></function>\nDone.") == [
        CallEnded("write", bad),
        CallEnded("look", {}),
        Words("Done."),
    ]


@pytest.mark.parametrize("half", ["<func", "<function=", "</think", "<tool_c"])
def test_half_a_tag_is_never_shown(half: str) -> None:
    assert read(f"I write.{half}") == [Words("I write.")]


def test_a_call_is_there_as_soon_as_its_last_character_is() -> None:
    reader = TextDecoder({"write": WRITE})
    text = "<function=write>\n<parameter=text>a </function> of b</parameter>\n</function>"
    early = [piece for letter in text[:-1] for piece in reader.feed(letter)]
    assert early == [CallBegan("write")]
    assert list(reader.feed(text[-1])) == [call(text="a </function> of b")]


def test_a_long_value_in_many_pieces_is_read_in_time_that_grows_with_its_length() -> None:
    reader = TextDecoder({"write": WRITE})
    found = list(reader.feed("<function=write>\n<parameter=text>"))
    for _ in range(40_000):
        found += reader.feed("a few more words, ")
    found += reader.feed("</parameter>\n</function>")
    assert isinstance(found[-1], CallEnded)
    assert found[-1].arguments == {"text": "a few more words, " * 40_000}
