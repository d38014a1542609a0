"""What an edit and a search cost through the tools, against doing it by hand: a bare rewrite, and ripgrep where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
from _report import Clock, Report, Settings, median, report

from agentcore import LocalWorkspace, Tool, ToolContext
from agentcore.secrets import SecretRegistry
from agentcore.tools import ToolHost
from agentcore_tools import file_editor_tool, grep_tool

LINE = "def function_{}(argument):  # what a line of code is like, more or less\n"


def measure(settings: Settings) -> Report:
    """Measure edits and searches."""
    found = Report(
        "What do an edit of a 1 MB file and a search of a large tree cost, against a bare rewrite and ripgrep?"
    )
    anyio.run(measure_tools, settings, found)
    return found


async def measure_tools(settings: Settings, found: Report) -> None:
    """Make a large file and a large tree, and work on them."""
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        await measure_edits(settings, found, Path(folder))
        files = settings.pick(4_000, 20)
        make_tree(Path(folder, "tree"), files)
        found.tell("searched_files", files)
        await measure_searches(settings, found, Path(folder, "tree"))


def make_tree(tree: Path, files: int) -> None:
    """Write so many files of 200 lines."""
    for number in range(files):
        path = tree / f"package_{number % 100}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(LINE.format(number + line) for line in range(200)))


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace text in a file as plainly as that can be done without losing it."""
    beside = path.with_name("beside")
    beside.write_text(path.read_text().replace(old, new))
    os.replace(beside, path)


async def measure_edits(settings: Settings, found: Report, folder: Path) -> None:
    """Replace one line in the middle of a megabyte."""
    path = folder / "large.py"
    lines = settings.pick(15_000, 100)
    path.write_text("".join(LINE.format(line) for line in range(lines)))
    middle = LINE.format(lines // 2)
    through: list[float] = []
    bare: list[float] = []
    async with LocalWorkspace(folder) as workspace, opened(file_editor_tool(), workspace) as edit:
        for turn in range(settings.pick(30, 1)):
            old, new = (
                (middle, f"{middle.strip()} {turn}\n") if turn % 2 == 0 else (f"{middle.strip()} {turn - 1}\n", middle)
            )
            clock = Clock()
            await edit(command="str_replace", path="large.py", old_str=old, new_str=new)
            through.append(clock.read().wall)
            clock = Clock()
            rewrite(path, new, new)
            bare.append(clock.read().wall)
    found.tell("edit_ms", median(through) * 1e3)
    found.tell("bare_rewrite_ms", median(bare) * 1e3)
    found.tell("edit_ratio", median(through) / median(bare))


async def measure_searches(settings: Settings, found: Report, tree: Path) -> None:
    """Search for a line that few files have, with and without ripgrep."""
    pattern = r"function_1234\b"
    ripgrep = shutil.which("rg")
    without = {"PATH": without_ripgrep(tree.parent)}
    times: dict[str, list[float]] = {"grep_without_ripgrep": []}
    async with (
        LocalWorkspace(tree) as here,
        LocalWorkspace(tree, env=without) as bare,
        opened(grep_tool(), here) as grep,
        opened(grep_tool(), bare) as slow,
    ):
        for _ in range(settings.pick(7, 1)):
            clock = Clock()
            await slow(pattern=pattern)
            times["grep_without_ripgrep"].append(clock.read().wall)
            if ripgrep is None:
                continue
            clock = Clock()
            await grep(pattern=pattern)
            times.setdefault("grep", []).append(clock.read().wall)
            clock = Clock()
            await anyio.run_process(
                [ripgrep, "--sort=path", "-n", pattern, "./"], cwd=tree, stdin=subprocess.DEVNULL, check=False
            )
            times.setdefault("ripgrep_itself", []).append(clock.read().wall)
    for name, spent in times.items():
        found.tell(f"{name}_ms", median(spent) * 1e3)
    if ripgrep is not None:
        found.tell("grep_ratio", median(times["grep"]) / median(times["ripgrep_itself"]))


def without_ripgrep(folder: Path) -> str:
    """Make a PATH on which there is no ripgrep."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("bash", "sh", "find", "xargs", "tr", "stat", "python3"):
        path = sys.executable if name == "python3" else shutil.which(name)
        (programs / name).write_text(f'#!/bin/sh\nexec {path} "$@"\n')
        (programs / name).chmod(0o755)
    return str(programs)


@asynccontextmanager
async def opened(tool: Tool[Any, Any], workspace: LocalWorkspace) -> AsyncGenerator[Callable[..., Awaitable[Any]]]:
    """Open a tool, to be called by its arguments."""
    async with tool.open_executor(workspace, "benchmark") as execute:

        async def call(**arguments: Any) -> None:
            context = ToolContext(
                workspace=workspace,
                secrets=SecretRegistry(),
                conversation_id="benchmark",
                action_id="ev",
                call_id="call",
                tool_name=tool.name,
                # These tools ask nothing of a conversation.
                host=cast("ToolHost", None),
            )
            await execute(tool.parse(arguments), context)

        yield call


if __name__ == "__main__":
    report(measure)
