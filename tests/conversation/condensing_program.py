"""A conversation to be killed while its history is made shorter: run as a process with a folder, it works without end.

What is printed is acknowledged: the id of each event, and "asked" where the model writes a summary.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

from agentcore import Agent, Conversation, FileStore, Limits, Summary
from agentcore.llm import Features
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, say
from agentcore.tools import tool


@tool(resources=())
async def read(number: int) -> str:
    """Return many words."""
    return f"line {number} " * 400


def numbered() -> ScriptedLLM:
    """Make a model that reads without end, and writes a summary where it is asked for one."""
    number = 0

    def reply(request: Request) -> ScriptLine:
        nonlocal number
        if request.messages[-1].text.startswith("(This is not from the user."):
            os.write(1, b"asked\n")
            return say("## Done\nRead some.")
        number += 1
        return call("read", number=number)

    return ScriptedLLM(reply, record=False, features=Features(context_window=8_000, max_output_tokens=1_000))


async def main(folder: str) -> None:
    agent = Agent(llm=numbered(), tools=[read], stuck=None, condenser=Summary())
    store, limits = FileStore(Path(folder) / "logs"), Limits(steps=None)
    async with (
        Conversation(agent, folder, store=store, id="victim", limits=limits) as conversation,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(conversation.run, "the task")
        async for event in conversation.events():
            os.write(1, f"{event.id}\n".encode())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
