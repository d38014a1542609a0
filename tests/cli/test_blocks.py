"""Calls and answers as people see them: what the tools here describe, drawn."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agentcore.cli.blocks import draw_answer, draw_call, message_of
from agentcore.display import (
    CommandBlock,
    ConversationBlock,
    DiffBlock,
    DisplayBlock,
    ExcerptBlock,
    MarkdownBlock,
    ProgressBlock,
    TableBlock,
    UnknownDisplay,
)
from agentcore.events import ActionEvent, ObservationEvent
from agentcore.messages import TextBlock
from agentcore.tools import Observation, TextObservation, describe_call, finish_tool
from agentcore_tools import RunObservation, Task, TaskTrackerObservation, TerminalObservation
from agentcore_tools.terminal.input import KEYS, is_key
from described import answer_blocks, call_blocks


def action(tool_name: str, malformed: str | None = None, **arguments: Any) -> ActionEvent:
    display = call_blocks(tool_name, arguments) if malformed is None else ()
    return ActionEvent(
        reply_id="re", tool_name=tool_name, call_id="c", arguments=arguments, malformed=malformed, display=display
    )


def lines(event: ActionEvent, **options: Any) -> list[str]:
    drawn = draw_call(event, **options)
    return [drawn.title.plain, *(line.plain for line in drawn.below)]


def shown(*blocks: DisplayBlock, text: str = "The words.", **fields: Any) -> ObservationEvent:
    return ObservationEvent(
        cause="a", tool_name="t", call_id="c", content=(TextBlock(text=text),), display=blocks, **fields
    )


def answered(name: str, observation: Observation, **arguments: Any) -> tuple[str | None, list[str], list[str]]:
    """Draw an answer: how it ended, what was written, what stands below that."""
    display = answer_blocks(name, arguments, observation)
    content = tuple(TextBlock(text=part) for part in observation.to_content() if isinstance(part, str))
    event = ObservationEvent(
        cause="a", tool_name=name, call_id="c", content=content, display=display, is_error=observation.is_error
    )
    drawn = draw_answer(event)
    outcome = None if drawn.outcome is None else drawn.outcome.plain
    return outcome, [line.plain for line in drawn.output], [line.plain for line in drawn.lines]


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


class Trip(BaseModel):
    city: str
    days: list[int]


def test_what_the_agent_finishes_with_is_what_it_says_and_its_result_a_table() -> None:
    tool = finish_tool(Trip)
    arguments: dict[str, Any] = {"message": "Done.\nAll.", "result": {"city": "Rome", "days": [1, 2]}}
    display = describe_call(tool, tool.parse(arguments), lambda block: block)
    event = ActionEvent(reply_id="re", tool_name="finish", call_id="c", arguments=arguments, display=display)
    assert message_of(event) == "Done.\nAll."
    assert lines(event) == ["finish", "Done.", "All.", "city  Rome", "days  [1,2]"]
    assert lines(event, message=False) == ["finish", "city  Rome", "days  [1,2]"]
    assert answered("finish", TextObservation(text="Marked."), message="Done.") == (None, [], [])


def test_a_thought_stands_below_its_call_and_its_answer_says_nothing() -> None:
    assert lines(action("think", thought="Hm.\nSo.")) == ["think", "Hm.", "So."]
    assert answered("think", TextObservation(text="It is written down."), thought="Hm.") == (None, [], [])


def test_a_search_is_said_by_what_is_sought() -> None:
    assert lines(action("grep", pattern="a b", include="*.py")) == ["grep a b include=*.py"]
    assert lines(action("read_file", path="/p/a", offset=5), root="/p") == ["read_file a offset=5"]
    many = action("read_many", paths=["/p/a b", "c"], everything=True)
    assert lines(many, root="/p") == ["read_many a b, c everything=true"]


def test_a_plan_is_said_as_a_list() -> None:
    tasks = [{"title": "Look", "status": "done"}, {"title": "Do", "notes": "with\ncare"}]
    assert lines(action("task_tracker", command="plan", task_list=tasks)) == [
        "task_tracker plan", "[x] Look", "[ ] Do", "    with", "    care",
    ]  # fmt: skip
    odd = action("task_tracker", command="plan", task_list=[{"title": "Look", "more": 1}])
    assert lines(odd) == ['task_tracker command=plan task_list=[{"title": "Look", "more": 1}]']
    assert lines(action("task_tracker", command="view")) == ["task_tracker view"]


def test_any_other_call_is_said_by_its_arguments() -> None:
    assert lines(action("search", query="a b", limit=3, deep=None)) == ["search query=a b limit=3"]


def test_a_long_value_is_cut_unless_all_of_it_is_wanted() -> None:
    event = action("search", query="x" * 1000)
    assert len(lines(event)[0]) < 300
    assert lines(event, whole=True) == [f"search query={'x' * 1000}"]


def test_what_a_person_changed_is_said_by_its_arguments() -> None:
    changed = {"command": "ls", "timeout": 5}
    assert lines(action("terminal", command="rm -rf /"), arguments=changed) == ["terminal command=ls timeout=5"]


def test_an_argument_of_several_lines_stands_below() -> None:
    assert lines(action("send", to="ada", text="one\ntwo\x1b")) == ["send to=ada", "text:", "one", "two\\x1b"]


def test_a_call_that_could_not_be_read_is_said_as_it_came() -> None:
    assert lines(action("terminal", malformed='{"command": "ls')) == ["terminal", '{"command": "ls']


def test_nothing_in_a_call_is_hidden() -> None:
    said = lines(action("terminal", command="rm -rf ~\rls \x1b[8m"), whole=True)
    assert said == ["terminal $ rm -rf ~\\x0dls \\x1b[8m"]
    assert lines(action("a\x1b[2Kb", x="\u202e")) == ["a\\x1b[2Kb x=\\u202e"]


def test_arguments_of_unexpected_types_are_said_like_any() -> None:
    assert lines(action("terminal", command=["ls"])) == ['terminal command=["ls"]']
    assert lines(action("file_editor", command="view", path=None)) == ["file_editor command=view"]


OUTPUT = "one\n[exit code 0; in /p]\n\n  two"


@pytest.mark.parametrize(
    ("observation", "outcome"),
    [
        (TerminalObservation(text=OUTPUT, exit_code=0, cwd="/p", python="/usr/bin/python"), "exit code 0"),
        (TerminalObservation(text=OUTPUT, exit_code=2, cwd="/p", new_shell=True), "exit code 2, in a new shell"),
        (TerminalObservation(text=OUTPUT, exit_code=3, shell_ended=True), "exit code 3, and the shell has ended"),
        (TerminalObservation(text=OUTPUT, running=True, timed_out="quiet"), "still running"),
        (TerminalObservation(text=OUTPUT, problem="cut_off"), "cut off: how it ended is not known"),
        (TerminalObservation(text=OUTPUT, problem="still_running"), "not run: the command before it still runs"),
        (TerminalObservation(text=OUTPUT, problem="nothing_running"), "nothing is running"),
        (TerminalObservation(text=OUTPUT, new_shell=True), "what was in the one before is gone"),
        (TerminalObservation(text=OUTPUT), None),
    ],
)
def test_of_a_command_a_person_sees_what_it_wrote_and_how_things_stand(
    observation: TerminalObservation, outcome: str | None
) -> None:
    assert answered("terminal", observation, command="x") == (outcome, OUTPUT.split("\n"), [])


def test_of_a_command_that_wrote_nothing_only_the_end_is_said() -> None:
    assert answered("terminal", TerminalObservation(text="", exit_code=0, cwd="/p"), command="x") == (
        "exit code 0", [], [],
    )  # fmt: skip


def test_how_a_program_ended_is_said_in_words() -> None:
    killed = RunObservation(stdout="a\n", stderr="b\n", exit_code=137, signal="SIGKILL", seconds=0.1)
    assert answered("run", killed, command="x") == ("exit code 137 (SIGKILL)", ["a", "[Standard error:]", "b"], [])
    late = RunObservation(exit_code=143, signal="SIGTERM", timed_out=True, seconds=2.0)
    assert answered("run", late, command="x") == ("took too long and was ended, exit code 143 (SIGTERM)", [], [])
    cut_off = RunObservation(problem="cut_off")
    assert answered("run", cut_off, command="x") == ("cut off: how it ended is not known", [], [])


def test_where_all_of_a_long_output_is_is_said_on_a_line_that_is_not_folded() -> None:
    long = TerminalObservation(text="x", exit_code=0, full_output_path="/w")
    assert answered("terminal", long, command="x") == ("exit code 0", ["x"], ["all of it: /w"])
    both = RunObservation(exit_code=0, stdout_path="/o", stderr_path="/e")
    assert answered("run", both, command="x")[2] == ["all of its output: /o", "all of its errors: /e"]
    assert draw_answer(shown(MarkdownBlock(text="all of it: `/w`"))).lines[0].no_wrap
    assert not draw_answer(shown(MarkdownBlock(text="it is in `/w`"))).lines[0].no_wrap


def test_what_only_looks_like_the_tool_s_words_is_output() -> None:
    text = "[one]\n(no output)\n[two]"
    assert answered("terminal", TerminalObservation(text=text, exit_code=0), command="x")[1] == text.split("\n")
    assert answered("run", RunObservation(stdout=text, exit_code=0), command="x")[1] == text.split("\n")


def test_a_task_list_is_shown_as_a_list() -> None:
    tasks = (Task(title="Look", status="done"), Task(title="Do", notes="with\ncare", status="in_progress"))
    listed = answered("task_tracker", TaskTrackerObservation(command="view", tasks=tasks), command="view")
    assert listed == (None, [], ["[x] Look", "[~] Do", "    with", "    care"])
    none = answered("task_tracker", TaskTrackerObservation(command="view", tasks=()), command="view")
    assert none == (None, ["There is no task list. Make one with plan."], [])


def test_who_sees_all_of_a_call_sees_the_arguments_that_its_tool_does_not_show() -> None:
    call = ActionEvent(
        reply_id="re",
        tool_name="pay",
        call_id="c",
        arguments={"to": "Ada", "amount": 50, "note": "for\nlunch", "force": True, "lines": ["a", "b"], "none": None},
        display=(MarkdownBlock(text="Pay `Ada`\nfor", place="body"),),
    )
    assert lines(call) == ["pay", "Pay `Ada`", "for"]
    assert lines(call, whole=True) == [
        "pay", "Pay `Ada`", "for", "amount=50", "note:", "for", "lunch", "force=true", 'lines=["a", "b"]',
    ]  # fmt: skip


def test_the_tools_here_leave_nothing_out_where_all_of_a_call_is_shown() -> None:
    edit = action("file_editor", command="str_replace", path="/p/a", old_str="x\n\ny\nz", new_str="x\n\nw\nz")
    assert lines(edit, root="/p", whole=True) == [
        "file_editor str_replace a", " x", " ", "-y", "+w", " z",
    ]  # fmt: skip
    assert lines(action("write_file", file_path="a", content="1\n"), whole=True) == ["write_file a", "+1"]
    plan = action("task_tracker", command="plan", task_list=[{"title": "Look", "status": "in_progress", "notes": "so"}])
    assert lines(plan, whole=True) == ["task_tracker plan", "[~] Look", "    so"]
    command = action("terminal", command="cat <<E\nx\nE", timeout=60)
    assert lines(command, whole=True) == ["terminal timeout=60 $ cat <<E", "> x", "> E"]


def test_a_call_whose_display_was_cut_is_shown_with_what_was_cut() -> None:
    content = "\n".join(f"{number:05}" for number in range(4_000))
    event = action("write_file", file_path="a", content=content)
    assert "\\ The diff goes on." in lines(event)
    assert lines(event, whole=True)[-4_001:] == ["content:", *content.split("\n")]


def test_blocks_of_every_kind_are_drawn() -> None:
    def drawn(*blocks: DisplayBlock, **fields: Any) -> list[str]:
        return [line.plain for line in draw_answer(shown(*blocks, **fields), root="/p").below]

    assert drawn() == ["The words."]
    assert drawn(MarkdownBlock(text="")) == []
    assert drawn(MarkdownBlock(text="**so** ``a`b``\x1b")) == ["**so** ``a`b``\\x1b"]
    assert drawn(CommandBlock(command="ls", exit_code=0)) == ["The words."]
    assert drawn(DiffBlock(path="/p/a", diff="+x\n")) == ["+x"]
    assert drawn(DiffBlock(path="/p/a", diff="--- /p/a\n+++ /p/a\n")) == ["The words."]
    assert drawn(ExcerptBlock(path="/p/a", first=3)) == ["The words."]
    assert drawn(ExcerptBlock(path="/p/a", first=3, text="x\ny")) == ["a", "x", "y"]
    assert drawn(TableBlock(columns=("a", "b"), rows=(("longer", "x"), ("y", "z\n")))) == [
        "a       b", "longer  x", "y       z\\n",
    ]  # fmt: skip
    assert drawn(ProgressBlock(label="half", done=0.5)) == ["half (50%)"]
    assert drawn(ConversationBlock(conversation_id="7", title="A look")) == ["A look (7)"]
    assert drawn(UnknownDisplay(kind="map", text="Ulm\x1b")) == ["Ulm\\x1b"]
    assert drawn(UnknownDisplay(kind="map")) == ["[a block of kind map, which only a newer version knows]"]


def test_the_first_line_of_an_answer_is_the_tool_s_own_where_it_gives_one() -> None:
    answer = draw_answer(shown(MarkdownBlock(text="`3` found", place="heading"), MarkdownBlock(text="They are")))
    assert answer.outcome is not None
    assert (answer.outcome.plain, [line.plain for line in answer.lines]) == ("3 found", ["They are"])
