"""Patches, applied to real files."""

from __future__ import annotations

import difflib
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import ToolError
from agentcore.tools import Resource
from agentcore_tools import ApplyPatchAction, ApplyPatchObservation, apply_patch_tool
from agentcore_tools.apply_patch.grammar import UpdateFile, read_patch
from agentcore_tools.apply_patch.matching import changes_of
from agentcore_tools.files.text import Text
from opened_tool import Opened, open_tool
from rounds import some_quick

Patcher = Opened[ApplyPatchAction, ApplyPatchObservation]

CODE = """\
class One:
    def run(self):
        start()
        stop()

class Two:
    def run(self):
        start()
        stop()
"""


def framed(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch"


@pytest.fixture
async def patch(tmp_path: Path) -> AsyncGenerator[Patcher]:
    async with open_tool(apply_patch_tool(), tmp_path) as opened:
        yield opened


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_files_are_added_changed_moved_and_deleted_by_one_patch(tmp_path: Path, patch: Patcher) -> None:
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "code.py").chmod(0o750)
    (tmp_path / "old.txt").write_text("x\ny")
    (tmp_path / "note.md").write_text("# A\nbody\n")
    told = await patch.call(
        patch=framed(
            "*** Add File: sub/new.txt\n+a\n+\n+b\n*** Update File: code.py\n@@ class Two:\n@@     def run(self):\n"
            "         start()\n-        stop()\n+        halt()\n*** Delete File: old.txt\n"
            "*** Update File: note.md\n*** Move to: docs/note.md\n@@\n-# A\n+# B\n body\n"
        )
    )
    assert tree(tmp_path) == {
        "sub/new.txt": b"a\n\nb\n",
        "code.py": (CODE[: -len("stop()\n")] + "halt()\n").encode(),
        "docs/note.md": b"# B\nbody\n",
    }
    assert (tmp_path / "code.py").stat().st_mode & 0o777 == 0o750
    assert told.text == (
        "The patch was applied:\n- created sub/new.txt (+3 -0)\n- changed code.py (+1 -1)\n- removed old.txt (+0 -2)\n"
        "- moved note.md to docs/note.md (+1 -1)"
    )
    assert [(file.outcome, file.moved_to) for file in told.files] == [
        ("created", None), ("changed", None), ("removed", None), ("moved", f"{tmp_path}/docs/note.md"),
    ]  # fmt: skip
    assert f"--- {tmp_path}/code.py\n+++ {tmp_path}/code.py\n@@ -6,4 +6,4 @@\n" in told.diff
    assert f"--- {tmp_path}/note.md\n+++ {tmp_path}/docs/note.md\n@@ -1,2 +1,2 @@\n-# A\n+# B\n body\n" in told.diff


@pytest.mark.parametrize(
    ("before", "body", "after"),
    some_quick([
        (b"a\r\nb\r\nc", "@@\n a\n-b\n+B\n c\n", b"a\r\nB\r\nc"),  # line ends, and no end of the last line
        (b"a\nb", "@@\n-b\n+B\n+C\n", b"a\nB\nC"),
        (b"a\nb", "@@\n b\n+c\n", b"a\nb\nc"),
        (b"a\nb", "@@\n a\n-b\n", b"a"),
        (b"a\nb\n", "@@\n-a\n-b\n", b""),
        (b"", "@@\n+a\n", b"a\n"),
        (b"a\n", "+b\n", b"a\nb\n"),  # nothing says where: at the end
        (b"a\nb\n", "@@ a\n+x\n", b"a\nx\nb\n"),  # below its @@ line
        (b"a\nx\na\n", "@@\n-a\n+A\n*** End of File\n", b"a\nx\nA\n"),
        (b"a\nb\na\nb\n", "@@\n-a\n+1\n@@\n-a\n+2\n", b"1\nb\n2\nb\n"),  # one after the other
        (b"a  \nb\n", "@@\n a\n-b\n+B\n", b"a  \nB\n"),  # blanks at the end; what stays is not touched
        (b"\ta =  1\n\tb\n", "@@\n     a = 1\n-    b\n+\tc\n", b"\ta =  1\n\tc\n"),  # any blanks
        (b"x =1\nx = 1\n", "@@\n-x = 1\n+y\n", b"x =1\ny\n"),  # what fits exactly goes before what fits almost
        (b"a\n\nb\n", "@@\n a\n\n-b\n+c\n", b"a\n\nc\n"),  # an empty line without its blank
        (b"a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", b"a\nc\n"),  # as other diffs say it
        (b"def f():\n    a\n", "@@ def f():\n def f():\n-    a\n+    b\n", b"def f():\n    b\n"),  # the @@ line once more
        (b"*** End Patch\nafter\n", " *** End Patch\n-after\n+AFTER\n", b"*** End Patch\nAFTER\n"),  # a line that stays
        ("a \u201cx\u201d \u2014\u00a0e\u0301\nb\n".encode(), '@@\n a "x" - \u00e9\n-b\n+c\n', "a \u201cx\u201d \u2014\u00a0e\u0301\nc\n".encode()),
        (b"\xe4\n", "@@\n-\u00e4\n+\u00fc\n", b"\xfc\n"),  # an older encoding
    ], 3),
)  # fmt: skip
async def test_hunks_find_their_places(tmp_path: Path, patch: Patcher, before: bytes, body: str, after: bytes) -> None:
    (tmp_path / "f").write_bytes(before)
    await patch.call(patch=framed(f"*** Update File: f\n{body}"))
    assert (tmp_path / "f").read_bytes() == after


PATCH = framed("*** Add File: f\n+a\n\n+b\n")
OTHER = framed("*** Add File: g\n+2\n")


@pytest.mark.parametrize(
    "written",
    [
        f"```\n{PATCH}\n```",
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\n",
        f"\n\n{PATCH}\n\n",
        PATCH.replace("\n", "\r\n"),
        f"{PATCH}\n\n{OTHER}",
    ],
)
async def test_what_models_put_around_a_patch_is_no_part_of_it(tmp_path: Path, patch: Patcher, written: str) -> None:
    await patch.call(patch=written)
    assert tree(tmp_path) == {"f": b"a\n\nb\n", **({"g": b"2\n"} if OTHER in written else {})}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "This is not a patch"),
        ("--- a/f\n+++ b/f\n-a\n+b\n", "This is not a patch"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+b\n", "its lines are not in the file"),
        (framed(""), "changes no file"),
        (framed("f\n"), r"Line 2 of the patch is 'f', but a file begins with"),
        (framed("*** Update File:\n@@\n-a\n"), "needs a path"),
        (framed("*** Update File: f\n"), "has no hunk"),
        (framed("*** Update File: f\n@@\n a\n"), "changes nothing"),
        (framed("*** Update File: f\n@@\n a\nb\n"), r"Line 5 of the patch is 'b', but a line of a hunk begins with"),
        (framed("*** Add File: f\na\n"), r"Line 3 .* begins with '\+'"),
        (framed("*** Delete File: f\n-a\n"), "nothing comes below"),
        (framed("*** Delete File: f\n*** Add File: f\n+a\n"), "'f' twice"),
        (framed("*** Update File: f\n@@\n-c\n+C\n@@\n-a\n+A\n"), "at line 1 of the file, which is above the hunk before it"),
        (framed("*** Update File: f\n@@\n-c\n+C\n@@ a\n-b\n+B\n"), "at line 1 of the file, which is above the hunk before this one"),
    ],
)  # fmt: skip
async def test_what_is_no_patch_is_told_by_its_line(tmp_path: Path, patch: Patcher, text: str, message: str) -> None:
    (tmp_path / "f").write_text("a\nb\nc\n")
    with pytest.raises(ToolError, match=message):
        await patch.call(patch=text)


async def test_nothing_is_written_where_a_part_does_not_fit_and_each_misfit_is_told(
    tmp_path: Path, patch: Patcher
) -> None:
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "other").write_text("x\n")
    before = tree(tmp_path)
    with pytest.raises(ToolError) as raised:
        await patch.call(
            patch=framed(
                "*** Add File: new\n+a\n*** Update File: code.py\n@@ class Two:\n     def run(self):\n         begin()\n"
                "-        stop()\n+        halt()\n@@ class Three:\n-x\n+y\n*** Add File: other\n+y\n*** Delete File: nowhere\n"
            )
        )
    assert tree(tmp_path) == before
    told = str(raised.value)
    assert "nothing was changed. The other parts of it would fit." in told
    assert "code.py:\n- hunk 1 (line 5 of the patch): its lines are not in the file. The nearest to it is:" in told
    assert "     7\t    def run(self):\n     8\t        start()\n" in told
    assert "The first line that differs is '        begin()'; the file has '        start()'." in told
    assert "- hunk 2 (line 10 of the patch): there is no line '@@ class Three:' in the file." in told
    assert f"other: '{tmp_path}/other' exists already" in told
    assert "nowhere: No such file or folder: " in told


async def test_a_failure_while_writing_restores_what_was_written(tmp_path: Path, patch: Patcher) -> None:
    (tmp_path / "first").write_text("a\n")
    (tmp_path / "gone").write_text("b\n")
    (tmp_path / "here").write_text("c\n")
    (tmp_path / "file").write_text("not a folder\n")
    before = tree(tmp_path)
    with pytest.raises(ToolError, match="All files are as they were"):
        await patch.call(
            patch=framed(
                "*** Update File: first\n@@\n-a\n+A\n*** Delete File: gone\n*** Add File: new\n+x\n"
                "*** Update File: here\n*** Move to: there/here\n@@\n-c\n+C\n*** Add File: file/below\n+x\n"
            )
        )
    assert tree(tmp_path) == before
    told = await patch.call(patch=framed("*** Update File: first\n@@\n-a\n+A\n"))
    assert told.files[0].outcome == "changed"


async def test_a_patch_that_is_cancelled_while_it_is_written_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "first").write_text("a\n")
    (tmp_path / "second").write_text("b\n")
    before = tree(tmp_path)
    programs = tmp_path / ".programs"
    programs.mkdir()
    # Moving is a command, and this one tells that it began and never ends.
    (programs / "mv").write_text(f"#!/bin/sh\necho > {programs}/began\nexec sleep 1000\n")
    (programs / "mv").chmod(0o755)
    body = "*** Update File: first\n@@\n-a\n+A\n*** Update File: second\n*** Move to: third\n@@\n-b\n+B\n"
    path = f"{programs}:{os.environ['PATH']}"
    async with open_tool(apply_patch_tool(), tmp_path, env={"PATH": path}) as patch:
        async with anyio.create_task_group() as tasks:

            async def apply() -> None:
                await patch.call(patch=framed(body))

            tasks.start_soon(apply)
            while not (programs / "began").exists():
                await anyio.sleep(0.005)
            assert (tmp_path / "first").read_text() == "A\n"
            tasks.cancel_scope.cancel()
    assert {name: data for name, data in tree(tmp_path).items() if not name.startswith(".")} == before


async def test_a_file_by_two_names_is_refused_since_one_change_would_be_lost(tmp_path: Path, patch: Patcher) -> None:
    (tmp_path / "f").write_text("one\ntwo\n")
    (tmp_path / "link").symlink_to("f")
    for other in ("./f", f"{tmp_path}/f", "link"):
        body = f"*** Update File: f\n-one\n+ONE\n*** Update File: {other}\n-two\n+TWO\n"
        with pytest.raises(ToolError, match="under one header"):
            await patch.call(patch=framed(body))
    with pytest.raises(ToolError, match="under one header"):
        await patch.call(patch=framed("*** Add File: new\n+1\n*** Add File: ./new\n+2\n"))
    assert tree(tmp_path) == {"f": b"one\ntwo\n", "link": b"one\ntwo\n"}


async def test_of_a_diff_that_is_cut_no_lines_are_counted(tmp_path: Path, patch: Patcher) -> None:
    (tmp_path / "f").write_text("".join(f"old {number}\n" for number in range(5000)))
    body = "".join(f"-old {number}\n" for number in range(5000)) + "+new\n"
    told = await patch.call(patch=framed(f"*** Update File: f\n{body}"))
    assert told.text.endswith("- changed f")


async def test_a_patch_stays_in_the_workspace(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "f").write_text("a\n")
    (outside / "f").write_text("a\n")
    async with open_tool(apply_patch_tool(), root) as patch:
        for body in (
            "*** Add File: ../outside/g\n+x\n",
            f"*** Delete File: {outside}/f\n",
            "*** Update File: f\n*** Move to: ../outside/g\n@@\n-a\n+b\n",
        ):
            with pytest.raises(ToolError, match="outside of the workspace"):
                await patch.call(patch=framed(body))
    assert tree(tmp_path) == {"root/f": b"a\n", "outside/f": b"a\n"}


async def test_what_somebody_else_changed_is_told_before_it_is_patched(tmp_path: Path, patch: Patcher) -> None:
    (tmp_path / "f").write_text("a\nb\n")
    await patch.call(patch=framed("*** Update File: f\n@@\n-a\n+A\n"))
    (tmp_path / "f").write_text("A\ntheirs\nb\n")
    change = framed("*** Update File: f\n@@\n-b\n+B\n")
    with pytest.raises(ToolError, match=r"(?s)not as you saw it last.*\+theirs"):
        await patch.call(patch=change)
    await patch.call(patch=change)
    assert (tmp_path / "f").read_text() == "A\ntheirs\nB\n"


def test_a_patch_touches_the_files_that_it_names() -> None:
    tool = apply_patch_tool()
    action = tool.parse({"patch": framed("*** Update File: a\n*** Move to: d/b\n@@\n-a\n+b\n*** Delete File: c\n")})
    assert list(tool.resources_of(action, "/r")) == [
        Resource.file(path, "write", root="/r") for path in ("a", "d/b", "c")
    ]
    assert list(tool.resources_of(tool.parse({"patch": "nonsense"}), "/r")) == []


lines = st.lists(st.sampled_from(["a", "b", "c", "  a", "", "@@", "*** x", "-", "+b"]), max_size=14)


@given(lines, lines, st.booleans())
def test_a_patch_made_of_a_diff_makes_the_new_text_of_the_old_one(old: list[str], new: list[str], end: bool) -> None:
    body: list[str] = []
    for line in list(difflib.unified_diff(old, new, lineterm="", n=20))[2:]:
        body.append("@@" if line.startswith("@@") else line)
    # One empty line without an end is no line: such a file is empty.
    if not body or (old == [""] and not end):
        return
    patch = framed("".join(f"{line}\n" for line in ["*** Update File: f", *body]))
    (update,) = read_patch(patch)
    assert isinstance(update, UpdateFile)
    text = Text("\n".join(old) + ("\n" if end and old else ""))
    after = text.replaced(changes_of(text, update.hunks))
    assert after.lines == Text("".join(f"{line}\n" for line in new)).lines or not text.normal.endswith("\n")
    if end or not old:
        assert after.lines == new
