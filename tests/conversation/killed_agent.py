"""Conversations to be killed: run as a process with their folders, they work without end and print what is in the log for certain.

Each effect is a line in `effects.txt` that names its action. Every fifth action waits for a yes, which this process gives; every
seventh time it does not, and the conversation waits to be killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

from agentcore import ActionEvent, Agent, Conversation, ConversationStatus, FileStore, Limits, ToolContext
from agentcore.testing import Request, ScriptedLLM, ScriptedReply, call, calls
from agentcore.tools import tool

# Where pytest looks for what several tests share; this is a program of its own.
sys.path.append(str(Path(__file__).parents[1]))

from live_toolset import Service


class EveryFifth:
    """Asks about some actions."""

    def needs_confirmation(self, action: ActionEvent) -> bool:
        return int(str(action.arguments["n"])) % 5 == 0


@tool
async def effect(n: int, ctx: ToolContext) -> str:
    """Have an effect that must not come twice."""

    def write() -> None:
        descriptor = os.open(Path(ctx.workspace.root) / "effects.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{ctx.action_id}\n".encode())
        finally:
            os.close(descriptor)

    await anyio.to_thread.run_sync(write)
    return str(n)


async def work(number: int, folder: Path) -> None:
    step = 0

    def reply(request: Request) -> ScriptedReply:
        nonlocal step
        step += 1
        if step % 3 == 0:
            return calls(call("effect", n=step * 100 + 1), call("effect", n=step * 100 + 2))
        return call("effect", n=step)

    # The same tool, its own or a toolset's.
    given = Service("effects", effect) if number % 2 else effect
    agent = Agent(llm=ScriptedLLM(reply, record=False), tools=[given], stuck=None)
    store = FileStore(folder / "logs")
    limits = Limits(steps=None)
    async with Conversation(
        agent, folder, store=store, id="victim", limits=limits, confirm=EveryFifth()
    ) as conversation:
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                async for event in conversation.events():
                    # What a watcher sees is in the log; one write, so that no half of a line is ever read.
                    os.write(1, f"{number} {event.seq} {event.id}\n".encode())

            tasks.start_soon(watch)
            await conversation.send("go")
            waits = 0
            while True:
                result = await conversation.run()
                if result.status is ConversationStatus.WAITING_FOR_CONFIRMATION:
                    waits += 1
                    if waits % 7 == 0:
                        os.write(1, f"{number} waits\n".encode())
                        await anyio.sleep_forever()
                    await conversation.approve()


async def main(*folders: str) -> None:
    async with anyio.create_task_group() as tasks:
        for number, folder in enumerate(folders):
            tasks.start_soon(work, number, Path(folder))


anyio.run(main, *sys.argv[1:])
