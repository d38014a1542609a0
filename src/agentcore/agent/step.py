"""One step: the view goes to the model, and what the model said becomes what happened.

A function of values, with no task and no state of its own: its caller writes the events down and runs the calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from agentcore._text import Mask
from agentcore.agent.agent import Agent
from agentcore.events import ActionEvent, AgentErrorEvent, MessageEvent, QuestionAsked, UsageEvent, WrittenCall
from agentcore.llm import CallContext, Delta, ReasoningDelta, RefusalDelta, Reply, ResetDelta, TextDelta, ToolCallDelta
from agentcore.messages import AudioBlock, Block, ImageBlock, Message, TextBlock, ToolCallBlock, ToolSchema
from agentcore.secrets import find_masks
from agentcore.tools import AnyTool, MaskBlock, ReadCall, Resumption, describe_call, read_call
from agentcore.tools.deferred import DeferredTools

_Given = TypeVar("_Given")

Shape = Literal["calls", "content", "reasoning_only", "empty"]


class Call(NamedTuple):
    """A call that can run."""

    event: ActionEvent
    tool: AnyTool
    action: Any
    """The tool's `Action`, made of the arguments as the model gave them."""
    resumption: Resumption | None = None
    """The answer to resume it with, where it had started and asked a question."""


class StepOutcome(NamedTuple):
    """The outcome of one reply."""

    shape: Shape
    reply: Reply
    reply_events: tuple[MessageEvent | ActionEvent, ...]
    """The reply's message, or its actions."""
    answers: tuple[AgentErrorEvent, ...]
    """Answers to the actions that can't run: unknown tools, bad arguments, calls after `finish` or a question."""
    questions: tuple[QuestionAsked, ...]
    """The questions of actions that wait for a person's answer instead of running."""
    calls: tuple[Call, ...]
    """The actions that can run, in order."""
    usage: UsageEvent


async def take_step(
    agent: Agent,
    messages: Sequence[Message],
    schemas: Sequence[ToolSchema],
    tools: Sequence[AnyTool],
    *,
    reply_id: str,
    view_seq: int,
    clock: Callable[[], float],
    context: CallContext,
    on_delta: Callable[[Delta], Awaitable[None]],
    mask: MaskBlock,
    mask_text: Mask,
    deferred: DeferredTools | None = None,
) -> StepOutcome:
    """Ask the model once and read its reply.

    Args:
        agent: Whose model is asked.
        messages: The view.
        schemas: The schemas of the tools, as the model sees them.
        tools: The tools themselves, against which its calls are read.
        reply_id: The id that the events of this reply share.
        view_seq: The head that the view was made at.
        clock: Seconds that only go up, for the length of the call.
        context: Goes to the model as it is.
        on_delta: Told every piece of the reply as it comes.
        mask: Takes the secrets out of what the tools show of their calls.
        mask_text: Replaces secrets in the answers to calls that can't run.
        deferred: The tools that it may call besides, through one of `tools`.

    Raises:
        ModelError: There is no reply.
        TypeError: The model gave what is no delta, or no reply.
    """
    began = clock()
    async with agent.llm.stream(messages, schemas, context=context) as deltas:
        async for delta in deltas:
            await on_delta(_check(agent, delta, TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta, ResetDelta))
        reply = _check(agent, deltas.reply, Reply)
    seconds = round(clock() - began, 6)

    # Made in the order in which they stand in the log, so that no event is older than the one before it.
    def usage() -> UsageEvent:
        return UsageEvent(
            reply_id=reply_id,
            model=reply.model,
            usage=reply.usage,
            view_seq=view_seq,
            stop_reason=reply.stop_reason,
            seconds=seconds,
        )

    def read(block: ToolCallBlock) -> ReadCall:
        read_one = read_call if deferred is None else deferred.read_call
        return read_one(block.name, block.arguments, tools, mask=mask_text)

    if reply.message.tool_calls:
        reply_events, answers, questions, calls = _read_calls(read, reply, reply_id, mask)
        return StepOutcome("calls", reply, reply_events, answers, questions, calls, usage())
    message = MessageEvent(source="agent", message=reply.message, reply_id=reply_id)
    return StepOutcome(_shape(reply), reply, (message,) if reply.message.content else (), (), (), (), usage())


def _check(agent: Agent, given: _Given, *kinds: type) -> _Given:
    """Raise an error that names the model if it returns what a model may not."""
    if not isinstance(given, kinds):
        wanted = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(
            f"The model {agent.llm.name!r} is at fault: its stream gave {type(given).__name__} instead of {wanted} "
            "(see agentcore.llm.DeltaStream)."
        )
    return given


def _shape(reply: Reply) -> Shape:
    if reply.message.text.strip() or any(isinstance(block, ImageBlock | AudioBlock) for block in reply.message.content):
        return "content"
    return "reasoning_only" if any(not isinstance(block, TextBlock) for block in reply.message.content) else "empty"


def _read_calls(
    read_block: Callable[[ToolCallBlock], ReadCall], reply: Reply, reply_id: str, mask: MaskBlock
) -> tuple[tuple[ActionEvent, ...], tuple[AgentErrorEvent, ...], tuple[QuestionAsked, ...], tuple[Call, ...]]:
    events: list[ActionEvent] = []
    answers: list[AgentErrorEvent] = []
    questions: list[QuestionAsked] = []
    calls: list[Call] = []
    finish: str | None = None
    used: set[str] = set()
    for number, (before, block, after) in enumerate(_split(reply.message.content), 1):
        read = read_block(block)
        event = ActionEvent(
            reply_id=reply_id,
            tool_name=read.name,
            arguments=read.arguments,
            typed_masks=find_masks(read.arguments),
            malformed=read.malformed,
            written=_written(block.name, read),
            ignored=read.ignored,
            tool_digest=read.digest,
            call_id=block.id,
            before=before,
            after=after,
        )
        if block.id in used or not block.id:
            # Providers refuse a history in which two calls have one id, or a call has none.
            event = event.model_copy(update={"call_id": f"{event.id}_{number}", "given_call_id": block.id})
        used.add(event.call_id)
        if finish is not None:
            events.append(event)
            answers.append(_not_run(event, finish))
        elif questions and not (read.action is not None and _asks(read.tool)):
            events.append(event)
            answers.append(_not_run_yet(event))
        elif read.tool is None or read.action is None:
            events.append(event)
            answers.append(
                AgentErrorEvent(
                    cause=event.id,
                    tool_name=event.tool_name,
                    call_id=event.call_id,
                    error=read.problem or "The call could not be read.",
                    outcome="not_run" if read.code == "tool_changed" else "failed",
                    code=read.code,
                )
            )
        else:
            if display := describe_call(read.tool, read.action, mask):
                event = event.model_copy(update={"display": display})
            events.append(event)
            if read.tool.question is not None:
                # Of several questions in a row none depends on the answer to another: all are asked.
                questions.append(read.tool.question(read.action).asked(event.id))
                continue
            calls.append(Call(event, read.tool, read.action))
            if read.tool.finishes:
                finish = read.tool.name
    return tuple(events), tuple(answers), tuple(questions), tuple(calls)


def _asks(tool: AnyTool | None) -> bool:
    return tool is not None and tool.question is not None


def _not_run_yet(event: ActionEvent) -> AgentErrorEvent:
    return AgentErrorEvent(
        cause=event.id,
        tool_name=event.tool_name,
        call_id=event.call_id,
        error="Not run: the question before it in the same reply is to be answered first. Read the answer, then decide.",
        outcome="not_run",
        code="after_question",
    )


def _written(name: str, read: ReadCall) -> WrittenCall | None:
    """Return a call as the model wrote it; None where it was read as just that, or could not be read."""
    other_name = None if name == read.name else name
    if read.malformed is not None or (other_name is None and read.given is None):
        return None
    return WrittenCall(name=other_name, arguments=read.given)


def _not_run(event: ActionEvent, finish: str) -> AgentErrorEvent:
    return AgentErrorEvent(
        cause=event.id,
        tool_name=event.tool_name,
        call_id=event.call_id,
        error=f"Not run: {finish!r} was called before it in the same reply, and nothing is done after that.",
        outcome="not_run",
        code="after_finish",
    )


def _split(content: Sequence[Block]) -> list[tuple[tuple[Block, ...], ToolCallBlock, tuple[Block, ...]]]:
    """Return each call with what stands before it; the last one also with what stands after it."""
    split: list[tuple[tuple[Block, ...], ToolCallBlock, tuple[Block, ...]]] = []
    before: list[Block] = []
    for block in content:
        if isinstance(block, ToolCallBlock):
            split.append((tuple(before), block, ()))
            before = []
        else:
            before.append(block)
    if before:
        first, call, _ = split[-1]
        split[-1] = (first, call, tuple(before))
    return split
