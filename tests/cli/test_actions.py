from __future__ import annotations

from typing import Any

import pytest

from agentcore.cli.actions import say_call
from agentcore.events import ActionEvent
from agentcore_tools.terminal.keys import KEYS, is_key


def action(tool_name: str, malformed: str | None = None, **arguments: Any) -> ActionEvent:
    return ActionEvent(reply_id="re", tool_name=tool_name, call_id="c", arguments=arguments, malformed=malformed)


def lines(event: ActionEvent, **options: Any) -> list[str]:
    said = say_call(event, **options)
    return [said.title.plain, *(line.plain for line in said.body)]


def test_a_command_is_said_as_at_a_prompt() -> None:
    event = action("terminal", command="make test", is_input=False, timeout=60)
    assert lines(event) == ["terminal timeout=60 $ make test"]


def test_a_command_of_several_lines_is_said_whole() -> None:
    assert lines(action("terminal", command="cat <<E\nx\nE")) == ["terminal $ cat <<E", "> x", "> E"]


def test_typing_into_a_program_and_waiting_for_one_are_no_commands() -> None:
    assert lines(action("terminal", command="C-c", is_input=True)) == ["terminal presses Ctrl-C"]
    assert lines(action("terminal", command=" ^d ", is_input=True)) == ["terminal presses Ctrl-D"]
    assert lines(action("terminal", command="UP", is_input=True)) == ["terminal presses UP"]
    assert lines(action("terminal", command="Ada", is_input=True, session="a")) == ["terminal session=a types Ada"]
    assert lines(action("terminal", command="")) == ["terminal waits on"]
    assert lines(action("terminal", command="", reset=True)) == ["terminal starts a new shell"]
    assert lines(action("terminal", command="ls", reset=True)) == ["terminal reset=true $ ls"]


@pytest.mark.parametrize("key", [*KEYS, "C-c", "^D", "Ctrl+z", "c-\\", " UP ", "up", "C-cc", "ENTERS", "x", "^", "C-1"])
def test_a_key_is_said_to_be_pressed_and_text_to_be_typed(key: str) -> None:
    (said,) = lines(action("terminal", command=key, is_input=True))
    assert said.split()[1] == ("presses" if is_key(key) else "types")


def test_a_program_is_said_as_one_would_type_it() -> None:
    event = action("run", command=["git", "commit", "-m", "it's \x1b[8mdone"], timeout=60)
    assert lines(event) == ['run timeout=60 $ git commit -m "it\'s \\x1b[8mdone"']
    assert lines(action("run", command=["echo", "it's $HOME", ""])) == ["run $ echo 'it'\"'\"'s $HOME' ''"]
    assert lines(action("run", command="cat <<E\nx\nE", stdin="y")) == ["run stdin=y $ cat <<E", "> x", "> E"]


def test_an_edit_is_said_as_the_change_that_it_makes() -> None:
    event = action("file_editor", command="str_replace", path="/p/a.py", old_str="x = 1\ny = 2", new_str="x = 1\ny = 3")
    assert lines(event, root="/p") == ["file_editor str_replace a.py", " x = 1", "-y = 2", "+y = 3"]


def test_a_new_file_is_said_line_by_line() -> None:
    event = action("file_editor", command="create", path="/p/a.py", file_text="one\ntwo\n")
    assert lines(event, root="/elsewhere") == ["file_editor create /p/a.py", "+one", "+two"]


def test_the_small_tools_for_files_are_said_by_the_change_that_they_make() -> None:
    edit = action("edit", file_path="/p/a.py", old_string="x = 1", new_string="x = 2", expected_replacements=3)
    assert lines(edit, root="/p") == ["edit a.py expected_replacements=3", "-x = 1", "+x = 2"]
    assert lines(action("write_file", file_path="a", content="1\n2\n")) == ["write_file a", "+1", "+2"]
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+\x1by\n*** End Patch"
    assert lines(action("apply_patch", patch=patch)) == [
        "apply_patch a", "*** Begin Patch", "*** Update File: a", "@@", "-x", "+\\x1by", "*** End Patch",
    ]  # fmt: skip


def test_a_patch_names_its_files_and_what_is_to_become_of_them() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: /p/a\n@@\n-x\n+y\n*** Add File: b\n+*** Add File: no\n*** Delete File: c\n"
        "*** Update File: d\n*** Move to: e\n*** End Patch"
    )
    said = lines(action("apply_patch", patch=patch), root="/p")
    assert said[0] == "apply_patch a, add b, delete c, d -> e"
    assert said[1:] == patch.split("\n")
    many = "".join(f"*** Delete File: {number}\n" for number in range(9))
    assert lines(action("apply_patch", patch=many))[0].endswith("delete 4, delete 5 and 3 more")
    assert lines(action("apply_patch", patch="*** Move to: e"))[0] == "apply_patch e"


def test_the_lines_that_an_editor_is_asked_for_are_said_in_words() -> None:
    def said(**arguments: Any) -> str:
        return lines(action("file_editor", path="a", **arguments))[0]

    assert said(command="view", view_range=[4, -1]) == "file_editor view a from line 4"
    assert said(command="view", view_range=[4, 9]) == "file_editor view a lines 4 to 9"
    assert said(command="view", view_range=[4]) == "file_editor view a view_range=[4]"
    assert said(command="insert", insert_line=0, new_str="x") == "file_editor insert a at the beginning"
    assert said(command="insert", insert_line=7, new_str="x") == "file_editor insert a after line 7"


def test_a_result_is_said_with_the_words_it_came_with() -> None:
    event = action("finish", message="Done.\nAll.", result={"city": "Rome", "days": [1, 2]}, extra="x")
    assert lines(event) == ["finish", "Done.", "All.", "city=Rome", "days=[1, 2]", "extra=x"]


def test_a_search_is_said_by_what_is_sought() -> None:
    assert lines(action("grep", pattern="a b", include="*.py")) == ["grep a b include=*.py"]
    assert lines(action("read_file", path="/p/a", offset=5), root="/p") == ["read_file a offset=5"]
    many = action("read_many", paths=["/p/a b", "c"], everything=True)
    assert lines(many, root="/p") == ["read_many 'a b' c everything=true"]


def test_a_plan_is_said_as_a_list() -> None:
    tasks = [{"title": "Look", "status": "done"}, {"title": "Do", "notes": "with\ncare"}]
    assert lines(action("task_tracker", command="plan", task_list=tasks)) == [
        "task_tracker plan", "[x] Look", "[ ] Do", "    with", "    care",
    ]  # fmt: skip
    odd = action("task_tracker", command="plan", task_list=[{"title": "Look", "more": 1}])
    assert lines(odd) == ['task_tracker plan task_list=[{"title": "Look", "more": 1}]']
    assert lines(action("task_tracker", command="view")) == ["task_tracker view"]


def test_any_other_call_is_said_by_its_arguments() -> None:
    assert lines(action("search", query="a b", limit=3, deep=None)) == ["search query=a b limit=3"]


def test_a_long_value_is_cut_unless_all_of_it_is_wanted() -> None:
    event = action("search", query="x" * 1000)
    assert len(lines(event)[0]) < 300
    assert lines(event, whole=True) == [f"search query={'x' * 1000}"]


def test_what_a_person_changed_is_said_instead() -> None:
    assert lines(action("terminal", command="rm -rf /"), arguments={"command": "ls"}) == ["terminal $ ls"]


def test_a_call_that_could_not_be_read_is_said_as_it_came() -> None:
    assert lines(action("terminal", malformed='{"command": "ls')) == ["terminal", '{"command": "ls']


def test_nothing_in_a_call_is_hidden() -> None:
    said = lines(action("terminal", command="rm -rf ~\rls \x1b[8m"), whole=True)
    assert said == ["terminal $ rm -rf ~\\x0dls \\x1b[8m"]
    assert lines(action("a\x1b[2Kb", x="\u202e")) == ["a\\x1b[2Kb x=\\u202e"]


def test_arguments_of_unexpected_types_are_said_like_any() -> None:
    assert lines(action("terminal", command=["ls"])) == ['terminal command=["ls"]']
    assert lines(action("file_editor", command="view", path=None)) == ["file_editor command=view"]
