"""The live view, fed with the events and deltas of a conversation that never was."""

from __future__ import annotations

import io
from typing import Any

from pydantic import BaseModel
from rich.console import Console

from agentcore.cli.view import View
from agentcore.conversation import StreamDelta
from agentcore.display import DiffBlock, MarkdownBlock
from agentcore.events import (
    ActionApproved,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    Event,
    InterruptEvent,
    MessageEvent,
    ObservationEvent,
    RetryEvent,
    UsageEvent,
    UserRejectObservation,
)
from agentcore.messages import Message, TextBlock
from agentcore.tools import describe_call, finish_tool
from agentcore.usage import Usage
from agentcore_tools import TerminalObservation
from described import answer_blocks, call_blocks


class Stage:
    """A view, and what it printed."""

    def __init__(self, *, width: int = 80, terminal: bool = False, verbose: bool = False) -> None:
        self.file = io.StringIO()
        console = Console(
            file=self.file, width=width, highlight=False, force_terminal=terminal, color_system=None, _environ={}
        )
        self.now = 0.0
        self.view = View(console, root="/p", verbose=verbose, clock=lambda: self.now)

    def happens(self, *events: Event | StreamDelta) -> str:
        """Let this happen and give all that was printed so far."""
        for event in events:
            if isinstance(event, StreamDelta):
                self.view.delta(event)
            else:
                self.view.event(event)
        return self.file.getvalue()


def says(text: str, offset: int = 0, reply: str = "re", attempt: int = 1) -> StreamDelta:
    return StreamDelta(type="text", reply_id=reply, attempt=attempt, offset=offset, text=text)


def message(text: str, reply: str = "re") -> MessageEvent:
    return MessageEvent(source="agent", message=Message.assistant(text), reply_id=reply)


def action(id: str, tool_name: str = "terminal", reply: str = "re", thought: str = "", **arguments: Any) -> ActionEvent:  # noqa: A002
    before = (TextBlock(text=thought),) if thought else ()
    display = call_blocks(tool_name, arguments)
    return ActionEvent(
        id=id, reply_id=reply, tool_name=tool_name, call_id=id, arguments=arguments, before=before, display=display
    )


def started(id: str) -> ActionStarted:  # noqa: A002
    return ActionStarted(cause=id)


def answer(
    id: str,  # noqa: A002
    text: str,
    *,
    is_error: bool = False,
    finished: bool = False,
    **data: Any,
) -> ObservationEvent:
    content = (TextBlock(text=text),)
    return ObservationEvent(
        cause=id, tool_name="t", call_id=id, content=content, data=data, is_error=is_error, finished=finished
    )


def ran(id: str, text: str, exit_code: int = 0, **fields: Any) -> ObservationEvent:  # noqa: A002
    observation = TerminalObservation(text=text, exit_code=exit_code, **fields)
    return ObservationEvent(
        cause=id,
        tool_name="terminal",
        call_id=id,
        content=tuple(TextBlock(text=str(part)) for part in observation.to_content()),
        is_error=observation.is_error,
        display=answer_blocks("terminal", {"command": "x"}, observation),
    )


def changed(id: str, text: str, diff: str) -> ObservationEvent:  # noqa: A002
    return answer(id, text).model_copy(update={"display": (DiffBlock(diff=diff),)})


def progress(id: str, text: str) -> StreamDelta:  # noqa: A002
    return StreamDelta(type="progress", action_id=id, tool_name="terminal", text=text)


def test_words_are_printed_as_they_come_and_once() -> None:
    stage = Stage()
    assert stage.happens(says("I look "), says("at the", 7), says(" tests.", 13)) == "I look at the"
    assert stage.happens(message("I look at the tests.")) == "I look at the tests.\n\n"


def test_words_that_were_not_streamed_come_with_the_event() -> None:
    assert Stage().happens(message("All at once.")) == "All at once.\n\n"


def test_words_that_went_missing_come_with_the_event() -> None:
    stage = Stage()
    stage.happens(says("One "), StreamDelta(type="gap", lost=3), says("four ", 14), message("One two three four five."))
    assert stage.file.getvalue() == "One two three four five.\n\n"


def test_words_that_come_after_their_event_are_not_printed_again() -> None:
    stage = Stage()
    stage.happens(says("One "), message("One two."), says("two.", 4))
    assert stage.file.getvalue() == "One two.\n\n"


def test_a_reply_that_starts_over_says_so_and_is_printed_anew() -> None:
    stage = Stage()
    stage.happens(says("Hello wor"), StreamDelta(type="reset", reply_id="re"))
    stage.happens(RetryEvent(attempt=1, error="it broke", delay=8))
    printed = stage.happens(says("Hello there.", attempt=2), message("Hello there."))
    assert "Hello wor" in printed
    assert "broken off here" in printed
    assert "attempt 1 failed, the next one in 8.0 s: it broke" in printed
    assert printed.endswith("Hello there.\n\n")


def test_words_before_calls_are_printed_once_however_they_are_split() -> None:
    stage = Stage()
    printed = stage.happens(
        says("First."),
        says("Then.", 6),
        action("a", command="ls", thought="First."),
        action("b", command="pwd", thought="Then."),
    )
    assert printed == ""  # the last word may go on
    stage.view.end()
    assert stage.happens() == "First.Then.\n\n"


def test_a_call_is_shown_when_it_starts_with_its_output_as_it_comes() -> None:
    stage = Stage()
    assert stage.happens(action("a", command="make")) == ""
    assert stage.happens(started("a")) == "terminal $ make\n"
    assert stage.happens(progress("a", "compiling\nlin")).endswith(" │ compiling\n")
    printed = stage.happens(progress("a", "king\n"), ran("a", "compiling\nlinking\n", 2))
    assert printed == "terminal $ make\n │ compiling\n │ linking\n │ exit code 2\n\n"


def test_output_that_was_not_streamed_comes_with_the_answer() -> None:
    printed = Stage().happens(action("a", command="ls"), started("a"), ran("a", "x.py\n", cwd="/p"))
    assert printed == "terminal $ ls\n │ x.py\n │ exit code 0\n\n"


def test_output_after_the_answer_is_left_out() -> None:
    stage = Stage()
    printed = stage.happens(action("a", command="ls"), started("a"), ran("a", "x"))
    assert stage.happens(progress("a", "late\n")) == printed


def test_of_a_long_output_the_middle_is_left_out_and_counted() -> None:
    stage = Stage()
    stage.happens(action("a", command="seq 500"), started("a"))
    stage.happens(progress("a", "".join(f"{number}\n" for number in range(1, 501))), ran("a", ""))
    lines = stage.file.getvalue().splitlines()
    assert " │ 30" in lines
    assert " │ 31" not in lines
    assert " │ … 460 more lines" in lines
    assert " │ 500" in lines


def test_verbose_shows_every_line() -> None:
    stage = Stage(verbose=True)
    stage.happens(action("a", command="seq 500"), started("a"))
    stage.happens(progress("a", "".join(f"{number}\n" for number in range(1, 501))), ran("a", ""))
    assert all(f" │ {number}\n" in stage.file.getvalue() for number in range(1, 501))


def test_calls_that_run_at_once_are_told_apart_by_number() -> None:
    stage = Stage()
    stage.happens(action("a", command="one"), action("b", command="two"), started("a"), started("b"))
    printed = stage.happens(progress("b", "from two\n"), progress("a", "from one\n"))
    assert printed == "[1] terminal $ one\n[2] terminal $ two\n2│ from two\n1│ from one\n"


def test_a_call_that_never_started_is_shown_with_its_answer() -> None:
    error = AgentErrorEvent(cause="a", tool_name="nope", call_id="a", error="There is no tool 'nope'.\nThere is: x")
    printed = Stage().happens(action("a", tool_name="nope", x=1), error)
    assert printed == "nope x=1\n │ There is no tool 'nope'.\n │ There is: x\n\n"


def test_a_rejected_call_says_why() -> None:
    no = UserRejectObservation(cause="a", tool_name="terminal", call_id="a", reason="Too risky.")
    assert Stage().happens(action("a", command="rm x"), no) == "terminal $ rm x\n │ rejected: Too risky.\n\n"


def test_a_call_whose_arguments_a_person_changed_is_shown_as_it_runs() -> None:
    approved = ActionApproved(cause="a", arguments={"command": "ls"})
    assert Stage().happens(action("a", command="rm x"), approved, started("a")) == "terminal command=ls\n"


EDIT = action("a", tool_name="file_editor", command="str_replace", path="/p/a.py", old_str="1", new_str="2")


def test_an_edit_shows_the_change_as_it_came_out() -> None:
    diff = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n y = 0\n-x = 1\n+x = 2\n"
    printed = Stage().happens(EDIT, started("a"), changed("a", "Changed. There it reads now: ...", diff))
    assert printed == "file_editor str_replace a.py\n │ 1  y = 0\n │ 2 -x = 1\n │ 2 +x = 2\n\n"


def test_a_patch_of_several_files_names_each() -> None:
    diff = (
        "--- /p/a.py\n+++ /p/a.py\n@@ -1,2 +1 @@\n-x = 1\n--- y\n+x = 2\n--- /dev/null\n+++ /p/b\n@@ -0,0 +1,1 @@\n+b\n"
        "--- /p/c\n+++ /p/d\n"
    )
    patched = action("a", tool_name="apply_patch", patch="...")
    printed = Stage().happens(patched, started("a"), changed("a", "The patch was applied: ...", diff))
    assert printed == ("apply_patch\n │ a.py\n │ 1 -x = 1\n │ 2 --- y\n │ 1 +x = 2\n │ b (new)\n │ +b\n │ c -> d\n\n")


def test_a_task_list_is_shown_once_as_it_is_now() -> None:
    plan = action("a", tool_name="task_tracker", command="plan", task_list=[{"title": "Look"}])
    told = answer("a", "The task list is now (0 of 1 done):\n1. [ ] Look")
    listed = told.model_copy(update={"display": plan.display[1:]})
    assert Stage().happens(plan, started("a"), listed) == "task_tracker plan\n │ [ ] Look\n\n"


def test_a_change_that_no_answer_shows_is_shown_as_it_was_asked_for() -> None:
    told = answer("a", "Changed.")
    shown = "file_editor str_replace a.py\n"
    assert Stage().happens(EDIT, started("a"), told) == f"{shown} │ -1\n │ +2\n │ Changed.\n\n"
    stage = Stage()
    stage.view.seen(EDIT)
    assert stage.happens(EDIT, started("a"), told) == f"{shown} │ Changed.\n\n"


def test_an_edit_that_failed_shows_why() -> None:
    printed = Stage().happens(EDIT, started("a"), answer("a", "old_str is not there", is_error=True))
    assert printed == "file_editor str_replace a.py\n │ old_str is not there\n\n"


def test_a_change_that_has_no_lines_is_told_in_words() -> None:
    make = action("a", tool_name="file_editor", command="create", path="/p/a", file_text="")
    made = changed("a", "Created a.", "--- /dev/null\n+++ /p/a\n")
    assert Stage().happens(make, started("a"), made) == "file_editor create a\n │ Created a.\n\n"


def test_what_is_decided_about_is_not_shown_twice() -> None:
    stage = Stage()
    asked = action("a", command="cat <<E\nx\nE")
    stage.view.seen(asked)
    assert stage.happens(asked, started("a"), progress("a", "x\n")) == "terminal $ cat <<E\n │ x\n"


def test_of_what_was_only_looked_at_less_is_shown() -> None:
    look = action("a", tool_name="read_file", path="/p/a")
    printed = Stage().happens(look, started("a"), answer("a", "".join(f"{number}\n" for number in range(1, 101))))
    assert printed.startswith("read_file a\n │ 1\n")
    few = "".join(f"{number}\n" for number in range(1, 25))
    assert "more lines" not in Stage().happens(look, started("a"), answer("a", few))
    assert printed.endswith(" │ 12\n │ … 84 more lines\n │ 97\n │ 98\n │ 99\n │ 100\n\n")


def test_arguments_that_do_not_fit_are_shown_once() -> None:
    told = "The arguments do not fit 'grep':\n- `limit`: wrong\nGiven: {}\nWanted: pattern (string, required)"
    error = AgentErrorEvent(cause="a", tool_name="grep", call_id="a", error=told, code="bad_arguments")
    grep = action("a", tool_name="grep", pattern="x", limit=0)
    assert Stage().happens(grep, error) == (
        "grep pattern=x limit=0\n │ The arguments do not fit 'grep':\n │ - `limit`: wrong\n\n"
    )
    gone = AgentErrorEvent(cause="a", tool_name="x", call_id="a", error="No 'x'. Given: {}", code="unknown_tool")
    assert Stage().happens(action("a", tool_name="x"), gone) == "x\n │ No 'x'.\n\n"
    assert "Wanted: pattern" in Stage(verbose=True).happens(grep, error)


def test_the_bottom_line_tells_of_output_that_is_not_printed() -> None:
    stage = Stage(terminal=True)
    stage.happens(action("a", command="make"), started("a"))
    shown = len(stage.happens(progress("a", "".join(f"{number}\n" for number in range(1, 41)))))
    stage.now = 1.0
    stage.view.ticker.draw()
    assert "terminal runs, 40 lines: 40 (1 s)" in stage.file.getvalue()[shown:]
    drawn = len(stage.happens(progress("a", "Downloading 10%\rDownloading 20%\r")))
    stage.now = 2.0
    stage.view.ticker.draw()
    assert "terminal runs, 40 lines: Downloading 20% (2 s)" in stage.file.getvalue()[drawn:]


def test_what_moves_about_on_the_screen_is_shown_as_it_ended() -> None:
    stage = Stage()
    stage.happens(action("a", command="pull"), started("a"), progress("a", "begin\nweb: 10%\n"))
    stage.happens(progress("a", "\x1b[1Aweb: 20%\n"), progress("a", "\x1b[1Aweb: 90%\nend\n"))
    text = "begin\nweb: 90%\nend\n"
    printed = stage.happens(ran("a", text))
    assert printed == ("terminal $ pull\n │ begin\n │ web: 10%\n │ begin\n │ web: 90%\n │ end\n │ exit code 0\n\n")


def finished() -> ObservationEvent:
    return answer("a", "marked", finished=True).model_copy(update={"display": (MarkdownBlock(text=""),)})


def test_what_the_agent_finished_with_is_its_last_words() -> None:
    stage = Stage()
    stage.happens(action("a", tool_name="finish", message="All done."), started("a"))
    assert stage.happens(finished()) == "All done.\n\n"


class Verdict(BaseModel):
    passed: bool
    failures: list[str]


def test_the_result_that_the_agent_finished_with_stands_below_its_last_words() -> None:
    tool = finish_tool(Verdict)
    arguments = {"message": "Done.", "result": {"passed": True, "failures": ["a\x1b"]}}
    display = describe_call(tool, tool.parse(arguments), lambda block: block)
    finish = action("a", tool_name="finish").model_copy(update={"arguments": arguments, "display": display})
    printed = Stage().happens(finish, started("a"), finished())
    assert printed == 'Done.\n\npassed    true\nfailures  ["a\\u001b"]\n\n'


def test_a_finish_that_does_not_fit_is_shown_with_why() -> None:
    error = AgentErrorEvent(cause="a", tool_name="finish", call_id="a", error="`result` is missing.")
    printed = Stage().happens(action("a", tool_name="finish", message="Done."), error)
    assert printed == "finish\n │ Done.\n │ `result` is missing.\n\n"


def test_lines_are_folded_on_a_terminal_and_left_whole_elsewhere() -> None:
    events = (action("a", command="x"), started("a"), progress("a", "0123456789" * 3 + "\n"))
    assert Stage(width=23, terminal=True).happens(*events).endswith(" │ 01234567890123456789\n │ 0123456789\n")
    assert Stage(width=23).happens(*events).endswith(f" │ {'0123456789' * 3}\n")


def test_a_path_to_copy_is_not_folded() -> None:
    seq = (action("a", command="x"), started("a"), progress("a", "1\n"))
    printed = Stage(width=23, terminal=True).happens(*seq, ran("a", "1", full_output_path="/tmp/a/very/long/path"))
    assert printed.endswith(" │ exit code 0\n │ all of it: /tmp/a/very/long/path\n\n")


def test_words_are_wrapped_on_a_terminal() -> None:
    assert Stage(width=12, terminal=True).happens(message("eleven and more")) == "eleven and\nmore\n\n"


def test_nothing_that_a_model_or_a_tool_says_reaches_the_terminal_raw() -> None:
    stage = Stage(verbose=True)
    evil = "\x1b]0;owned\x07\x1b[2J\x9b2J[bold]x[/bold]\u202e"
    printed = stage.happens(
        MessageEvent(source="user", message=Message.user(evil)),
        says(evil, reply="r1"),
        action("a", tool_name=f"t{evil}", thought=evil, reply="r2", **{f"k{evil}": evil}),
        started("a"),
        progress("a", f"{evil}\n"),
        answer("a", evil, is_error=True, exit_code=1),
        RetryEvent(attempt=1, error=evil, delay=1),
        MessageEvent(source="environment", message=Message.user(evil), code=evil),
        UsageEvent(model=evil, usage=Usage(requests=1)),
        InterruptEvent(reason=evil, partial_text=evil),
    )
    assert "\x1b" not in printed
    assert "\x9b" not in printed
    assert "\x07" not in printed
    assert "\u202e" not in printed
    assert "[bold]x[/bold]" in printed  # markup is text


def test_steps_and_usage_are_counted() -> None:
    stage = Stage()
    used = Usage(requests=1, input_tokens=10, output_tokens=5)
    stage.happens(UsageEvent(model="m", usage=used), UsageEvent(model="m", usage=used, purpose="ask"))
    assert (stage.view.steps, stage.view.usage.total_tokens) == (1, 30)


def test_output_is_folded_between_words_and_tabs_are_as_wide_in_every_line() -> None:
    events = (action("a", command="x"), started("a"), progress("a", "\tone two three four\n\tfive\n"))
    assert (
        Stage(width=21, terminal=True).happens(*events).endswith(" │         one two\n │ three four\n │         five\n")
    )
    long = (action("a", command="x"), started("a"), progress("a", "a 12345678901234567890 b\n"))
    assert Stage(width=13, terminal=True).happens(*long).endswith(" │ a 12345678\n │ 9012345678\n │ 90 b\n")
