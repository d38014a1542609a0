"""Searching files for lines: with ripgrep, and without it with Python's `re`."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore.errors import ToolError
from agentcore.tools import OUTPUT_LIMIT, read_call
from agentcore_tools import GrepAction, GrepObservation, grep_tool
from agentcore_tools.grep.python import PYTHON_NOTE
from opened_tool import Opened, open_tool

Grep = Opened[GrepAction, GrepObservation]

NEEDED = ("bash", "sh", "find", "xargs", "tr", "stat", "readlink", "cat")
RIPGREP = shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))
NEEDS_RIPGREP = pytest.mark.skipif(RIPGREP is None, reason="needs ripgrep: pip install 'agentcore-runtime[search]'")
BOTH = [pytest.param("rg", marks=NEEDS_RIPGREP), pytest.param("python", marks=pytest.mark.slow)]


def programs_in(folder: Path, *names: str) -> str:
    """Make a folder with these programs and no others, to be all of PATH."""
    folder.mkdir()
    for name in names:
        found = {"python3": sys.executable, "rg": RIPGREP}.get(name) or shutil.which(name)
        (folder / name).write_text(f'#!/bin/sh\nexec {found} "$@"\n')
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.fixture(autouse=True)
def beside_python(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs that pip installed: there is nothing in it."""
    folder = tmp_path_factory.mktemp("scripts")

    def get_path(*_: str) -> str:
        return str(folder)

    monkeypatch.setattr(sysconfig, "get_path", get_path)
    return folder


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


def write(root: str, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def plain(found: GrepObservation) -> str:
    """Return the answer without the note that Python read the pattern."""
    return found.text.removesuffix(f"[{PYTHON_NOTE}]").removesuffix("\n")


# What is asked, and what is answered: the text, the paths of the files, or, after an exclamation mark, an error.
Asked = dict[str, Any]
Answered = str | list[str]
HERE: dict[str, str | bytes] = dict.fromkeys(
    ("a.ts", "a.js", "src/b.tsx", "src/deep/c.ts", ".hidden", ".git/config"), "here\n"
)
IGNORED: dict[str, str | bytes] = {
    ".gitignore": "*.log\n!keep.log\n/build/\n", "src/.gitignore": "!a.log\nlocal\n",
    **dict.fromkeys(("a.log", "keep.log", "build/x", "src/build/x", "src/a.log", "src/local", "local", ".env", ".git/config"), "here"),
    "binary": b"here\0", "broken": b"\xffhere\n", "utf16": "here\n".encode("utf-16"),
}  # fmt: skip
CUT = "[There are more lines. Search for less: in a folder (path), in some files (include), or for something rarer.]"
TABLE: dict[str, tuple[Mapping[str, str | bytes], list[tuple[Asked, Answered]]]] = {
    "lines come with their numbers in the order of the paths": (
        {"b.py": "x = 1\n\ny = x\n", "a/c.py": "x\n", "a.py": "none\n", "a-b/x": "x\n"},
        [
            ({}, "a/c.py\n1:x\n\na-b/x\n1:x\n\nb.py\n1:x = 1\n3:y = x"),
            ({"path": "a"}, "a/c.py\n1:x"),
            ({"path": "b.py"}, "b.py\n1:x = 1\n3:y = x"),
            ({"output": "files"}, "a/c.py\na-b/x\nb.py"),
            ({"output": "counts"}, "a/c.py: 1\na-b/x: 1\nb.py: 2"),
        ],
    ),
    "lines around are shown with gaps": (
        {"f": "".join(f"{number}\n" for number in range(1, 13))},
        [({"pattern": "^(3|4|9)$", "context": 1}, "f\n2-2\n3:3\n4:4\n5-5\n--\n8-8\n9:9\n10-10")],
    ),
    "only the files that are meant are searched": (
        HERE,
        [
            ({"include": "*.{ts,tsx}"}, ["a.ts", "src/b.tsx", "src/deep/c.ts"]),
            ({"include": "src/*.{ts,tsx}"}, ["src/b.tsx"]),
            ({"include": "src/**/*.ts"}, ["src/deep/c.ts"]),
            ({"include": "/a.*"}, ["a.js", "a.ts"]),
            ({"include": "{a.js,src/deep/*}"}, ["a.js", "src/deep/c.ts"]),
            ({"include": "?.[jt]s"}, ["a.js", "a.ts", "src/deep/c.ts"]),
            ({"include": "[!a-b].*"}, ["src/deep/c.ts"]),
            ({"include": ".hid*"}, [".hidden"]),
        ],
    ),
    "what is ignored, hidden or not text is passed over": (
        IGNORED,
        [
            ({"pattern": "here$"}, ["broken", "keep.log", "local", "src/a.log", "src/build/x", "utf16"]),
            ({"pattern": "here$", "everything": True}, [
                ".env", "a.log", "broken", "build/x", "keep.log", "local", "src/a.log", "src/build/x", "src/local", "utf16",
            ]),
            ({"path": "src"}, ["src/a.log", "src/build/x"]),
        ],
    ),
    "what is hidden is passed over whatever a .gitignore takes back in": (
        {".gitignore": "*\n!*/\n!.env\n!b\n!c\n", "a/b": "here", ".env": "here", "a/.hidden/c": "here", "no": "here"},
        [({}, ["a/b"]), ({"path": "a/.hidden"}, ["a/.hidden/c"]), ({"include": ".env"}, [".env"])],
    ),
    "case matters unless it is said not to": (
        {"f": "Größe\nGRÖßE\n"},
        [({"pattern": "größe"}, []), ({"pattern": "größe", "ignore_case": True}, "f\n1:Größe\n2:GRÖßE")],
    ),
    "what is too much is cut at the same place and says so": (
        dict.fromkeys(("a", "b", "c"), "here\nmiss\n" * 3),
        [
            ({"limit": 4}, f"a\n1:here\n3:here\n5:here\n\nb\n1:here\n{CUT}"),
            ({"limit": 2, "output": "files"}, ["a", "b"]),
            ({"limit": 9}, ["a", "b", "c"]),
        ],
    ),
    "nothing found is said with what was skipped": (
        {"f": "a\n", "empty": ""},
        [
            ({"include": "*.py"}, "[No line in the files of '*.py' matches 'here|x'. Hidden and ignored files were skipped; everything=true searches them.]"),
            ({"path": "nowhere"}, "!No such file or folder"),
            ({"path": ".."}, "!outside of the workspace"),
            ({"pattern": "a\0b"}, "!NUL"),
            ({"pattern": "x" * 200_000}, []),
        ],
    ),
    "whatever is named is answered": (
        {"a.txt": "here", "b.py": "here", "c:d": "here", "e{": "here", "-e": "here", "a b'\"$": "here", "über/x": "here"},
        [
            ({"include": "*.{txt,{py,c}}"}, ["a.txt", "b.py"]),
            ({"include": r"c\:d"}, ["c:d"]),
            ({"include": "c:*"}, ["c:d"]),
            ({"include": "["}, []),
            ({"include": r"e\{"}, ["e{"]),
            ({"path": "./-e"}, ["-e"]),
            ({}, ["-e", "a b'\"$", "a.txt", "b.py", "c:d", "e{", "über/x"]),
            ({"path": "pipe"}, "!a pipe"),
            ({"pattern": "odd", "include": "**"}, "\\xff\n1:odd"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "rows"), TABLE.values(), ids=TABLE)
async def test_what_is_asked_is_answered(
    grep: Grep, files: Mapping[str, str | bytes], rows: list[tuple[Asked, Answered]]
) -> None:
    write(grep.workspace.root, files)
    os.mkfifo(f"{grep.workspace.root}/pipe")
    Path(os.fsdecode(f"{grep.workspace.root}/".encode() + b"\xff")).write_text("odd\n")
    for asked, answered in rows:
        if isinstance(answered, str) and answered.startswith("!"):
            with pytest.raises(ToolError, match=answered[1:]):
                await grep.call(**{"pattern": "here", **asked})
            continue
        told = await grep.call(**{"pattern": "here|x", **asked})
        if isinstance(answered, list):
            assert [file.path for file in told.files] == answered, asked
        else:
            assert plain(told) == answered, asked
        assert told.truncated is ("limit" in asked and asked["limit"] < 9)


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
    (r"\<foo\>", [1]),
    (r"\<fo\>", []),
    (r"\"ÄÖ\"|\/\_\'\%", [3]),
    (r"[\"\/\:]", [2, 3]),
    (r"[\-\]]", [2]),
    (r"gr\ö\ße \=", [3]),
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@NEEDS_RIPGREP
async def test_a_ripgrep_beside_python_is_found_though_it_is_not_on_the_path(
    tmp_path: Path, beside_python: Path
) -> None:
    programs = programs_in(tmp_path / "programs", *NEEDED, "python3")
    root = tmp_path / "root"
    root.mkdir()
    write(str(root), {"a": "hit\n"})
    async with open_tool(grep_tool(), root, env={"PATH": programs}) as grep:
        assert PYTHON_NOTE in (await grep.call(pattern="hit")).text
        (beside_python / "rg").write_text(f'#!/bin/sh\nexec {RIPGREP} "$@"\n')
        (beside_python / "rg").chmod(0o755)
        assert (await grep.call(pattern="hit")).text == "a\n1:hit"


@pytest.mark.slow
async def test_long_lines_and_many_of_them_fit(grep: Grep) -> None:
    write(grep.workspace.root, {"f": ("x" * 400 + "\n") * 150, "min.js": "x" * 100_000})
    told = await grep.call(pattern="x")
    assert len(told.text) < OUTPUT_LIMIT
    assert told.truncated
    line = plain(await grep.call(pattern="x", path="min.js"))
    assert line.endswith("x [... the line goes on]")
    assert len(line) < 1_000


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_the_arguments_of_other_tools_that_search_are_understood() -> None:
    tool = grep_tool()
    assert tool.normalize is not None
    action = tool.parse(
        tool.normalize({"pattern": "a", "glob": "*.py", "-i": True, "output_mode": "files_with_matches"})
    )
    assert (action.include, action.ignore_case, action.output) == ("*.py", True, "files")


@pytest.mark.parametrize("alias", ["rg", "ripgrep", "search_files", "grep_search", "search_file_content"])
def test_it_is_found_by_the_names_of_other_tools_that_search(alias: str) -> None:
    read = read_call(alias, {"pattern": "a"}, [grep_tool()])
    assert (read.name, read.arguments, read.problem) == ("grep", {"pattern": "a"}, None)
