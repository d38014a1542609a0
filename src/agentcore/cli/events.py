"""Any event of a log as text: a line, and further lines below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from agentcore.cli.blocks import message_of, output_lines, render_call, render_media, render_result, text_lines
from agentcore.cli.console import BAD, DIM, GOOD, NAME, STRONG, WARN, styled
from agentcore.cli.state_events import error_lines, render_state_event
from agentcore.cli.text import count, one_line
from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    Condensation,
    CondensationSummaryEvent,
    ContextAdded,
    Event,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
    UnknownEvent,
    UserRejectObservation,
)
from agentcore.messages import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
)


@dataclass(frozen=True, slots=True)
class RenderedEvent:
    """An event as text."""

    label: Text
    """The kind of event, in a word or two."""
    line: Text
    body: Sequence[Text] = ()
    about: str = ""
    """The call that the event is about, as in "terminal seq 6"."""
    thought: Sequence[Text] = ()
    """The model's reasoning and text in the same reply as the call."""
    separator: str | None = None
    """The text between the call and the line, where the call comes first."""

    @property
    def summary(self) -> Text:
        """The line and the call that it is about."""
        if not self.about:
            return self.line
        if self.separator is not None:
            return Text(f"{self.about}{self.separator}").append_text(self.line)
        return self.line.copy().append(f" ({self.about})") if self.line.plain else Text(self.about, DIM)


@dataclass
class EventRenderer:
    """Renders events in order, and remembers the actions that later events are about."""

    root: str | None = None
    """The workspace's folder, if it is known."""
    whole: bool = False
    """Whether to render long text in full, and the model's reasoning."""
    _actions: dict[str, ActionEvent] = field(default_factory=dict[str, ActionEvent])

    def render(self, event: Event) -> RenderedEvent:
        """Render the next event."""
        match event:
            case MessageEvent():
                rendered = self._message(event)
            case ActionEvent():
                self._actions[event.id] = event
                rendered = self._action(event)
            case ObservationEvent():
                rendered = self._result(event)
            case UserRejectObservation():
                by = f"by {one_line(event.by)}: " if event.by else ""
                line = Text(f"{by}{one_line(event.reason)}")
                rendered = RenderedEvent(
                    Text("rejected" if event.question is None else "declined", WARN),
                    line,
                    about=self._of(event.cause),
                    separator=" " if by else ": ",
                )
            case AgentErrorEvent():
                outcome = styled(event.outcome.replace("_", " "), BAD)
                rendered = RenderedEvent(Text("error", BAD), outcome, self._error(event), self._of(event.cause))
            case ActionStarted():
                rendered = RenderedEvent(Text("started", DIM), Text(""), about=self._of(event.cause))
            case ActionAssessed():
                rendered = self._assessment(event)
            case ActionApproved():
                rendered = self._approval(event)
            case SystemPromptEvent():
                line = Text(f"{len(event.prompt):,} characters, {count(len(event.tools), 'tool')}: ")
                line.append(one_line(", ".join(tool.name for tool in event.tools)))
                rendered = RenderedEvent(Text("prompt", DIM), line, text_lines(event.prompt, DIM) if self.whole else ())
            case ContextAdded():
                body = text_lines(event.text, DIM) if self.whole else ()
                rendered = RenderedEvent(Text("context", DIM), Text(one_line(event.name)), body)
            case CondensationSummaryEvent():
                rendered = RenderedEvent(Text("summary"), Text(""), text_lines(event.summary))
            case Condensation():
                summary = text_lines(event.summary or "", DIM)
                rendered = RenderedEvent(Text("history"), render_state_event(event), summary)
            case UnknownEvent():
                rendered = RenderedEvent(
                    Text(one_line(event.kind)), Text("an event kind of a newer version of agentcore", DIM)
                )
            case _:
                rendered = RenderedEvent(
                    Text(_LABELS.get(event.kind, event.kind.replace("_", " ")), DIM), render_state_event(event)
                )
        return rendered

    def _message(self, event: MessageEvent) -> RenderedEvent:
        label = {"user": Text("user", f"{STRONG} {GOOD}"), "agent": Text("agent", STRONG)}.get(event.source)
        note = Text(f"({one_line(event.code)})" if event.code else "", DIM)
        thoughts = thinking_in(event.message.content) if self.whole else []
        shown = [
            render_media(block) for block in event.message.content if isinstance(block, ImageBlock | DocumentBlock)
        ]
        return RenderedEvent(label or Text("note", WARN), note, [*thoughts, *text_lines(event.text), *shown])

    def _action(self, event: ActionEvent) -> RenderedEvent:
        call = render_call(event, root=self.root, whole=self.whole)
        label = Text("call", NAME)
        thoughts = thinking_in(event.before) if self.whole else []
        after = "\n".join(block.text for block in event.after if isinstance(block, TextBlock))
        thought = [*thoughts, *text_lines(event.thought), *text_lines(after)]
        if message_of(event) is not None:
            return RenderedEvent(
                label, call.title, thought=[*thought, *call.below]
            )  # a message to the user is text of the agent too
        return RenderedEvent(label, call.title, call.below, thought=thought)

    def _result(self, event: ObservationEvent) -> RenderedEvent:
        answer = render_result(event, root=self.root)
        outcome = answer.outcome or Text("an error" if event.is_error else "done", BAD if event.is_error else DIM)
        lines = output_lines(event.content) if self.whole else answer.below
        return RenderedEvent(Text("result", NAME), outcome, lines, self._of(event.cause))

    def _error(self, event: AgentErrorEvent) -> list[Text]:
        return [Text(line) for line in error_lines(event, whole=self.whole)]

    def _assessment(self, event: ActionAssessed) -> RenderedEvent:
        label = _VERDICTS.get(event.verdict) or Text("assessed", DIM)
        summary = [f"risk: {event.risk}"] if event.risk is not None else []
        summary += [f"{part.by}: {part.reason}" for part in event.parts if part.verdict == event.verdict]
        return RenderedEvent(label, Text(one_line("; ".join(summary))), self._changed(event), self._of(event.cause))

    def _approval(self, event: ActionApproved) -> RenderedEvent:
        line = Text(f"by {one_line(event.by)}" if event.by else "")
        return RenderedEvent(Text("approved", GOOD), line, self._changed(event), self._of(event.cause))

    def _changed(self, event: ActionAssessed | ActionApproved) -> list[Text]:
        action = self._actions.get(event.cause or "")
        if event.arguments is None or action is None:
            return []
        call = render_call(action, event.arguments, root=self.root, whole=True)
        return [styled("changed to: ", WARN).append(call.title), *call.below]

    def _of(self, cause: str | None) -> str:
        """Return the name of the action that caused an event."""
        action = self._actions.get(cause or "")
        return "" if action is None else f"{one_line(action.tool_name)} seq {action.seq}"


_VERDICTS = {"ask": Text("asks", WARN), "deny": Text("denied", BAD)}
_LABELS = {
    "agent_configured": "agent",
    "workspace_opened": "workspace",
    "workspace_checkpointed": "files",
    "workspace_restored": "files",
    "conversation_state_update": "state",
    "conversation_error": "error",
    "condensation_request": "history",
    "question_asked": "question",
    "question_answered": "answer",
    "head_moved": "rewound",
}


def thinking_in(blocks: Iterable[Block]) -> list[Text]:
    """Return the model's readable reasoning."""
    thoughts: list[Text] = []
    for block in blocks:
        match block:
            case ThinkingBlock():
                thoughts += text_lines(block.text, f"{DIM} italic")
            case ReasoningBlock():
                thoughts += [line for part in block.summary for line in text_lines(part, f"{DIM} italic")]
            case _:
                pass
    return thoughts
