"""A conversation to be killed while its agent is switched: run as a process with a folder, it switches without end.

Each agent allows one call more at once than the one before. What is printed is acknowledged: the number of the agent.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

from agentcore import Agent, Conversation, FileStore, Limits
from agentcore.testing import ScriptedLLM, call
from agentcore.tools import tool


@tool(resources=())
async def work() -> str:
    """Work a little."""
    await checkpoint()
    return "worked"


def numbered(number: int) -> Agent:
    """Make the agent of a number."""
    llm = ScriptedLLM(lambda _: call("work"), record=False)
    return Agent(llm=llm, tools=[work], stuck=None, max_parallel_calls=number, instructions=f"You are {number}.")


async def main(folder: str) -> None:
    store = FileStore(Path(folder) / "logs")
    limits = Limits(steps=None)
    async with Conversation(numbered(1), folder, store=store, id="victim", limits=limits) as conversation:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conversation.run, "go")
            number = 1
            while True:
                number += 1
                await conversation.set_agent(numbered(number))
                os.write(1, f"{number}\n".encode())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
