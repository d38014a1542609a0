"""Where the file editor may go, and what it does about a file that somebody else changed."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from agentcore.errors import ToolError
from agentcore.messages import DocumentBlock, ImageBlock
from agentcore.tools import ToolSpec
from agentcore_tools import apply_patch_tool, edit_tool, file_editor_tool, grep_tool, read_file_tool
from opened_tool import Editor, open_editor, open_tool

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_what_is_outside_of_the_workspace_is_neither_read_nor_written(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside, tmp_path / "root-too"):
        folder.mkdir()
        (folder / "f").write_text("a\n")
    (root / "way_out").symlink_to(outside)
    (root / "file_out").symlink_to("../outside/f")
    (root / "new_out").symlink_to(outside / "new")
    (root / "loop").symlink_to("loop")
    (root / "inside").symlink_to(root / "f")
    async with open_editor(root) as editor:
        for path in (f"{outside}/f", "../outside/f", "../root-too/f", "way_out/f", "file_out", "/etc/passwd"):
            with pytest.raises(ToolError, match="outside of the workspace"):
                await editor("view", path=path)
            with pytest.raises(ToolError, match="outside of the workspace"):
                await editor("str_replace", path=path, old_str="a", new_str="b")
        for path in ("new_out", "way_out/new", "way_out/deeper/new"):
            with pytest.raises(ToolError, match="outside of the workspace"):
                await editor("create", path=path, file_text="x")
        with pytest.raises(ToolError, match="back to itself"):
            await editor("view", path="loop")
        assert (await editor("view", path="inside")).text == "     1\ta"
        assert (await editor("view", path=f"{root}/f")).text == "     1\ta"
        kept = f"{await editor.workspace.private_folder('conversation')}/out.txt"
        await editor.workspace.write(kept, "whole\n")
        assert "whole" in (await editor("view", path=kept)).text
        with pytest.raises(ToolError, match="outside of the workspace"):
            await editor("str_replace", path=kept, old_str="whole", new_str="part")
    assert sorted(path.name for path in outside.iterdir()) == ["f"]


async def test_a_name_that_ends_in_a_line_feed_leads_nowhere_else(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "root\n"
    root.mkdir()
    outside.mkdir()
    (outside / "f").write_text("secret\n")
    (root / "sub").mkdir()
    (root / "sub\n").symlink_to(outside)
    (root / "by_link").symlink_to("sub\n")
    (root / "by_folder").symlink_to("../root\n")
    async with open_editor(root) as editor:
        for name in ("by_link", "by_folder", "sub\n"):
            with pytest.raises(ToolError, match="outside of the workspace"):
                await editor("view", path=f"{name}/f")
            with pytest.raises(ToolError, match="outside of the workspace"):
                await editor("create", path=f"{name}/new", file_text="x")
    async with open_editor(outside) as editor:
        assert "secret" in (await editor("view", path="f")).text


async def test_more_than_the_workspace_is_a_setting(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    tool = file_editor_tool(extra_roots=[str(other)])
    assert tool.spec == ToolSpec(name="file_editor", params={"extra_roots": [str(other)]})
    async with open_tool(tool, root) as editor:
        await editor("create", path=f"{other}/f", file_text="x\n")
        with pytest.raises(ToolError, match=r"stays in '.*root' or '.*other'"):
            await editor("view", path=str(tmp_path / "third"))
    async with open_tool(file_editor_tool(extra_roots=["/"]), root) as editor:
        assert (await editor("view", path=f"{other}/f")).text == "     1\tx"


async def test_an_editor_may_be_allowed_one_file_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\n")
    async with open_tool(file_editor_tool(confine_to=["PLAN.md"]), tmp_path) as editor:
        assert (await editor("view", path="f")).text == "     1\ta"
        for path in ("f", "docs/PLAN.md", "../PLAN.md", "PLAN.md/x"):
            with pytest.raises(ToolError, match=r"The only file that may be is '.*/PLAN.md'"):
                await editor("create", path=path, file_text="x")
        await editor("create", path="./PLAN.md", file_text="1. look\n")
        await editor("insert", path=str(tmp_path / "PLAN.md"), insert_line=1, new_str="2. do")
        (tmp_path / "PLAN.md").rename(tmp_path / "kept")
        (tmp_path / "PLAN.md").symlink_to("f")
        await editor("view", path="PLAN.md")
        with pytest.raises(ToolError, match="it is a link to"):
            await editor("str_replace", path="PLAN.md", old_str="a", new_str="b")
    assert (tmp_path / "kept").read_text() == "1. look\n2. do\n"
    assert (tmp_path / "f").read_text() == "a\n"


@pytest.mark.parametrize("command", ["str_replace", "insert"])
async def test_what_somebody_else_changed_is_told_once_and_not_overwritten(
    tmp_path: Path, command: str, editor: Editor
) -> None:
    path = tmp_path / "f"
    path.write_text("one\ntwo\n")
    arguments = {"path": "f", "old_str": "two", "new_str": "2", "insert_line": 2}
    await editor("view", path="f")
    path.write_text("ONE\ntwo\n")
    with pytest.raises(ToolError, match="not as you saw it last") as raised:
        await editor(command, **arguments)
    assert "-one\n+ONE\n" in str(raised.value)
    assert path.read_text() == "ONE\ntwo\n"
    await editor(command, **arguments)
    assert path.read_text().startswith("ONE\n")


async def test_of_a_change_that_is_too_long_to_tell_the_file_has_to_be_viewed(tmp_path: Path, editor: Editor) -> None:
    path = tmp_path / "f"
    path.write_text("one\n" * 5_000)
    await editor("view", path="f", view_range=[1, 1])
    path.write_text("other\n" * 5_000 + "two\n")
    for _ in range(2):
        with pytest.raises(ToolError, match="View it before you change it"):
            await editor("str_replace", path="f", old_str="two", new_str="2")
    await editor("view", path="f")
    await editor("str_replace", path="f", old_str="two", new_str="2")
    assert path.read_text().endswith("other\n2\n")


async def test_a_file_that_this_opening_never_saw_is_changed_where_the_text_is_found(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    async with open_editor(tmp_path) as editor:
        await editor("view", path="f")
    (tmp_path / "f").write_text("one\ntwo\n")
    async with open_editor(tmp_path) as editor:
        await editor("str_replace", path="f", old_str="two", new_str="2")
        assert (tmp_path / "f").read_text() == "one\n2\n"
        await editor("str_replace", path="f", old_str="2", new_str="3")


async def test_the_tools_of_a_conversation_know_what_the_others_saw_and_did(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    async with open_tool(read_file_tool(), tmp_path) as read:
        edit, editor = edit_tool(), file_editor_tool()
        async with edit.open_executor(read.workspace, "conversation") as editing:
            async with editor.open_executor(read.workspace, "conversation") as whole:
                context = read.context()
                await read.call(path="f")
                path.write_text("ONE\n")
                with pytest.raises(ToolError, match="not as you saw it last"):
                    await editing(edit.parse({"file_path": "f", "old_string": "ONE", "new_string": "1"}), context)
                await editing(edit.parse({"file_path": "f", "old_string": "ONE", "new_string": "1"}), context)
                await whole(editor.parse({"command": "undo_edit", "path": "f"}), context)
                assert path.read_text() == "ONE\n"


async def test_pictures_and_documents_are_looked_at(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "dot.png").write_bytes(PICTURE)
    (tmp_path / "paper").write_bytes(b"%PDF-1.7\n...")
    seen = await editor("view", path="dot.png")
    assert seen.to_content() == (
        f"{tmp_path}/dot.png (image/png, {len(PICTURE)} bytes):",
        ImageBlock(data=base64.b64encode(PICTURE).decode(), media_type="image/png"),
    )
    assert seen.to_data().keys() == {"command", "path", "diff", "outcome"}
    document = (await editor("view", path="paper")).to_content()[1]
    assert isinstance(document, DocumentBlock)
    assert (document.media_type, document.name) == ("application/pdf", "paper")
    with pytest.raises(ToolError, match="not text"):
        await editor("str_replace", path="dot.png", old_str="IHDR", new_str="x")


async def test_a_model_that_can_not_look_is_told_instead(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "dot.png").write_bytes(PICTURE)
    (tmp_path / "large.png").write_bytes(PICTURE + bytes(4 << 20))
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n...")
    with pytest.raises(ToolError, match="smaller copy"):
        await editor("view", path="large.png")
    editor.host.seeing = False
    with pytest.raises(ToolError, match=r"image/png, 70 bytes\), which you cannot look at"):
        await editor("view", path="dot.png")
    with pytest.raises(ToolError, match="pdftotext"):
        await editor("view", path="paper.pdf")


@pytest.mark.parametrize("roots", [(), ("/",)])
async def test_a_link_and_its_target_are_one_file(tmp_path: Path, roots: tuple[str, ...]) -> None:
    path = tmp_path / "real/f"
    path.parent.mkdir()
    path.write_text("one\n")
    (tmp_path / "link").symlink_to("real/f")
    (tmp_path / "folder").symlink_to("real")
    names = ("real/f", "link", "folder/f", str(path))
    async with open_tool(file_editor_tool(extra_roots=roots), tmp_path) as editor:
        for name in names:
            await editor("view", path=name)
        for number, name in enumerate(names):
            await editor("str_replace", path=name, old_str="one", new_str=f"{number} one")
        assert path.read_text() == "0 1 2 3 one\n"
        for _ in names:
            await editor("undo_edit", path="link")
        assert path.read_text() == "one\n"
        path.write_text("ONE\n")
        with pytest.raises(ToolError, match="not as you saw it last"):
            await editor("str_replace", path="folder/f", old_str="ONE", new_str="1")


async def test_a_patch_and_an_editor_mean_the_same_file_by_its_names(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("one\n")
    (tmp_path / "link").symlink_to("f")
    patch = apply_patch_tool()
    async with patch.open_executor(editor.workspace, "conversation") as patching:
        await editor("view", path="f")
        written = "*** Begin Patch\n*** Update File: link\n@@\n-one\n+two\n*** End Patch"
        await patching(patch.parse({"patch": written}), editor.context())
        await editor("str_replace", path="f", old_str="two", new_str="three")
        await patching(patch.parse({"patch": written.replace("one", "three")}), editor.context())
    assert (tmp_path / "f").read_text() == "two\n"


async def test_the_names_of_a_hard_link_are_edited_one_after_the_other(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("one\n")
    (tmp_path / "other").hardlink_to(tmp_path / "f")
    for name in ("f", "other"):
        await editor("view", path=name)
    for name in ("f", "other"):
        await editor("str_replace", path=name, old_str="one", new_str=name)
    assert [(tmp_path / name).read_text() for name in ("f", "other")] == ["f\n", "other\n"]


async def test_of_a_link_that_leads_nowhere_its_goal_is_named(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "dangling").symlink_to("gone/f")
    wanted = rf"'{tmp_path}/dangling' is a link to '{tmp_path}/gone/f', which does not exist\.$"
    for command in ("view", "str_replace"):
        with pytest.raises(ToolError, match=wanted):
            await editor(command, path="dangling", old_str="a", new_str="b")
    async with open_tool(grep_tool(), tmp_path) as grep:
        with pytest.raises(ToolError, match=wanted):
            await grep.call(pattern="a", path="dangling")
