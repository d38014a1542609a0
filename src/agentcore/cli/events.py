"""How any event of a log is said: a line, and what stands below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from agentcore.cli.blocks import draw_answer, draw_call, media, message_of, output_lines
from agentcore.cli.console import BAD, DIM, GOOD, NAME, STRONG, WARN, styled
from agentcore.cli.state_events import error_lines, say_fact
from agentcore.cli.text import count, one_line, printable
from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    Condensation,
    CondensationSummaryEvent,
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
class Told:
    """An event in words."""

    label: Text
    """What it is, in a word or two."""
    line: Text
    body: Sequence[Text] = ()
    about: str = ""
    """The call that it is about, as in "terminal #6"."""
    words: Sequence[Text] = ()
    """What the agent thought and said in the same breath as the call."""

    @property
    def said(self) -> Text:
        """The line, with the call that it is about."""
        if not self.about:
            return self.line
        return self.line.copy().append(f" ({self.about})") if self.line.plain else Text(self.about, DIM)


@dataclass
class Teller:
    """Tells events one after the other; it remembers the actions that later events are about."""

    root: str | None = None
    """The workspace's folder, where it is known."""
    whole: bool = False
    """Whether to say all of what is long, and what the model thought."""
    _actions: dict[str, ActionEvent] = field(default_factory=dict[str, ActionEvent])

    def tell(self, event: Event) -> Told:
        """Say the next event."""
        match event:
            case MessageEvent():
                told = self._message(event)
            case ActionEvent():
                self._actions[event.id] = event
                told = self._action(event)
            case ObservationEvent():
                told = self._result(event)
            case UserRejectObservation():
                by = f" by {one_line(event.by)}" if event.by else ""
                line = Text(f"{one_line(event.reason)}{by}")
                told = Told(Text("rejected", WARN), line, about=self._of(event.cause))
            case AgentErrorEvent():
                outcome = styled(event.outcome.replace("_", " "), BAD)
                told = Told(Text("error", BAD), outcome, self._error(event), self._of(event.cause))
            case ActionStarted():
                told = Told(Text("started", DIM), Text(""), about=self._of(event.cause))
            case ActionAssessed():
                told = self._assessment(event)
            case ActionApproved():
                told = self._approval(event)
            case SystemPromptEvent():
                line = Text(f"{len(event.prompt):,} characters, {count(len(event.tools), 'tool')}: ")
                line.append(one_line(", ".join(tool.name for tool in event.tools)))
                told = Told(Text("prompt", DIM), line, _lines(event.prompt, DIM) if self.whole else ())
            case CondensationSummaryEvent():
                told = Told(Text("summary"), Text(""), _lines(event.summary))
            case Condensation():
                line = Text(f"{count(len(event.forgotten), 'event')} out of the model's sight")
                told = Told(Text("condensed"), line, _lines(event.summary) if event.summary else ())
            case UnknownEvent():
                told = Told(
                    Text(one_line(event.kind)), Text("an event that only a newer version of agentcore knows", DIM)
                )
            case _:
                told = Told(Text(_LABELS.get(event.kind, event.kind.replace("_", " ")), DIM), say_fact(event))
        return told

    def _message(self, event: MessageEvent) -> Told:
        label = {"user": Text("user", f"{STRONG} {GOOD}"), "agent": Text("agent", STRONG)}.get(event.source)
        note = Text(f"({one_line(event.code)})" if event.code else "", DIM)
        thoughts = thinking_in(event.message.content) if self.whole else []
        shown = [media(block) for block in event.message.content if isinstance(block, ImageBlock | DocumentBlock)]
        return Told(label or Text("note", WARN), note, [*thoughts, *_lines(event.text), *shown])

    def _action(self, event: ActionEvent) -> Told:
        call = draw_call(event, root=self.root, whole=self.whole)
        label = Text("call", NAME)
        thoughts = thinking_in(event.before) if self.whole else []
        after = "\n".join(block.text for block in event.after if isinstance(block, TextBlock))
        words = [*thoughts, *_lines(event.thought), *_lines(after)]
        if message_of(event) is not None:
            return Told(label, call.title, words=[*words, *call.below])  # what it says to the user are words too
        return Told(label, call.title, call.below, words=words)

    def _result(self, event: ObservationEvent) -> Told:
        answer = draw_answer(event, root=self.root)
        outcome = answer.outcome or Text("an error" if event.is_error else "done", BAD if event.is_error else DIM)
        lines = output_lines(event.content) if self.whole else answer.below
        return Told(Text("result", NAME), outcome, lines, self._of(event.cause))

    def _error(self, event: AgentErrorEvent) -> list[Text]:
        return [Text(line) for line in error_lines(event, whole=self.whole)]

    def _assessment(self, event: ActionAssessed) -> Told:
        label = _VERDICTS.get(event.verdict) or Text("assessed", DIM)
        said = [f"risk: {event.risk}"] if event.risk is not None else []
        said += [f"{part.by}: {part.reason}" for part in event.parts if part.verdict == event.verdict]
        return Told(label, Text(one_line("; ".join(said))), self._changed(event), self._of(event.cause))

    def _approval(self, event: ActionApproved) -> Told:
        line = Text(f"by {one_line(event.by)}" if event.by else "")
        return Told(Text("approved", GOOD), line, self._changed(event), self._of(event.cause))

    def _changed(self, event: ActionAssessed | ActionApproved) -> list[Text]:
        action = self._actions.get(event.cause or "")
        if event.arguments is None or action is None:
            return []
        call = draw_call(action, event.arguments, root=self.root, whole=True)
        return [styled("changed to: ", WARN).append(call.title), *call.below]

    def _of(self, cause: str | None) -> str:
        """Say which action it is about."""
        action = self._actions.get(cause or "")
        return "" if action is None else f"{one_line(action.tool_name)} #{action.seq}"


_VERDICTS = {"ask": Text("asks", WARN), "deny": Text("denied", BAD)}
_LABELS = {
    "agent_configured": "agent",
    "workspace_opened": "workspace",
    "conversation_state_update": "state",
    "conversation_error": "error",
    "condensation_request": "condense",
    "head_moved": "rewound",
}


def thinking_in(blocks: Iterable[Block]) -> list[Text]:
    """Give what the model thought in words."""
    thoughts: list[Text] = []
    for block in blocks:
        match block:
            case ThinkingBlock():
                thoughts += _lines(block.text, f"{DIM} italic")
            case ReasoningBlock():
                thoughts += [line for part in block.summary for line in _lines(part, f"{DIM} italic")]
            case _:
                pass
    return thoughts


def _lines(text: str, style: str = "") -> list[Text]:
    return [Text(line, style) for line in printable(text).strip("\n").split("\n")] if text else []
