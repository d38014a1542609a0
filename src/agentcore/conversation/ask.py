"""Side questions: the model answers from what it knows of the conversation, and the history keeps no trace."""

from __future__ import annotations

from collections.abc import Sequence

from agentcore.conversation.core import Core
from agentcore.conversation.turn import used_up
from agentcore.errors import LimitReached
from agentcore.events import UsageEvent
from agentcore.llm import CallContext, Model, Reply
from agentcore.llm.keys import masking_errors
from agentcore.messages import Message


async def ask_aside(core: Core, question: str) -> str:
    """Ask the model from what it knows of the conversation; the history keeps no trace, the usage counts.

    Raises:
        LimitReached: A budget is used up.
        ModelError: There is no reply.
    """
    return await core.jobs.do(lambda: _ask(core, question), name="ask", finish=False)


async def _ask(core: Core, question: str) -> str:
    core.view.update(core.state)
    words = f"{question}\n\n(A side question: answer it in words from what you know now, without calling a tool.)"
    reply = await ask_metered(core, [*core.view.messages, Message.user(core.secrets.mask(words))], purpose="ask")
    return core.secrets.masker.mask_text(reply.message.text)


async def ask_metered(core: Core, messages: Sequence[Message], *, purpose: str, llm: Model | None = None) -> Reply:
    """Ask a model once, beside the steps, and record what it used.

    Args:
        core: The conversation, whose budgets hold.
        messages: The request; with the tools of a step, because they are part of the prefix that providers cache.
        purpose: The purpose of the call: `UsageEvent.purpose`.
        llm: The model; None is the agent's.

    Raises:
        LimitReached: A budget is used up.
        ModelError: There is no reply.
    """
    if (over := used_up(core.state, core.state.limits)) is not None:
        raise LimitReached(*over)
    prompt = core.state.prompt
    began = core.clock()
    with masking_errors(core.secrets.mask):
        reply = await (llm or core.agent.llm).complete(
            messages,
            () if prompt is None else prompt.tools,
            context=CallContext(
                conversation_id=core.state.conversation_id, prompt_cache_key=core.state.conversation_id
            ),
        )
    await core.journal.write_shielded(
        UsageEvent(
            purpose=purpose,
            model=reply.model,
            usage=reply.usage,
            stop_reason=reply.stop_reason,
            seconds=round(core.clock() - began, 6),
        )
    )
    return reply
