"""A model that writes back what it was shown does not destroy a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore import Agent, Conversation
from agentcore.errors import ToolError
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import AnyTool
from agentcore_tools import apply_patch_tool, edit_tool, file_editor_tool, write_file_tool
from opened_tool import open_tool
from rounds import some_quick

VALUE = "s3cret-value-1"
MASK = "<secret:TOKEN>"
ENV = f"KEY={VALUE}\nDEBUG=0\n"
SHOWN = f"KEY={MASK}\nDEBUG=1\n"


def patched(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch"


WRITES: list[tuple[AnyTool, dict[str, Any]]] = [
    (write_file_tool(), {"file_path": ".env", "content": SHOWN}),
    (write_file_tool(), {"file_path": "new", "content": SHOWN}),
    (file_editor_tool(), {"command": "create", "path": "new", "file_text": SHOWN}),
    (file_editor_tool(), {"command": "insert", "path": ".env", "insert_line": 1, "new_str": f"OTHER={MASK}"}),
    (file_editor_tool(), {"command": "str_replace", "path": ".env", "old_str": "DEBUG=0", "new_str": f"OTHER={MASK}"}),
    (edit_tool(), {"file_path": "new", "old_string": "", "new_string": SHOWN}),
    (edit_tool(), {"file_path": ".env", "old_string": "DEBUG=0", "new_string": "A=<secret:TOKEN:encoded>"}),
    (apply_patch_tool(), {"patch": patched(f"*** Add File: new\n+KEY={MASK}\n")}),
    (apply_patch_tool(), {"patch": patched(f"*** Update File: .env\n@@\n DEBUG=0\n+OTHER={MASK}\n")}),
]
MISSES: list[tuple[AnyTool, dict[str, Any]]] = [
    (file_editor_tool(), {"command": "str_replace", "path": ".env", "old_str": f"KEY={MASK}", "new_str": "KEY=x"}),
    (edit_tool(), {"file_path": ".env", "old_string": f"KEY={MASK}\nDEBUG=0", "new_string": f"KEY={MASK}\nDEBUG=1"}),
    (apply_patch_tool(), {"patch": patched(f"*** Update File: .env\n@@\n KEY={MASK}\n-DEBUG=0\n+DEBUG=1\n")}),
]


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize(("tool", "arguments"), some_quick(WRITES, 4))
async def test_the_mask_of_a_secret_is_not_written(tmp_path: Path, tool: AnyTool, arguments: dict[str, Any]) -> None:
    (tmp_path / ".env").write_text(ENV)
    async with open_tool(tool, tmp_path, {"TOKEN": VALUE}) as opened:
        with pytest.raises(
            ToolError, match=r"(?s)<secret:TOKEN.*nothing was .*edit other lines.*terminal, where \$TOKEN"
        ):
            await opened.call(**arguments)
    assert files_in(tmp_path) == {".env": ENV}


@pytest.mark.parametrize(("tool", "arguments"), MISSES)
async def test_a_miss_says_that_a_mask_stands_for_what_the_file_has(
    tmp_path: Path, tool: AnyTool, arguments: dict[str, Any]
) -> None:
    (tmp_path / ".env").write_text(ENV)
    async with open_tool(tool, tmp_path, {"TOKEN": VALUE}) as opened:
        with pytest.raises(ToolError, match="<secret:TOKEN> is shown in place of a secret's value") as raised:
            await opened.call(**arguments)
    assert "it may have changed" not in str(raised.value)
    assert files_in(tmp_path) == {".env": ENV}


@pytest.mark.parametrize(("tool", "arguments"), some_quick(WRITES, 4))
async def test_the_mask_of_a_name_that_is_not_registered_is_text(
    tmp_path: Path, tool: AnyTool, arguments: dict[str, Any]
) -> None:
    (tmp_path / ".env").write_text(ENV)
    async with open_tool(tool, tmp_path, {"ANOTHER": VALUE}) as opened:
        await opened.call(**arguments)
    assert any("<secret:TOKEN" in text for text in files_in(tmp_path).values())


async def test_a_mask_that_is_in_the_file_itself_may_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(f"We write {MASK} here.\n")
    async with open_tool(file_editor_tool(), tmp_path, {"TOKEN": VALUE}) as editor:
        await editor("str_replace", path="notes.md", old_str=f"write {MASK}", new_str=f"print {MASK}")
    async with open_tool(write_file_tool(), tmp_path, {"TOKEN": VALUE}) as write:
        await write.call(file_path="notes.md", content=f"# Notes\nWe print {MASK} here.\n")
        with pytest.raises(ToolError, match="nothing was written"):
            await write.call(file_path="notes.md", content=f"# {MASK}\nWe print {MASK} here.\n")
    assert (tmp_path / "notes.md").read_text() == f"# Notes\nWe print {MASK} here.\n"


async def test_a_conversation_keeps_a_secret_that_the_model_writes_back(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(ENV)
    llm = ScriptedLLM([call("write_file", file_path=".env", content=SHOWN), say("ok")])
    agent = Agent(llm=llm, tools=[write_file_tool()])
    async with Conversation(agent, tmp_path, secrets={"TOKEN": VALUE}) as conversation:
        await conversation.run("Turn debugging on.")
        (error,) = [event for event in conversation.state.events if event.kind == "agent_error"]
    assert "nothing was written" in error.model_dump_json()
    assert (tmp_path / ".env").read_text() == ENV
