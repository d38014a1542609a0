"""Running the calls of a reply: at once where their resources allow, each in a task and a cancel scope of its own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import anyio
from anyio import get_cancelled_exc_class
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint, checkpoint_if_cancelled
from pydantic import JsonValue

from agentcore.agent import Call
from agentcore.conversation.ask import ask_aside
from agentcore.conversation.core import Core
from agentcore.conversation.deltas import StreamDelta
from agentcore.conversation.groups import bare, cancelled_itself, is_cancelled, leaves_of, to_raise
from agentcore.conversation.inside import enter_inside
from agentcore.conversation.queue import Place, Queue
from agentcore.conversation.refusal import cannot_run, not_run
from agentcore.conversation.spool import GrowingSpool, open_spool, spool, spool_if_room
from agentcore.conversation.telling import describe, masked_repr, text_of
from agentcore.conversation.tools import NotRun
from agentcore.errors import AgentcoreError
from agentcore.events import ActionEvent, ActionStarted, AgentErrorEvent, MessageEvent, ObservationEvent
from agentcore.llm import LLM
from agentcore.llm.catalog import model_info
from agentcore.logs import get_logger
from agentcore.messages import Message, ResultBlock, TextBlock
from agentcore.tools import OUTPUT_LIMIT, AnyTool, FunctionTool, Medium, Observation, Resource, ToolContext, cut

__all__ = ["CallHost", "claims", "execute_calls", "interrupted", "make_context", "observe", "starts_at_once"]

_log = get_logger(__name__)

_STOP_SECONDS = 10.0
"""How long a call may take to end when it is stopped; longer than a well-behaved tool takes to clean up."""


class CallHost:
    """What a running call may ask of its conversation."""

    def __init__(self, core: Core, event: ActionEvent) -> None:
        self._core = core
        self._event = event
        self._turn = core.turn
        self._masking = core.secrets.masker.stream()
        self._offset = 0

    async def progress(self, action_id: str, text: str) -> None:
        """Show people what the tool is doing; nothing is kept."""
        assert action_id == self._event.id
        self._core.home.refuse_elsewhere()
        self._show(self._masking.feed(text))
        await checkpoint()

    def finish(self) -> None:
        """Show what masking still held back."""
        self._show(self._masking.finish())

    def _show(self, shown: str) -> None:
        if shown:
            self._core.deltas.publish(
                StreamDelta(
                    type="progress",
                    action_id=self._event.id,
                    tool_name=self._event.tool_name,
                    offset=self._offset,
                    text=shown,
                )
            )
            self._offset += len(shown)

    async def send(self, text: str) -> None:
        """Add a message that the model reads at its next step."""
        await self._core.journal.write(MessageEvent(source="environment", message=Message.user(text), code="tool"))

    async def interrupt(self) -> None:
        """Stop the turn of the call; one that ended is not mistaken for the turn that works now."""
        self._core.home.refuse_elsewhere()
        if self._turn is not None:
            self._turn.interrupt(f"the tool {self._event.tool_name!r} asked for it")
        await checkpoint()

    async def ask(self, question: str) -> str:
        """Ask the model a side question."""
        return await ask_aside(self._core, question)

    async def spool(self, name: str, data: bytes) -> str:
        """Keep a whole output in the workspace's private folder and give its path."""
        return await spool(self._core, name, data)

    async def open_spool(self, name: str, limit: int) -> GrowingSpool:
        """Begin a file there that grows while an output comes."""
        return await open_spool(self._core, name, limit)

    async def takes(self, medium: Medium) -> bool | None:
        """Say whether the agent's model can look at it, as far as that is known."""
        model = self._core.agent.llm
        if not isinstance(model, LLM):
            await checkpoint()
            return None
        features = (await model_info(model)).features
        return features.vision if medium == "image" else features.pdf

    def latest_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        """Give what the newest observation of a tool recorded, whether the model is still shown it or not."""
        for event in reversed(self._core.state.shown):
            if isinstance(event, ObservationEvent) and event.tool_name == tool_name:
                return event.data
        return None


def claims(core: Core, call: Call) -> Sequence[Resource]:
    """Give the resources that a call uses; where the tool can't tell, that may be all there is."""
    try:
        return call.tool.resources_of(call.action, core.workspace.root)
    except Exception as error:
        told = masked_repr(core.secrets, error)
        _log.warning("resources unknown: asking the tool raised", tool=call.tool.name, error=told)
        return (Resource.workspace("write"),)


def starts_at_once(core: Core, calls: Sequence[Call]) -> set[str]:
    """Name the actions that wait for nothing: as many as may run at once, and none that conflicts with an earlier one.

    What can't run any more is not begun: it is answered when its turn comes.
    """
    queue = Queue()
    free: set[str] = set()
    for call in calls:
        is_first = queue.enter(claims(core, call)).is_first
        if is_first and len(free) < core.agent.max_parallel_calls and cannot_run(core, call) is None:
            free.add(call.event.id)
    return free


async def execute_calls(core: Core, calls: Sequence[Call], started: set[str]) -> None:
    """Run the calls and log each answer when it is there. Returns when all are answered.

    Args:
        core: The conversation.
        calls: The calls, in the order the model made them.
        started: The actions whose `ActionStarted` is in the log already.
    """
    if not calls:
        await checkpoint()
        return
    crew = _Crew(core, len(calls))
    queue = Queue()
    with enter_inside(core.state.conversation_id):
        for call in calls:
            hand = _Hand(call, queue.enter(claims(core, call)), call.event.id in started)
            crew.start(hand)
    try:
        await crew.settled.wait()
    finally:
        await crew.dismiss()  # noqa: ASYNC102 it is shielded and bounded where it waits


class _Hand:
    """One call that runs, or waits until it may."""

    __slots__ = ("abandoned", "begun", "call", "place", "scope", "started")

    def __init__(self, call: Call, place: Place, started: bool) -> None:
        self.call = call
        self.place = place
        self.started = started
        """Whether its `ActionStarted` is in the log."""
        self.begun = False
        """Whether its task has."""
        self.scope = anyio.CancelScope()
        """Cancelled with the turn. The call's own, which others may cancel, is inside."""
        self.abandoned = False
        """Whether it was answered because it does not stop."""


class _Crew:
    """The calls of one reply, a task for each.

    The tasks are not the turn's: a tool may shield itself from cancellation for ever, and no scope can make it end. It is
    answered and left behind then, so that the turn and the conversation can end. Its task ends when the tool lets it.
    """

    def __init__(self, core: Core, calls: int) -> None:
        self._core = core
        self._turn = core.turn
        at_once = core.agent.max_parallel_calls
        self._room = anyio.CapacityLimiter(at_once) if calls > at_once else nullcontext()
        self._hands: dict[str, _Hand] = {}
        self._errors: list[BaseException] = []
        self.settled = anyio.Event()
        """Set when all are over, or one of them failed."""

    def start(self, hand: _Hand) -> None:
        """Run a call."""
        self._hands[hand.call.event.id] = hand
        if self._turn is not None:
            self._turn.calls.add(hand.scope)
        self._core.hands.start_soon(self._run, hand, name=f"call {hand.call.tool.name}")

    async def dismiss(self) -> None:
        """Stop those that are not over, and wait for them as long as that can be expected of anybody.

        Raises:
            BaseException: What a call failed with.
        """
        for hand in self._hands.values():
            hand.scope.cancel()
        await self._forget_unbegun()
        if self._hands:
            with anyio.move_on_after(_STOP_SECONDS, shield=True):  # noqa: ASYNC912 it waits at least once
                while self._hands:
                    self.settled = anyio.Event()
                    await self.settled.wait()
        for hand in tuple(self._hands.values()):
            await self._abandon(hand)
        if self._errors:
            error = to_raise(BaseExceptionGroup("calls", self._errors), self._errors)
            raise error from error.__cause__

    async def _forget_unbegun(self) -> None:
        """Wait for none whose task will never begin: asyncio, when its loop is stopped, cancels tasks before they do."""
        if all(hand.begun for hand in self._hands.values()):
            return
        for _ in range(2):  # after one round all have begun that will
            await cancel_shielded_checkpoint()
        for event_id in [event_id for event_id, hand in self._hands.items() if not hand.begun]:
            self._core.forget_call(event_id)
            del self._hands[event_id]

    async def _run(self, hand: _Hand) -> None:
        hand.begun = True
        try:
            with hand.scope:
                await _run_call(self._core, hand, self._room)
        except get_cancelled_exc_class():
            raise  # of whoever hosts the conversation
        except BaseException as error:
            if hand.abandoned and not isinstance(error, Exception):
                raise
            self._errors.append(error)
        finally:
            event = hand.call.event
            hand.place.leave()
            self._core.forget_call(event.id)
            self._hands.pop(event.id, None)
            if self._turn is not None:
                self._turn.calls.discard(hand.scope)
            if self._errors or not self._hands:
                self.settled.set()
            if hand.abandoned:
                _log.info("tool that was left behind has ended", tool=event.tool_name, action=event.id)

    async def _abandon(self, hand: _Hand) -> None:
        core, event = self._core, hand.call.event
        hand.abandoned = True
        _log.warning(
            "tool does not stop: it is left behind, and leaving the context of the conversation waits for it",
            tool=event.tool_name,
            action=event.id,
            seconds=_STOP_SECONDS,
        )
        if event.id in core.state.open_actions and core.failure is None:
            why = f"the turn was stopped, but {event.tool_name!r} did not stop within {_STOP_SECONDS:g} s and may still be running"
            await core.journal.keep(interrupted(event, why, hand.call, "abandoned"))


async def _run_call(core: Core, hand: _Hand, room: AbstractAsyncContextManager[None]) -> None:
    call, event, seconds = hand.call, hand.call.event, core.state.limits.call_seconds
    scope = core.scope_of(event.id)
    try:
        with scope:
            await hand.place.turn()
            async with room:
                await checkpoint_if_cancelled()
                if not hand.started:
                    if (refused := cannot_run(core, call)) is not None:
                        await core.journal.keep(refused)
                        return
                    await core.journal.write(ActionStarted(cause=event.id))
                if seconds is not None:
                    scope.deadline = anyio.current_time() + seconds
                answer = await _answer(core, call)
                if not hand.abandoned:
                    # What a tool did is kept even if it was stopped just then.
                    await core.journal.keep(answer)
        if scope.cancelled_caught and not hand.abandoned:
            late = seconds is not None and anyio.current_time() >= scope.deadline
            why = f"it took longer than {seconds:g} s" if late else "it was cancelled"
            await core.journal.keep(interrupted(event, why, call, "call_seconds" if late else "cancelled"))
    except get_cancelled_exc_class():
        open_action = core.state.open_actions.get(event.id)
        if open_action is not None and open_action.started and core.failure is None:
            await core.journal.keep(  # noqa: ASYNC102 a write can't be cancelled, and the store bounds it
                interrupted(event, "the turn was stopped", call, "interrupted")
            )
        raise


def interrupted(event: ActionEvent, why: str, call: Call | None, code: str) -> AgentErrorEvent:
    """Make the answer of a call that was stopped before its end."""
    text = f"Interrupted: {why}. What it had done by then stays done."
    if call is not None and _runs_in_thread(call.tool):
        text += " It runs in a thread, which can't be stopped: it may still be running."
    return AgentErrorEvent(
        cause=event.id, tool_name=event.tool_name, call_id=event.call_id, error=text, outcome="interrupted", code=code
    )


async def _answer(core: Core, call: Call) -> ObservationEvent | AgentErrorEvent:
    event = call.event
    host = CallHost(core, event)
    context = make_context(core, event, host)
    try:
        execute = await core.tool_sessions.executor(call.tool)
        if isinstance(execute, NotRun):
            return not_run(event, execute.text, execute.code)
        observation = await execute(call.action, context)
        return await observe(core, call, observation)
    except get_cancelled_exc_class() as error:  # noqa: ASYNC103 only a cancellation of a scope is raised again
        context.request_cancel()
        if await is_cancelled():  # noqa: ASYNC102 asking does not wait
            raise
        return _failed(core, event, cancelled_itself("It", error))  # noqa: ASYNC104 it was no cancellation of a scope
    except BaseException as error:
        if all(isinstance(leaf, Exception | SystemExit) for leaf in leaves_of(error)):  # one, or a group of such
            if core.failure is not None:
                raise core.failure from None  # nothing can be answered any more
            return _failed(core, event, bare(error))
        context.request_cancel()
        raise
    finally:
        host.finish()


def _failed(core: Core, event: ActionEvent, error: BaseException) -> AgentErrorEvent:
    _log.debug("tool raised", tool=event.tool_name, action=event.id, error=masked_repr(core.secrets, error))
    text = text_of(error) if isinstance(error, AgentcoreError) else describe(error)
    return AgentErrorEvent(
        cause=event.id,
        tool_name=event.tool_name,
        call_id=event.call_id,
        error=cut(text, OUTPUT_LIMIT, None),
        code=type(error).__name__,
    )


def make_context(core: Core, event: ActionEvent, host: CallHost) -> ToolContext:
    """Make what an executor is handed."""
    return ToolContext(
        workspace=core.workspace,
        secrets=core.secrets,
        conversation_id=core.state.conversation_id,
        action_id=event.id,
        call_id=event.call_id,
        tool_name=event.tool_name,
        host=host,
        resumed=event.tool_name in core.ran_before,
    )


async def observe(core: Core, call: Call, observation: Observation | object) -> ObservationEvent:
    if not isinstance(observation, Observation):
        raise TypeError(f"what runs it gave {type(observation).__name__} instead of an Observation")
    event = call.event
    content: list[ResultBlock] = []
    open_action = core.state.open_actions.get(event.id)
    if open_action is not None and open_action.approval is not None and open_action.approval.arguments is not None:
        content.append(TextBlock(text=f"The user changed the arguments before it ran, to: {open_action.arguments}"))
    for number, piece in enumerate(observation.to_content()):
        block = TextBlock(text=piece) if isinstance(piece, str) else piece
        if isinstance(block, TextBlock) and len(block.text) > OUTPUT_LIMIT:
            whole_at = await spool_if_room(core, f"{event.id}-{number}.txt", block.text.encode(errors="replace"))
            block = TextBlock(text=cut(core.secrets.masker.mask_text(block.text), OUTPUT_LIMIT, whole_at))
        content.append(block)
    data: dict[str, Any] = observation.to_data()
    if call.tool.finishes:
        data["finished"] = True
        core.output = getattr(call.action, "result", None) if core.agent.output is not None else None
    return ObservationEvent(
        cause=event.id,
        tool_name=event.tool_name,
        call_id=event.call_id,
        content=tuple(content),
        data=data,
        is_error=observation.is_error,
    )


def _runs_in_thread(tool: AnyTool) -> bool:
    return isinstance(tool, FunctionTool) and not inspect.iscoroutinefunction(tool.function)
