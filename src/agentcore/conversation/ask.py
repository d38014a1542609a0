"""Side questions: the model answers from what it knows of the conversation, and the history keeps no trace."""

from __future__ import annotations

from agentcore.conversation.core import Core
from agentcore.conversation.turn import used_up
from agentcore.errors import LimitReached
from agentcore.events import UsageEvent
from agentcore.llm import CallContext
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
    if (over := used_up(core.state, core.state.limits)) is not None:
        raise LimitReached(*over)
    core.view.update(core.state)
    prompt = core.state.prompt
    words = f"{question}\n\n(A side question: answer it in words from what you know now, without calling a tool.)"
    began = core.clock()
    with masking_errors(core.secrets.mask):
        reply = await core.agent.llm.complete(
            [*core.view.messages, Message.user(core.secrets.mask(words))],
            # The same tools as in a step: they are part of the prefix that providers cache.
            () if prompt is None else prompt.tools,
            context=CallContext(
                conversation_id=core.state.conversation_id, prompt_cache_key=core.state.conversation_id
            ),
        )
    await core.journal.write_shielded(
        UsageEvent(
            purpose="ask",
            model=reply.model,
            usage=reply.usage,
            stop_reason=reply.stop_reason,
            seconds=round(core.clock() - began, 6),
        )
    )
    return core.secrets.masker.mask_text(reply.message.text)
