"""A conversation as it goes on, for a person who watches: words, calls, their output, what went wrong.

What counts comes as events. Deltas come sooner and may be missing: they show words and output while they come into
being, and the event that follows says the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from agentcore.cli.blocks import Answer, draw_answer, draw_call, message_of
from agentcore.cli.console import BAD, DIM, STRONG, WARN, Glyphs, say, say_below, styled
from agentcore.cli.events import Teller
from agentcore.cli.output import FEW, Output
from agentcore.cli.reply_printer import Words
from agentcore.cli.state_events import error_lines, say_fact
from agentcore.cli.text import duration, one_line
from agentcore.cli.ticker import Ticker
from agentcore.conversation import StreamDelta
from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    AnswerEvent,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    InterruptEvent,
    MessageEvent,
    ObservationEvent,
    RetryEvent,
    StatusChanged,
    UsageEvent,
    UserRejectObservation,
)
from agentcore.messages import Block, RefusalBlock, TextBlock
from agentcore.usage import Usage

_TASK_LINES = 12
_LONG = 30, 10
"""How many lines are shown of the beginning and of the end of a change, or of what a command wrote."""
_LOOK = 12, 4
"""The same of what the agent looked at, which is there to be looked at."""


class _Call:
    """A call on its way."""

    def __init__(self, event: ActionEvent, *, whole: bool) -> None:
        self.event = event
        self.output = Output(whole=whole)
        self.announced = False
        self.arguments: dict[str, JsonValue] | None = None
        """Those that a check or a person put in place of the model's."""
        self.number = 0
        """Its place among the calls of its reply, where there are several."""
        self.started: datetime | None = None
        self.change: Sequence[Text] = ()
        """What it is to change, where that was not shown yet."""

    @property
    def message(self) -> str | None:
        """What the agent says to the user with it, where it is nothing but that."""
        return message_of(self.event) if self.arguments is None else None


class View:
    """Prints what happens.

    Args:
        console: Where.
        root: The workspace's folder.
        verbose: Whether to print everything: long output whole, thinking, bookkeeping.
        clock: Tells the time, in seconds.
    """

    def __init__(
        self,
        console: Console,
        *,
        root: str | None = None,
        verbose: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.usage = Usage()
        """Of all model calls that were seen."""
        self.steps = 0
        self.shown = 0
        """The seq of the newest event that was printed."""
        self.ticker = Ticker(console, clock)
        self._console = console
        self._glyphs = Glyphs(console.encoding)
        self._verbose = verbose
        self._teller = Teller(root=root, whole=verbose)
        self._root = root
        self._words = Words(console)
        self._calls: dict[str, _Call] = {}
        self._reply: list[_Call] = []
        """The calls of the newest reply."""
        self._seen_whole: set[str] = set()

    def event(self, event: Event) -> None:
        """Print the next event of the log."""
        self.ticker.clear()
        self.shown = event.seq
        match event:
            case MessageEvent():
                self._message(event)
            case ActionEvent():
                self._action(event)
            case ActionStarted():
                self._started(event)
            case ActionAssessed() | ActionApproved():
                if (call := self._calls.get(event.cause or "")) is not None:
                    call.arguments = event.arguments or call.arguments
                self._aside(event)
            case ObservationEvent() | UserRejectObservation() | AgentErrorEvent():
                self._answered(event)
            case UsageEvent():
                self.usage += event.usage
                self.steps += event.purpose == "step"
                self._aside(event)
            case RetryEvent():
                self._words.reset()
                say(self._console, say_fact(event))
                self.ticker.show("waiting for the next attempt")
            case InterruptEvent():
                self._words.reset()
                self.ticker.show(None)
            case ConversationErrorEvent():
                self.ticker.show(None)
            case ConversationStateUpdateEvent(update=StatusChanged() as change):
                self._words.end()
                self.ticker.show("thinking" if change.status is ConversationStatus.RUNNING else None)
                self._aside(event)
            case _:
                self._aside(event)

    def expect(self, action: ActionEvent) -> None:
        """Know a call that was made before the first event that will be printed, and has no answer yet."""
        self._add_call(action)

    def delta(self, delta: StreamDelta) -> None:
        """Print a piece of what is being said."""
        match delta.type:
            case "text":
                self.ticker.show(None)
                self._words.text(delta.reply_id, delta.offset, delta.text)
            case "reasoning":
                if self._verbose:
                    self.ticker.show(None)
                    self._words.reasoning(delta.text)
            case "tool_call":
                if delta.tool_name is not None:
                    self._words.pause()
                    self.ticker.show(f"writing a call of {one_line(delta.tool_name)}")
            case "progress":
                self._progress(delta)
            case "reset":
                self.ticker.clear()
                self._words.reset()
            case "gap":
                for call in self._calls.values():
                    call.output.lost = True

    def seen(self, action: ActionEvent) -> None:
        """Know that all of a call was just shown, as one is that somebody decides about."""
        self._seen_whole.add(action.id)

    def make_room(self) -> None:
        """Stop in the middle, on a line of its own, for something that is not of the conversation."""
        if not self.ticker.clear():
            say(self._console, "")  # a terminal shows ^C where the cursor is
        self._words.pause()

    def end(self) -> None:
        """End the line that is being written, and wait for nothing any more."""
        self.ticker.show(None)
        self._words.end()

    def _message(self, event: MessageEvent) -> None:
        if event.source == "agent":
            self._words.say_rest(event.reply_id, _words_in(event.message.content))
            self._words.end()
        elif event.source == "user":
            self._words.end()
            lines = self._teller.tell(event).body
            for line in lines if self._verbose else lines[:_TASK_LINES]:
                say_below(self._console, "> ", Text(line.plain, STRONG))
            if len(lines) > _TASK_LINES and not self._verbose:
                say(self._console, f"> {self._glyphs.more} {len(lines) - _TASK_LINES} more lines", DIM)
            say(self._console, "")
        else:
            self._words.end()
            say(self._console, styled("note: ", WARN).append(one_line(event.text)))

    def _action(self, event: ActionEvent) -> None:
        self._words.say_rest(event.reply_id, _words_in(event.before))
        self._words.say_rest(event.reply_id, _words_in(event.after))
        self._add_call(event)

    def _add_call(self, event: ActionEvent) -> None:
        if not self._reply or self._reply[-1].event.reply_id != event.reply_id:
            self._reply = []
        call = _Call(event, whole=self._verbose)
        self._reply.append(call)
        self._calls[event.id] = call
        if len(self._reply) > 1:
            for number, each in enumerate(self._reply, 1):
                each.number = number

    def _started(self, event: ActionStarted) -> None:
        call = self._calls.get(event.cause or "")
        if call is not None:
            call.started = event.timestamp
            if call.message is None:  # what it says to the user comes with its answer, unless it fails
                self._announce(call)
            self._wait_for_calls()

    def _wait_for_calls(self) -> None:
        running = [call for call in self._calls.values() if call.started is not None]
        if not running:
            self.ticker.show("thinking")
            return

        def what() -> str:
            said = ", ".join(one_line(call.event.tool_name) for call in running)
            newest = running[-1].output.newest if len(running) == 1 else ""
            lines = f", {running[0].output.lines:,} lines" if len(running) == 1 and _counts(running[0].output) else ""
            newest = f": {one_line(newest)}" if newest else ""
            return f"{said} {'run' if len(running) > 1 else 'runs'}{lines}{newest}"

        self.ticker.show(what)

    def _announce(self, call: _Call) -> None:
        """Say what is being done, once."""
        if call.announced:
            return
        call.announced = True
        self._words.end()
        drawn = draw_call(call.event, call.arguments, root=self._root, whole=self._verbose)
        title = styled(f"[{call.number}] " if call.number else "", DIM)
        say(self._console, title.append(drawn.title))
        if call.event.id not in self._seen_whole:
            self._cut(call, [*drawn.body, *drawn.rest])
            call.change = drawn.change  # the answer has it as it came out

    def _progress(self, delta: StreamDelta) -> None:
        call = self._calls.get(delta.action_id or "")
        if call is None:
            return  # it was answered meanwhile
        if not call.announced:
            self.ticker.clear()
            self._announce(call)
        lines = call.output.feed(delta.text)
        if lines:  # else the line at the bottom goes on: it tells of what is not printed
            self.ticker.clear()
        for line in lines:
            self._below(call, Text(line, DIM))

    def _answered(self, event: AnswerEvent) -> None:
        call = self._calls.pop(event.cause or "", None)
        if call is None:
            return
        message = call.message if isinstance(event, ObservationEvent) else None
        if message is None:
            self._announce(call)
        self._finish_output(call)
        match event:
            case ObservationEvent() if message is not None:
                self._words.say(message)
                if rest := draw_call(call.event, root=self._root, message=False).below:
                    for line in rest:
                        say(self._console, line)
                    say(self._console, "")
            case ObservationEvent():
                self._observed(call, event)
            case UserRejectObservation():
                self._below(call, Text(f"rejected: {one_line(event.reason)}", WARN))
            case AgentErrorEvent():
                style = WARN if event.outcome in ("interrupted", "not_run") else BAD
                self._cut(call, [Text(line, style) for line in error_lines(event, whole=self._verbose)])
        if call.announced and not any(each.announced for each in self._calls.values()):
            say(self._console, "")
        self._wait_for_calls()

    def _finish_output(self, call: _Call) -> None:
        more, left_out, last = call.output.finish()
        for line in more:
            self._below(call, Text(line, DIM))
        if left_out:
            over = "over " if call.output.lost else ""
            self._below(call, Text(f"{self._glyphs.more} {over}{left_out:,} more lines", DIM))
        for line in last:
            self._below(call, Text(line, DIM))
        if call.output.lost:
            self._below(call, Text(f"{self._glyphs.more} some lines came too fast to be shown", DIM))

    def _observed(self, call: _Call, event: ObservationEvent) -> None:
        answer = draw_answer(event, root=self._root, more=self._glyphs.more)
        if call.change and not answer.has_change and not event.is_error:
            self._cut(call, call.change)
        if call.output.redrawn or not call.output.lines:
            lines = answer.output
            if call.output.redrawn:
                lines = lines[call.output.left_of([line.plain for line in lines]) :]
            self._cut(call, lines, *(_LONG if answer.is_command else _LOOK))
        seconds = (event.timestamp - call.started).total_seconds() if call.started is not None else 0.0
        if answer.is_command:
            self._say_outcome(call, answer, seconds)
        self._cut(call, answer.lines, *(_LONG if answer.is_command or answer.has_change else _LOOK))
        if not answer.is_command:
            self._say_outcome(call, answer, seconds)

    def _say_outcome(self, call: _Call, answer: Answer, seconds: float) -> None:
        said = answer.outcome or Text("", DIM)
        after = f"after {duration(seconds)}" if seconds >= 1 else ""
        if said.plain or after:
            self._below(call, Text(" ".join(filter(None, (said.plain, after))), said.style))

    def _cut(self, call: _Call, lines: Sequence[Text], first: int = _LONG[0], last: int = _LONG[1]) -> None:
        """Print lines below a call: all, or the first and the last of them."""
        left_out = 0 if self._verbose or len(lines) <= first + last + FEW else len(lines) - first - last
        for line in lines[:first] if left_out else lines:
            self._below(call, line)
        if left_out:
            self._below(call, Text(f"{self._glyphs.more} {left_out:,} more lines", DIM))
            for line in lines[-last:]:
                self._below(call, line)

    def _below(self, call: _Call, line: Text) -> None:
        """Print a line that belongs to a call, folded to the width."""
        say_below(self._console, self._mark(call), line)

    def _mark(self, call: _Call) -> str:
        return f"{call.number or ' '}{self._glyphs.bar} "

    def _aside(self, event: Event) -> None:
        if self._verbose:
            told = self._teller.tell(event)
            self._words.end()
            say(self._console, styled("# ", DIM).append(told.label).append(" ").append(told.said), DIM)


def _counts(output: Output) -> bool:
    """Say whether the number of lines says something."""
    return output.lines > 1 and not output.redrawn


def _words_in(blocks: Iterable[Block]) -> str:
    """Give the words as deltas say them: without anything between two blocks."""
    return "".join(block.text for block in blocks if isinstance(block, TextBlock | RefusalBlock))
