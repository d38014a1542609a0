"""Every Python program in the README and in the docs is run, in a folder of its own, as a reader would run it.

The slow runs start an interpreter for each, as the README's first program always has; the others run in this process, each in
a namespace of its own.

A fenced `python` block is a program. A comment above it may say something about it:

    <!-- continued -->               it goes on from the block before it, on the same page
    <!-- replies: say("Done.") -->   a model answers so: agentcore.testing's provider plays this script on the loopback, and
                                     OPENAI_BASE_URL leads to it, as for any client of an OpenAI-compatible server
    <!-- file: test_agent.py -->     it is a file of this name, in any language; all files of a page stand in one folder,
                                     in which pytest is run
    <!-- not run: reason -->         it is only compiled
    <!-- needs: docker -->           it needs a Docker engine, or bubblewrap, or git: skipped where there is none. The image `python:3.12`
                                     is then the one for tests. Another comment may follow
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import cast

import pytest
from anyio.from_thread import start_blocking_portal

from agentcore.testing import ScriptLine, call, calls, say, serve_provider
from boxes_bubblewrap import needs_bubblewrap
from boxes_docker import needs_docker
from programs import run_here

ROOT = Path(__file__).parents[2]
SECONDS = 60
PAGES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if path.is_file())

_FENCE = re.compile(
    r"(?P<above>(?:^[ ]*<!--(?:(?!-->).)*-->[ ]*\n+)*)"
    r"^(?P<indent>[ ]*)(?P<fence>```+|~~~+)[ ]*(?P<language>[\w.+-]*)(?P<rest>[^\n]*)\n"
    r"(?P<code>.*?)"
    r"^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
NEEDS = {
    "docker": needs_docker,
    "bubblewrap": needs_bubblewrap,
    "git": pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt-get install git"),
}
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)


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
    replies: str | None = None
    """What a model answers: one script line or several, as Python."""
    needs: str | None = None
    """A kind of box: "docker" or "bubblewrap"."""
    files: tuple[tuple[str, str], ...] = ()
    """Names and contents of the files that pytest is run on, in place of code."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def programs_of(page: str, text: str) -> Iterator[Program]:
    """Find a page's programs.

    Raises:
        ValueError: a block's mark is not understood.
    """
    current: Program | None = None
    tested: Program | None = None
    for block in _FENCE.finditer(text):
        line = text.count("\n", 0, block.start("code")) + 1
        code = textwrap.dedent(block["code"])
        marks = _COMMENT.findall(block["above"])
        needs = next((each for each in marks if each.startswith("needs:")), None)
        marks = [each for each in marks if each != needs]
        mark = marks[-1] if marks else None
        if mark is not None and mark.startswith("file:"):
            tested = tested or Program(page, line, "")
            padding = "\n" * (line - 1) if block["language"] == "python" else ""
            tested = replace(tested, files=(*tested.files, (mark.removeprefix("file:").strip(), padding + code)))
            continue
        if block["language"] not in {"python", "py", "python3", "pycon"}:
            continue
        if block["language"] != "python":
            raise ValueError(f"{page}:{line}: call the block `python`, so that it is found and run.")
        if mark == "continued":
            if current is None:
                raise ValueError(f"{page}:{line}: there is no program to continue.")
            gap = line - 1 - current.code.count("\n")
            current = replace(current, code=current.code + "\n" * gap + code)
            continue
        if current is not None:
            yield current
        current = _marked(_needing(Program(page, line, "\n" * (line - 1) + code), needs), mark)
    if current is not None:
        yield current
    if tested is not None:
        yield tested


def _needing(program: Program, mark: str | None) -> Program:
    if mark is None:
        return program
    kind = mark.removeprefix("needs:").strip()
    if kind not in NEEDS:
        raise ValueError(f"{program}: it may need docker or bubblewrap, and not {kind!r}.")
    return replace(program, needs=kind)


def _marked(program: Program, mark: str | None) -> Program:
    if mark is None:
        return program
    name, _, said = (part.strip() for part in mark.partition(":"))
    match name:
        case "not run" if len(said.split()) >= 3:
            return replace(program, not_run=said)
        case "not run":
            raise ValueError(f"{program}: say in a few words why it is not run.")
        case "replies":
            return replace(program, replies=said)
        case _:
            raise ValueError(
                f"{program}: {mark!r} is none of 'continued', 'file: ...', 'replies: ...' and 'not run: reason'."
            )


def _all_programs() -> list[Program]:
    return [
        program
        for path in PAGES
        for program in programs_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]


ALL = _all_programs()


@contextmanager
def prepared(program: Program, folder: Path) -> Generator[tuple[Path, Path, dict[str, str]]]:
    """Write the program, and give its file, a new folder to run it in, and its environment, with a home of its own."""
    place, home = folder / "project", folder / "home"
    place.mkdir()
    home.mkdir()
    file = folder / f"{Path(program.page).stem}_page.py"
    code = program.code
    if program.needs == "docker":
        code = code.replace("python:3.12", os.environ["TEST_IMAGE"])
    file.write_text(code, encoding="utf-8")
    for name, content in program.files:
        (place / name).write_text(content, encoding="utf-8")
    # The reader's own settings and keys must not decide whether a program runs.
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    environment |= {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    if program.needs == "docker":
        environment["DOCKER_HOST"] = os.environ["DOCKER_HOST"]
    with ExitStack() as stack:
        if program.replies is not None:
            portal = stack.enter_context(start_blocking_portal())
            provider = portal.wrap_async_context_manager(serve_provider(_script(program.replies)))
            url = stack.enter_context(provider).base_url
            environment |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "not-a-key"}
        yield file, place, environment


def run(program: Program, folder: Path) -> CompletedProcess[str]:
    """Run a program as a reader would, in an interpreter that is started for it; or pytest, on a page's files."""
    with prepared(program, folder) as (file, place, environment):
        command = ["-m", "pytest", *_options(program)] if program.files else [str(file)]
        return subprocess.run(
            [sys.executable, *command], cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=SECONDS, check=False,
        )  # fmt: skip


def _options(program: Program) -> list[str]:
    """Return pytest's options. A page without settings of its own has those that it tells the reader to have."""
    # On one event loop: the contracts themselves are tested on both.
    settings = [] if any(name == "pyproject.toml" for name, _ in program.files) else ["-o", "anyio_mode=auto"]
    return ["-q", "-W", "error", "-p", "no:cacheprovider", "-k", "not trio", *settings]


def _script(replies: str) -> Sequence[ScriptLine]:
    script: object = eval(replies, {"call": call, "calls": calls, "say": say})
    return cast("Sequence[ScriptLine]", script if isinstance(script, tuple) else (script,))


TO_RUN = [each for each in ALL if each.not_run is None]
FIRST = next(each for each in TO_RUN if each.page == "README.md")


@pytest.mark.parametrize(
    "program",
    [
        # Each has an interpreter of its own in slow tests.
        pytest.param(each, marks=NEEDS[each.needs] if each.needs else (), id=str(each))
        for each in [each for each in TO_RUN if each is not FIRST and not each.files][::6]
    ],
)
def test_the_program_runs(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with prepared(program, tmp_path) as (file, place, environment):
        for name in set(os.environ) - set(environment):
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(place)
        assert run_here(monkeypatch, file) == 0


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            each,
            marks=[
                *([] if each is FIRST else [pytest.mark.slow]),
                *([NEEDS[each.needs]] if each.needs else []),
            ],
            id=str(each),
        )
        for each in TO_RUN
    ],
)
def test_the_program_runs_in_an_interpreter_that_is_started_for_it(program: Program, tmp_path: Path) -> None:
    ended = run(program, tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr


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


def test_a_program_may_need_a_box_and_have_replies() -> None:
    marks = ("<!-- needs: docker -->", '<!-- replies: say("Hi.") -->')
    for above in (marks, marks[::-1]):
        (program,) = programs_of("page.md", "\n".join((*above, "```python", "x", "```", "")))
        assert (program.needs, program.replies) == ("docker", 'say("Hi.")')
    (program,) = programs_of("page.md", "<!-- needs: bubblewrap -->\n```python\nx\n```\n")
    assert program.needs == "bubblewrap"


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("<!-- needs: podman -->\n```python\nx\n```\n", "docker or bubblewrap"),
        ("<!-- not run -->\n```python\nx\n```\n", "in a few words"),
        ("<!-- not run: no -->\n```python\nx\n```\n", "in a few words"),
        ("<!-- skip: because it is long -->\n```python\nx\n```\n", "is none of"),
        ("<!-- continued -->\n```python\nx\n```\n", "no program to continue"),
        ("```py\nx\n```\n", "call the block `python`"),
        ("<!-- file: a.py -->\n```python\nx\n```\n<!-- continued -->\n```python\nx\n```\n", "no program to continue"),
    ],
)
def test_a_block_that_would_escape_is_an_error(page: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        list(programs_of("page.md", page))


@pytest.mark.slow
def test_files_of_a_page_are_tested_together(tmp_path: Path) -> None:
    page = (
        "<!-- file: pyproject.toml -->\n```toml\n[tool.pytest.ini_options]\npython_functions = 'check_*'\n```\n"
        "<!-- file: test_a.py -->\n```python\ndef check_it():\n    pass\n\ndef check_that():\n    assert False\n```\n"
        "\n```python\nx = 1\n```\n"
    )
    other, tested = programs_of("page.md", page)
    assert (tested.line, other.code.strip()) == (3, "x = 1")
    ended = run(tested, tmp_path)
    assert ended.returncode == 1
    assert "1 failed, 1 passed" in ended.stdout


def test_a_program_that_fails_is_told_with_the_pages_line(tmp_path: Path) -> None:
    (program,) = programs_of("page.md", "# T\n\n```python\nassert False\n```\n")
    ended = run(program, tmp_path)
    assert ended.returncode == 1
    assert 'page_page.py", line 4' in ended.stderr


def test_a_program_with_replies_talks_to_a_model_that_gives_them(tmp_path: Path) -> None:
    page = """
<!-- replies: say("One."), say("Two.") -->

```python
import json, os, urllib.request

body = json.dumps({"model": "any", "messages": [{"role": "user", "content": "?"}]}).encode()
for _ in range(2):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
```
"""
    (program,) = programs_of("page.md", page)
    ended = run(program, tmp_path)
    assert ended.stdout.split() == ["One.", "Two."], ended.stderr
