"""Taking one step in a conversation: the request, what came back, and what follows from it."""

from __future__ import annotations

from collections import Counter

import anyio

from agentcore.agent import Call, StepOutcome, take_step
from agentcore.context import system_prompt
from agentcore.conversation.core import Core, Turn
from agentcore.conversation.deltas import ReplyVoice
from agentcore.conversation.execute import execute_calls, starts_at_once
from agentcore.conversation.settle import settle
from agentcore.conversation.telling import masked_repr
from agentcore.errors import ContentPolicy, ContextWindowExceeded, MalformedHistory
from agentcore.events import (
    ActionEvent,
    ActionStarted,
    CondensationRequest,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    MessageEvent,
    ObservationEvent,
    RetryEvent,
    StatusChanged,
    SystemPromptEvent,
    UsageEvent,
)
from agentcore.ids import new_id
from agentcore.llm import CallContext, Delta, ReasoningDelta, RefusalDelta, ResetDelta, RetryReport, TextDelta
from agentcore.logs import get_logger
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.tools import FinishAction, ThinkAction

__all__ = ["Stepper"]

_log = get_logger(__name__)

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
        self._voice: ReplyVoice | None = None
        self._view_seq = 0
        self._nudges: Counter[str] = Counter()

    @property
    def partial_text(self) -> str | None:
        """What the model has said of a reply that is not complete."""
        return None if self._voice is None else self._voice.text

    def give_up(self) -> None:
        """Tell those who watch that the reply they saw begin is void."""
        if self._voice is not None and self._voice.text:
            self._voice.reset()

    async def step(self) -> bool:
        """Ask the model, record and do what it said; say whether the conversation has settled."""
        core = self._core
        await self._prompt()
        if core.agent.condenser is not None:
            await self._condense(requested=False)
        try:
            outcome = await self._ask_model()
        except (ContextWindowExceeded, MalformedHistory) as error:
            if core.agent.condenser is None:
                raise
            await core.journal.write(CondensationRequest())
            if await self._stuck():
                return True
            if not await self._condense(requested=True):
                raise error from None
            return False
        except ContentPolicy:
            if not await self._nudge("content_policy"):
                raise
            return False
        if outcome is None:
            return True
        if outcome.shape == "calls":
            await self._record_calls(outcome)
            return await self.settle_after_calls()
        return await self._record_words(outcome)

    async def settle_after_calls(self) -> bool:
        """After calls were answered: end the run where a finishing one succeeded, or the agent is stuck."""
        core = self._core
        seen = _seen_by_finish(core.state)
        if seen is not None and await self._finish(seen):
            return True
        return await self._stuck()

    async def _prompt(self) -> None:
        """Record the prompt and the tools' schemas where they are not those in force."""
        core = self._core
        prompt = core.secrets.masker.mask_text(
            system_prompt(core.agent.system_prompt, core.agent.context, core.workspace.root)
        )
        tools = tuple(tool.schema for tool in core.agent.all_tools)
        current = core.state.prompt
        if current is None or current.prompt != prompt or current.tools != tools:
            await core.journal.write(SystemPromptEvent(prompt=prompt, tools=tools))

    async def _condense(self, *, requested: bool) -> bool:
        core = self._core
        assert core.agent.condenser is not None
        condensation = await core.agent.condenser.condense(core.state.shown, requested=requested)
        if condensation is None:
            return False
        await core.journal.write(condensation)
        return True

    async def _ask_model(self) -> StepOutcome | None:
        """Ask, within the time of a step; None where that was too short, which is recorded."""
        core, limits = self._core, self._core.state.limits
        core.view.update(core.state)
        self._view_seq = core.state.head
        reply_id = new_id("re")
        voice = self._voice = ReplyVoice(core.deltas, core.secrets, reply_id)
        prompt = core.state.prompt
        assert prompt is not None
        with anyio.move_on_after(limits.step_seconds):
            outcome = await take_step(
                core.agent,
                core.view.messages,
                prompt.tools,
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
            )
            core.answered = True
            voice.finish()
            return outcome
        voice.reset()
        detail = f"A step took longer than its limit of {limits.step_seconds:g} s."
        await settle(core, self._turn, ConversationErrorEvent(code="step_seconds", detail=detail))
        return None

    async def _on_retry(self, report: RetryReport) -> None:
        await self._core.journal.write(
            RetryEvent(
                attempt=report.attempt, error=str(report.error), delay=report.delay, next_model=report.next_model
            )
        )

    async def _on_delta(self, delta: Delta) -> None:
        voice = self._voice
        assert voice is not None
        match delta:
            case TextDelta() | RefusalDelta():
                voice.say("text", delta.text)
            case ReasoningDelta():
                voice.say("reasoning", delta.text)
            case ResetDelta():
                voice.reset()
            case _:
                voice.say("tool_call", delta.arguments, delta.name)

    async def _record_calls(self, outcome: StepOutcome) -> None:
        """Keep the reply's actions and what it used as one group, then run them or leave them waiting."""
        core = self._core
        self._nudges.clear()
        said = [event for event in outcome.said if isinstance(event, ActionEvent)]
        asked = {call.event.id for call in outcome.calls if _must_ask(core, call)}
        if asked:
            # One that waits makes the whole reply wait: the model meant its calls to be done together.
            asked = {call.event.id for call in outcome.calls}
            said = [event.model_copy(update={"confirm": event.id in asked}) for event in said]
        started: set[str] = set() if asked else starts_at_once(core, outcome.calls)
        for call in outcome.calls:
            core.arguments[call.event.id] = call.event.arguments
            if not asked:
                core.scope_of(call.event.id)
        # Kept even if an interrupt came meanwhile: the reply was paid for.
        await core.journal.keep(
            *said,
            outcome.usage,
            *outcome.answers,
            *(ActionStarted(cause=call.event.id) for call in outcome.calls if call.event.id in started),
        )
        self._voice = None
        if not asked:
            await execute_calls(core, outcome.calls, started)

    async def _record_words(self, outcome: StepOutcome) -> bool:
        core = self._core
        await core.journal.keep(*outcome.said, outcome.usage)
        self._voice = None
        if outcome.shape != "content":
            code = "empty_reply" if outcome.shape == "empty" else "reasoning_only"
            if await self._nudge(code):
                return False
            await self._end(ConversationStatus.STUCK, code, "The model answered with nothing to do, twice in a row.")
            return True
        if outcome.reply.stop_reason in ("length", "pause"):
            if outcome.reply.stop_reason == "length":
                await self._say(_NUDGES["reply_cut"], "reply_cut")
            return await self._stuck()
        if core.agent.output is not None:
            if await self._nudge("output_missing"):
                return False
            detail = "The agent ended with words, and its output type asks for a value."
            return await settle(core, self._turn, ConversationErrorEvent(code="output_missing", detail=detail))
        return await self._finish(self._view_seq) or await self._stuck()

    async def _finish(self, seen: int) -> bool:
        """End the run, unless a person said something after what the request had seen."""
        return await settle(
            self._core,
            self._turn,
            ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.FINISHED)),
            condition=lambda state: state.last_user_seq <= seen,
        )

    async def _nudge(self, code: str) -> bool:
        """Tell the model what it should do instead, once in a row; say whether it was told."""
        if self._nudges[code]:
            return False
        self._nudges[code] += 1
        await self._say(_NUDGES[code], code)
        return True

    async def _say(self, text: str, code: str) -> None:
        await self._core.journal.write(MessageEvent(source="environment", message=Message.user(text), code=code))

    async def _stuck(self) -> bool:
        """Let the detector see what is new; nudge, or end the run, as it says."""
        core = self._core
        detector = core.stuck
        if detector is None:
            return False
        state = core.state
        if core.stuck_epoch != state.view_epoch:
            detector.reset()
            for event in state.branch_events():
                detector.observe(event)
            core.stuck_seen, core.stuck_epoch = state.head, state.view_epoch
        for event in state.events[core.stuck_seen :]:
            detector.observe(event)
        core.stuck_seen = state.head
        verdict = detector.verdict()
        if verdict is None:
            return False
        if verdict.action == "nudge":
            await self._say(verdict.nudge or verdict.detail, verdict.code)
            return False
        await self._end(ConversationStatus.STUCK, verdict.code, verdict.detail)
        return True

    async def _end(self, status: ConversationStatus, code: str, detail: str) -> None:
        ended = ConversationStateUpdateEvent(update=StatusChanged(status=status, code=code, detail=detail))
        await settle(self._core, self._turn, ended)


def _must_ask(core: Core, call: Call) -> bool:
    # To finish or to think harms nobody: asking would only wear people out.
    if issubclass(call.tool.action, FinishAction | ThinkAction):
        return False
    try:
        return core.policy.needs_confirmation(call.event)
    except Exception as error:
        # The reply was paid for, and has to be kept; what nobody could decide on, a person decides.
        _log.warning(
            "a person is asked: the policy raised", tool=call.tool.name, error=masked_repr(core.secrets, error)
        )
        return True


def _seen_by_finish(state: ConversationState) -> int | None:
    """Give the head that the newest reply's request saw, where a finishing call of that reply succeeded.

    From the log, not from this turn: the call may have waited for a person, or through a crash.
    """
    finished = False
    for event in reversed(state.shown):
        if isinstance(event, ActionEvent):
            return _view_seq_of(state, event.reply_id) if finished else None
        finished = finished or (isinstance(event, ObservationEvent) and event.data.get("finished") is True)
    return None


def _view_seq_of(state: ConversationState, reply_id: str) -> int | None:
    for event in reversed(state.events):
        if isinstance(event, UsageEvent) and event.reply_id == reply_id:
            return event.view_seq
    return None
