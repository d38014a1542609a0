"""Logs like those of real work: turns of some steps, answers of all sizes, a retry and a pause now and then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice

from _agents import ANSWER, THOUGHT

from agentcore import (
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    Message,
    MessageEvent,
    ObservationEvent,
    RetryEvent,
    Store,
    SystemPromptEvent,
    Usage,
    UsageEvent,
)
from agentcore.context import DEFAULT_PROMPT
from agentcore.events import StatusChanged, TitleSet
from agentcore.messages import TextBlock, ThinkingBlock, ToolSchema
from agentcore.record import EventLog

__all__ = ["write_log"]

_STEPS_OF_A_TURN = 12
_AT_ONCE = 500
"""Groups in one write."""


async def write_log(store: Store, conversation_id: str, events: int) -> None:
    """Write a log of so many events."""
    log = await EventLog.create(store, conversation_id)
    groups = _cut(_groups(), events)
    while batch := list(islice(groups, _AT_ONCE)):
        await log.append(batch)
    await log.close()


def _cut(groups: Iterator[Sequence[Event]], events: int) -> Iterator[Sequence[Event]]:
    while events > 0:
        group = next(groups)[:events]
        events -= len(group)
        yield group


def _groups() -> Iterator[Sequence[Event]]:
    schema = ToolSchema(
        name="read_part",
        description="Read some lines of a file.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )
    yield [SystemPromptEvent(prompt=DEFAULT_PROMPT, tools=(schema,))]
    yield [ConversationStateUpdateEvent(update=TitleSet(title="Prices are rounded twice"))]
    for turn in count():
        yield [
            MessageEvent(source="user", message=Message.user(f"Look at module {turn} next. Why is it rounded twice?"))
        ]
        yield [_status(ConversationStatus.RUNNING, "run")]
        for step in range(_STEPS_OF_A_TURN):
            yield from _step(turn, step)
        said = Message.assistant(
            "It is rounded once when it is read and once when it is shown. I removed the first one."
        )
        yield [MessageEvent(source="agent", message=said, reply_id=f"re_{turn}"), _usage(turn, 0)]
        yield [_status(ConversationStatus.FINISHED, None)]


def _step(turn: int, step: int) -> Iterator[Sequence[Event]]:
    if step == 7 and turn % 5 == 0:
        yield [RetryEvent(attempt=1, error="The provider is overloaded (529).", delay=8.0)]
    action = ActionEvent(
        reply_id=f"re_{turn}_{step}",
        tool_name="read_part",
        arguments={"path": f"src/prices/module_{turn}.py", "first": 14 * step, "last": 14 * step + 14, "quiet": True},
        call_id=f"call_{turn:06}_{step:02}",
        before=(ThinkingBlock(text=THOUGHT * 2, signature="c2lnbmVk" * 40), TextBlock(text=THOUGHT))
        if step % 4 == 0
        else (TextBlock(text=THOUGHT),),
    )
    yield [action, _usage(turn, step), ActionStarted(cause=action.id)]
    if step == 9:
        yield [
            AgentErrorEvent(
                cause=action.id, tool_name=action.tool_name, call_id=action.call_id, error="There is no such file."
            )
        ]
        return
    text = ANSWER[: 150 + 130 * step] if step != 5 else ANSWER * 6
    yield [
        ObservationEvent(
            cause=action.id,
            tool_name=action.tool_name,
            call_id=action.call_id,
            content=(TextBlock(text=text),),
            data={"exit_code": 0, "path": f"src/prices/module_{turn}.py", "lines": len(text) // 70, "cut": False},
        )
    ]


def _usage(turn: int, step: int) -> UsageEvent:
    return UsageEvent(
        reply_id=f"re_{turn}_{step}",
        model="bench/quick",
        usage=Usage(requests=1, input_tokens=2_000 + 300 * step, output_tokens=80, cache_read_tokens=1_900),
        view_seq=turn * 40 + step,
        stop_reason="tool_calls",
        seconds=2.345678,
    )


def _status(status: ConversationStatus, code: str | None) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(update=StatusChanged(status=status, code=code))
