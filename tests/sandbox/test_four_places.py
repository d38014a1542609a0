"""One program in four places: here, in a helper as a plain process, in bubblewrap, in Docker. Their logs are equal."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import anyio
import pytest

from agentcore import Agent, Conversation, LocalWorkspace
from agentcore.testing import ScriptedLLM, ScriptedReply, call, say
from agentcore.workspace import Workspace
from agentcore_tools import file_editor_tool, grep_tool, run_tool, terminal_tool
from boxes_places import KINDS, open_box, skip_trio

_ID: Final = re.compile(r"\b(?:[a-z]{2,5}_[0-9a-z]{10,}|[0-9a-f]{40,64})\b")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")
# The image for tests has no ripgrep, which grep says.
_VARIES: Final = re.compile(r"; python is [^\]; ]+|; [0-9.]+ s(?=\])|\n\[There is no ripgrep here[^\]]*\]")
_VARYING: Final = {"id", "time", "seconds", "waited", "python", "store"}


def make_script(root: str) -> list[ScriptedReply]:
    """Return the replies of the model: each tool, commands that fail and are killed, files, and a shell that goes on."""
    return [
        call("terminal", command="mkdir -p src && printf 'def f():\\n    return 1\\n' > src/f.py && ls -R"),
        call("file_editor", command="create", path=f"{root}/notes.md", file_text="# Notes\n\nA needle.\n"),
        call("file_editor", command="str_replace", path=f"{root}/src/f.py", old_str="return 1", new_str="return 2"),
        call("terminal", command="cd src && export ADDED=yes"),
        call("terminal", command="pwd; echo $ADDED; wc -l < f.py"),
        call("run", command=["sh", "-c", "echo out; echo err >&2; exit 3"]),
        call("run", command="cat missing"),
        call("grep", pattern="needle|return", path=root),
        call("run", command="kill -9 $$"),
        call("terminal", command="false"),
        call("terminal", command="exit 5"),
        say("Done."),
    ]


@asynccontextmanager
async def open_place(kind: Any, folder: Path) -> AsyncGenerator[Workspace]:
    folder.mkdir()
    if kind != "local":
        async with open_box(kind, folder) as box:
            yield box
        return
    (folder / "project").mkdir()
    async with LocalWorkspace(folder / "project") as workspace:
        yield workspace


def equalize(value: object, root: str) -> object:
    """Return a part of a log without ids, times and paths."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {name: equalize(each, root) for name, each in items if name not in _VARYING}
    if isinstance(value, list):
        return [equalize(each, root) for each in cast("list[object]", value)]
    if isinstance(value, str):
        return _VARIES.sub("", _TIME.sub("TIME", _ID.sub("ID", value.replace(root, "ROOT"))))
    return value


async def log_of(kind: str, folder: Path) -> list[object]:
    """Run the program in a place, and return its log."""
    async with open_place(kind, folder) as workspace:
        tools = [terminal_tool(quiet_seconds=60, input_seconds=60), file_editor_tool(), run_tool(), grep_tool()]
        agent = Agent(llm=ScriptedLLM(make_script(workspace.root)), tools=tools)
        async with Conversation(agent, workspace) as conversation:
            result = await conversation.run("Go.")
            assert result.text == "Done."
            saved = await conversation.checkpoint()
            assert saved.files == 2
            events = conversation.state.branch_events()
            # Where it is, is what differs.
            return [
                equalize(event.model_dump(mode="json"), workspace.root)
                for event in events
                if event.kind != "workspace_opened"
            ]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_log_of_one_program_is_the_same_in_a_box_as_here(
    kind: str, tmp_path: Path, anyio_backend_name: str
) -> None:
    skip_trio(kind, anyio_backend_name)
    with anyio.fail_after(120):
        here = await log_of("local", tmp_path / "here")
        there = await log_of(kind, tmp_path / "there")
    assert len(there) > 20
    for one, other in zip(here, there, strict=True):
        assert other == one
