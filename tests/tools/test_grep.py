"""Searching files for lines: with ripgrep, and without it with Python's `re`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from agentcore.errors import ToolError
from agentcore.tools import OUTPUT_LIMIT
from agentcore_tools import GrepAction, GrepObservation, grep_tool
from agentcore_tools.grep.python import PYTHON_NOTE
from opened_tool import Opened, open_tool

Grep = Opened[GrepAction, GrepObservation]

NEEDED = ("bash", "sh", "find", "xargs", "tr", "stat", "readlink", "cat")
BOTH = [
    pytest.param("rg", marks=pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")),
    "python",
]


def programs_in(folder: Path, *names: str) -> str:
    """Make a folder with these programs and no others, to be all of PATH."""
    folder.mkdir()
    for name in names:
        found = sys.executable if name == "python3" else shutil.which(name)
        (folder / name).write_text(f'#!/bin/sh\nexec {found} "$@"\n')
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.fixture(params=BOTH)
async def grep(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Grep]:
    """A grep in a workspace that has ripgrep, or Python, or neither."""
    programs = programs_in(
        tmp_path / "programs", *NEEDED, *{"rg": ["rg", "python3"], "python": ["python3"]}.get(request.param, [])
    )
    root = tmp_path / "root"
    root.mkdir()
    async with open_tool(grep_tool(), root, env={"PATH": programs}) as opened:
        yield opened


def write(root: str, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def plain(found: GrepObservation) -> str:
    """Return the answer without the note that Python read the pattern."""
    return found.text.removesuffix(f"[{PYTHON_NOTE}]").removesuffix("\n")


async def test_lines_come_with_their_numbers_in_the_order_of_the_paths(grep: Grep) -> None:
    write(grep.workspace.root, {"b.py": "x = 1\n\ny = x\n", "a/c.py": "x\n", "a.py": "none\n", "a-b/x": "x\n"})
    found = await grep.call(pattern="x")
    assert plain(found) == "a/c.py\n1:x\n\na-b/x\n1:x\n\nb.py\n1:x = 1\n3:y = x"
    assert [(file.path, file.matches) for file in found.files] == [("a/c.py", 1), ("a-b/x", 1), ("b.py", 2)]
    assert not found.truncated
    assert plain(await grep.call(pattern="x", path="a")) == "a/c.py\n1:x"
    assert plain(await grep.call(pattern="x", path="b.py")) == "b.py\n1:x = 1\n3:y = x"
    assert plain(await grep.call(pattern="x", output="files")) == "a/c.py\na-b/x\nb.py"
    assert plain(await grep.call(pattern="x", output="counts")) == "a/c.py: 1\na-b/x: 1\nb.py: 2"


async def test_lines_around_are_shown_with_gaps(grep: Grep) -> None:
    write(grep.workspace.root, {"f": "".join(f"{number}\n" for number in range(1, 13))})
    found = await grep.call(pattern="^(3|4|9)$", context=1)
    assert plain(found) == "f\n2-2\n3:3\n4:4\n5-5\n--\n8-8\n9:9\n10-10"
    assert found.files[0].matches == 3


INCLUDES = (
    ("*.{ts,tsx}", ["a.ts", "src/b.tsx", "src/deep/c.ts"]),
    ("src/*.{ts,tsx}", ["src/b.tsx"]),
    ("src/**/*.ts", ["src/deep/c.ts"]),
    ("/a.*", ["a.js", "a.ts"]),
    ("{a.js,src/deep/*}", ["a.js", "src/deep/c.ts"]),
    ("?.[jt]s", ["a.js", "a.ts", "src/deep/c.ts"]),
    ("[!a-b].*", ["src/deep/c.ts"]),
    (".hid*", [".hidden"]),
)


async def test_only_the_files_that_are_meant_are_searched(grep: Grep) -> None:
    names = ["a.ts", "a.js", "src/b.tsx", "src/deep/c.ts", ".hidden", ".git/config"]
    write(grep.workspace.root, dict.fromkeys(names, "here\n"))
    for include, found in INCLUDES:
        told = await grep.call(pattern="here", include=include, output="files")
        assert [file.path for file in told.files] == found, include


@pytest.mark.parametrize("everything", [False, True])
async def test_what_is_ignored_hidden_or_no_text_is_passed_over(grep: Grep, everything: bool) -> None:
    write(
        grep.workspace.root,
        {
            ".gitignore": "*.log\n!keep.log\n/build/\n",
            "a.log": "here", "keep.log": "here", "build/x": "here", "src/build/x": "here", "src/a.log": "here",
            "src/.gitignore": "!a.log\nlocal\n", "src/local": "here", "local": "here",
            ".env": "here", ".git/config": "here",
            "binary": b"here\0", "broken": b"\xffhere\n", "utf16": "here\n".encode("utf-16"),
        },
    )  # fmt: skip
    told = await grep.call(pattern="here$", output="files", everything=everything)
    shown = ["broken", "keep.log", "local", "src/a.log", "src/build/x", "utf16"]
    more = [".env", "a.log", "build/x", "src/local"]
    assert [file.path for file in told.files] == sorted([*shown, *(more if everything else [])])
    below = await grep.call(pattern="here", path="src", output="files")
    assert [file.path for file in below.files] == ["src/a.log", "src/build/x"]


CODE = """\
function  foo(a) { return a.b + 1; }
const x = { y: [1, 2] };
größe = "ÄÖ"
tab\there end
"""
BOTH_READ: tuple[tuple[str, list[int]], ...] = (
    (r"function\s+\w+", [1]),
    (r"foo(a) {".replace("(", r"\(").replace(")", r"\)"), [1]),
    ("{ y", [2]),
    (r"\{", [1, 2]),
    (r"\[\d{1}", [2]),
    (r"\Atab", [4]),
    (r"end\z", [4]),
    (r"(?i)GRÖSSE|CONST", [2]),
    (r"b\th", [4]),
    (r"[\s\S]here", [4]),
    (r"^+const", [2]),
)
ONLY: dict[str, tuple[tuple[str, list[int]], ...]] = {
    "rg": ((r"[[:alpha:]]+\d|\p{Lu}", [3]), (r"x(?i) = \{ Y", [2]), (r"\x{c4}", [3])),
    "python": ((r"(?<=return )a(?=\.)", [1]), (r"(o)\1", [1]), (r"\.b.*\n?const", []), (r";\s*const", [])),
}
WRONG = {
    "rg": (r"(?=a)", r"(a)\1", "(", "a)", "[a", r"a\nb"),
    "python": ("(", "a)", "[a", "[[:alpha:]]", r"\p{Lu}", "a++++"),
}


async def test_each_program_reads_patterns_in_its_own_way_and_python_says_that_it_was_python(
    grep: Grep, request: pytest.FixtureRequest
) -> None:
    """Line by line, and with braces that cannot be counts, and the ends of a text, meant as they are for a person."""
    engine = request.node.callspec.params["grep"]
    write(grep.workspace.root, {"f": CODE + CODE.replace("\n", "\r\n")})
    for pattern, lines in (*BOTH_READ, *ONLY[engine]):
        if (pattern, engine) == ("^+const", "python"):
            continue  # `re` repeats no assertion
        told = await grep.call(pattern=pattern, path="f")
        rows = [row for row in told.text.split("\n") if row[:1].isdigit()]
        assert [int(row.split(":")[0]) for row in rows] == [*lines, *(line + 4 for line in lines)], pattern
        assert not any(row.endswith("\r") for row in rows)
        assert told.text.endswith(f"[{PYTHON_NOTE}]") == (engine == "python")
    for pattern in WRONG[engine]:
        with pytest.raises(ToolError, match="refused the pattern" if engine == "rg" else "cannot be used"):
            await grep.call(pattern=pattern)


@pytest.mark.parametrize("grep", ["nothing"], indirect=True)
async def test_without_ripgrep_and_python_files_are_brought_to_where_there_is_one(grep: Grep) -> None:
    write(grep.workspace.root, {"a": "x\r\nhit 1\r\ny", "b/c": "hit\nhit", "no": b"hit\0", "ü": "hit ä\n", "empty": ""})
    assert (
        plain(await grep.call(pattern=r"^hit( \S)?$", context=1))
        == "a\n1-x\n2:hit 1\n3-y\n\nb/c\n1:hit\n2:hit\n\nü\n1:hit ä"
    )
    assert plain(await grep.call(pattern="HIT", ignore_case=True, output="counts")) == "a: 1\nb/c: 2\nü: 1"
    cut = await grep.call(pattern="hit", limit=2)
    assert [(file.path, file.matches) for file in cut.files] == [("a", 1), ("b/c", 1)]
    assert cut.truncated


async def test_case_matters_unless_it_is_said_not_to(grep: Grep) -> None:
    write(grep.workspace.root, {"f": "Größe\nGRÖßE\n"})
    assert (await grep.call(pattern="größe")).files == ()
    assert (await grep.call(pattern="größe", ignore_case=True)).files[0].matches == 2


async def test_what_is_too_much_is_cut_at_the_same_place_and_says_so(grep: Grep) -> None:
    write(grep.workspace.root, dict.fromkeys(("a", "b", "c"), "hit\nmiss\n" * 30))
    told = await grep.call(pattern="hit", limit=40)
    assert [(file.path, file.matches) for file in told.files] == [("a", 30), ("b", 10)]
    assert plain(told).endswith("b\n" + "\n".join(f"{number}:hit" for number in range(1, 20, 2)) + "\n[There are more lines. "
                              "Search for less: in a folder (path), in some files (include), or for something rarer.]")  # fmt: skip
    assert told.truncated
    assert [file.path for file in (await grep.call(pattern="hit", output="files", limit=2)).files] == ["a", "b"]
    exactly = await grep.call(pattern="hit", limit=90)
    assert (exactly.truncated, len(exactly.files)) == (False, 3)


async def test_long_lines_and_many_of_them_fit(grep: Grep) -> None:
    write(grep.workspace.root, {"f": ("x" * 400 + "\n") * 150, "min.js": "x" * 100_000})
    told = await grep.call(pattern="x")
    assert len(told.text) < OUTPUT_LIMIT
    assert told.truncated
    line = plain(await grep.call(pattern="x", path="min.js"))
    assert line.endswith("x [... the line goes on]")
    assert len(line) < 1_000


async def test_nothing_found_is_said_with_what_was_passed_over(grep: Grep) -> None:
    write(grep.workspace.root, {"f": "a\n", "empty": ""})
    assert plain(await grep.call(pattern="x", include="*.py")) == (
        "[No line in files like '*.py' matches 'x'. Hidden and ignored files were passed over; everything=true searches them.]"
    )
    with pytest.raises(ToolError, match="nothing at"):
        await grep.call(pattern="x", path="nowhere")
    with pytest.raises(ToolError, match="outside of the workspace"):
        await grep.call(pattern="x", path="..")


async def test_what_is_hidden_is_passed_over_whatever_a_gitignore_takes_back_in(grep: Grep) -> None:
    write(grep.workspace.root, {"a/b": "hit", ".env": "hit", "a/.hidden/c": "hit", "no": "hit"})
    write(grep.workspace.root, {".gitignore": "*\n!*/\n!.env\n!b\n!c\n"})
    assert [file.path for file in (await grep.call(pattern="hit")).files] == ["a/b"]
    assert [file.path for file in (await grep.call(pattern="hit", path="a/.hidden")).files] == ["a/.hidden/c"]
    assert [file.path for file in (await grep.call(pattern="hit", include=".env")).files] == [".env"]


async def test_whatever_is_named_is_answered(grep: Grep) -> None:
    root = grep.workspace.root
    write(root, {"a.txt": "hit", "b.py": "hit", "c:d": "hit", "e{": "hit"})
    os.mkfifo(f"{root}/pipe")
    with pytest.raises(ToolError, match="a pipe"):
        await grep.call(pattern="hit", path="pipe")
    with pytest.raises(ToolError, match="NUL"):
        await grep.call(pattern="a\0b")
    assert (await grep.call(pattern="x" * 200_000)).files == ()
    for include, found in {
        "*.{txt,{py,c}}": ["a.txt", "b.py"],
        r"c\:d": ["c:d"],
        "c:*": ["c:d"],
        "[": [],
        r"e\{": ["e{"],
    }.items():
        assert [file.path for file in (await grep.call(pattern="hit", include=include)).files] == found, include


@pytest.mark.parametrize("grep", BOTH[:1], indirect=True)
async def test_what_is_no_text_in_a_line_matches_nothing_and_is_shown_as_such(grep: Grep) -> None:
    write(grep.workspace.root, {"f": b"a\xffb\nacb\na\rb\n\xff\n\x1c\n \r\r\n"})
    for pattern, shown in {
        "a.b": "2:acb",
        "a[^x]b": "2:acb",
        r"a\Wb": None,
        r"a\Sb": "2:acb",
        r"a[\s\S]b": "2:acb",
        "a": "1:a\ufffdb\n2:acb\n3:a\rb",
        r"^\s": "6: \r",
    }.items():
        told = await grep.call(pattern=pattern)
        if shown is None:
            assert told.files == ()
        else:
            assert plain(told) == f"f\n{shown}", pattern


async def test_a_ripgrep_that_crashes_hides_nothing(tmp_path: Path) -> None:
    programs = programs_in(tmp_path / "programs", *NEEDED, "python3")
    begun = '{"type":"begin","data":{"path":{"text":"./a"}}}\n{"type":"match","data":{"path":{"text":"./a"},'
    (tmp_path / "programs" / "rg").write_text(f"#!/bin/sh\nprintf '%s' '{begun}'\nexit 101\n")
    (tmp_path / "programs" / "rg").chmod(0o755)
    root = tmp_path / "root"
    root.mkdir()
    write(str(root), {"a": "hit\n", "b": "hit\n"})
    async with open_tool(grep_tool(), root, env={"PATH": programs}) as grep:
        for _ in range(2):
            assert plain(await grep.call(pattern="hit")) == "a\n1:hit\n\nb\n1:hit"


async def test_names_that_are_no_words_are_found(grep: Grep) -> None:
    write(grep.workspace.root, {"-e": "here\n", "a b'\"$": "here\n", "über/x": "here\n"})
    told = await grep.call(pattern="here", output="files")
    assert [file.path for file in told.files] == ["-e", "a b'\"$", "über/x"]
    assert (await grep.call(pattern="here", path="./-e")).files[0].path == "-e"
    Path(os.fsdecode(f"{grep.workspace.root}/".encode() + b"\xff")).write_text("odd\n")
    assert plain(await grep.call(pattern="odd", include="**")) == "\\xff\n1:odd"


async def test_a_pattern_that_takes_for_ever_is_ended_with_the_call(tmp_path: Path) -> None:
    programs = programs_in(tmp_path / "programs", *NEEDED, "python3")
    (tmp_path / "f").write_text("a" * 64 + "!\n")
    async with open_tool(grep_tool(), tmp_path, env={"PATH": programs}) as grep:
        with anyio.move_on_after(0.5) as bound:
            await grep.call(pattern="(a|aa)+$", path="f")
        assert bound.cancelled_caught
        (tmp_path / "f").write_text("aa\n")
        assert (await grep.call(pattern="(a|aa)+$", path="f")).files[0].matches == 1


async def test_a_file_that_grew_since_it_was_found_is_read_again(tmp_path: Path) -> None:
    write(str(tmp_path), {"a": "hit\n", "b": "hit\n"})
    programs = programs_in(tmp_path / ".programs", *NEEDED)
    cat = Path(programs, "cat")
    cat.write_text(f'#!/bin/sh\necho hit >> {tmp_path}/a\nexec {shutil.which("cat")} "$@"\n')
    async with open_tool(grep_tool(), tmp_path, env={"PATH": programs}) as grep:
        assert [file.matches for file in (await grep.call(pattern="hit")).files] == [2, 1]


async def test_a_call_as_other_programs_have_it_is_understood() -> None:
    tool = grep_tool()
    assert tool.normalize is not None
    action = tool.parse(
        tool.normalize({"pattern": "a", "glob": "*.py", "-i": True, "output_mode": "files_with_matches"})
    )
    assert (action.include, action.ignore_case, action.output) == ("*.py", True, "files")
