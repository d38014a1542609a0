"""`agentcore resume`: going on where a conversation was left, by whatever it was left."""

from __future__ import annotations

import anyio

from agentcore.cli.amounts import count
from agentcore.cli.bounds import Dollars, Steps
from agentcore.cli.console import DIM, make_console, say, say_words
from agentcore.cli.failures import UsageError
from agentcore.cli.home import find_conversation, folder_of, open_store
from agentcore.cli.json_lines import JsonLines
from agentcore.cli.models import agent_of, changes_of_environment, check_model
from agentcore.cli.run import policy_of, read_message, with_limits
from agentcore.cli.settings import Confirm, Settings
from agentcore.cli.work import Job, work
from agentcore.conversation import RunResult
from agentcore.events import ConversationStatus
from agentcore.record import ConversationState, read_log
from agentcore.security import Approve, Reject

__all__ = ["resume_conversation"]


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
    max_cost: Dollars | None,
    max_steps: Steps | None,
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
    limits = with_limits(state.limits, max_cost, max_steps)
    await check_model(agent.llm, limits or state.limits)
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
            limits=limits,
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
