"""Every Python program in the README and in the docs is run, in a folder of its own, as a reader would run it.

A fenced `python` block is a program. The line above it may say something about it:

    <!-- continued -->         it goes on from the block before it, on the same page
    <!-- not run: reason -->   it is only compiled
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if path.is_file())

_FENCE = re.compile(
    r"(?P<above>(?:^[ ]*<!--[^\n]*-->[ ]*\n+)*)"
    r"^(?P<indent>[ ]*)(?P<fence>```+|~~~+)[ ]*(?P<language>[\w.+-]*)(?P<rest>[^\n]*)\n"
    r"(?P<code>.*?)"
    r"^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->")


@dataclass(frozen=True)
class Program:
    """One block, or several that go on from each other."""

    page: str
    line: int
    """The first line of its code on the page."""
    code: str
    """Padded with empty lines, so that a traceback's line numbers are the page's."""
    not_run: str | None = None
    """Why not."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def programs_of(page: str, text: str) -> Iterator[Program]:
    """Find a page's programs.

    Raises:
        ValueError: a block's mark is not understood.
    """
    current: Program | None = None
    for block in _FENCE.finditer(text):
        if block["language"] not in {"python", "py", "python3", "pycon"}:
            continue
        line = text.count("\n", 0, block.start("code")) + 1
        if block["language"] != "python":
            raise ValueError(f"{page}:{line}: call the block `python`, so that it is found and run.")
        code = textwrap.dedent(block["code"])
        marks = _COMMENT.findall(block["above"])
        mark = marks[-1] if marks else None
        if mark == "continued":
            if current is None:
                raise ValueError(f"{page}:{line}: there is no program to continue.")
            gap = line - 1 - current.code.count("\n")
            current = Program(page, current.line, current.code + "\n" * gap + code, current.not_run)
            continue
        if current is not None:
            yield current
        current = Program(page, line, "\n" * (line - 1) + code, _reason(f"{page}:{line}", mark))
    if current is not None:
        yield current


def _reason(where: str, mark: str | None) -> str | None:
    if mark is None:
        return None
    name, colon, reason = mark.partition(":")
    if name != "not run":
        raise ValueError(f"{where}: {mark!r} is neither 'continued' nor 'not run: reason'.")
    if not colon or len(reason.split()) < 3:
        raise ValueError(f"{where}: say in a few words why it is not run.")
    return reason.strip()


def _all_programs() -> list[Program]:
    return [
        program
        for path in PAGES
        for program in programs_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]


ALL = _all_programs()


@pytest.mark.parametrize("program", [each for each in ALL if each.not_run is None], ids=str)
def test_the_program_runs(program: Program, tmp_path: Path) -> None:
    place = tmp_path / "project"
    place.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    file = tmp_path / f"{Path(program.page).stem}.py"
    file.write_text(program.code, encoding="utf-8")
    # The reader's own settings and keys must not decide whether a program runs.
    inherited = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    ended = subprocess.run(
        [sys.executable, str(file)],
        cwd=place,
        env={**inherited, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, f"{program} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"


@pytest.mark.parametrize("program", [each for each in ALL if each.not_run is not None], ids=str)
def test_a_program_that_is_not_run_compiles(program: Program) -> None:
    compile(program.code, program.page, "exec", dont_inherit=True)


def test_blocks_that_continue_each_other_are_one_program_with_the_pages_line_numbers() -> None:
    page = "# T\n\n```python\na = 1\n```\n\nText.\n\n<!-- continued -->\n```python\nassert a == 2\n```\n"
    (program,) = programs_of("page.md", page)
    assert program.line == 4
    assert program.code.splitlines()[3] == "a = 1"
    assert program.code.splitlines()[page.splitlines().index("assert a == 2")] == "assert a == 2"


def test_an_indented_block_is_found_and_a_shell_block_is_not() -> None:
    page = '- Item:\n\n    ```python title="x"\n    if True:\n        pass\n    ```\n\n```sh\nls\n```\n'
    (program,) = programs_of("page.md", page)
    assert program.code.strip() == "if True:\n    pass"
    assert program.not_run is None


def test_the_reason_for_not_running_a_block_is_kept() -> None:
    (program,) = programs_of("page.md", "<!-- not run: needs a Docker engine -->\n\n```python\nx\n```\n")
    assert program.not_run == "needs a Docker engine"


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("<!-- not run -->\n```python\nx\n```\n", "in a few words"),
        ("<!-- not run: no -->\n```python\nx\n```\n", "in a few words"),
        ("<!-- skip: because it is long -->\n```python\nx\n```\n", "is neither"),
        ("<!-- continued -->\n```python\nx\n```\n", "no program to continue"),
        ("```py\nx\n```\n", "call the block `python`"),
    ],
)
def test_a_block_that_would_escape_is_an_error(page: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        list(programs_of("page.md", page))
