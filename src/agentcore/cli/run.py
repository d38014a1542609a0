"""`agentcore run`: a new conversation, and its task."""

from __future__ import annotations

import sys

from anyio.to_thread import run_sync

from agentcore.cli.bounds import Dollars, Steps
from agentcore.cli.failures import UsageError
from agentcore.cli.home import is_there, open_store
from agentcore.cli.models import agent_for, check_model
from agentcore.cli.settings import Confirm, Settings
from agentcore.cli.work import Job, work
from agentcore.errors import ConversationExists
from agentcore.ids import check_conversation_id, new_conversation_id
from agentcore.record import Store
from agentcore.security import AlwaysConfirm, ConfirmationPolicy, ConfirmRisky, NeverConfirm
from agentcore.usage import Limits

__all__ = ["policy_of", "read_message", "run_task", "with_limits"]


async def run_task(
    task: str,
    settings: Settings,
    *,
    workspace: str,
    max_cost: Dollars | None,
    max_steps: Steps | None,
    retries: int | None,
    conversation_id: str | None,
    json: bool,
    verbose: bool,
) -> int:
    """Begin a conversation with a task, and give the exit code."""
    agent = agent_for(settings, retries=retries)
    limits = with_limits(Limits(), max_cost, max_steps)
    await check_model(agent.llm, limits or Limits())
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
            limits=limits,
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


def with_limits(limits: Limits, max_cost: Dollars | None, max_steps: Steps | None) -> Limits | None:
    """Give the limits with those that flags name; None where no flag does."""
    named: dict[str, object] = {}
    if max_cost is not None:
        named["cost"] = max_cost.amount
    if max_steps is not None:
        named["steps"] = max_steps.number
    return limits.model_copy(update=named) if named else None


async def _refuse_known(store: Store, conversation_id: str) -> None:
    try:
        check_conversation_id(conversation_id)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if await is_there(store, conversation_id):
        raise ConversationExists(conversation_id, store.location)
