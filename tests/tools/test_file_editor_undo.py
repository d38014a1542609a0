"""Taking changes back, and what a change tells."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcore.errors import ToolError
from opened_tool import Editor

THREE = "one\ntwo\nthree\n"


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
    assert text == "     1\tshort\n[Lines 2 to 2 are left out here; view_range shows them.]\n     3\tlast"
    assert len((await editor("view", path="f", view_range=[2, 2])).text) > 50_000


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
