"""The live view of a conversation: text, calls, output, errors.

Events are complete. Deltas arrive sooner and may be missing: they stream text and output, and the event that follows
brings the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from agentcore.cli.blocks import RenderedResult, message_of, render_call, render_result
from agentcore.cli.console import BAD, DIM, STRONG, WARN, Glyphs, Ticker, print_below, print_line, print_text, styled
from agentcore.cli.context_lines import ContextLines
from agentcore.cli.events import EventRenderer
from agentcore.cli.output import FEW, Output
from agentcore.cli.reply_printer import ReplyPrinter
from agentcore.cli.state_events import error_lines, render_state_event
from agentcore.cli.text import duration, one_line
from agentcore.conversation import StreamDelta
from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    AnswerEvent,
    Condensation,
    ContextNotice,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    InterruptEvent,
    MessageEvent,
    ObservationEvent,
    QuestionAsked,
    RetryEvent,
    StatusChanged,
    ToolsetNotice,
    UsageEvent,
    UserRejectObservation,
)
from agentcore.messages import Block, RefusalBlock, TextBlock
from agentcore.usage import Usage

_TASK_LINES = 12
_LONG = 30, 10
"""The first and last lines to show of a change or of a command's output."""
_LOOK = 12, 4
"""The same for files and results that the agent only read."""


class _Call:
    """A call without an answer."""

    def __init__(self, event: ActionEvent, *, whole: bool) -> None:
        self.event = event
        self.output = Output(whole=whole)
        self.announced = False
        self.arguments: dict[str, JsonValue] | None = None
        """The arguments that a check or a person put in place of the model's."""
        self.number = 0
        """Its position among the calls of its reply, if there are several."""
        self.started: datetime | None = None
        self.change: Sequence[Text] = ()
        """The proposed change, if it was not shown yet."""

    @property
    def message(self) -> str | None:
        """The message to the user that the call consists of, if it does."""
        return message_of(self.event) if self.arguments is None else None


class View:
    """Prints a conversation as it goes on.

    Args:
        console: The console to print to.
        root: The workspace's folder.
        verbose: Whether to print everything: full output, reasoning, bookkeeping.
        clock: Returns the time in seconds.
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
        """The usage of all model calls so far."""
        self.steps = 0
        self.shown = 0
        """The seq of the last printed event."""
        self.ticker = Ticker(console, clock)
        self._console = console
        self._glyphs = Glyphs(console.encoding)
        self._verbose = verbose
        self._renderer = EventRenderer(root=root, whole=verbose)
        self._root = root
        self._reply_printer = ReplyPrinter(console, self.ticker.clear)
        self._calls: dict[str, _Call] = {}
        self._reply: list[_Call] = []
        """The calls of the newest reply."""
        self._seen_whole: set[str] = set()
        self._context = ContextLines(console, verbose=verbose, make_room=self._reply_printer.end)

    def event(self, event: Event) -> None:
        """Print the next event of the log."""
        self.ticker.clear()
        self.shown = event.seq
        self._context.event(event)
        match event:
            case MessageEvent():
                self._message(event)
            case ActionEvent():
                self._action(event)
            case ActionStarted():
                self._started(event)
            case QuestionAsked(resumes=True):
                self._stopped_to_ask(event)
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
            case Condensation():
                self._condensed(event)
            case RetryEvent():
                self._reply_printer.reset()
                print_text(self._console, render_state_event(event))
                self.ticker.show("waiting for the next attempt")
            case InterruptEvent():
                self._reply_printer.reset()
                self.ticker.show(None)
            case ConversationErrorEvent():
                self.ticker.show(None)
            case ConversationStateUpdateEvent(update=StatusChanged() as change):
                self._reply_printer.end()
                self.ticker.show("thinking" if change.status is ConversationStatus.RUNNING else None)
                self._aside(event)
            case ConversationStateUpdateEvent(update=ContextNotice() | ToolsetNotice()):
                pass
            case _:
                self._aside(event)

    def expect(self, action: ActionEvent) -> None:
        """Add a waiting call from before the first event."""
        self._add_call(action)

    def delta(self, delta: StreamDelta) -> None:
        """Print a delta."""
        match delta.type:
            case "text":
                self._reply_printer.text(delta.reply_id, delta.offset, delta.text)
                self.ticker.keep(self._reply_printer.newest if self._reply_printer.draws else None)
            case "reasoning":
                if self._verbose:
                    self.ticker.show(None)
                    self._reply_printer.reasoning(delta.text)
            case "tool_call":
                if delta.tool_name is not None:
                    self._reply_printer.pause()
                    self.ticker.show(f"writing a call of {one_line(delta.tool_name)}")
            case "progress":
                self._progress(delta)
            case "reset":
                self.ticker.clear()
                self._reply_printer.reset()
            case "gap":
                for call in self._calls.values():
                    call.output.lost = True

    def seen(self, action: ActionEvent) -> None:
        """Note that all of a call was just shown for approval."""
        self._seen_whole.add(action.id)

    def make_room(self) -> None:
        """Move to a new line, to print something else."""
        if not self.ticker.clear():
            print_line(self._console, "")  # a terminal shows ^C where the cursor is
        self._reply_printer.pause()

    def end(self) -> None:
        """End the current line and the progress line."""
        self.ticker.show(None)
        self._reply_printer.end()
        self._context.end()

    def _condensed(self, event: Condensation) -> None:
        self._reply_printer.end()
        rendered = self._renderer.render(event)
        print_text(self._console, rendered.label.append(" ").append(rendered.line), DIM)
        for line in rendered.body if self._verbose else ():
            print_below(self._console, f" {self._glyphs.bar} ", line)

    def _message(self, event: MessageEvent) -> None:
        if event.source == "agent":
            self._reply_printer.print_rest(event.reply_id, _text_in(event.message.content))
            self._reply_printer.end()
        elif event.source == "user":
            self._reply_printer.end()
            lines = self._renderer.render(event).body
            for line in lines if self._verbose else lines[:_TASK_LINES]:
                print_below(self._console, "> ", Text(line.plain, STRONG))
            if len(lines) > _TASK_LINES and not self._verbose:
                print_line(self._console, f"> {self._glyphs.more} {len(lines) - _TASK_LINES} more lines", DIM)
            print_line(self._console, "")
        else:
            self._reply_printer.end()
            print_text(self._console, styled("note: ", WARN).append(one_line(event.text)))

    def _action(self, event: ActionEvent) -> None:
        self._reply_printer.print_rest(event.reply_id, _text_in(event.before))
        self._reply_printer.print_rest(event.reply_id, _text_in(event.after))
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
            if call.message is None:  # a message to the user is printed with its answer, unless it fails
                self._announce(call)
            self._wait_for_calls()

    def _stopped_to_ask(self, event: QuestionAsked) -> None:
        if (call := self._calls.get(event.cause or "")) is not None:
            call.started = None
        self._wait_for_calls()
        self._aside(event)

    def _wait_for_calls(self) -> None:
        running = [call for call in self._calls.values() if call.started is not None]
        if not running:
            self.ticker.show("thinking")
            return

        def what() -> str:
            status = ", ".join(one_line(call.event.tool_name) for call in running)
            newest = running[-1].output.newest if len(running) == 1 else ""
            lines = f", {running[0].output.lines:,} lines" if len(running) == 1 and _counts(running[0].output) else ""
            newest = f": {one_line(newest)}" if newest else ""
            return f"{status} {'run' if len(running) > 1 else 'runs'}{lines}{newest}"

        self.ticker.show(what)

    def _announce(self, call: _Call) -> None:
        """Print a call, once."""
        if call.announced:
            return
        call.announced = True
        self._reply_printer.end()
        drawn = render_call(call.event, call.arguments, root=self._root, whole=self._verbose)
        title = styled(f"[{call.number}] " if call.number else "", DIM)
        print_line(self._console, title.append(drawn.title))
        if call.event.id not in self._seen_whole:
            self._cut(call, [*drawn.body, *drawn.rest])
            call.change = drawn.change  # the result shows the actual change

    def _progress(self, delta: StreamDelta) -> None:
        call = self._calls.get(delta.action_id or "")
        if call is None:
            return  # already answered
        if not call.announced:
            self.ticker.clear()
            self._announce(call)
        lines = call.output.feed(delta.text)
        if lines:  # otherwise the progress line stays, because it shows the unprinted output
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
                self._reply_printer.print_paragraph(message)
                if rest := render_call(call.event, root=self._root, message=False).below:
                    for line in rest:
                        print_line(self._console, line)
                    print_line(self._console, "")
            case ObservationEvent():
                self._observed(call, event)
            case UserRejectObservation():
                by = f" by {one_line(event.by)}" if event.by else ""
                what = "rejected" if event.question is None else "declined"
                self._below(call, Text(f"{what}{by}: {one_line(event.reason)}", WARN))
            case AgentErrorEvent():
                style = WARN if event.outcome in ("interrupted", "not_run") else BAD
                self._cut(call, [Text(line, style) for line in error_lines(event, whole=self._verbose)])
        if call.announced and not any(each.announced for each in self._calls.values()):
            print_line(self._console, "")
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
            self._below(call, Text(f"{self._glyphs.more} some lines arrived too fast to be shown", DIM))

    def _observed(self, call: _Call, event: ObservationEvent) -> None:
        answer = render_result(event, root=self._root)
        if call.change and not answer.has_change and not event.is_error:
            self._cut(call, call.change)
        if call.output.redrawn or not call.output.lines:
            lines = answer.output
            if call.output.redrawn:
                lines = lines[call.output.left_of([line.plain for line in lines]) :]
            self._cut(call, lines, *(_LONG if answer.is_command else _LOOK))
        seconds = (event.timestamp - call.started).total_seconds() if call.started is not None else 0.0
        if answer.is_command:
            self._print_status(call, answer, seconds)
        self._cut(call, answer.lines, *(_LONG if answer.is_command or answer.has_change else _LOOK))
        if not answer.is_command:
            self._print_status(call, answer, seconds)

    def _print_status(self, call: _Call, answer: RenderedResult, seconds: float) -> None:
        status = answer.outcome or Text("", DIM)
        after = f"after {duration(seconds)}" if seconds >= 1 else ""
        if status.plain or after:
            self._below(call, Text(" ".join(filter(None, (status.plain, after))), status.style))

    def _cut(self, call: _Call, lines: Sequence[Text], first: int = _LONG[0], last: int = _LONG[1]) -> None:
        """Print lines below a call: all, or only the first and the last."""
        left_out = 0 if self._verbose or len(lines) <= first + last + FEW else len(lines) - first - last
        for line in lines[:first] if left_out else lines:
            self._below(call, line)
        if left_out:
            self._below(call, Text(f"{self._glyphs.more} {left_out:,} more lines", DIM))
            for line in lines[-last:]:
                self._below(call, line)

    def _below(self, call: _Call, line: Text) -> None:
        """Print a line of a call, wrapped to the width."""
        print_below(self._console, self._mark(call), line)

    def _mark(self, call: _Call) -> str:
        return f"{call.number or ' '}{self._glyphs.bar} "

    def _aside(self, event: Event) -> None:
        if self._verbose:
            rendered = self._renderer.render(event)
            self._reply_printer.end()
            print_text(
                self._console, styled("# ", DIM).append(rendered.label).append(" ").append(rendered.summary), DIM
            )


def _counts(output: Output) -> bool:
    """Return whether the number of lines is worth showing."""
    return output.lines > 1 and not output.redrawn


def _text_in(blocks: Iterable[Block]) -> str:
    """Return the text as deltas stream it: without separators between blocks."""
    return "".join(block.text for block in blocks if isinstance(block, TextBlock | RefusalBlock))
