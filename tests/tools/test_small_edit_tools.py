"""The small tools for files: to read, to write and to replace."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore.errors import ToolArgumentsError, ToolError
from agentcore.tools import OUTPUT_LIMIT
from agentcore_tools import edit_tool, read_file_tool, write_file_tool
from opened_tool import open_tool


@pytest.mark.parametrize(
    ("arguments", "text", "lines"),
    [
        ({}, "a\n  b\n\nd", (1, 4)),
        ({"offset": 1}, "[Lines 2 to 4 of 4.]\n  b\n\nd", (2, 4)),
        ({"offset": 1, "limit": 1}, "[Lines 2 to 2 of 4. Read on with offset=2.]\n  b", (2, 2)),
        ({"limit": 9}, "a\n  b\n\nd", (1, 4)),
    ],
)
async def test_a_file_is_read_as_it_is(
    tmp_path: Path, arguments: dict[str, int], text: str, lines: tuple[int, int]
) -> None:
    (tmp_path / "f").write_bytes(b"a\r\n  b\r\n\r\nd")
    async with open_tool(read_file_tool(), tmp_path) as read:
        seen = await read.call(path="f", **arguments)
        assert seen.text == text
        assert (seen.first, seen.last, seen.lines) == (*lines, 4)


async def test_of_a_long_file_it_is_said_how_to_read_on(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"line {number}\n" for number in range(1, 9_001)))
    (tmp_path / "empty").touch()
    async with open_tool(read_file_tool(), tmp_path) as read:
        offset, numbers = 0, list[int]()
        while True:
            seen = await read.call(path="f", offset=offset)
            assert len(seen.text) < OUTPUT_LIMIT
            numbers += [int(line.split()[1]) for line in seen.text.split("\n")[1:]]
            if f"Read on with offset={seen.last}" not in seen.text:
                break
            offset = seen.last
        assert numbers == list(range(1, 9_001))
        with pytest.raises(ToolError, match="9000 lines"):
            await read.call(path="f", offset=9_000)
        with pytest.raises(ToolArgumentsError):
            await read.call(path="f", limit=0)
        assert "is empty" in (await read.call(path="empty")).text


async def test_a_file_is_written_as_the_one_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (tmp_path / "old.txt").chmod(0o640)
    (tmp_path / "link").symlink_to("old.txt")
    async with open_tool(write_file_tool(), tmp_path) as write:
        told = await write.call(file_path="link", content="one\n2\n")
        assert (tmp_path / "old.txt").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"
        assert (tmp_path / "old.txt").stat().st_mode & 0o777 == 0o640
        assert (tmp_path / "link").is_symlink()
        assert "-two\n+2\n" in told.diff
        assert told.outcome == "changed"
        made = await write.call(file_path="new/f", content="x\r\n")
        assert (made.outcome, (tmp_path / "new/f").read_bytes()) == ("created", b"x\r\n")
        (tmp_path / "new/f").write_text("theirs\n")
        with pytest.raises(ToolError, match=r"(?s)not as you saw it last.*\+theirs"):
            await write.call(file_path="new/f", content="mine\n")
        assert (tmp_path / "new/f").read_text() == "theirs\n"


async def test_text_is_replaced_as_often_as_expected_or_not_at_all(tmp_path: Path) -> None:
    before = b"a b\r\nc\r\na d\r\n"
    (tmp_path / "f").write_bytes(before)
    async with open_tool(edit_tool(), tmp_path) as edit:
        for expected in (1, 3):
            with pytest.raises(ToolError, match=r"occurs 2 times .* at lines 1, 3"):
                await edit.call(file_path="f", old_string="a ", new_string="A ", expected_replacements=expected)
        with pytest.raises(ToolError, match="does not occur"):
            await edit.call(file_path="f", old_string="x", new_string="y")
        with pytest.raises(ToolError, match="are the same"):
            await edit.call(file_path="f", old_string="a", new_string="a")
        assert (tmp_path / "f").read_bytes() == before
        told = await edit.call(file_path="f", old_string="a ", new_string="A\n", expected_replacements=2)
        assert (tmp_path / "f").read_bytes() == b"A\r\nb\r\nc\r\nA\r\nd\r\n"
        assert told.replacements == 2
        assert told.diff.endswith("@@ -1,3 +1,5 @@\n-a b\n+A\n+b\n c\n-a d\n+A\n+d\n")
        assert "     1\tA\n     2\tb" in told.text


async def test_an_edit_of_nothing_makes_a_file_and_replaces_none(tmp_path: Path) -> None:
    async with open_tool(edit_tool(), tmp_path) as edit:
        made = await edit.call(file_path="a/f", old_string="", new_string="x\n")
        assert (made.outcome, (tmp_path / "a/f").read_text()) == ("created", "x\n")
        with pytest.raises(ToolError, match="write_file"):
            await edit.call(file_path="a/f", old_string="", new_string="y\n")
