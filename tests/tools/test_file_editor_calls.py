"""Calls of the file editor as models write them, and what they touch."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.assessment import SecurityRisk
from agentcore.tools import Resource, ToolSpec, conflicts, read_call
from agentcore_tools import FileEditorAction, coding_tools, file_editor_tool


@pytest.mark.parametrize(
    ("name", "arguments", "action"),
    [
        ("file_editor", {"command": "view", "path": "f"}, {"command": "view", "path": "f"}),
        ("str_replace_editor", {"command": "view", "path": "f", "view_range": "[1, 2]"}, {"command": "view", "path": "f", "view_range": [1, 2]}),
        ("str_replace_based_edit_tool", {"command": "View", "file_path": "f"}, {"command": "view", "path": "f"}),
        ("file_editor", {"path": "f"}, {"command": "view", "path": "f"}),
        ("file_editor", {"path": "f", "file_text": ""}, {"command": "create", "path": "f", "file_text": ""}),
        ("file_editor", {"path": "f", "old_str": "a"}, {"command": "str_replace", "path": "f", "old_str": "a"}),
        ("file_editor", {"path": "f", "insert_line": "0", "new_str": "a"}, {"command": "insert", "path": "f", "insert_line": 0, "new_str": "a"}),
        ("file_editor", {"command": None, "path": "f", "old_string": "a", "new_string": "b"}, {"command": "str_replace", "path": "f", "old_str": "a", "new_str": "b"}),
        ("str_replace", {"path": "f", "old_str": "a", "new_str": "b"}, {"command": "str_replace", "path": "f", "old_str": "a", "new_str": "b"}),
        ("create_file", {"filename": "f", "content": "a"}, {"command": "create", "path": "f", "file_text": "a"}),
        ("read_file", {"path": "f"}, {"command": "view", "path": "f"}),
        ("insert", {"path": "f", "line": 3, "text": "x"}, None),
        ("insert", {"path": "f", "line": 3, "insert_text": "x"}, {"command": "insert", "path": "f", "insert_line": 3, "new_str": "x"}),
        ("file_editor", {"command": "insert", "path": "f", "insert_line": 3, "file_text": "x"}, {"command": "insert", "path": "f", "insert_line": 3, "new_str": "x"}),
        ("file_editor", {"command": "undo", "path": "f"}, {"command": "undo_edit", "path": "f"}),
        ("file_editor", {"command": "delete", "path": "f"}, None),
        ("file_editor", {"command": "view"}, None),
    ],
)  # fmt: skip
def test_a_call_is_read_as_it_was_meant(name: str, arguments: dict[str, Any], action: dict[str, Any] | None) -> None:
    read = read_call(name, arguments, coding_tools())
    assert read.name == "file_editor"
    if action is None:
        assert read.code == "bad_arguments"
    else:
        assert read.problem is None
        assert read.action == FileEditorAction(**action)


def claimed(**arguments: Any) -> tuple[Resource, ...]:
    return file_editor_tool().resources_of(FileEditorAction(**arguments), "/project")


def test_looks_go_on_at_once_and_edits_of_one_file_do_not() -> None:
    view, same = claimed(command="view", path="a/f"), claimed(command="view", path="/project/a/./f")
    edit, other = claimed(command="str_replace", path="a/f"), claimed(command="create", path="b")
    folder = claimed(command="view", path="a")
    terminal = coding_tools()[0].resources_of(coding_tools()[0].parse({"command": "ls"}), "/project")
    assert not conflicts(view, same)
    assert conflicts(edit, same)
    assert conflicts(edit, folder)
    assert not conflicts(edit, other)
    assert all(conflicts(each, terminal) for each in (view, edit, other, folder, terminal))


def test_a_look_is_harmless_and_of_an_edit_nobody_knows() -> None:
    tool = file_editor_tool()
    assert tool.risk_of(FileEditorAction(command="view", path="f")) is SecurityRisk.LOW
    assert tool.risk_of(FileEditorAction(command="create", path="f", file_text="")) is SecurityRisk.UNKNOWN
    terminal = coding_tools()[0]
    assert terminal.risk_of(terminal.parse({"command": "ls"})) is SecurityRisk.UNKNOWN


def test_the_schema_is_plain() -> None:
    tool = file_editor_tool()
    assert tool.spec == ToolSpec(name="file_editor")
    parameters: dict[str, Any] = tool.schema.parameters
    assert parameters["required"] == ["command", "path"]
    assert parameters["properties"]["command"]["enum"] == ["view", "create", "str_replace", "insert", "undo_edit"]
    assert all(each.get("description") for each in parameters["properties"].values())
