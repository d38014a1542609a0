"""`agentcore run`: a new conversation, and its task."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import anyio
from anyio.to_thread import run_sync

from agentcore.cli.console import DIM, JsonLines, make_console, say, say_words
from agentcore.cli.conversations import find_conversation, folder_of, is_there, open_store
from agentcore.cli.failures import UsageError
from agentcore.cli.models import agent_for, agent_of, changes_of_environment, check_model
from agentcore.cli.runner import Job, work
from agentcore.cli.settings import Confirm, Settings
from agentcore.cli.text import count
from agentcore.conversation import RunResult
from agentcore.errors import ConversationExists
from agentcore.events import ConversationStatus
from agentcore.ids import check_conversation_id, new_conversation_id
from agentcore.record import ConversationState, Store, read_log
from agentcore.security import AlwaysConfirm, Approve, ConfirmationPolicy, ConfirmRisky, NeverConfirm, Reject
from agentcore.usage import Limits


async def run_task(
    task: str,
    settings: Settings,
    *,
    workspace: str,
    limits: Mapping[str, object],
    retries: int | None,
    conversation_id: str | None,
    json: bool,
    verbose: bool,
) -> int:
    """Begin a conversation with a task, and give the exit code."""
    agent = agent_for(settings, retries=retries)
    changed_limits = Limits().model_copy(update=limits) if limits else None
    await check_model(agent.llm, changed_limits or Limits())
    store = open_store(settings)
    if conversation_id is not None:
        await _refuse_known(store, conversation_id)
    conversation_id = conversation_id or new_conversation_id()
    return await work(
        Job(
            agent=agent,
            workspace=workspace,
            store=store,
            settings=settings,
            id=conversation_id,
            heading=agent.llm.name,
            message=await read_message(task),
            confirm=None if settings.confirm is None else policy_of(settings.confirm),
            limits=changed_limits,
            json=json,
            verbose=verbose,
        )
    )


async def read_message(words: str) -> str:
    """Give a person's words; "-" stands for what comes on standard input.

    Raises:
        UsageError: There are none.
    """
    if words == "-":
        words = await run_sync(sys.stdin.read, abandon_on_cancel=True)
    if not words.strip():
        raise UsageError("Nothing was said: the words are empty.")
    return words


def policy_of(confirm: Confirm) -> ConfirmationPolicy:
    """Give the policy of this name."""
    match confirm:
        case "never":
            return NeverConfirm()
        case "always":
            return AlwaysConfirm()
        case "risky":
            return ConfirmRisky()


async def _refuse_known(store: Store, conversation_id: str) -> None:
    try:
        check_conversation_id(conversation_id)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if await is_there(store, conversation_id):
        raise ConversationExists(conversation_id, store.location)


async def resume_conversation(
    given: str | None,
    message: str | None,
    settings: Settings,
    *,
    workspace: str | None,
    model: str | None,
    base_url: str | None,
    confirm: Confirm | None,
    approve: bool,
    reject: str | None,
    limits: Mapping[str, object],
    retries: int | None,
    json: bool,
    verbose: bool,
) -> int:
    """Go on with a conversation, and give the exit code."""
    if given is not None and message is None and " " in given.strip():
        given, message = None, given  # no id has a space: these are words for the newest one
    store = open_store(settings)
    conversation_id = await find_conversation(store, settings, given, or_words=message is None)
    state = await read_log(store, conversation_id)
    words = None if message is None else await read_message(message)
    if words is None and not state.last_user_seq:
        raise UsageError(
            f"Nothing was said in {conversation_id!r} yet. "
            f"Say what to do: {settings.command(f'resume {conversation_id}')} 'your task'"
        )
    where = workspace or folder_of(state)
    if where is None:
        raise UsageError(f"The log of {conversation_id!r} does not say where it worked. Name the folder: --workspace")
    if workspace is None and not await anyio.Path(where).is_dir():
        elsewhere = settings.command(f"resume {conversation_id} --workspace")
        raise UsageError(
            f"There is nothing at {where!r}, where it worked. Name the folder to go on in: {elsewhere} FOLDER"
        )
    if (approve or reject is not None) and not state.pending:
        raise UsageError(f"In {conversation_id!r} nothing waits for your yes or no.")
    decision: Approve | Reject | None = None
    if approve:
        decision = Approve(by=settings.person)
    elif reject is not None:
        decision = Reject(reject, by=settings.person)
    console = make_console(stderr=json)
    standing = f"{conversation_id}: {_standing(state)}, in {where}"
    if state.status is ConversationStatus.FINISHED and words is None:
        say(console, standing, DIM)
        say_words(console, f"\n{state.answer or ''}\n")
        say(
            console,
            f"It is finished. To go on, say what to do next: {settings.command(f'resume {conversation_id}')} '...'",
        )
        if json:
            result = RunResult(status=state.status, text=state.answer, first_seq=state.run.seq, last_seq=state.head)
            JsonLines().result(conversation_id, result, 0)
        return 0
    agent = agent_of(state, settings, model=model, base_url=base_url, retries=retries)
    changed_limits = state.limits.model_copy(update=limits) if limits else None
    await check_model(agent.llm, changed_limits or state.limits)
    changes = changes_of_environment(state, agent, model=model, base_url=base_url)
    return await work(
        Job(
            agent=agent,
            workspace=where,
            store=store,
            settings=settings,
            id=conversation_id,
            before=state,
            standing=standing if changes is None else f"{standing}\n{changes}",
            message=words,
            confirm=None if confirm is None else policy_of(confirm),
            limits=changed_limits,
            decision=decision,
            json=json,
            verbose=verbose,
        )
    )


def _standing(state: ConversationState) -> str:
    if state.status is ConversationStatus.RUNNING:
        # Said when it is open: whoever ran it is gone.
        return f"cut off after {count(state.head, 'event')}"
    return f"{str(state.status).replace('_', ' ')} after {count(state.head, 'event')}"
