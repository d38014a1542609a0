"""Changing files, real ones."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import AgentcoreError, PathError, ToolError
from agentcore_tools.files.change import between, unified_diff
from agentcore_tools.files.text import Change, NotText, Text
from opened_tool import Editor

THREE = "one\ntwo\nthree\n"


async def test_a_file_is_created_with_the_folders_above_it(tmp_path: Path, editor: Editor) -> None:
    made = await editor("create", path="a/b/c.txt", file_text="é\r\nno end")
    assert (tmp_path / "a/b/c.txt").read_bytes() == "é\r\nno end".encode()
    assert made.outcome == "created"
    assert (
        made.diff
        == f"--- /dev/null\n+++ {tmp_path}/a/b/c.txt\n@@ -0,0 +1,2 @@\n+é\n+no end\n\\ No newline at end of file\n"
    )


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


async def test_text_that_occurs_once_is_replaced_and_shown(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    told = await editor("str_replace", path="f", old_str="line 10\nline 11\n", new_str="new\n")
    assert (tmp_path / "f").read_text().split("\n")[8:11] == ["line 9", "new", "line 12"]
    assert "    10\tnew\n    11\tline 12" in told.text
    assert "line 5\n" not in told.text
    assert told.diff == (
        f"--- {tmp_path}/f\n+++ {tmp_path}/f\n@@ -7,8 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n-line 11\n+new\n"
        " line 12\n line 13\n line 14\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("two", "2", "one\n2\nthree\n"),
        ("two\n", None, "one\nthree\n"),
        ("one\ntwo\nthree\n", "", ""),
        ("three\n", "three\nfour\n", "one\ntwo\nthree\nfour\n"),
        ("e\n", "e", None),
        (" two \n", " 2 \n", "one\n2\nthree\n"),
        ("\n\ttwo\n\t", "2", "one\n2\nthree\n"),
        ("t", "T", None),
        ("four", "4", None),
        ("", "x", None),
        ("two", "two", None),
        (" two", "two ", None),
    ],
)
async def test_a_replacement_is_made_once_or_not_at_all(
    tmp_path: Path, old: str, new: str | None, after: str | None, editor: Editor
) -> None:
    (tmp_path / "f").write_text(THREE)
    if after is None:
        with pytest.raises(ToolError):
            await editor("str_replace", path="f", old_str=old, new_str=new)
    else:
        await editor("str_replace", path="f", old_str=old, new_str=new)
    assert (tmp_path / "f").read_text() == (THREE if after is None else after)


async def test_what_occurs_more_than_once_is_told_with_its_lines(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("x\ny\nx\nx y x\n" + "many\n" * 30)
    with pytest.raises(ToolError, match=r"occurs 4 times in .* at lines 1, 3, 4, 4, so"):
        await editor("str_replace", path="f", old_str="x", new_str="z")
    with pytest.raises(ToolError, match=r"30 times .* 24 and 10 more, so"):
        await editor("str_replace", path="f", old_str="many", new_str="few")


@pytest.mark.parametrize(("text", "old"), [("aaa\n", "aa"), ("x\nx\nx\n", "x\nx\n")])
async def test_places_that_overlap_are_more_than_one(tmp_path: Path, text: str, old: str, editor: Editor) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(ToolError, match="occurs 2 times"):
        await editor("str_replace", path="f", old_str=old, new_str="b")
    assert (tmp_path / "f").read_text() == text


async def test_what_would_make_a_file_no_text_is_not_written(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("abc\n")
    with pytest.raises(ToolError, match="NUL"):
        await editor("create", path="new", file_text="a\0b")
    with pytest.raises(ToolError, match="NUL"):
        await editor("str_replace", path="f", old_str="b", new_str="\0")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"f": "abc\n"}


async def test_what_does_not_occur_is_told_with_what_is_like_it(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("def f():\n\treturn  1\n")
    with pytest.raises(ToolError, match=r"does not occur .* at line 2"):
        await editor("str_replace", path="f", old_str="    return 1", new_str="    return 2")
    with pytest.raises(ToolError, match=r"View the file"):
        await editor("str_replace", path="f", old_str="    return 7", new_str="")


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
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
        (THREE, 4, "x", None),
        (THREE, -1, "x", None),
    ],
)
async def test_lines_are_inserted_after_a_line(
    before: str, line: int, new: str, after: str | None, editor: Editor
) -> None:
    path = Path(editor.workspace.root, "f")
    path.write_bytes(before.encode())
    if after is None:
        with pytest.raises(ToolError, match=r"from 0 \(the beginning\) to 3 \(the end\)"):
            await editor("insert", path="f", insert_line=line, new_str=new)
    else:
        told = await editor("insert", path="f", insert_line=line, new_str=new)
        assert f"{line + 1:6d}\t{new.split(chr(10), maxsplit=1)[0]}" in told.text
    assert path.read_bytes() == (before if after is None else after).encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nold\r\nb\r\n", b"a\r\nnew\r\nline\r\nb\r\n"),
        (b"a\nold\nb", b"a\nnew\nline\nb"),
        (b"a\r\nold\nb\r\nc\r\n", b"a\r\nnew\r\nline\nb\r\nc\r\n"),
        (b"a\nold\nb\r\nc\n", b"a\nnew\nline\nb\r\nc\n"),
        (b"\xef\xbb\xbfa old\r\n", b"\xef\xbb\xbfa new\r\nline\r\n"),
        ("é old\n".encode("utf-16"), "é new\nline\n".encode("utf-16")),
        (
            b"\xfe\xff" + "é old\r\nx\r\n".encode("utf-16-be"),
            b"\xfe\xff" + "é new\r\nline\r\nx\r\n".encode("utf-16-be"),
        ),
        ("caf\xe9 \x80 old\n".encode("latin-1"), "caf\xe9 \x80 new\nline\n".encode("latin-1")),
        (b"\x81\x8d old\n", b"\x81\x8d new\nline\n"),
        ("漢字 old\n".encode("shift_jis"), "漢字 new\nline\n".encode("shift_jis")),
        (b"a\x0cb\x1c\xc2\x85 old\r\rc\n", b"a\x0cb\x1c\xc2\x85 new\nline\r\rc\n"),
        ("a\u2028b old\n".encode(), "a\u2028b new\nline\n".encode()),
    ],
)
async def test_what_is_not_changed_stays_the_same_byte_for_byte(
    tmp_path: Path, before: bytes, after: bytes, editor: Editor
) -> None:
    (tmp_path / "f").write_bytes(before)
    await editor("str_replace", path="f", old_str="old", new_str="new\nline")
    assert (tmp_path / "f").read_bytes() == after
    await editor("undo_edit", path="f")
    assert (tmp_path / "f").read_bytes() == before


async def test_lines_of_a_file_with_pairs_are_found_by_what_is_shown(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_bytes(b"a\r\nb\r\nc\r\nd\r\n")
    await editor("str_replace", path="f", old_str="b\nc", new_str="x\r\ny\nz")
    assert (tmp_path / "f").read_bytes() == b"a\r\nx\r\ny\r\nz\r\nd\r\n"


async def test_characters_that_the_file_can_not_hold_are_refused(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_bytes("café\n".encode("latin-1"))
    with pytest.raises(ToolError, match="cp1252"):
        await editor("str_replace", path="f", old_str="caf", new_str="漢")
    assert (tmp_path / "f").read_bytes() == "café\n".encode("latin-1")


async def test_links_and_permissions_stay(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "real").write_text("old\n")
    (tmp_path / "real").chmod(0o750)
    (tmp_path / "link").symlink_to("real")
    await editor("str_replace", path="link", old_str="old", new_str="new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new\n"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750
    await editor("undo_edit", path="link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "old\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "create", "path": "f"},
        {"command": "str_replace", "path": "f", "new_str": "x"},
        {"command": "insert", "path": "f", "new_str": "x"},
        {"command": "insert", "path": "f", "insert_line": 1},
    ],
)
async def test_what_is_missing_is_named_with_its_command_and_meaning(arguments: dict[str, str], editor: Editor) -> None:
    with pytest.raises(
        ToolError, match=rf"{arguments['command']} needs (file_text|old_str|insert_line|new_str), .* For "
    ):
        await editor(**arguments)


@pytest.mark.parametrize("path", ["", " ", "~/f", "C:\\f", "c:/f", "\\\\host\\f"])
async def test_a_path_that_means_nothing_here_is_refused(tmp_path: Path, path: str, editor: Editor) -> None:
    with pytest.raises(ToolError):
        await editor("create", path=path, file_text="x")
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_is_not_there_is_told_with_those_that_are_like_it(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "readme.md").touch()
    for command in ("view", "str_replace", "insert"):
        with pytest.raises(ToolError, match=r"No such file or folder.*There is 'readme\.md' in that folder"):
            await editor(command, path="redme.md", old_str="a", new_str="b", insert_line=0)
    with pytest.raises(ToolError, match=r"No such folder"):
        await editor("view", path="nowhere/readme.md")


async def test_what_is_no_text_is_refused_with_advice(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "image").write_bytes(b"BM\x1a\n\0\0\0\rIHDR")
    (tmp_path / "controls").write_bytes(bytes(range(1, 32)) * 10 + b"\xff")
    (tmp_path / "broken").write_bytes(b"\xff\xfea\0b")
    for name in ("image", "controls", "broken"):
        for command in ("view", "str_replace", "insert"):
            with pytest.raises(ToolError, match="not text"):
                await editor(command, path=name, old_str="IHDR", new_str="x", insert_line=0)


async def test_what_is_too_large_or_no_file_is_refused(tmp_path: Path, editor: Editor) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(11 << 20)
    (tmp_path / "folder").mkdir()
    with pytest.raises(PathError, match="Look at a part of it"):
        await editor("view", path="large")
    with pytest.raises(PathError, match="folder"):
        await editor("str_replace", path="folder", old_str="a", new_str="b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PathError, match="pipe"):
        await editor("view", path="pipe")


async def test_a_file_that_can_not_be_written_stays_as_it_is(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(AgentcoreError):
        await editor("create", path="f/g", file_text="x")
    assert (tmp_path / "f").read_text() == "x"


lines = st.lists(st.sampled_from(["a", "b", "", "é", "x y", "-", "+", "@@"]), max_size=12)
texts = st.builds("{}{}".format, lines.map("\n".join), st.sampled_from(["", "\n"]))


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
    assert changed.normal.replace("\r\n", "\n") == (text.normal[:start] + new + text.normal[end:]).replace("\r\n", "\n")
