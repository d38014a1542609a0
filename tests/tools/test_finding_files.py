"""Finding, listing and reading files: glob, list_files, list_directory and read_many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcore._gitignore import read_rules
from agentcore.errors import ToolError
from agentcore.tools import OUTPUT_LIMIT
from agentcore.workspace import LocalWorkspace
from agentcore_tools import glob_tool, list_directory_tool, list_files_tool, read_many_tool
from agentcore_tools.search.globs import Glob
from agentcore_tools.search.walk import walk
from opened_tool import open_tool
from programs import needs


def write(root: Path, *names: str) -> None:
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
        os.utime(path, (1_000_000 - age, 1_000_000 - age))


async def test_files_are_found_the_newest_first(tmp_path: Path) -> None:
    write(tmp_path, "src/a.ts", "b.tsx", "src/deep/c.ts", "c.js", ".hidden.ts", "build/d.ts", ".github/e.yml")
    (tmp_path / ".gitignore").write_text("build/\n")
    async with open_tool(glob_tool(), tmp_path) as glob:
        for pattern, found in (
            ("*.{ts,tsx}", ("src/a.ts", "b.tsx", "src/deep/c.ts")),
            ("**/*.ts", ("src/a.ts", "src/deep/c.ts")),
            ("src/*", ("src/a.ts",)),
            ("./*.*s*", ("b.tsx", "c.js")),
            (f"{tmp_path}/src/**", ("src/a.ts", "src/deep/c.ts")),
            (f"{tmp_path}/c.js", ("c.js",)),
            (".github/**", (".github/e.yml",)),
            ("../*/c.js", None),
        ):
            if found is None:
                with pytest.raises(ToolError, match="outside of the workspace"):
                    await glob.call(pattern=pattern)
                continue
            assert (await glob.call(pattern=pattern)).files == found, pattern
        assert (await glob.call(pattern="*.ts", path="src")).files == ("src/a.ts", "src/deep/c.ts")
        assert (await glob.call(pattern="*.ts", everything=True)).files == (
            "src/a.ts", "src/deep/c.ts", ".hidden.ts", "build/d.ts",
        )  # fmt: skip
        cut = await glob.call(pattern="*.ts", limit=1)
        assert cut.text == "src/a.ts\n[These are the newest 1 of 2 files.]"
        assert cut.to_data() == {"count": 2}
        assert "everything=true" in (await glob.call(pattern="*.rs")).text
        for wrong in ("a{b", " "):
            with pytest.raises(ToolError, match="glob"):
                await glob.call(pattern=wrong)


async def test_globs_mean_what_they_mean_elsewhere() -> None:
    for pattern, yes, no in (
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "b"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a/c"]),
        ("{a,b/{c,d}}/*.x", ["a/1.x", "b/c/1.x", "b/d/1.x"], ["b/1.x", "a/b/1.x"]),
        ("[!a].py", ["b.py", "x/b.py"], ["a.py", "/.py"]),
        (r"\{a\}", ["{a}"], ["a"]),
        ("-*", ["-x", "d/-x"], ["x"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("src/", ["src/a", "src/b/c"], ["x/src/a"]),
    ):
        glob = Glob(pattern)
        assert [path for path in yes if not glob.matches(path)] == [], pattern
        assert [path for path in no if glob.matches(path)] == [], pattern


async def test_a_folder_is_listed_as_a_tree_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py", "src/deep/er/b.py", ".env", "src/.hid", "out/x", "README")
    (tmp_path / ".gitignore").write_text("/out\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("src")
    async with open_tool(list_files_tool(), tmp_path) as tree:
        told = await tree.call()
        assert told.text.split("\n") == [
            f"{tmp_path}/", "  README", "  empty/", "  link@", "  src/", "    a.py", "    deep/",
            "[3 hidden and 1 ignored entries are not shown.]",
        ]  # fmt: skip
        assert (told.count, told.hidden, told.ignored, told.truncated) == (6, 3, 1, False)
        assert "      er/\n        b.py" in (await tree.call(depth=9)).text
        assert "    x" in (await tree.call(everything=True)).text
        assert (await tree.call(path="empty")).text == f"[{tmp_path}/empty is empty.]"
        with pytest.raises(ToolError, match="is a file"):
            await tree.call(path="README")
        for folder in range(20):
            (tmp_path / f"many/{folder}").mkdir(parents=True)
            for number in range(60):
                (tmp_path / f"many/{folder}/{number}").touch()
        cut = await tree.call(path="many")
        assert (cut.count, cut.truncated) == (20, True)
        assert cut.text.endswith("[There is more than 20 entries. List a folder in it.]")
    async with open_tool(list_directory_tool(), tmp_path) as listing:
        assert (
            await listing.call(dir_path="src")
        ).text == f"{tmp_path}/src/\n  a.py\n  deep/\n[1 hidden entry is not shown.]"
        assert "b.py" in (await listing.call(dir_path="src", recursive=True)).text


async def test_several_files_are_read_at_once_in_the_order_in_which_they_were_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a.py", "src/c.py", "[id].tsx")
    (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "long.txt").write_text("x" * 99 + "\n" * 2_000)
    async with open_tool(read_many_tool(), tmp_path) as read:
        told = await read.call(paths=["b.py", "**/*.py", "*.zzz", "[id].tsx", "none", "picture"])
        assert told.text.split("\n\n") == [
            "==> b.py <==\nb.py", "==> a.py <==\na.py", "==> src/c.py <==\nsrc/c.py", "==> [id].tsx <==\n[id].tsx",
            f"==> none <==\n[No such file or folder: '{tmp_path}/none'.]",
            "==> picture <==\n[It is a picture or a PDF. View it by itself.]",
            "[No file matches '*.zzz'. Hidden and ignored files were skipped; everything=true reads them.]",
        ]  # fmt: skip
        assert [file.problem is None for file in told.files] == [True, True, True, True, False, False]
        with pytest.raises(ToolError, match=r"No file matches '\*.rs'"):
            await read.call(paths=["*.rs"])
        assert "outside of the workspace" in (await read.call(paths=["../x"])).text


@pytest.mark.slow
async def test_many_long_files_are_cut_to_what_fits(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number:02d}").write_text("".join(f"line {line}\n" for line in range(1_000)))
    async with open_tool(read_many_tool(), tmp_path) as read:
        told = await read.call(paths=["*"])
        assert len(told.text) < OUTPUT_LIMIT
        assert (len(told.files), told.left_out) == (50, 10)
        assert all(0 < file.shown < file.lines == 1_000 for file in told.files)
        assert "more lines. Read the file by itself" in told.text


@needs("git")
async def test_what_is_ignored_is_what_git_ignores(tmp_path: Path) -> None:
    rules = {
        ".gitignore": "*.log\n!keep.log\n/top\nbuild/\ndoc/*.txt\n**/cache\na/**/z\n\\#x\ntrail \n!sub/deep/back.log\n[\n",
        "sub/.gitignore": "!*.log\n/only\n",
        "sub/deep/.gitignore": "*\n!.gitignore\n!y.log\n",
    }
    names = [
        "x.log", "keep.log", "top", "sub/top", "build/x", "sub/build/x", "doc/a.txt", "doc/b/a.txt", "q/cache/x", "a/z",
        "a/b/c/z", "#x", "trail", "sub/x.log", "sub/only", "sub/deep/only", "sub/deep/y.log", "sub/deep/back.log", "build.py",
    ]  # fmt: skip
    write(tmp_path, *names)
    for name, text in rules.items():
        (tmp_path / name).write_text(text)
    async with LocalWorkspace(tmp_path) as workspace:
        await workspace.run("git init -q")
        listed = (await workspace.run("git -c core.excludesFile= ls-files -zco --exclude-standard")).stdout.split("\0")
        wanted = {name for name in listed if name and not name.startswith(".") and "/." not in name}
        assert len(wanted) == 6
        walked = await walk(workspace, workspace.root)
        assert {each.path for each in walked.found if each.kind == "file"} == wanted
        below = await walk(workspace, f"{workspace.root}/sub")
        assert {f"sub/{each.path}" for each in below.found if each.kind == "file"} == {
            name for name in wanted if name.startswith("sub/")
        }


async def files_in(folder: Path, start: str = "") -> set[str]:
    async with LocalWorkspace(folder) as workspace:
        walked = await walk(workspace, f"{workspace.root}/{start}".rstrip("/"))
    return {each.path for each in walked.found if each.kind == "file"}


async def test_folders_that_are_taken_back_in_are_looked_into_and_take_nothing_along(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "a.o", "src/b.py", "src/b.o", "src/deep/c.py", "src/logs/x.log", "src/logs/y.py")
    (tmp_path / ".gitignore").write_text("*\n!*/\n!*.py\n!*.log\n*.log\n")
    (tmp_path / "src" / ".gitignore").write_text("!logs/\n")
    assert await files_in(tmp_path) == {"a.py", "src/b.py", "src/deep/c.py", "src/logs/y.py"}


async def test_a_repository_in_a_repository_has_rules_of_its_own_only(tmp_path: Path) -> None:
    write(tmp_path, "a.log", "other/.git/HEAD", "other/a.log", "other/b.txt")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "other" / ".gitignore").write_text("*.txt\n")
    assert await files_in(tmp_path) == {"other/a.log"}


async def test_a_folder_that_is_left_out_is_searched_by_who_names_it(tmp_path: Path) -> None:
    write(tmp_path, "build/out/a", "build/out/a.log", "build/out/build/b", "build/out/temp/c")
    (tmp_path / ".gitignore").write_text("/build\n*.log\ntemp/\n")
    assert await files_in(tmp_path) == set()
    assert await files_in(tmp_path, "build") == {"out/a", "out/build/b"}
    assert await files_in(tmp_path, "build/out") == {"a", "build/b"}


@pytest.mark.parametrize(
    ("line", "out", "kept"),
    [
        ("foo", ["foo", "x/foo"], ["food", "x/bfoo"]),
        ("/foo", ["foo"], ["x/foo"]),
        ("foo/", ["foo/", "x/foo/"], ["foo"]),
        ("x/foo", ["x/foo"], ["y/x/foo"]),
        ("**/foo", ["foo", "x/y/foo"], []),
        ("foo/**", ["foo/x", "foo/x/y/"], ["foo/", "x/foo/y"]),
        ("x/**/y", ["x/y", "x/a/b/y"], ["x/ay"]),
        ("a*b", ["ab", "a x b"], ["a/b"]),
        ("a**b", ["ab", "axxb"], []),
        ("[a-c]x", ["bx", "q/ax"], ["dx", "-x"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("[]x]", ["]", "x"], ["[]x]"]),
        ("[+--]", [",", "-"], ["a"]),
        ("[[:digit:]]", ["7"], ["a"]),
        ("a[b", [], ["a[b", "ab"]),
        (r"\#a", ["#a"], ["a"]),
        (r"\!a", ["!a"], ["a"]),
        (r"a\*b", ["a*b"], ["axb"]),
        ("#a", [], ["#a", "a"]),
        ("a  ", ["a"], ["a  "]),
        ("a\\ ", ["a "], ["a"]),
        ("a\r", ["a"], []),
        ("a\\", [], ["a", "a\\"]),
        ("/", [], ["a", "a/"]),
        ("{a,b}", ["{a,b}"], ["a", "b"]),
    ],
)
async def test_a_line_of_a_gitignore_means_what_git_makes_of_it(line: str, out: list[str], kept: list[str]) -> None:
    decide = read_rules(line).decide
    assert [path for path in (*out, *kept) if decide(path)] == out


@pytest.mark.slow
async def test_no_glob_takes_for_ever(tmp_path: Path) -> None:
    write(tmp_path, "a" * 200, "a/" * 25 + "a")
    glob = "*a" * 30 + "b"
    (tmp_path / ".gitignore").write_text(f"{glob}\n{'**/' * 40}b\n")
    async with open_tool(glob_tool(), tmp_path, seconds=120) as finder:
        for pattern in (glob, "**/" * 40 + "b"):
            assert (await finder.call(pattern=pattern)).files == ()
        assert (await finder.call(pattern="*a" * 30)).files == ("a" * 200,)
        for pattern in ("{" * 500 + "}" * 500, "{a,b}" * 12):
            with pytest.raises(ToolError, match="too many"):
                await finder.call(pattern=pattern)


@pytest.mark.slow
async def test_a_tree_is_walked_where_find_can_not_print(tmp_path: Path) -> None:
    write(tmp_path, "a b/c", "-d", "über/x\ny")
    (tmp_path / "link").symlink_to("-d")
    programs = tmp_path / ".programs"
    programs.mkdir()
    find = programs / "find"
    find.write_text('#!/bin/sh\ncase "$*" in *-printf*) exit 1 ;; esac\nexec /usr/bin/find "$@"\n')
    find.chmod(0o755)
    async with LocalWorkspace(tmp_path) as workspace:
        printed = await walk(workspace, workspace.root)
    async with LocalWorkspace(tmp_path, env={"PATH": f"{programs}:{os.environ['PATH']}"}) as workspace:
        lines = await walk(workspace, workspace.root)
    # A name with a line feed in it is the price.
    assert [(each.path, each.kind, each.size) for each in printed.found if "\n" not in each.path] == [
        (each.path, each.kind, each.size) for each in lines.found if each.path != "über/x"
    ]
