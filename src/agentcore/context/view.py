"""The view: the messages a model is shown, made from the events of the active branch.

Above: the agent's step, which sends it. Below: the state, which holds the branch. A view is added to as events come; only
a rewind or a condensation makes it anew. Answers stand in the order of their calls, and messages that came in between
stand after them, whatever order the log has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from agentcore.events import (
    ActionEvent,
    AgentErrorEvent,
    Condensation,
    CondensationSummaryEvent,
    ContextAdded,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
    UserRejectObservation,
)
from agentcore.messages import Block, Message, TextBlock, ToolCallBlock, ToolResultBlock, ToolSchema, UnknownBlock
from agentcore.record import ConversationState, ShownEvent


class Messages(Sequence[Message]):
    """The first `length` messages of a list that only grows: a snapshot that costs nothing."""

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: list[Message], length: int) -> None:
        self._messages = messages
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return self._messages[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._messages[index if index >= 0 else self._length + index]

    def __iter__(self) -> Iterator[Message]:
        for index in range(self._length):
            yield self._messages[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"<{self._length} messages>"


class _Batch:
    """The actions of one reply, until all of them are answered."""

    def __init__(self, first: ActionEvent) -> None:
        self.reply_id = first.reply_id
        self.actions: list[ActionEvent] = []
        self.answers: dict[str, ToolResultBlock] = {}
        self.held: list[Message] = []

    @property
    def complete(self) -> bool:
        return len(self.answers) == len(self.actions)

    def messages(self) -> Iterator[Message]:
        blocks: list[Block] = []
        for action in self.actions:
            blocks.extend(action.before)
            blocks.append(ToolCallBlock(id=action.call_id, name=action.tool_name, arguments=action.arguments))
        blocks.extend(self.actions[-1].after)
        yield Message(role="assistant", content=tuple(blocks))
        yield Message(role="tool", content=tuple(self.answers[action.id] for action in self.actions))
        yield from self.held


class View:
    """Follows one conversation's state."""

    def __init__(self) -> None:
        self._epoch = 0
        self._read = 0
        self._messages: list[Message] = []
        self._batch: _Batch | None = None
        self._prompt: SystemPromptEvent | None = None

    def update(self, state: ConversationState) -> None:
        """Take in what the state has that the view has not. Costs what is new, not what is there."""
        shown = state.shown
        new = shown[self._read :] if state.view_epoch == self._epoch else shown
        if state.view_epoch != self._epoch or any(_changes_the_past(event) for event in new):
            self._messages, self._batch = [], None
            self._prompt = state.prompt
            new = _remembered(shown)
        for event in new:
            self._add(event)
        self._read = len(shown)
        self._epoch = state.view_epoch

    @property
    def messages(self) -> Messages:
        """The messages up to now, without a reply whose calls are not all answered, and what came after it."""
        return Messages(self._messages, len(self._messages))

    def _add(self, event: ShownEvent) -> None:
        match event:
            case SystemPromptEvent():
                self._messages.insert(0, Message.system(event.prompt))
            case MessageEvent():
                if event.message.content:
                    self._say(_dress(event, self._prompt))
            case ContextAdded():
                self._say(Message.user(event.text))
            case CondensationSummaryEvent():
                self._say(Message.user(event.summary))
            case ActionEvent():
                if self._batch is None or self._batch.reply_id != event.reply_id:
                    self._batch = _Batch(event)
                self._batch.actions.append(event)
            case Condensation():
                pass
            case _:
                self._answer(event)

    def _say(self, message: Message) -> None:
        (self._messages if self._batch is None else self._batch.held).append(message)

    def _answer(self, event: ObservationEvent | UserRejectObservation | AgentErrorEvent) -> None:
        batch = self._batch
        if batch is None or all(action.id != event.cause for action in batch.actions):
            return
        batch.answers.setdefault(event.cause or "", _result(event))
        if batch.complete:
            self._messages.extend(batch.messages())
            self._batch = None


def build_messages(state: ConversationState) -> Sequence[Message]:
    """Build the view of a state from nothing."""
    view = View()
    view.update(state)
    return view.messages


def rebuild_request(state: ConversationState, view_seq: int) -> tuple[Sequence[Message], Sequence[ToolSchema]]:
    """Rebuild the messages and tools that a step sent to the model, from the log alone.

    Args:
        state: The conversation's state, now or later.
        view_seq: The head that the step saw: `UsageEvent.view_seq`.
    """
    past = ConversationState(state.conversation_id)
    for event in state.events[:view_seq]:
        past.apply(event)
    return build_messages(past), () if past.prompt is None else past.prompt.tools


def _changes_the_past(event: ShownEvent) -> bool:
    # The first system prompt comes before everything anyway; a later one replaces it.
    return isinstance(event, Condensation | SystemPromptEvent)


def _remembered(shown: Iterable[ShownEvent]) -> list[ShownEvent]:
    """Leave out what condensations have forgotten and prompts that were replaced; put summaries in their places."""
    events = list(shown)
    prompts = [event for event in events if isinstance(event, SystemPromptEvent)]
    forgotten: set[str] = {prompt.id for prompt in prompts[:-1]}
    summaries: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, Condensation) and event.forgotten:
            forgotten.update(event.forgotten)
            if event.summary is not None:
                summaries.setdefault(event.forgotten[0], []).append(event.summary)
    forgotten |= _with_their_replies(events, forgotten)
    kept: list[ShownEvent] = []
    for event in events:
        if event.id in summaries:
            kept.append(CondensationSummaryEvent(summary=summaries[event.id][-1]))
        if event.id not in forgotten:
            kept.append(event)
    return kept


def _with_their_replies(events: Iterable[ShownEvent], forgotten: set[str]) -> set[str]:
    """Widen what is forgotten to whole replies: providers refuse a call without its answer, and the other way round."""
    reply_of: dict[str, str] = {}
    for event in events:
        if isinstance(event, ActionEvent):
            reply_of[event.id] = event.reply_id
        elif isinstance(event, ObservationEvent | UserRejectObservation | AgentErrorEvent):
            reply_of[event.id] = reply_of.get(event.cause or "", "")
    broken = {reply_of[event_id] for event_id in forgotten if event_id in reply_of}
    return {event_id for event_id, reply_id in reply_of.items() if reply_id in broken}


def _dress(event: MessageEvent, prompt: SystemPromptEvent | None) -> Message:
    """Put the prefix and the suffix that are in force around a message of the user."""
    if event.source != "user" or prompt is None or (prompt.message_prefix is None and prompt.message_suffix is None):
        return event.message
    content: list[Block] = list(event.message.content)
    if prompt.message_prefix:
        match content[0]:
            case TextBlock(text=text):
                content[0] = TextBlock(text=f"{prompt.message_prefix}\n\n{text}")
            case _:
                content.insert(0, TextBlock(text=prompt.message_prefix))
    if prompt.message_suffix:
        match content[-1]:
            case TextBlock(text=text):
                content[-1] = TextBlock(text=f"{text}\n\n{prompt.message_suffix}")
            case _:
                content.append(TextBlock(text=prompt.message_suffix))
    return event.message.model_copy(update={"content": tuple(content)})


def _result(event: ObservationEvent | UserRejectObservation | AgentErrorEvent) -> ToolResultBlock:
    match event:
        case ObservationEvent():
            content = tuple(block for block in event.content if not isinstance(block, UnknownBlock))
            return ToolResultBlock(
                call_id=event.call_id, name=event.tool_name, content=content, is_error=event.is_error
            )
        case UserRejectObservation():
            text = f"The user did not allow this action. Their reason: {event.reason}"
        case AgentErrorEvent():
            text = event.error
    return ToolResultBlock(call_id=event.call_id, name=event.tool_name, content=(TextBlock(text=text),), is_error=True)
