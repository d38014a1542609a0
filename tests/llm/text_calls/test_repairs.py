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


def call(**arguments: Any) -> CallEnded:
    return CallEnded("write", arguments)


def write(parameters: str = "<parameter=path>a</parameter>\n", end: str = "</function>") -> str:
    return f"<function=write>\n{parameters}{end}"


A, B = write(), write("<parameter=path>b</parameter>\n")
LOOKS = CallEnded("look", {})
OPEN_TAG = "grep '<function=look>' x"

MEANT: list[tuple[str, list[Piece]]] = [
    # Types.
    (
        write(
            "<parameter=path>007</parameter>\n<parameter=line>7</parameter>\n<parameter=force>true</parameter>\n"
            '<parameter=options>{"a": [1, null]}</parameter>\n<parameter=tags>["x"]</parameter>\n'
            "<parameter=until>null</parameter>\n"
        ),
        [call(path="007", line=7, force=True, options={"a": [1, None]}, tags=["x"], until=None)],
    ),
    ("<function=look>\n</function>", [LOOKS]),
    ("<function=look></function>", [LOOKS]),
    # An end that is missing.
    *(
        (write("<parameter=path>a</parameter>", end), [call(path="a")])
        for end in ("", "\n", "\n</function", "\n</func", "\n</")
    ),
    ("Done.\n<function=look>\n", [Words("Done."), LOOKS]),
    (write(end="") + B, [call(path="a"), call(path="b")]),
    (write("<parameter=path>a\n"), [call(path="a")]),
    (write("<parameter=path>a\n<parameter=line>7</parameter>\n"), [call(path="a", line=7)]),
    (write("<parameter=path>a\n") + "\n\n" + B, [call(path="a"), call(path="b")]),
    # Something around a call.
    (f"<tool_call>\n{A}\n</tool_call>", [call(path="a")]),
    (f"I write.\n<tool_call>{A}</tool_call>\n", [Words("I write."), call(path="a")]),
    (f"{A}\n</tool_call>", [call(path="a")]),
    ("<tool_call>\n" + write(end="</tool_call>"), [call(path="a")]),
    (f"<tool_call>\n{A}\n</tool_call>\n<tool_call>\n{B}\n</tool_call>\n", [call(path="a"), call(path="b")]),
    # Tags that are not quite tags.
    (write("<parameter=path=a.py</parameter>\n<parameter=line=7</parameter>\n"), [call(path="a.py", line=7)]),
    (write("<parameter=text=a > b</parameter>\n"), [call(text="a > b")]),
    ("<function=write\n<parameter=path>a</parameter>\n</function>", [call(path="a")]),
    ('<function="write"><parameter="path">a</parameter></function>', [call(path="a")]),
    # Arguments that are one JSON object.
    ('<function=write>{"path": "</function>", "line": 7}</function>', [call(path="</function>", line=7)]),
    ('<function=write>\n{"path": "a"}\n', [call(path="a")]),
    # Words around a call.
    (f"I write.\n\n{A}\n\nNow I wait.", [Words("I write."), call(path="a"), Words("Now I wait.")]),
    # Thinking: only its end is there; or both tags, and then a call in it is none.
    (f"I should write.\n</think>\n\n{A}", [Words("I should write."), WasThinking(), call(path="a")]),
    ("Hm.</think><function=look></function>", [Words("Hm."), WasThinking(), LOOKS]),
    ("Hm.\n</think>\n\nThe answer.", [Words("Hm."), WasThinking(), Words("The answer.")]),
    ("</think>\nThe answer.", [Words("The answer.")]),
    (
        "<think>\nI could <function=look></function>.\n</think>\n\n<function=look>\n</function>",
        [Thinking("I could <function=look></function>."), LOOKS],
    ),
    ("<think>On and on", [Thinking("On and on")]),
    # Who speaks about tags.
    *(
        (text, [Words(text)])
        for text in (
            "The tag `</think>` ends thinking.",
            "A call begins with `<function=`, then its name.",
            "Wrap it in <tool_call> if you like.",
            "a </function> of b",
            "a < b",
            "I <think> so.",
        )
    ),
    # A value that opens a tag and never closes it, has escaped tags, or is indented.
    (write(f"<parameter=text>{OPEN_TAG}</parameter>\n") * 2, [call(text=OPEN_TAG)] * 2),
    (write(f"<parameter=text>{OPEN_TAG}</parameter>\n<parameter=line>7</parameter>\n"), [call(text=OPEN_TAG, line=7)]),
    (write("<parameter=text>a &lt;/function> b</parameter>\n"), [call(text="a </function> b")]),
    (
        write("<parameter=text>\n    def f():\n\n        pass\n\n</parameter>\n"),
        [call(text="    def f():\n\n        pass\n")],
    ),
    # What can't be read, and what follows it.
    ("<function=wri", [CallEnded("wri", "<function=wri")]),
    (write("ls\n") + "\n<function=look></function>\nDone.", [CallEnded("write", write("ls\n")), LOOKS, Words("Done.")]),
    # Half a tag is never shown.
    *((f"I write.{half}", [Words("I write.")]) for half in ("<func", "<function=", "</think", "<tool_c")),
]


@pytest.mark.parametrize(("text", "pieces"), MEANT, ids=lambda value: repr(value)[:40])
def test_a_reply_is_read_as_it_was_meant(text: str, pieces: list[Piece]) -> None:
    assert read(text) == pieces


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
    assert read(text) == [call(text=value, line=7)]
    assert read(f"{text}\n\n{text}\nDone.") == [call(text=value, line=7)] * 2 + [Words("Done.")]


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


@pytest.mark.parametrize("text", ["<function=write>\n<parameter=path>a</parameter>\n", "<function=look>\n"])
def test_a_call_that_is_not_closed_is_not_whole_where_the_reply_was_cut_off(text: str) -> None:
    (found,) = read(text, cut_off=True)
    assert isinstance(found, CallEnded)
    assert found.arguments == text.strip()
    (closed,) = read(f"{text}</function>", cut_off=True)
    assert isinstance(closed, CallEnded)
    assert isinstance(closed.arguments, dict)


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
