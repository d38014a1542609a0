"""What a tool answered, as a person is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.cli.answers import answer_lines, kept_at, standing
from agentcore.events import ObservationEvent
from agentcore.messages import TextBlock
from agentcore.tools import Observation
from agentcore_tools import RunObservation, Task, TaskTrackerObservation, TerminalObservation


def lines(name: str, observation: Observation, **changed: Any) -> list[str]:
    content = tuple(TextBlock(text=part) for part in observation.to_content() if isinstance(part, str))
    data = {**observation.to_data(), **changed}
    event = ObservationEvent(cause="a", tool_name=name, call_id="c", content=content, data=data)
    return [line.plain for line in answer_lines(name, event)]


def said(name: str, observation: Observation, seconds: float = 0.0) -> str | None:
    text = standing(name, observation.to_data(), seconds)
    return None if text is None else text.plain


OUTPUT = "one\n[exit code 0; in /p]\n\n  two"


@pytest.mark.parametrize(
    ("observation", "ending"),
    [
        (TerminalObservation(text=OUTPUT, exit_code=0, cwd="/p", python="/usr/bin/python"), "exit code 0"),
        (TerminalObservation(text=OUTPUT, exit_code=2, cwd="/p", new_shell=True), "exit code 2, in a new shell"),
        (TerminalObservation(text=OUTPUT, exit_code=3, shell_ended=True), "exit code 3, and the shell has ended"),
        (TerminalObservation(text=OUTPUT, running=True, timed_out="quiet"), "still running"),
        (TerminalObservation(text=OUTPUT, problem="cut_off"), "cut off: how it ended is not known"),
    ],
)
def test_of_a_command_a_person_sees_what_it_wrote_and_how_things_stand(
    observation: TerminalObservation, ending: str
) -> None:
    assert lines("terminal", observation) == OUTPUT.split("\n")
    assert said("terminal", observation) == ending


@pytest.mark.parametrize(
    ("observation", "ending"),
    [
        (TerminalObservation(text="", exit_code=0, cwd="/p"), "exit code 0"),
        (TerminalObservation(text="", problem="still_running"), "not run: the command before it still runs"),
        (TerminalObservation(text="", problem="nothing_running"), "nothing is running"),
        (TerminalObservation(text="", running=True, timed_out="limit"), "still running"),
        (TerminalObservation(text="", new_shell=True), "what was in the one before is gone"),
    ],
)
def test_where_a_command_wrote_nothing_only_how_things_stand_is_said(
    observation: TerminalObservation, ending: str
) -> None:
    assert lines("terminal", observation) == []
    assert said("terminal", observation) == ending


def test_how_a_program_ended_is_said_in_words() -> None:
    killed = RunObservation(stdout="a\n", stderr="b\n", exit_code=137, signal="SIGKILL", seconds=0.1)
    assert lines("run", killed) == ["a", "[Standard error:]", "b"]
    assert said("run", killed) == "exit code 137 (SIGKILL)"
    late = RunObservation(exit_code=143, signal="SIGTERM", timed_out=True, seconds=2.0)
    assert lines("run", late) == []
    assert said("run", late, 2.0) == "took too long and was ended, exit code 143 (SIGTERM) after 2.0 s"


def test_where_all_of_a_long_output_is_is_said_on_a_line_of_its_own() -> None:
    def places(name: str, observation: Observation) -> list[str]:
        return [line.plain for line in kept_at(name, observation.to_data())]

    assert places("terminal", TerminalObservation(text="x", exit_code=0, whole_at="/w")) == ["all of it: /w"]
    both = RunObservation(exit_code=0, stdout_at="/o", stderr_at="/e")
    assert places("run", both) == ["all of its output: /o", "all of its errors: /e"]
    assert places("search", both) == []
    assert places("run", RunObservation(exit_code=0)) == []


def test_what_only_looks_like_the_tool_s_words_is_output() -> None:
    text = "[one]\n(no output)\n[two]"
    assert lines("terminal", TerminalObservation(text=text, exit_code=0)) == text.split("\n")
    assert lines("run", RunObservation(stdout=text, exit_code=0)) == text.split("\n")
    # A call whose answer does not say how things stand.
    assert lines("terminal", TerminalObservation(text=text)) == text.split("\n")


def test_a_task_list_is_shown_as_a_list() -> None:
    tasks = (Task(title="Look", status="done"), Task(title="Do", notes="with\ncare", status="in_progress"))
    shown = lines("task_tracker", TaskTrackerObservation(command="view", tasks=tasks))
    assert shown == ["[x] Look", "[~] Do", "    with", "    care"]
    none = TaskTrackerObservation(command="view", tasks=())
    assert lines("task_tracker", none) == ["There is no task list. Make one with plan."]


def test_of_other_tools_only_what_all_of_them_may_mean_is_said() -> None:
    text = standing("search", {"problem": "cut_off", "timed_out": True, "exit_code": 1})
    assert text is not None
    assert text.plain == "exit code 1"
    assert standing("search", {}) is None
