"""The view: the messages a model is shown, made from the events of the active branch.

Above: the agent's step, which sends it. Below: the state, which holds the branch. A view is added to as events come; only
a rewind or a condensation makes it anew. Answers stand in the order of their calls, and messages that came in between
stand after them, whatever order the log has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, overload

from pydantic import JsonValue

from agentcore.events import (
    ActionEvent,
    AgentErrorEvent,
    AnswerEvent,
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

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The names that every provider takes."""


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


class ViewItem(NamedTuple):
    """A part of the view that can only be shown or forgotten as a whole: a message, or a reply with its calls and answers."""

    events: tuple[ShownEvent, ...]
    """The events it is made of."""
    messages: tuple[Message, ...]
    """The messages that the model reads."""


class _Batch:
    """The actions of one reply, until all of them are answered."""

    def __init__(self, first: ActionEvent) -> None:
        self.reply_id = first.reply_id
        self.actions: list[ActionEvent] = []
        self.answers: dict[str, AnswerEvent] = {}
        self.held: list[ViewItem] = []

    @property
    def complete(self) -> bool:
        return len(self.answers) == len(self.actions)

    def item(self, masked: AbstractSet[str]) -> ViewItem:
        blocks: list[Block] = []
        for action in self.actions:
            blocks.extend(action.before)
            name, arguments = _as_written(action)
            blocks.append(ToolCallBlock(id=action.call_id, name=name, arguments=arguments))
        blocks.extend(self.actions[-1].after)
        answers = [self.answers[action.id] for action in self.actions]
        results = (
            _result(event, _as_written(action)[0], masked) for action, event in zip(self.actions, answers, strict=True)
        )
        return ViewItem(
            (*self.actions, *answers),
            (Message(role="assistant", content=tuple(blocks)), Message(role="tool", content=tuple(results))),
        )


class View:
    """Follows one conversation's state."""

    def __init__(self) -> None:
        self._epoch = 0
        self._read = 0
        self._prompt: Message | None = None
        self._messages: list[Message] = []
        self._items: list[ViewItem] = []
        self._batch: _Batch | None = None

    def update(self, state: ConversationState) -> None:
        """Take in what the state has that the view has not. Costs what is new; after a cut or a rewind, what is shown."""
        shown = state.shown
        if state.view_epoch != self._epoch:
            self._prompt, self._messages, self._items, self._batch = None, [], [], None
            self._read = 0
        for index in range(self._read, len(shown)):
            self._add(shown[index], state.masked)
        self._read = len(shown)
        self._epoch = state.view_epoch

    @property
    def messages(self) -> Messages:
        """The messages up to now, without a reply whose calls are not all answered, and what came after it."""
        return Messages(self._messages, len(self._messages))

    @property
    def prompt(self) -> Sequence[Message]:
        """The system prompt, as the messages before the items."""
        return () if self._prompt is None else (self._prompt,)

    @property
    def items(self) -> Sequence[ViewItem]:
        """The same in the parts that can be forgotten; the system prompt is not one. A list that only grows: do not change it."""
        return self._items

    @property
    def epoch(self) -> int:
        """Goes up when the messages were made anew rather than added to."""
        return self._epoch

    def _add(self, event: ShownEvent, masked: AbstractSet[str]) -> None:
        match event:
            case SystemPromptEvent():
                self._set_prompt(event)
            case MessageEvent():
                if event.message.content:
                    self._show(ViewItem((event,), (_dressed(event),)))
            case ContextAdded():
                self._show(ViewItem((event,), (Message.user(event.text),)))
            case CondensationSummaryEvent() | Condensation():
                self._show(ViewItem((event,), (Message.user(event.summary or ""),)))
            case ActionEvent():
                if self._batch is None or self._batch.reply_id != event.reply_id:
                    self._batch = _Batch(event)
                self._batch.actions.append(event)
            case _:
                self._answer(event, masked)

    def _set_prompt(self, event: SystemPromptEvent) -> None:
        message = Message.system(event.prompt)
        if self._prompt is None:
            self._messages.insert(0, message)
        else:
            # In a list of its own: snapshots of the messages before do not change.
            self._messages = [message, *self._messages[1:]]
        self._prompt = message

    def _show(self, item: ViewItem) -> None:
        if self._batch is not None:
            self._batch.held.append(item)
        else:
            self._items.append(item)
            self._messages.extend(item.messages)

    def _answer(self, event: AnswerEvent, masked: AbstractSet[str]) -> None:
        batch = self._batch
        if batch is None or all(action.id != event.cause for action in batch.actions):
            return
        batch.answers.setdefault(event.cause or "", event)
        if batch.complete:
            self._batch = None
            for item in (batch.item(masked), *batch.held):
                self._show(item)


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


LEFT_OUT = "(Left out to save room. The call was answered; call the tool again if you need what it said.)"
"""Stands in place of an answer whose content is left out."""


def _dressed(event: MessageEvent) -> Message:
    """Return the message with what stands before and behind it, in its first and last text where that can be."""
    content: list[Block] = list(event.message.content)
    if event.prefix:
        first = content[0]
        if isinstance(first, TextBlock):
            content[0] = TextBlock(text=f"{event.prefix}\n\n{first.text}")
        else:
            content.insert(0, TextBlock(text=event.prefix))
    if event.suffix:
        last = content[-1]
        if isinstance(last, TextBlock):
            content[-1] = TextBlock(text=f"{last.text}\n\n{event.suffix}")
        else:
            content.append(TextBlock(text=event.suffix))
    return (
        event.message.model_copy(update={"content": tuple(content)}) if event.prefix or event.suffix else event.message
    )


def _as_written(action: ActionEvent) -> tuple[str, dict[str, JsonValue]]:
    """Return name and arguments in the model's own words, which its provider has cached."""
    written = action.written
    if written is None:
        return action.tool_name, action.arguments
    # A name that providers do not take back is replaced by the tool's.
    name = written.name if written.name is not None and _LEGAL_NAME.fullmatch(written.name) else action.tool_name
    return name, action.arguments if written.arguments is None else written.arguments


def _result(event: AnswerEvent, name: str, masked: AbstractSet[str]) -> ToolResultBlock:
    """Return an answer for the model; `name` is that of the call, which some providers compare."""
    if event.id in masked:
        is_error = not isinstance(event, ObservationEvent) or event.is_error
        content = (TextBlock(text=LEFT_OUT),)
        return ToolResultBlock(call_id=event.call_id, name=name, content=content, is_error=is_error)
    match event:
        case ObservationEvent():
            content = tuple(block for block in event.content if not isinstance(block, UnknownBlock))
            return ToolResultBlock(call_id=event.call_id, name=name, content=content, is_error=event.is_error)
        case UserRejectObservation(question=str()):
            text = f"The question was not answered: {event.reason}"
        case UserRejectObservation():
            text = f"The user did not allow this action. Their reason: {event.reason}"
        case AgentErrorEvent():
            text = event.error
    return ToolResultBlock(call_id=event.call_id, name=name, content=(TextBlock(text=text),), is_error=True)
