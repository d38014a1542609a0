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
from rounds import some_quick

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
@pytest.mark.parametrize(
    "names",
    [
        ("a/f", "b/f"),
        pytest.param(("f", "f"), marks=pytest.mark.slow),
        pytest.param(("f.orig\t2024-01-01 00:00:00", "f\t2024-01-01"), marks=pytest.mark.slow),
    ],
)
async def test_the_hunks_of_a_diff_are_applied(
    tmp_path: Path, before: str, body: str, after: str, names: tuple[str, str]
) -> None:
    (tmp_path / "f").write_text(before)
    async with open_tool(apply_patch_tool(), tmp_path) as patch:
        await patch.call(patch=f"```diff\n{diff(body, *names)}\n```\n")
    assert (tmp_path / "f").read_text() == after


@pytest.mark.slow
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


async def applied(folder: Path, files: dict[str, str], written: str) -> dict[str, str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    async with open_tool(apply_patch_tool(), folder) as patch:
        await patch.call(patch=written)
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def refused(folder: Path, files: dict[str, str], written: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await applied(folder, files, written)
    assert {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("line", ["```", "index = 0", "index 1234567..89abcde 100644", "diff --git is a command"])
@pytest.mark.parametrize("ranges", ["@@ -1,3 +1,3 @@", "@@"])
@pytest.mark.parametrize("fence", ["", "```"])
async def test_no_part_of_a_hunk_is_left_out(tmp_path: Path, line: str, ranges: str, fence: str) -> None:
    written = diff(f"{ranges}\n-a\n+A\n{line}\n-b\n+B\n")
    await refused(tmp_path, {"f": f"a\n{line}\nb\n"}, f"{fence}\n{written}\n{fence}\n", "Line 7 of the patch")


async def test_what_comes_below_a_whole_hunk_is_refused_except_for_a_fence(tmp_path: Path) -> None:
    written = diff("@@ -1 +1 @@\n-a\n+b\n")
    await refused(tmp_path, {"f": "a\n"}, f"{written}This is why.\n", "Line 6 of the patch is 'This is why.'")
    assert await applied(tmp_path, {}, f"{written}```\n") == {"f": "b\n"}


async def test_lines_that_a_hunk_lacks_are_no_header(tmp_path: Path) -> None:
    written = diff("@@ -1 +1 @@\n--- i\n+++ i\n@@ -3 +3 @@\n-c\n+C\n")
    assert await applied(tmp_path, {"f": "-- i\nb\nc\n"}, written) == {"f": "++ i\nb\nC\n"}


@pytest.mark.parametrize("second", ["@@ -3,3 +3,3 @@\n A\n-B\n+BB\n C\n", "@@ -2,0 +3 @@\n+x\n"])
async def test_hunks_that_overlap_are_refused(tmp_path: Path, second: str) -> None:
    text = "start\nmid\nA\nB\nC\n" + "x\n" * 50 + "A\nB\nC\n"
    written = diff(f"@@ -1,3 +1,3 @@\n-start\n+START\n mid\n A\n{second}")
    await refused(tmp_path, {"f": text}, written, "the hunks overlap")


@pytest.mark.parametrize("named", some_quick([5, 1, 9, 99], 4))
async def test_a_heading_decides_between_equal_places(tmp_path: Path, named: int) -> None:
    functions = [f"def f{number}():\n    x = 1\n    return x\n\n" for number in range(4)]
    for number in range(4):
        heading = f"def f{number}"  # cut
        written = diff(f"@@ -{named},2 +{named},2 @@ {heading}\n     x = 1\n-    return x\n+    return 2\n")
        wanted = [text.replace("return x", "return 2") if at == number else text for at, text in enumerate(functions)]
        assert await applied(tmp_path, {"f": "".join(functions)}, written) == {"f": "".join(wanted)}


async def test_empty_files_come_and_go(tmp_path: Path) -> None:
    new = "diff --git a/new b/new\nnew file mode 100644\nindex 0000000..e69de29\n"
    gone = "diff --git a/old name b/old name\ndeleted file mode 100644\nindex e69de29..0000000\n"
    assert await applied(tmp_path, {"f": "a\n", "old name": ""}, diff("@@ -1 +1 @@\n-a\n+b\n") + new + gone) == {"f": "b\n", "new": ""}  # fmt: skip
    (tmp_path / "new").unlink()
    await refused(tmp_path, {"f": "a\n", "old name": "kept\n"}, gone, "not what the '-' lines say")


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("diff --git a/g b/g\nold mode 100644\nnew mode 100755\n", "'g' gets another mode"),
        ("diff --git a/g b/g\nnew file mode 100755\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+a\n", "'g' is to have the mode 100755"),
        ("diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n", "'g' is a copy"),
        ("diff --git a/g b/g\nindex 12..34 100644\nBinary files a/g and b/g differ\n", "'g' is binary"),
        ("diff --git a/g b/g\nindex 12..34 100644\nGIT binary patch\nliteral 1\nIcmZ\n", "'g' is binary|Line"),
        ("diff --git a/g b/g\nindex 12..34 100644\n", "'g' has no hunk"),
    ],
)  # fmt: skip
async def test_what_only_git_can_do_is_refused(tmp_path: Path, part: str, why: str) -> None:
    await refused(tmp_path, {"f": "a\n"}, diff("@@ -1 +1 @@\n-a\n+b\n") + part, why)
    await refused(tmp_path, {"f": "a\n"}, part, why)


@pytest.mark.parametrize("lines", ["-something else\n", "-precious\n", "-precious\n-lines\n-more\n"])
async def test_a_file_with_other_lines_is_not_deleted(tmp_path: Path, lines: str) -> None:
    written = diff(f"@@ -1 +0,0 @@\n{lines}", "a/f", "/dev/null")
    await refused(tmp_path, {"f": "precious\nlines\n"}, written, "not what the '-' lines say")


async def test_gits_names_and_its_version_are_understood(tmp_path: Path) -> None:
    written = diff("@@ -0,0 +1 @@\n+hi\n", "/dev/null", r'"b/caf\303\251 \"x\".txt"')
    assert await applied(tmp_path, {}, f"{written}-- \n2.39.0\n\n") == {'café "x".txt': "hi\n"}
