"""Calls that models make out of habit: other names, other arguments, several edits at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore.errors import ToolError
from agentcore.tools import AnyTool, finish_tool, read_call
from agentcore_tools import coding_tools, edit_tool, file_editor_tool, read_file_tool, write_file_tool
from opened_tool import Editor, open_tool

CODING = coding_tools()
SMALL: tuple[AnyTool, ...] = (read_file_tool(), write_file_tool(), edit_tool())


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "understood"),
    [
        ("Read", {"file_path": "f"}, "file_editor", {"command": "view", "path": "f"}),
        ("Read", {"file_path": "f", "offset": 10, "limit": "5"}, "file_editor", {"command": "view", "path": "f", "view_range": [10, 14]}),
        ("Read", {"file_path": "f", "offset": 10}, "file_editor", {"command": "view", "path": "f", "view_range": [10, -1]}),
        ("Read", {"file_path": "f", "limit": 5}, "file_editor", {"command": "view", "path": "f", "view_range": [1, 5]}),
        ("Write", {"file_path": "f", "content": "x"}, "file_editor", {"command": "create", "path": "f", "file_text": "x"}),
        ("Edit", {"file_path": "f", "old_string": "a", "new_string": "b", "replace_all": "true"}, "file_editor",
         {"command": "str_replace", "path": "f", "old_str": "a", "new_str": "b", "replace_all": True}),
        ("MultiEdit", {"file_path": "f", "edits": [{"old_string": "a", "new_string": "b"}]}, "file_editor",
         {"command": "str_replace", "path": "f", "edits": [{"old_str": "a", "new_str": "b"}]}),
        ("Grep", {"pattern": "x", "-C": 3, "-i": True, "type": "py", "head_limit": 9, "output_mode": "content"}, "grep",
         {"pattern": "x", "context": 3, "ignore_case": True, "include": "*.{py,pyi}", "limit": 9, "output": "lines"}),
        ("Grep", {"pattern": "x", "-A": 2, "-B": "5", "type": "java", "head_limit": 0}, "grep", {"pattern": "x", "context": 5, "include": "*.java"}),
        ("Grep", {"pattern": "x", "glob": "*.md", "path": "/a"}, "grep", {"pattern": "x", "include": "*.md", "path": "/a"}),
    ],
)  # fmt: skip
def test_a_call_out_of_habit_is_understood(
    name: str, arguments: dict[str, Any], tool: str, understood: dict[str, Any]
) -> None:
    read = read_call(name, arguments, CODING)
    assert (read.name, read.arguments, read.problem) == (tool, understood, None)


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "understood"),
    [
        ("Read", {"file_path": "f", "offset": 10, "limit": 5}, "read_file", {"path": "f", "offset": 9, "limit": 5}),
        ("read_file", {"path": "f", "offset": 10}, "read_file", {"path": "f", "offset": 10}),
        ("Write", {"file_path": "f", "content": "x"}, "write_file", {"file_path": "f", "content": "x"}),
        ("edit", {"file_path": "f", "old_string": "a", "new_string": "b", "allow_multiple": True}, "edit",
         {"file_path": "f", "old_string": "a", "new_string": "b", "replace_all": True}),
    ],
)  # fmt: skip
def test_small_tools_understand_it_too(
    name: str, arguments: dict[str, Any], tool: str, understood: dict[str, Any]
) -> None:
    read = read_call(name, arguments, SMALL)
    assert (read.name, read.arguments, read.problem) == (tool, understood, None)


def test_a_result_is_the_message_of_an_agent_without_an_output() -> None:
    read = read_call("attempt_completion", {"result": "All done."}, [finish_tool()])
    assert (read.arguments, read.problem) == ({"message": "All done."}, None)


async def test_several_edits_are_made_one_after_the_other(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("one\n" + "same\n" * 20 + "two\n")
    edits = [
        {"old_str": "one", "new_str": "1"},
        {"old_str": "two\n", "new_str": "2\nend\n"},
        {"old_str": "2\nend", "new_str": "2"},
    ]
    told = await editor("str_replace", path="f", edits=edits)
    assert (tmp_path / "f").read_text() == "1\n" + "same\n" * 20 + "2\n"
    assert told.text == f"Made 3 edits of {tmp_path}/f:\n{told.diff}"
    assert told.text.count("same") < 10
    await editor("undo_edit", path="f")
    assert (tmp_path / "f").read_text() == "one\n" + "same\n" * 20 + "two\n"


async def test_of_several_edits_all_are_made_or_none(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("one\ntwo\n")
    edits = [{"old_str": "one", "new_str": "1"}, {"old_str": "three", "new_str": "3"}]
    with pytest.raises(ToolError, match=r"^Edit 2 of 2: old_str does not occur .* None of the edits was made\.$"):
        await editor("str_replace", path="f", edits=edits)
    assert (tmp_path / "f").read_text() == "one\ntwo\n"


async def test_every_place_is_replaced_where_that_is_asked_for(tmp_path: Path, editor: Editor) -> None:
    (tmp_path / "f").write_text("a b a\na\n")
    with pytest.raises(ToolError, match="replace_all=true"):
        await editor("str_replace", path="f", old_str="a", new_str="c")
    told = await editor("str_replace", path="f", old_str="a", new_str="c", replace_all=True)
    assert (tmp_path / "f").read_text() == "c b c\nc\n"
    assert "in 3 places" in told.text
    async with open_tool(edit_tool(), tmp_path) as edit:
        changed = await edit.call(file_path="f", old_string="c", new_string="d", replace_all=True)
        assert changed.replacements == 3
        with pytest.raises(ToolError, match="does not occur"):
            await edit.call(file_path="f", old_string="c", new_string="d", replace_all=True)
    assert (tmp_path / "f").read_text() == "d b d\nd\n"


def test_several_edits_are_no_part_of_the_schema_and_are_shown_to_people() -> None:
    tool = file_editor_tool()
    parameters: dict[str, Any] = tool.schema.parameters
    assert "edits" not in parameters["properties"]
    assert tool.display_call is not None
    action = tool.parse({"command": "str_replace", "path": "f", "edits": [{"old_str": "a", "new_str": "b"}]})
    assert "-a\\n+b" in str(tool.display_call(action))


@pytest.mark.parametrize(
    ("name", "arguments", "ignored"),
    [
        ("str_replace_editor", {"command": "view", "path": "f", "security_risk": "LOW"}, ("security_risk",)),
        ("Grep", {"pattern": "x", "-n": True, "multiline": False, "offset": 0}, ("-n", "multiline", "offset")),
        ("glob", {"pattern": "*", "explanation": "to find files"}, ("explanation",)),
        ("task_tracker", {"command": "view", "security_risk": "LOW"}, ("security_risk",)),
        ("attempt_completion", {"result": "Done.", "command": "open index.html"}, ("command",)),
    ],
)
def test_an_argument_without_effect_is_dropped_and_named(
    name: str, arguments: dict[str, Any], ignored: tuple[str, ...]
) -> None:
    read = read_call(name, arguments, [*CODING, finish_tool()])
    assert (read.problem, read.ignored) == (None, ignored)


@pytest.mark.parametrize("argument", [{"multiline": True}, {"offset": 5}, {"-o": True}])
def test_an_argument_that_would_change_something_is_refused(argument: dict[str, Any]) -> None:
    read = read_call("Grep", {"pattern": "x", **argument}, CODING)
    assert read.code == "bad_arguments"
    assert read.ignored == ()
