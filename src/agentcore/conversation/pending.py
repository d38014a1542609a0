"""Actions that a person decides on: who is asked, and what runs once they said yes."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Final, TypeVar

from pydantic import JsonValue

from agentcore import commands
from agentcore._threads import Threads
from agentcore.agent import Call
from agentcore.assessment import SecurityRisk
from agentcore.conversation.answering import answer_by_callback
from agentcore.conversation.calls import not_resumed, not_run
from agentcore.conversation.core import Core
from agentcore.conversation.decide import ANSWER_INSTEAD
from agentcore.conversation.exceptions import open_group
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.journal import Attachment
from agentcore.conversation.questions import NO_ANSWER, OnQuestion
from agentcore.conversation.stepping import status_event
from agentcore.conversation.tools import NotRun
from agentcore.conversation.turn import Turn
from agentcore.errors import NothingPending, SecretError
from agentcore.events import ActionEvent, AgentErrorEvent, ConversationStatus, QuestionAnswered, QuestionAsked
from agentcore.messages import ToolSchema
from agentcore.record import ASKING, ConversationState, OpenAction
from agentcore.secrets import unmask
from agentcore.security import Confirm, Reject, rated, read_answer
from agentcore.tools import Resumption, ToolContext, raw_tool, read_call

_Json = TypeVar("_Json")

_CONFIRMING: Final = Threads("confirming", math.inf)
"""Each waits for a person, so that a bound would have one conversation wait for the person of another."""


async def approved_calls(core: Core) -> list[Call]:
    """Return the open actions that may run now: approved ones, those whose question has ended, and read-only ones that a crash cut off.

    Those that turn out to be impossible are answered here.
    """
    ready = [
        action
        for action in core.state.open_actions.values()
        if action.runs_next or (action.started and action.event.id in core.calls.to_retry)
    ]
    if not all(core.tool_sessions.owns(action.event.tool_name) for action in ready):
        await core.tool_sessions.compose(core.state.prompt)  # after a restart nothing is open yet
    calls: list[Call] = []
    for action in ready:
        found = await prepare(core, action)
        if isinstance(found, Call):
            calls.append(found)
        else:
            core.calls.to_retry.discard(action.event.id)
            core.calls.forget(action.event.id)
            await core.journal.write(found)
    return calls


async def prepare(core: Core, action: OpenAction, *, as_recorded: bool = True) -> Call | AgentErrorEvent:
    """Make a call of an open action again, or the answer that says why that can't be done.

    With `as_recorded` the tool has to have the schema that the model saw, as running the call demands.
    """
    event = action.event
    refuse = not_run if action.resumption is None else not_resumed
    try:
        arguments = core.calls.arguments_of(event.id)
        if arguments is None:
            arguments = await _restore(core, action.arguments, action.typed_masks)
        resumption = None if action.resumption is None else await _read_resumption(core, *action.resumption)
    except SecretError as error:
        return refuse(event, f"It needs a secret that is not there. {error}", "secret_missing")
    digest = _recorded_digest(core, event) if as_recorded else None
    tool = core.tool_sessions.resolve(event.tool_name, digest)
    if isinstance(tool, NotRun):
        return refuse(event, tool.text, tool.code)
    await core.tool_sessions.prepare_checks((tool,))
    read = read_call(event.tool_name, dict(arguments), (tool,), mask=core.secrets.masker.mask_text)
    if read.tool is None or read.action is None:
        return refuse(event, read.problem or "The call could not be read.", read.code or "bad_arguments")
    return Call(event, read.tool, read.action, resumption)


async def _restore(core: Core, value: _Json, typed_masks: Sequence[str]) -> _Json:
    """Return what the log has masked with the values of secrets in it.

    Raises:
        SecretError: One of them is not there.
    """
    return await unmask(value, core.secrets.get, names=core.state.secret_names, typed_masks=typed_masks)


async def _read_resumption(core: Core, asked: QuestionAsked, ended: QuestionAnswered) -> Resumption:
    """Return what a call is resumed with, of its question and the end of that.

    Raises:
        SecretError: A secret in it is not there.
    """
    note = await _restore(core, asked.note, asked.typed_masks)
    if ended.outcome != "answered":
        return Resumption(note=note, declined=ended.reason or NO_ANSWER)
    return Resumption(note=note, answer=await _restore(core, ended.answer, ended.typed_masks))


def select_pending(
    state: ConversationState, ids: Sequence[str] | str | None, *, questions: bool
) -> tuple[tuple[str, ...], bool]:
    """Return the ids of the actions that a decision is about, and whether they are all that wait; questions too, or not."""
    if ids is None:
        waiting = tuple(
            event.id for event in state.pending if questions or state.open_actions[event.id].question is None
        )
        if not waiting:
            raise NothingPending([], (), hint=ANSWER_INSTEAD if state.pending else "")
        return waiting, True
    return ((ids,) if isinstance(ids, str) else tuple(dict.fromkeys(ids))), False


async def validate_arguments(
    core: Core, selected: Sequence[str], edited: dict[str, JsonValue]
) -> Mapping[str, JsonValue] | None:
    """Return the edited arguments of one action as they are to be run, checked against its tool."""
    if len(selected) != 1:
        raise ValueError(f"Arguments can be changed for one action at a time; {len(selected)} are being approved.")
    plain = await restore_edited(core, selected[0], edited)
    action = core.state.open_actions.get(selected[0])
    if action is not None:
        await check_edited(core, action.event, edited if plain is None else plain)
    return plain


async def restore_edited(core: Core, action_id: str, edited: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Return a person's arguments with values where they say the masks of secrets: it is masks that people are shown.

    What the model itself wrote like a mask stays as it is. None where a value is not there: the call is answered with that, as one with unchanged arguments is.
    """
    try:
        action = core.state.open_actions.get(action_id)
        typed = () if action is None else action.typed_masks
        return await unmask(edited, core.secrets.get, names=core.state.secret_names, typed_masks=typed)
    except SecretError:
        return None


async def check_edited(core: Core, event: ActionEvent, arguments: dict[str, JsonValue]) -> None:
    """Check the arguments that a person gave a waiting action, against the schema that the model saw.

    Raises:
        ToolArgumentsError: They do not fit.
    """
    tool = core.tool_sessions.resolve(event.tool_name, _recorded_digest(core, event))
    if isinstance(tool, NotRun):
        # It may be a toolset's that is not open, as after a restart: what the log has of it does.
        schema = _recorded_schema(core, event.tool_name)
        if schema is None:
            return
        tool = raw_tool(schema.name, schema.description, schema.parameters, _never)
    await core.tool_sessions.prepare_checks((tool,))
    tool.parse(arguments, mask=core.secrets.mask)


async def _never(arguments: dict[str, JsonValue], ctx: ToolContext) -> None:  # noqa: ARG001 every executor is given them
    raise AssertionError("it is made to check arguments")


def _recorded_schema(core: Core, name: str) -> ToolSchema | None:
    """Return the schema of a tool that the model saw when it made the waiting calls: the next request comes after their answers."""
    prompt = core.state.prompt
    return None if prompt is None else next((schema for schema in prompt.tools if schema.name == name), None)


def _recorded_digest(core: Core, event: ActionEvent) -> str | None:
    if event.tool_digest is not None:
        return event.tool_digest
    schema = _recorded_schema(core, event.tool_name)
    return None if schema is None else schema.digest


async def ask_for_approval(core: Core, turn: Turn) -> bool:
    """Ask the program's callbacks about each waiting action; return whether there is one to ask about any of them.

    While they are asked the conversation waits for confirmation, as it would without them, and the clock stands. What
    they answer is decided on like any other approval or answer.
    """
    timer, confirm = turn.timer, core.confirm  # a new policy, while one is asked, ends no question that was begun
    if timer is None or all(_callback_for(core, confirm, event) is None for event in core.state.pending):
        return False
    await core.journal.write(status_event(ConversationStatus.WAITING_FOR_CONFIRMATION, ASKING))
    timer.pause()
    try:
        for event in core.state.pending:
            # Not where it was decided on elsewhere while another one was asked about.
            if _is_asked(core, turn, event) and (ask := _callback_for(core, confirm, event)) is not None:
                decision = await _ask(core, ask, event, turn)
                # An answer after a pause comes too late: the action waits for the next one.
                if decision is not None and not turn.settled:
                    with suppress(NothingPending):  # another answer came first
                        await core.journal.receipt_of(core.journal.hand_over(*decision))
    finally:
        timer.resume()
    await core.journal.write(
        status_event(ConversationStatus.RUNNING, "approved"), condition=lambda state: state.is_asking
    )
    return True


_Decision = tuple[commands.Command, Attachment]


def _callback_for(core: Core, confirm: Confirm | None, event: ActionEvent) -> Callable[[], Awaitable[_Decision]] | None:
    """Return what asks the program about an action; None where it has no callback for it."""
    action = core.state.open_actions.get(event.id)
    question = None if action is None else action.question
    on_question = core.on_question
    if question is not None:
        return None if on_question is None else partial(_ask_question, core, on_question, question)
    return None if confirm is None else partial(_confirm, core, confirm, event)


async def _ask_question(core: Core, on_question: OnQuestion, question: QuestionAsked) -> _Decision:
    return await answer_by_callback(core, on_question, question), Attachment()


async def _confirm(core: Core, confirm: Confirm, event: ActionEvent) -> _Decision:
    risk = action.risk if (action := core.state.open_actions.get(event.id)) is not None else SecurityRisk.UNKNOWN
    with mark_running_in(core.state.conversation_id):
        answer = read_answer(await _CONFIRMING.call(confirm, rated(event, risk)), event)
    if isinstance(answer, Reject):
        return commands.Reject(ids=(event.id,), reason=answer.reason, by=answer.by), Attachment()
    edited = deepcopy(answer.arguments)
    plain = None if edited is None else await restore_edited(core, event.id, edited)
    return commands.Approve(ids=(event.id,), by=answer.by, arguments=edited), Attachment(arguments=plain)


async def _ask(core: Core, ask: Callable[[], Awaitable[_Decision]], event: ActionEvent, turn: Turn) -> _Decision | None:
    """Ask about one action; None where another answer or a pause comes first."""
    decision: _Decision | None = None
    async with open_group() as tasks:

        async def withdraw() -> None:
            while _is_asked(core, turn, event):
                await core.head_signal.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(withdraw)
        decision = await ask()
        tasks.cancel_scope.cancel()
    return decision


def _is_asked(core: Core, turn: Turn, event: ActionEvent) -> bool:
    """Return whether the callback is to be asked about an action: it waits, and the turn has not settled by a pause."""
    action = core.state.open_actions.get(event.id)
    return action is not None and action.waits and not turn.settled
