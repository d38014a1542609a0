"""Changing files, real ones, and taking changes back."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import AgentcoreError, PathError, ToolError
from agentcore_tools.files.change import between, unified_diff
from agentcore_tools.files.text import Change, NotText, Text
from opened_tool import Editor
from programs import needs
from rounds import some_quick

THREE = "one\ntwo\nthree\n"
NUMBERED = "".join(f"line {number}\n" for number in range(1, 21))
HEAD = "--- ROOT/f\n+++ ROOT/f\n"


async def test_a_file_is_created_with_the_folders_above_it(tmp_path: Path, editor: Editor) -> None:
    made = await editor("create", path="a/b/c.txt", file_text="é\r\nno end")
    assert (tmp_path / "a/b/c.txt").read_bytes() == "é\r\nno end".encode()
    assert made.outcome == "created"
    path = tmp_path / "a/b/c.txt"
    assert made.diff == f"--- /dev/null\n+++ {path}\n@@ -0,0 +1,2 @@\n+é\n+no end\n\\ No newline at end of file\n"


@pytest.mark.parametrize("there", ["file", "folder", "link"])
async def test_create_replaces_nothing(tmp_path: Path, there: str, editor: Editor) -> None:
    path = tmp_path / "x"
    if there == "folder":
        path.mkdir()
    else:
        (path if there == "file" else tmp_path / "y").write_text("mine")
    if there == "link":
        path.symlink_to("y")
    with pytest.raises(ToolError, match="already"):
        await editor("create", path="x", file_text="theirs")
    assert not path.is_file() or path.read_text() == "mine"


# Before, what is replaced by what, and after; or, after an exclamation mark, what is said of it.
REPLACED: list[tuple[str | bytes, str, str | None, str | bytes]] = [
    (THREE, "two", "2", "one\n2\nthree\n"),
    (THREE, "two\n", None, "one\nthree\n"),
    (THREE, THREE, "", ""),
    (THREE, "three\n", "three\nfour\n", "one\ntwo\nthree\nfour\n"),
    (THREE, " two \n", " 2 \n", "one\n2\nthree\n"),
    (THREE, "\n\ttwo\n\t", "2", "one\n2\nthree\n"),
    (THREE, "e\n", "e", "!occurs 2 times"),
    (THREE, "t", "T", "!occurs 2 times"),
    (THREE, "four", "4", "!does not occur"),
    (THREE, "", "x", "!is empty"),
    (THREE, "two", "two", "!are the same"),
    (THREE, " two", "two ", "!Without the space around them"),
    ("aaa\n", "aa", "b", "!occurs 2 times"),  # they overlap
    ("x\nx\nx\n", "x\nx\n", "b", "!occurs 2 times"),
    ("x\ny\nx\nx y x\n", "x", "z", "!occurs 4 times in .* at lines 1, 3, 4, 4, so"),
    ("many\n" * 30, "many", "few", "!30 times .* 20 and 10 more, so"),
    ("def f():\n\treturn  1\n", "    return 1", "    return 2", "!does not occur .* matches line 2 except for whitespace"),
    ("def f():\n\treturn  1\n", "    return 7", "", "!View the file"),
    ("abc\n", "b", "\0", "!NUL"),
    ("caf\xe9\n".encode("latin-1"), "caf", "漢", "!cp1252"),
    # What is not changed stays the same, byte for byte: line ends, marks, encodings.
    (b"a\r\nb\r\nc\r\nd\r\n", "b\nc", "x\r\ny\nz", b"a\r\nx\r\ny\r\nz\r\nd\r\n"),
    (b"a\r\nold\r\nb\r\n", "old", "new\nline", b"a\r\nnew\r\nline\r\nb\r\n"),
    (b"a\nold\nb", "old", "new\nline", b"a\nnew\nline\nb"),
    (b"a\r\nold\nb\r\nc\r\n", "old", "new\nline", b"a\r\nnew\r\nline\nb\r\nc\r\n"),
    (b"a\nold\nb\r\nc\n", "old", "new\nline", b"a\nnew\nline\nb\r\nc\n"),
    (b"\xef\xbb\xbfa old\r\n", "old", "new\nline", b"\xef\xbb\xbfa new\r\nline\r\n"),
    ("é old\n".encode("utf-16"), "old", "new\nline", "é new\nline\n".encode("utf-16")),
    (b"\xfe\xff" + "é old\r\nx\r\n".encode("utf-16-be"), "old", "n\nl", b"\xfe\xff" + "é n\r\nl\r\nx\r\n".encode("utf-16-be")),
    ("caf\xe9 \x80 old\n".encode("latin-1"), "old", "new", "caf\xe9 \x80 new\n".encode("latin-1")),
    (b"\x81\x8d old\n", "old", "new", b"\x81\x8d new\n"),
    ("漢字 old\n".encode("shift_jis"), "old", "new", "漢字 new\n".encode("shift_jis")),
    (b"a\x0cb\x1c\xc2\x85 old\r\rc\n", "old", "new\nline", b"a\x0cb\x1c\xc2\x85 new\nline\r\rc\n"),
    ("a\u2028b old\n", "old", "new\nline", "a\u2028b new\nline\n"),
]  # fmt: skip

INSERTED: list[tuple[str, int, str, str]] = [
    (THREE, 0, "zero", "zero\none\ntwo\nthree\n"),
    (THREE, 1, "x\ny\n", "one\nx\ny\ntwo\nthree\n"),
    (THREE, 3, "four", "one\ntwo\nthree\nfour\n"),
    ("a\nb", 2, "c", "a\nb\nc"),
    ("a\nb", 2, "c\n", "a\nb\nc"),
    ("a\nb", 1, "c", "a\nc\nb"),
    ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"),
    ("a\r\nb", 2, "c", "a\r\nb\r\nc"),
    ("", 0, "a", "a\n"),
    ("a\n", 1, "", "a\n\n"),
    ("a\n", 1, "\n\n", "a\n\n\n"),
    (THREE, 4, "x", r"!from 0 \(the beginning\) to 3 \(the end\)"),
    (THREE, -1, "x", r"!from 0 \(the beginning\) to 3 \(the end\)"),
]


async def change(editor: Editor, before: str | bytes, after: str | bytes, **arguments: Any) -> str:
    """Make a change and take it back, or see it refused; return the answer."""
    path = Path(editor.workspace.root, "f")
    old = before.encode() if isinstance(before, str) else before
    path.write_bytes(old)
    if isinstance(after, str) and after.startswith("!"):
        with pytest.raises(ToolError, match=after[1:]):
            await editor(path="f", **arguments)
        assert path.read_bytes() == old
        return ""
    told = await editor(path="f", **arguments)
    assert path.read_bytes() == (after.encode() if isinstance(after, str) else after)
    await editor("undo_edit", path="f")
    assert path.read_bytes() == old
    return told.text


@pytest.mark.parametrize(("before", "old", "new", "after"), some_quick(REPLACED, 2))
async def test_text_is_replaced_once_or_not_at_all(
    editor: Editor, before: str | bytes, old: str, new: str | None, after: str | bytes
) -> None:
    await change(editor, before, after, command="str_replace", old_str=old, new_str=new)


@pytest.mark.parametrize(("before", "line", "new", "after"), some_quick(INSERTED, 4))
async def test_lines_are_inserted_after_a_line(editor: Editor, before: str, line: int, new: str, after: str) -> None:
    text = await change(editor, before, after, command="insert", insert_line=line, new_str=new)
    assert after.startswith("!") or f"{line + 1:6d}\t{new.split(chr(10), maxsplit=1)[0]}" in text


async def test_a_change_is_shown_where_it_is(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text(NUMBERED)
    told = await editor("str_replace", path="f", old_str="line 10\nline 11\n", new_str="new\n")
    assert "    10\tnew\n    11\tline 12" in told.text
    assert "line 5\n" not in told.text
    assert told.diff == HEAD.replace("ROOT", str(tmp_path)) + (
        "@@ -7,8 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n-line 11\n+new\n line 12\n line 13\n line 14\n"
    )


async def test_links_and_permissions_stay(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "real").write_text("old\n")
    (tmp_path / "real").chmod(0o750)
    (tmp_path / "link").symlink_to("real")
    await editor("str_replace", path="link", old_str="old", new_str="new")
    assert (tmp_path / "real").read_text() == "new\n"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750
    await editor("undo_edit", path="link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "old\n"


async def test_what_is_missing_is_named_with_its_command_and_meaning(editor: Editor) -> None:
    for command, arguments, missing in (
        ("create", {}, "file_text"),
        ("str_replace", {"new_str": "x"}, "old_str"),
        ("insert", {"new_str": "x"}, "insert_line"),
        ("insert", {"insert_line": 1}, "new_str"),
    ):
        with pytest.raises(ToolError, match=rf"{command} needs {missing}, .* For "):
            await editor(command, path="f", **arguments)


async def test_what_can_not_be_written_is_refused(tmp_path: Path, editor: Editor) -> None:
    for path in ("", " ", "~/f", "C:\\f", "c:/f", "\\\\host\\f"):
        with pytest.raises(ToolError):
            await editor("create", path=path, file_text="x")
    with pytest.raises(ToolError, match="NUL"):
        await editor("create", path="new", file_text="a\0b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "f").write_text("x")
    with pytest.raises(AgentcoreError):
        await editor("create", path="f/g", file_text="x")
    assert (tmp_path / "f").read_text() == "x"


async def test_what_can_not_be_read_is_refused_with_advice(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "readme.md").touch()
    (tmp_path / "image").write_bytes(b"BM\x1a\n\0\0\0\rIHDR")
    (tmp_path / "controls").write_bytes(bytes(range(1, 32)) * 10 + b"\xff")
    (tmp_path / "broken").write_bytes(b"\xff\xfea\0b")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(11 << 20)
    for command in ("view", "str_replace", "insert"):
        for path, message in (
            ("redme.md", r"No such file or folder.*There is 'readme\.md' in that folder"),
            ("nowhere/readme.md", "No such folder"),
            ("image", "not text"),
            ("controls", "not text"),
            ("broken", "not text"),
            ("large", "more than 10,485,760 bytes.*Look at a part of it"),
            ("pipe", "pipe"),
        ):
            with pytest.raises((ToolError, PathError), match=message):
                await editor(command, path=path, old_str="IHDR", new_str="x", insert_line=0)
    with pytest.raises(PathError, match="folder"):
        await editor("str_replace", path="folder", old_str="a", new_str="b")


async def test_edits_are_undone_one_after_the_other(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("0\n")
    for number in range(12):
        await editor("str_replace", path="f", old_str=f"{number}\n", new_str=f"{number + 1}\n")
    for number in range(11, 1, -1):
        told = await editor("undo_edit", path=str(tmp_path / "f"))
        assert (tmp_path / "f").read_text() == f"{number}\n"
        assert told.diff is not None
        assert f"-{number + 1}\n+{number}\n" in told.diff
    with pytest.raises(ToolError, match="no edit"):
        await editor("undo_edit", path="f")


async def test_undoing_a_creation_removes_the_file(tmp_path: Path, editor: Editor) -> None:
    await editor("create", path="-f", file_text="x\n")
    await editor("str_replace", path="-f", old_str="x", new_str="y")
    await editor("undo_edit", path="-f")
    told = await editor("undo_edit", path="-f")
    assert not (tmp_path / "-f").exists()
    assert told.outcome == "removed"
    assert told.diff == f"--- {tmp_path}/-f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    await editor("create", path="-f", file_text="again")


async def test_what_somebody_else_changed_is_not_undone(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("a\n")
    await editor("str_replace", path="f", old_str="a", new_str="b")
    (tmp_path / "f").write_text("b and theirs\n")
    with pytest.raises(ToolError, match="changed by something else"):
        await editor("undo_edit", path="f")
    assert (tmp_path / "f").read_text() == "b and theirs\n"


async def test_a_large_file_is_edited_and_undone_without_holding_anything_up(tmp_path: Path, editor: Editor) -> None:
    content = "".join(f"this is line {number}\n" for number in range(400_000))
    (tmp_path / "f").write_text(content)
    # Blockbuster can't see work that merely takes long, so something else has to go on meanwhile.
    turns = 0

    async def go_on() -> None:
        nonlocal turns
        while True:
            await anyio.sleep(0.001)
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go_on)
        told = await editor("str_replace", path="f", old_str="line 200000\n", new_str="LINE\n")
        assert told.diff is not None
        assert len(told.diff) < 500
        await editor("undo_edit", path="f")
        tasks.cancel_scope.cancel()
    assert turns > 3
    assert (tmp_path / "f").read_text() == content


async def test_a_long_diff_is_cut_and_says_so(tmp_path: Path, editor: Editor) -> None:
    made = await editor("create", path="f", file_text="a line of it\n" * 5_000)
    assert made.diff is not None
    assert len(made.diff) < 31_000
    assert made.diff.startswith(f"--- /dev/null\n+++ {tmp_path}/f\n@@ -0,0 +1,5000 @@\n+a line of it\n")
    assert made.diff.endswith("\n\\ The diff goes on.\n")


async def test_of_a_very_long_line_the_rest_of_the_file_is_told(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("short\n" + "x" * 50_000 + "\nlast\n")
    text = (await editor("view", path="f")).text
    assert text == "     1\tshort\n[Lines 2 to 2 are omitted; view_range shows them.]\n     3\tlast"
    assert len((await editor("view", path="f", view_range=[2, 2])).text) > 50_000


@pytest.mark.slow
async def test_what_takes_too_much_room_to_undo_is_forgotten_the_oldest_file_first(
    tmp_path: Path, editor: Editor
) -> None:
    for name in "abcd":
        (tmp_path / name).write_text("x" * (9 << 20) + "old")
    for name in "abcd":
        await editor("str_replace", path=name, old_str="old", new_str="new")
    with pytest.raises(ToolError, match="no edit"):
        await editor("undo_edit", path="a")
    for name in "bcd":
        await editor("undo_edit", path=name)
        assert (tmp_path / name).read_text().endswith("xold")


lines = st.lists(st.sampled_from(["a", "b", "", "é", "x y", "-", "+", "@@"]), max_size=12)
texts = st.builds("{}{}".format, lines.map("\n".join), st.sampled_from(["", "\n"]))


@needs("git")
@given(texts, texts)
def test_a_diff_is_one_that_git_can_apply(old: str, new: str) -> None:
    change = between(old, new)
    assert old[: change.start] + change.new + old[change.end :] == new
    if old == new:
        return
    shown = unified_diff(old, [change], "f", created=not old, removed=not new)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f"
        if old:
            file.write_text(old)
        subprocess.run(["git", "apply", "-p0", "-"], input=shown, cwd=folder, check=True, text=True)
        assert (file.read_text() if file.exists() else "") == new


@given(st.binary(max_size=200))
def test_any_bytes_come_back_as_they_were(data: bytes) -> None:
    try:
        text = Text.read(data)
    except NotText:
        return
    assert text.encode() == data
    assert "\r\n" not in text.normal


@given(st.text(st.sampled_from("ab\r\né"), max_size=30), st.data())
def test_a_replacement_in_the_normal_text_is_one_in_the_file(raw: str, data: st.DataObject) -> None:
    text = Text(raw)
    start = data.draw(st.integers(0, len(text.normal)))
    end = data.draw(st.integers(start, len(text.normal)))
    new = data.draw(st.text(st.sampled_from("x\n"), max_size=5))
    changed = text.replaced([Change(start, end, new)])
    # A line feed that comes behind carriage returns, as one of them was there alone, makes the last of them a part of the line's end.
    assert re.sub("\r+\n", "\n", changed.normal) == re.sub("\r+\n", "\n", text.normal[:start] + new + text.normal[end:])
