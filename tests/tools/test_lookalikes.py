"""Text that is not found because of characters that look alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentcore.errors import ToolError
from agentcore_tools import edit_tool
from agentcore_tools.files.lookalikes import fold
from opened_tool import Editor, open_tool
from rounds import some_quick

CASES = [
    ("say \u201chi\u201d", 'say "hi"', "the file has U+201C LEFT DOUBLE QUOTATION MARK, U+201D RIGHT DOUBLE QUOTATION MARK"),
    ("it's", "it\u2019s", "the text given has U+2019 RIGHT SINGLE QUOTATION MARK"),
    ("a\u2013b", "a-b", "the file has U+2013 EN DASH"),
    ("a\u2013b", "a\u2014b", "the file has U+2013 EN DASH and the text given has U+2014 EM DASH"),
    ("1\u00a0000", "1 000", "the file has U+00A0 NO-BREAK SPACE"),
    ("cafe\u0301", "caf\u00e9", "the file has U+0301 COMBINING ACUTE ACCENT and the text given has U+00E9 LATIN SMALL LETTER E WITH ACUTE"),
    ("caf\u00e9 \u00e0 la", "cafe\u0301 \u00e0 la", "the file has U+00E9 LATIN SMALL LETTER E WITH ACUTE and the text given has U+0301 COMBINING ACUTE ACCENT"),
]  # fmt: skip


@pytest.mark.parametrize(("there", "sought", "difference"), some_quick(CASES, 4))
async def test_a_miss_by_characters_that_look_alike_names_them(
    editor: Editor, there: str, sought: str, difference: str
) -> None:
    path = Path(editor.workspace.root, "f")
    path.write_text(f"first\nbefore {there} after\n")
    sentence = f"Line 2 differs only in characters that look alike: {difference}. Use those of the file."
    with pytest.raises(ToolError, match=re.escape(sentence)):
        await editor("str_replace", path="f", old_str=f"before {sought}", new_str="x")
    async with open_tool(edit_tool(), Path(editor.workspace.root)) as edit:
        with pytest.raises(ToolError, match=re.escape(sentence)):
            await edit.call(file_path="f", old_string=f"\nbefore {sought} after\n".strip(), new_string="x")
    assert path.read_text() == f"first\nbefore {there} after\n"


async def test_what_differs_more_is_not_taken_for_it(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("say \u201chi\u201d\n")
    with pytest.raises(ToolError, match="View the file") as raised:
        await editor("str_replace", path="f", old_str='say "ho"', new_str="x")
    assert "look alike" not in str(raised.value)


def test_folding_keeps_the_lines() -> None:
    text = "a\u2028b\nc\u0085\u00a0\r\n\u201cd\u201d"
    assert fold(text).count("\n") == text.count("\n")
