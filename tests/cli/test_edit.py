from __future__ import annotations

import io

import pytest
from rich.console import Console

from agentcore.cli.prompt import edit_arguments


@pytest.mark.parametrize(("before", "hinted"), [("one\ntwo", True), ("one", False)])
async def test_who_changes_several_lines_without_an_editor_is_told_of_editors(before: str, hinted: bool) -> None:
    file = io.StringIO()

    async def ask(question: str) -> str:
        assert question == "New value of command: "
        return "three"

    console = Console(file=file, width=100, _environ={})
    assert await edit_arguments({"command": before}, None, console, ask) == {"command": "three"}
    assert ("set VISUAL or EDITOR" in file.getvalue()) is hinted
