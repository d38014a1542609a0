"""Running the calls of a reply: at once where their resources allow, each in a task and a cancel scope of its own."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

import anyio
from anyio import get_cancelled_exc_class
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint, checkpoint_if_cancelled

from agentcore._groups import leaf_exceptions
from agentcore.agent import Call
from agentcore.conversation.calls import RunningCall, cannot_run, interrupted, not_run, schedule
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import (
    exception_to_raise,
    format_tool_error,
    is_cancelled,
    masked_repr,
    safe_str,
    spurious_cancellation,
    unwrap,
)
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.questions import withdraw
from agentcore.conversation.tool_host import CallHost, make_context, spool_if_room
from agentcore.conversation.tools import NotRun
from agentcore.errors import AgentcoreError, ToolError
from agentcore.events import ActionEvent, ActionStarted, AgentErrorEvent, ObservationEvent, QuestionAsked
from agentcore.logs import get_logger
from agentcore.messages import ResultBlock, TextBlock
from agentcore.tools import (
    OUTPUT_LIMIT,
    AnyTool,
    FunctionTool,
    InputRequired,
    Observation,
    Resource,
    Resumption,
    ToolContext,
    clip,
    describe_answer,
)

_log = get_logger(__name__)

_STOP_SECONDS = 10.0
"""How long a call may take to end when it is stopped; longer than a well-behaved tool takes to clean up."""


class CallBatch:
    """The calls of one reply, a task for each.

    The tasks are not the turn's: a tool may shield itself from cancellation for ever, and no scope can make it end. It is
    answered and left behind then, so that the turn and the conversation can end. Its task ends when the tool lets it.
    """

    def __init__(self, core: Core, calls: Sequence[Call]) -> None:
        """Plan the calls, in the order the model made them. Whoever sees their actions from now on may stop them."""
        self._core = core
        self._calls = [RunningCall(call, _resources_for(core, call)) for call in calls]
        # What can't run any more is not begun with the reply: it is answered when its turn comes.
        first = schedule(self._calls, core.agent.max_parallel_calls)
        self._first = [call for call in first if cannot_run(core.tool_sessions, call.call) is None]
        at_once = core.agent.max_parallel_calls
        self._room = anyio.CapacityLimiter(at_once) if len(calls) > at_once else nullcontext()
        self._left = {call.id: call for call in self._calls}
        self._errors: list[BaseException] = []
        self._news = anyio.Event()
        for call in self._calls:
            core.calls.add(call)

    def start_first(self) -> list[ActionStarted]:
        """Mark the calls that wait for nothing as started; give the events that say so, to be kept before `run`."""
        for call in self._first:
            call.started = True
        return [ActionStarted(cause=call.id) for call in self._first]

    def mark_started(self, action_ids: Collection[str]) -> None:
        """Mark the calls that the log says have started, in an earlier process."""
        for call in self._calls:
            call.started = call.started or call.id in action_ids

    def discard(self) -> None:
        """Forget the calls: their reply could not be kept."""
        for call in self._calls:
            self._end(call)

    async def run(self) -> None:
        """Run the calls and log each answer when it is there. Returns when all are answered.

        Raises:
            BaseException: What agentcore's own part of a call failed with; a tool's failure is an answer.
        """
        if not self._calls:
            await checkpoint()
            return
        with mark_running_in(self._core.state.conversation_id):
            for call in self._calls:
                self._core.call_tasks.start_soon(self._run, call, name=f"call {call.call.tool.name}")
        try:
            await self._wait()
        finally:
            await self._dismiss()  # noqa: ASYNC102 it is shielded and bounded where it waits

    async def _wait(self) -> None:
        while self._left and not self._errors:
            self._news = anyio.Event()
            await self._news.wait()

    async def _dismiss(self) -> None:
        """Stop those that are not over, and wait for them as long as that can be expected of anybody."""
        for call in self._left.values():
            call.stop("the turn was stopped", "interrupted")
        await self._forget_unbegun()
        if self._left:
            with anyio.move_on_after(_STOP_SECONDS, shield=True):  # noqa: ASYNC912 it waits at least once
                while self._left:
                    self._news = anyio.Event()
                    await self._news.wait()
        for call in tuple(self._left.values()):
            await self._abandon(call)
        if self._errors:
            error = exception_to_raise(BaseExceptionGroup("calls", self._errors), self._errors)
            raise error from error.__cause__

    async def _forget_unbegun(self) -> None:
        """Wait for none whose task will never begin: asyncio, when its loop is stopped, cancels tasks before they do."""
        if all(call.begun for call in self._left.values()):
            return
        for _ in range(2):  # after one round all have begun that will
            await cancel_shielded_checkpoint()
        for call in [call for call in self._left.values() if not call.begun]:
            self._end(call)

    async def _run(self, call: RunningCall) -> None:
        call.begun = True
        try:
            with call.scope:
                await self._run_when_free(call)
            # What the turn stopped before it started is answered by the turn, together with what else is open.
            if call.scope.cancelled_caught and (call.started or call.code == "cancelled"):
                await self._record_stop(call)
        except get_cancelled_exc_class():
            # A scope of the program that hosts the conversation.
            if call.started and call.id in self._core.state.open_actions:
                await self._record_stop(call)  # noqa: ASYNC102 a write can't be cancelled, and the store bounds it
            raise
        except BaseException as error:
            if call.abandoned and not isinstance(error, Exception):
                raise
            self._errors.append(error)
        finally:
            if call.started:
                self._core.prompt.touch(call.id, call.resources)
            self._end(call)
            if call.abandoned:
                _log.info("tool that was left behind has ended", tool=call.call.tool.name, action=call.id)

    def _end(self, call: RunningCall) -> None:
        call.ended.set()
        if self._left.pop(call.id, None) is not None:
            (self._core.calls.suspend if call.asked else self._core.calls.forget)(call.id)
        self._news.set()

    async def _run_when_free(self, call: RunningCall) -> None:
        for earlier in call.after:
            await earlier.ended.wait()
        async with self._room:
            await checkpoint_if_cancelled()
            if not call.started and (refused := cannot_run(self._core.tool_sessions, call.call)) is not None:
                await self._core.journal.write_shielded(refused)
                return
            if not call.started:
                await self._core.journal.write(ActionStarted(cause=call.id))
                call.started = True
            call.seconds = self._core.state.limits.call_seconds
            if call.seconds is not None:
                call.scope.deadline = anyio.current_time() + call.seconds
            answer, failure = await _answer(self._core, call.call)
            if not call.abandoned:
                call.asked = isinstance(answer, QuestionAsked)
                # What a tool did is kept even if it was stopped just then.
                await _write_answer(self._core, answer)
            if failure is not None:
                raise failure

    async def _record_stop(self, call: RunningCall) -> None:
        """Answer a call that was stopped: by a person, by its time limit, or with the whole conversation."""
        if call.abandoned or self._core.life.failure is not None:
            return
        why, code = call.reason or "the turn was stopped", call.code
        if call.reason is None and call.scope.cancelled_caught:
            why, code = f"it took longer than {call.seconds:g} s", "call_seconds"
        event, tool = call.call.event, call.call.tool
        await _write_answer(self._core, interrupted(event, why, code, in_thread=_runs_in_thread(tool)))

    async def _abandon(self, call: RunningCall) -> None:
        _log.warning(
            "tool does not stop: it is left behind, and leaving the context of the conversation waits for it",
            tool=call.call.tool.name,
            action=call.id,
            seconds=_STOP_SECONDS,
        )
        if call.started and call.id in self._core.state.open_actions:
            call.reason = f"the turn was stopped, but {call.call.tool.name!r} did not stop within {_STOP_SECONDS:g} s and may still be running"
            call.code = "abandoned"
            await self._record_stop(call)
        call.abandoned = True
        self._end(call)


def _resources_for(core: Core, call: Call) -> Sequence[Resource]:
    """Return the resources that a call uses; where the tool can't tell, that may be all there is."""
    try:
        return call.tool.resources_of(call.action, core.workspace.root)
    except Exception as error:
        shown = masked_repr(core.secrets, error)
        _log.warning("resources unknown: asking the tool raised", tool=call.tool.name, error=shown)
        return (Resource.workspace("write"),)


_Outcome = ObservationEvent | AgentErrorEvent | QuestionAsked
"""The answer of a call, or the question that it ended with."""


async def _write_answer(core: Core, answer: _Outcome) -> None:
    """Write how a call ended, and withdraw what it left unanswered in the same group."""
    if any(question.cause == answer.cause for question in core.state.questions):
        await core.journal.write_composed(lambda state: [*withdraw(state, answer.cause, "The call ended."), answer])
    else:
        await core.journal.write_shielded(answer)


async def _answer(core: Core, call: Call) -> tuple[_Outcome, Exception | None]:
    """Execute a call. Return how it ended, and what the program's callback raised about a question of it, if anything."""
    host = CallHost(core, call.event)
    return await _execute(core, call, host), host.failure


async def _execute(core: Core, call: Call, host: CallHost) -> _Outcome:
    event = call.event
    context = make_context(core, event, host)
    try:
        if call.resumption is not None:
            if (refused := cannot_run(core.tool_sessions, call)) is not None:
                return refused
            observation = await _resume(call, call.resumption, context)
        else:
            execute = await core.tool_sessions.executor(call.tool)
            if isinstance(execute, NotRun):
                return not_run(event, execute.text, execute.code)
            observation = await execute(call.action, context)
        return await observe(core, call, observation)
    except get_cancelled_exc_class() as error:  # noqa: ASYNC103 only a cancellation of a scope is raised again
        context.request_cancel()
        if await is_cancelled():  # noqa: ASYNC102 asking does not wait
            raise
        return _failed(core, event, spurious_cancellation("It", error))  # noqa: ASYNC104 it was no cancellation of a scope
    except BaseException as error:
        if all(isinstance(leaf, Exception | SystemExit) for leaf in leaf_exceptions(error)):  # one, or a group of such
            if core.life.failure is not None:
                raise core.life.failure from None  # nothing can be answered any more
            only = unwrap(error)
            if isinstance(only, InputRequired):
                return _question_of(core, call, only)
            return _failed(core, event, only)
        context.request_cancel()
        raise
    finally:
        host.finish()


async def _resume(call: Call, resumption: Resumption, context: ToolContext) -> Observation:
    if call.tool.resume is None:
        raise ToolError(f"The tool {call.tool.name!r} has no `resume` any more: its call cannot go on with the answer.")
    return await call.tool.resume(call.action, resumption, context)


def _question_of(core: Core, call: Call, required: InputRequired) -> _Outcome:
    """Return the question that a call ended with; an error where it could not be resumed with the answer."""
    if call.tool.resume is None:
        text = f"The tool {call.tool.name!r} requires an answer to a question, but has no `resume` to go on with it: {required.question.text}"
        return _failed(core, call.event, ToolError(text))
    return required.asked(call.event.id)


def _failed(core: Core, event: ActionEvent, error: BaseException) -> AgentErrorEvent:
    _log.debug("tool raised", tool=event.tool_name, action=event.id, error=masked_repr(core.secrets, error))
    text = safe_str(error) if isinstance(error, AgentcoreError) else format_tool_error(error)
    return AgentErrorEvent(
        cause=event.id,
        tool_name=event.tool_name,
        call_id=event.call_id,
        error=clip(text, mask=core.secrets.masker.mask_text),
        outcome="unknown" if _may_have_happened(error) else "failed",
        code=type(error).__name__,
    )


def _may_have_happened(error: BaseException | None) -> bool:
    """Return whether an error, or one that caused it, leaves open what was done: the place or the client is lost."""
    while error is not None:
        if isinstance(error, AgentcoreError) and error.outcome_unknown:
            return True
        error = error.__cause__
    return False


async def observe(core: Core, call: Call, observation: Observation | object) -> ObservationEvent:
    if not isinstance(observation, Observation):
        raise TypeError(f"what runs it gave {type(observation).__name__} instead of an Observation")
    event = call.event
    content: list[ResultBlock] = []
    open_action = core.state.open_actions.get(event.id)
    if open_action is not None and open_action.arguments is not open_action.event.arguments:
        by_user = open_action.approval is not None and open_action.approval.arguments is not None
        who = "The user" if by_user else "A check"
        content.append(TextBlock(text=f"{who} changed the arguments before it ran, to: {open_action.arguments}"))
    for number, piece in enumerate(observation.to_content()):
        block = TextBlock(text=piece) if isinstance(piece, str) else piece
        if isinstance(block, TextBlock) and len(block.text) > OUTPUT_LIMIT:
            full_output_path = await spool_if_room(
                core, f"{event.id}-{number}.txt", block.text.encode(errors="replace")
            )
            block = TextBlock(
                text=clip(block.text, mask=core.secrets.masker.mask_text, full_output_path=full_output_path)
            )
        content.append(block)
    if event.ignored:
        names = ", ".join(f"`{name}`" for name in event.ignored)
        content.append(TextBlock(text=f"[Ignored: {names}; no effect here.]"))
    data: dict[str, Any] = observation.to_data()
    if call.tool.finishes:
        core.output.set(event.id, getattr(call.action, "result", None))
    return ObservationEvent(
        cause=event.id,
        tool_name=event.tool_name,
        call_id=event.call_id,
        content=tuple(content),
        data=data,
        is_error=observation.is_error,
        finished=call.tool.finishes,
        display=describe_answer(call.tool, call.action, observation, core.secrets.masker.mask_model),
    )


def _runs_in_thread(tool: AnyTool) -> bool:
    return isinstance(tool, FunctionTool) and not inspect.iscoroutinefunction(tool.function)
