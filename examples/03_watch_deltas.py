"""Watch the deltas: show a reply, and the progress of a tool, while they are written.

Run it: python examples/03_watch_deltas.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- deltas are for showing, and are not kept: what counts is the event that follows;
- `reset` voids what was shown of a reply, and `gap` says that this reader was too slow;
- the loop ends when the conversation closes.
"""

from __future__ import annotations

import anyio

from agentcore import Agent, Conversation, ToolContext, tool
from agentcore.testing import ScriptedLLM, call, say


@tool
async def build(ctx: ToolContext) -> str:
    """Build the project."""
    for part in ("parser", "linker"):
        await ctx.progress(f"compiling the {part}")
    return "built"


async def show(conversation: Conversation) -> None:
    async for delta in conversation.deltas():
        match delta.type:
            case "text":
                print(delta.text, end="", flush=True)
            case "tool_call":
                if delta.tool_name is not None:  # the first piece names the tool, the others are its arguments
                    print(f"[{delta.tool_name}]")
            case "progress":
                print(f"  {delta.text}")
            case "reset":
                print("\n(starting over)")
            case "gap":
                print(f"\n({delta.lost} pieces were skipped)")
            case "reasoning":
                pass


async def main() -> None:
    agent = Agent(llm=ScriptedLLM([call("build"), say("The project is built.")]), tools=[build])
    async with anyio.create_task_group() as tasks, Conversation(agent) as conversation:
        tasks.start_soon(show, conversation)
        await conversation.run("Build it.")
    print()


anyio.run(main)
