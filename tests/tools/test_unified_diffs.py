"""Unified diffs in place of patches."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agentcore.errors import ToolError
from agentcore.tools import Resource
from agentcore_tools import ApplyPatchAction, apply_patch_tool
from opened_tool import open_tool

BODY = "def f():\n    start()\n    stop()\n\n\n"
TWICE = BODY + BODY.replace("f()", "g()")


def diff(body: str, old: str = "a/f", new: str = "b/f") -> str:
    return f"--- {old}\n+++ {new}\n{body}"


@pytest.mark.parametrize(
    ("before", "body", "after"),
    [
        ("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
        ("a\nb\nc\n", "@@ -7,3 +9,3 @@ def gone():\n a\n-b\n+B\n c\n", "a\nB\nc\n"),  # wrong numbers, and a heading
        ("a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),  # none
        (TWICE, "@@ -6,3 +6,3 @@ def g():\n     start()\n-    stop()\n+    halt()\n", BODY + BODY.replace("f()", "g()").replace("stop", "halt")),
        (TWICE, "@@ -2,2 +2,2 @@\n     start()\n-    stop()\n+    halt()\n@@ -7,2 +7,2 @@\n     start()\n-    stop()\n+    end()\n",
         BODY.replace("stop", "halt") + BODY.replace("f()", "g()").replace("stop", "end")),
        ("a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n"),  # no lines around
        ("a\nb\n", "@@ -0,0 +1 @@\n+x\n", "x\na\nb\n"),
        ("-- a\n++ b\nc\n", "@@ -1,3 +1,2 @@\n--- a\n-++ b\n+++ d\n c\n", "++ d\nc\n"),  # lines that look like a header
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("names", [("a/f", "b/f"), ("f", "f"), ("f.orig\t2024-01-01 00:00:00", "f\t2024-01-01")])
async def test_the_hunks_of_a_diff_are_applied(
    tmp_path: Path, before: str, body: str, after: str, names: tuple[str, str]
) -> None:
    (tmp_path / "f").write_text(before)
    async with open_tool(apply_patch_tool(), tmp_path) as patch:
        await patch.call(patch=f"```diff\n{diff(body, *names)}\n```\n")
    assert (tmp_path / "f").read_text() == after


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_what_git_writes_is_applied_as_git_would(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/changed").write_text(TWICE)
    (tmp_path / "moved").write_text("1\n2\n3\n4\n5\n6\n7\n8\n")
    (tmp_path / "renamed only").write_text("x\n" * 9)
    (tmp_path / "gone").write_text("gone\n")
    git("add", "-A")
    git("commit", "-qm", "a")
    (tmp_path / "a/changed").write_text(f"# new\n{TWICE}# end\n")
    (tmp_path / "moved").rename(tmp_path / "there")
    (tmp_path / "there").write_text("1\n2\n3\n4\n5\n6\n7\neight\n")
    (tmp_path / "renamed only").rename(tmp_path / "new name")
    (tmp_path / "gone").unlink()
    (tmp_path / "made").write_text("one\n\ntwo\n")
    git("add", "-A")
    written = git("diff", "--cached", "-M")
    wanted = {
        path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts
    }
    git("reset", "-q", "--hard")
    async with open_tool(apply_patch_tool(), tmp_path) as patch:
        told = await patch.call(patch=written)
    assert {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts} == wanted  # fmt: skip
    assert {file.outcome for file in told.files} == {"changed", "moved", "removed", "created"}


def test_what_a_diff_touches_is_known_before() -> None:
    tool = apply_patch_tool()
    action = ApplyPatchAction(patch=diff("@@ -1 +1 @@\n-a\n+b\n"))
    assert tool.resources_of(action, "/project") == (Resource.file("f", "write", root="/project"),)
    assert tool.display_call is not None
    assert "`f`" in str(tool.display_call(action)[0])


async def test_all_of_a_diff_is_applied_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\n")
    written = diff("@@ -1 +1 @@\n-a\n+b\n") + diff("@@ -1 +1 @@\n-x\n+y\n", "a/g", "b/g")
    async with open_tool(apply_patch_tool(), tmp_path) as patch:
        with pytest.raises(ToolError, match="nothing was changed"):
            await patch.call(patch=written)
    assert (tmp_path / "f").read_text() == "a\n"
