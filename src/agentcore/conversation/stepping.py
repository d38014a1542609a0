"""Taking one step in a conversation: the request, what came back, and what follows from it."""

from __future__ import annotations

from collections import Counter

import anyio

from agentcore.agent import StepOutcome, take_step
from agentcore.conversation.assess import assess_reply
from agentcore.conversation.checkpoints import checkpoint_if_settled
from agentcore.conversation.condensing import after_rejection, before_step, repair_history
from agentcore.conversation.core import Core
from agentcore.conversation.deltas import ReplyStreamer
from agentcore.conversation.execute import CallBatch
from agentcore.conversation.journal import Condition
from agentcore.conversation.turn import Turn
from agentcore.display import DisplayBlock
from agentcore.errors import ContentPolicy, ContextWindowExceeded, MalformedHistory
from agentcore.events import (
    CondensationRequest,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    MessageEvent,
    RetryEvent,
    StatusChanged,
)
from agentcore.ids import new_id
from agentcore.llm import CallContext, Delta, ReasoningDelta, RefusalDelta, ResetDelta, RetryReport, TextDelta
from agentcore.llm.keys import masking_errors
from agentcore.messages import Message
from agentcore.tools import ToolSnapshot

_NUDGES = {
    "empty_reply": "Your reply was empty. Call a tool, or call `finish` if the task is done.",
    "reasoning_only": "You thought, but said and did nothing. Call a tool, or call `finish` if the task is done.",
    "reply_cut": "Your reply was cut off at the output limit. Go on from where it ended, in smaller pieces.",
    "output_missing": "This task ends with a `finish` call that carries a result. Call `finish` now.",
    "content_policy": "The provider refused the last reply because of its content. Go on in another way.",
}


class Stepper:
    """Takes the steps of one turn."""

    def __init__(self, core: Core, turn: Turn) -> None:
        self._core = core
        self._turn = turn
        self._streamer: ReplyStreamer | None = None
        self._view_seq = 0
        self._nudges: Counter[str] = Counter()

    @property
    def partial_text(self) -> str | None:
        """The text so far of a reply that is not complete."""
        return None if self._streamer is None else self._streamer.text

    def give_up(self) -> None:
        """Publish a reset: the reply that watchers saw begin is void."""
        if self._streamer is not None and self._streamer.text:
            self._streamer.reset()

    async def step(self) -> None:
        """Ask the model, record and do what it said. The conversation may have settled then."""
        core = self._core
        tools = await self._compose()
        if await before_step(core):
            await self._check_stuck()
            if self._turn.settled:
                return
            tools = await self._compose()
        try:
            outcome = await self._ask_model(tools)
        except ContextWindowExceeded:
            if core.agent.condenser is None:
                raise
            await core.journal.write(CondensationRequest())
            if not await after_rejection(core):
                raise
            await self._check_stuck()
            return
        except MalformedHistory:
            if not await repair_history(core):
                raise
            return
        except ContentPolicy:
            if not await self._nudge("content_policy"):
                raise
            return
        if outcome is None:
            return
        if outcome.shape == "calls":
            await self._record_calls(outcome)
            await self.settle_after_calls()
        else:
            await self._record_words(outcome)

    async def settle_after_calls(self) -> None:
        """After calls were answered: end the run where a finishing one succeeded, or the agent is stuck."""
        await checkpoint_if_settled(self._core)
        # From the log, not from this turn: the call may have waited for a person, or through a crash.
        seen = self._core.state.seen_by_finish
        if seen is not None:
            await end_turn_with(
                self._core,
                status_event(ConversationStatus.FINISHED),
                # A call beside the finishing one may have asked: it is resumed first.
                lambda state: state.last_user_seq <= seen and not state.questions,
            )
        if not self._turn.settled:
            await self._check_stuck()

    async def _compose(self) -> ToolSnapshot:
        """Return the tools of the next request, and record prompt and schemas where they are not those in force."""
        tools, events = await self._core.prompt.compose(self._core.state)
        if events:
            await self._core.journal.write(*events)
        return tools

    async def _ask_model(self, tools: ToolSnapshot) -> StepOutcome | None:
        """Ask, within the time of a step; None where that was too short, which is recorded."""
        core, limits = self._core, self._core.state.limits
        core.view.update(core.state)
        self._view_seq = core.state.head
        reply_id = new_id("re")
        streamer = self._streamer = ReplyStreamer(core.deltas, core.secrets, reply_id)
        prompt = core.state.prompt
        assert prompt is not None
        with masking_errors(core.secrets.mask), anyio.move_on_after(limits.step_seconds):
            outcome = await take_step(
                core.agent,
                core.view.messages,
                prompt.tools,
                tools.tools,
                reply_id=reply_id,
                view_seq=self._view_seq,
                clock=core.clock,
                context=CallContext(
                    conversation_id=core.state.conversation_id,
                    prompt_cache_key=core.state.conversation_id,
                    on_retry=self._on_retry,
                    first=not core.answered,
                ),
                on_delta=self._on_delta,
                mask=self._mask,
                mask_text=core.secrets.mask,
                deferred=core.tool_sessions.deferred,
            )
            core.answered = True
            streamer.finish()
            return outcome
        streamer.reset()
        detail = f"A step took longer than its limit of {limits.step_seconds:g} s."
        await end_turn_with(core, ConversationErrorEvent(code="step_seconds", detail=detail))
        return None

    def _mask(self, block: DisplayBlock) -> DisplayBlock:
        return self._core.secrets.masker.mask_model(block)  # the one of now: a value may have become known meanwhile

    async def _on_retry(self, report: RetryReport) -> None:
        await self._core.journal.write(
            RetryEvent(
                attempt=report.attempt, error=str(report.error), delay=report.delay, next_model=report.next_model
            )
        )

    async def _on_delta(self, delta: Delta) -> None:
        streamer = self._streamer
        assert streamer is not None
        match delta:
            case TextDelta() | RefusalDelta():
                streamer.feed("text", delta.text)
            case ReasoningDelta():
                streamer.feed("reasoning", delta.text)
            case ResetDelta():
                streamer.reset()
            case _:
                streamer.feed("tool_call", delta.arguments, delta.name)

    async def _record_calls(self, outcome: StepOutcome) -> None:
        """Keep the reply's actions and what it used, assess them, then run them or leave them waiting."""
        self._nudges.clear()
        batch = await self._assess_calls(outcome)
        if batch is not None:
            await batch.run()

    async def _assess_calls(self, outcome: StepOutcome) -> CallBatch | None:
        """Record the reply and what the checks say of it; give the calls to run, None where they wait.

        It is one group where all checks answer at once. Else the reply is kept first, and what the checks said before
        anything starts.
        """
        core = self._core
        reply: list[Event] = [*outcome.reply_events, outcome.usage, *outcome.answers, *outcome.questions]

        async def keep_reply() -> None:
            await core.journal.write_shielded(*reply)
            reply.clear()
            self._streamer = None

        assessed = await assess_reply(core, core.checks, outcome.calls, keep_reply)
        denials = {each.call.event.id: each.denial for each in assessed if each.denial is not None}
        waits = any(each.waits for each in assessed)
        # What can be stopped is there before its action can be seen.
        calls = [each.call for each in assessed if not waits and each.call.event.id not in denials]
        batch = CallBatch(core, calls) if calls else None
        for each in assessed:
            if each.call.event.id not in denials:
                core.calls.keep_arguments(each.call.event.id, each.call.event.arguments)
        # Kept even if an interrupt came meanwhile: the reply was paid for.
        write = core.journal.write_shielded if reply else core.journal.write
        try:
            await write(
                *reply,
                *(each.event for each in assessed if each.event is not None),
                *denials.values(),
                *(() if batch is None else batch.start_first()),
            )
        except BaseException:
            if batch is not None:
                batch.discard()
            raise
        self._streamer = None
        return batch

    async def _record_words(self, outcome: StepOutcome) -> None:
        """Keep the reply's message and what it used, and in the same group that the run has finished, where it has."""
        core = self._core
        finishes = outcome.shape == "content" and outcome.reply.stop_reason not in ("length", "pause")
        if finishes and core.agent.output is None:
            view_seq = self._view_seq
            # Refused where a person said something after what the request had seen.
            await core.journal.write_with_tail(
                (*outcome.reply_events, outcome.usage),
                status_event(ConversationStatus.FINISHED),
                lambda state: state.last_user_seq <= view_seq and not state.has_approved,
            )
            self._streamer = None
            if not self._turn.settled:
                await self._check_stuck()
            return
        await core.journal.write_shielded(*outcome.reply_events, outcome.usage)
        self._streamer = None
        if outcome.shape != "content":
            code = "empty_reply" if outcome.shape == "empty" else "reasoning_only"
            if not await self._nudge(code):
                await self._end_stuck(code, "The model answered with nothing to do, twice in a row.")
        elif not finishes:
            if outcome.reply.stop_reason == "length":
                await self._notify_model(_NUDGES["reply_cut"], "reply_cut")
            await self._check_stuck()
        elif not await self._nudge("output_missing"):
            detail = "The agent ended with words, and its output type asks for a value."
            await end_turn_with(core, ConversationErrorEvent(code="output_missing", detail=detail))

    async def _nudge(self, code: str) -> bool:
        """Send the model a nudge, once in a row; return True if it was sent."""
        if self._nudges[code]:
            return False
        self._nudges[code] += 1
        await self._notify_model(_NUDGES[code], code)
        return True

    async def _notify_model(self, text: str, code: str) -> None:
        await self._core.journal.write(MessageEvent(source="environment", message=Message.user(text), code=code))

    async def _check_stuck(self) -> None:
        """Let the detector see what is new; nudge, or end the run, as it says."""
        verdict = self._core.stuck.verdict(self._core.state)
        if verdict is None:
            return
        if verdict.action == "nudge":
            await self._notify_model(verdict.nudge or verdict.detail, verdict.code)
        else:
            await self._end_stuck(verdict.code, verdict.detail)

    async def _end_stuck(self, code: str, detail: str) -> None:
        await end_turn_with(self._core, status_event(ConversationStatus.STUCK, code, detail))


async def end_turn_with(core: Core, event: Event, condition: Condition = lambda _: True) -> None:
    """Write what ends the turn, unless its condition does not hold, or what was approved meanwhile has still to run."""
    await core.journal.write(event, condition=lambda state: not state.has_approved and condition(state))


def status_event(
    status: ConversationStatus, code: str | None = None, detail: str | None = None
) -> ConversationStateUpdateEvent:
    """Make the event of a status change."""
    return ConversationStateUpdateEvent(update=StatusChanged(status=status, code=code, detail=detail))
