"""The live view on a terminal: the progress line, wrapping, and pieces that arrive in an awkward order.

All else that it prints is in the transcripts.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console
from tests.cli.story import Story

from agentcore.cli.view import View
from agentcore.conversation import StreamDelta
from agentcore.events import ActionEvent
from agentcore_tools import TerminalObservation


class Stage:
    """A view, and what it printed."""

    def __init__(self, *, width: int = 80, terminal: bool = False) -> None:
        self.file = io.StringIO()
        console = Console(
            file=self.file, width=width, highlight=False, force_terminal=terminal, color_system=None, _environ={}
        )
        self.now = 0.0
        self.view = View(console, root="/p", clock=lambda: self.now)
        self.story = Story()
        self._seen = len(self.story.happenings)

    def shows(self) -> str:
        """Show what was added to the story, and return all that was printed."""
        new, self._seen = self.story.happenings[self._seen :], len(self.story.happenings)
        for each in new:
            if isinstance(each, StreamDelta):
                self.view.delta(each)
            else:
                self.view.event(each)
        return self.file.getvalue()


def text_after(happen: Callable[[Story], Any], **options: Any) -> str:
    stage = Stage(**options)
    happen(stage.story)
    return stage.shows()


def test_a_line_is_printed_when_it_is_whole() -> None:
    stage = Stage()
    stage.story.delta("text", "I look ")
    stage.story.delta("text", "at the\ntests", 7)
    assert stage.shows() == "I look at the\n"
    stage.story.agent("I look at the\ntests.")
    assert stage.shows() == "I look at the\ntests.\n\n"


def test_deltas_after_their_event_are_ignored() -> None:
    stage = Stage()
    stage.story.delta("text", "One ")
    late = StreamDelta(type="text", reply_id="r1", attempt=1, offset=4, text="two.")
    stage.story.agent("One two.")
    stage.story.happenings.append(late)
    assert stage.shows() == "One two.\n\n"
    id_ = stage.story.call("terminal", command="ls")
    stage.story.observe(id_, TerminalObservation(text="x", exit_code=0))
    printed = stage.shows()
    stage.story.progress(id_, "late\n")
    assert stage.shows() == printed


def test_a_call_that_was_shown_for_approval_is_not_shown_in_full_again() -> None:
    stage = Stage()
    (id_,) = stage.story.reply(("terminal", {"command": "cat <<E\nx\nE"}))
    action = stage.story.events[-1]
    assert isinstance(action, ActionEvent)
    stage.view.seen(action)
    stage.story.add("action_started", cause=id_)
    stage.story.progress(id_, "x\n")
    assert stage.shows() == "terminal $ cat <<E\n │ x\n"


def test_the_progress_line_has_the_output_that_is_not_printed() -> None:
    stage = Stage(terminal=True)
    id_ = stage.story.call("terminal", command="make")
    stage.story.progress(id_, "".join(f"{number}\n" for number in range(1, 41)))
    printed = len(stage.shows())
    stage.now = 1.0
    stage.view.ticker.draw()
    assert "terminal runs, 40 lines: 40 (1 s)" in stage.file.getvalue()[printed:]
    stage.story.progress(id_, "Downloading 10%\rDownloading 20%\r")
    drawn = len(stage.shows())
    stage.now = 2.0
    stage.view.ticker.draw()
    assert "terminal runs, 40 lines: Downloading 20% (2 s)" in stage.file.getvalue()[drawn:]


def test_a_call_that_has_stopped_to_ask_does_not_run() -> None:
    stage = Stage(terminal=True)
    call = stage.story.call("deploy", to="x")
    stage.story.add("question_asked", cause=call, text="Sure?", resumes=True)
    stage.shows()
    stage.now = 1.0
    stage.view.ticker.draw()
    assert "deploy runs" not in stage.file.getvalue()
    stage.story.add("action_started", cause=call)
    stage.story.answer(call, "Deployed.")
    assert stage.shows().count("deploy to=x") == 1


def test_a_progress_line_that_a_narrower_window_wraps_is_erased_as_a_whole() -> None:
    stage = Stage(terminal=True)
    stage.story.call("terminal", command="make")
    stage.shows()
    stage.now = 1.0
    stage.view.ticker.draw()
    assert stage.file.getvalue().endswith("terminal runs (1 s)\r")  # all of it is behind the cursor
    stage.view.ticker.clear()
    assert stage.file.getvalue().endswith("\r\x1b[J")


@pytest.mark.parametrize(
    ("width", "output", "printed"),
    [
        (23, "0123456789" * 3, " │ 01234567890123456789\n │ 0123456789\n"),
        (21, "\tone two three four\n\tfive", " │         one two\n │ three four\n │         five\n"),
    ],
)
def test_output_is_wrapped_on_a_terminal_and_left_alone_elsewhere(width: int, output: str, printed: str) -> None:
    def happen(story: Story) -> None:
        story.progress(story.call("terminal", command="x"), f"{output}\n")

    assert text_after(happen, width=width, terminal=True).endswith(printed)
    assert [line[3:].split() for line in text_after(happen, width=width).splitlines()[1:]] == [
        line.split() for line in output.split("\n")
    ]


def test_a_path_to_copy_is_not_wrapped() -> None:
    def happen(story: Story) -> None:
        long = TerminalObservation(text="1", exit_code=0, full_output_path="/tmp/a/very/long/path")
        story.observe(story.call("terminal", command="x"), long)

    assert ": /tmp/a/very/long/path\n" in text_after(happen, width=23, terminal=True)


def test_steps_and_usage_are_counted() -> None:
    stage = Stage()
    used = {"requests": 1, "input_tokens": 10, "output_tokens": 5}
    stage.story.add("usage", model="m", usage=used)
    stage.story.add("usage", model="m", usage=used, purpose="ask")
    stage.shows()
    assert (stage.view.steps, stage.view.usage.total_tokens) == (1, 30)
