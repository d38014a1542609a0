"""Looking at files and folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcore.errors import ToolError
from agentcore.tools import OUTPUT_LIMIT
from opened_tool import Editor

THREE = "one\ntwo\nthree\n"


async def test_a_file_is_shown_with_the_numbers_of_its_lines(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("a\n\n  b\tc\nlast")
    seen = await editor("view", path="f")
    assert seen.text == "     1\ta\n     2\t\n     3\t  b\tc\n     4\tlast"
    assert (seen.path, seen.outcome, seen.diff) == (str(tmp_path / "f"), "viewed", None)
    assert seen.to_content() == (seen.text,)
    assert "text" not in seen.to_data()


async def test_a_part_of_a_file_is_shown_or_it_is_said_what_there_is(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("1\n2\n3\n4\n5\n")
    for first, last, numbers in (
        (2, 3, [2, 3]),
        (2, -1, [2, 3, 4, 5]),
        (5, 5, [5]),
        (1, 5, [1, 2, 3, 4, 5]),
        (4, 99, [4, 5]),
    ):
        text = (await editor("view", path="f", view_range=[first, last])).text
        assert [int(line.split("\t")[0]) for line in text.split("\n")] == numbers
    for wrong in ([0, 2], [6, 7], [3, 2], [1], [1, 2, 3], [], [-1, 2]):
        with pytest.raises(ToolError, match="view_range"):
            await editor("view", path="f", view_range=wrong)


async def test_of_a_long_file_the_ends_are_shown_with_the_right_numbers(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("".join(f"this is line {number}\n" for number in range(1, 5001)))
    text = (await editor("view", path="f")).text
    assert len(text) < OUTPUT_LIMIT
    lines = text.split("\n")
    (gap,) = [index for index, line in enumerate(lines) if not line.startswith(" ")]
    for line in (*lines[:gap], *lines[gap + 1 :]):
        number, content = line.split("\t")
        assert content == f"this is line {int(number)}"
    first, last = int(lines[gap - 1].split("\t")[0]) + 1, int(lines[gap + 1].split("\t")[0]) - 1
    assert f"Lines {first} to {last} are omitted" in lines[gap]
    assert lines[0].split("\t")[0].strip() == "1"
    assert lines[-1].split("\t")[0].strip() == "5000"


async def test_a_folder_is_listed_two_levels_deep_without_what_is_hidden(tmp_path: Path, editor: Editor) -> None:
    for name in ("src/a.py", "src/deep/er.py", "src/.hid", ".git/config", "README", "empty/"):
        path = tmp_path / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text("x")
    (tmp_path / "link").symlink_to("src")
    text = (await editor("view", path=".")).text
    assert text.split("\n") == [
        f"{tmp_path}/", "README", "empty/", "link@", "src/", "src/a.py", "src/deep/", "[2 hidden entries are not shown.]",
    ]  # fmt: skip
    assert (await editor("view", path="empty")).text == f"[{tmp_path}/empty is empty.]"
    with pytest.raises(ToolError, match="folder"):
        await editor("view", path="src", view_range=[1, 2])


async def test_a_folder_with_very_many_entries_is_cut_and_says_so(tmp_path: Path, editor: Editor) -> None:
    for number in range(1_200):
        (tmp_path / f"{number:04d}").touch()
    text = (await editor("view", path=str(tmp_path))).text
    assert "0999" in text
    assert "1000\n" not in text
    assert "more" in text.split("\n")[-1]
