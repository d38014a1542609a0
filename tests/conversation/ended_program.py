"""A program that something in a conversation ends: run as `ended_program.py KIND BACKEND [KIND BACKEND ...]`.

The last one ends the process; how those before it ended is printed.
"""

from __future__ import annotations

import sys

import anyio

from agentcore import Agent, Conversation
from agentcore.events import ActionEvent, ActionStarted
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, say
from agentcore.tools import tool


@tool
async def interrupt() -> str:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


@tool
def interrupt_in_thread() -> str:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


@tool
async def child_exits() -> str:
    """End the process from a task of its own."""

    async def child() -> None:
        sys.exit(6)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child)
    return "never"


@tool
async def hold() -> str:
    """Let nobody cancel it."""
    print("held", flush=True)
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()
    return "never"


TOOLS = {one.name: one for one in (interrupt, interrupt_in_thread, child_exits, hold)}


async def ask(event: ActionEvent) -> bool:
    sys.exit(6)


async def think(request: Request) -> ScriptLine:
    sys.exit(6)


async def exit_when_started(conversation: Conversation) -> None:
    async for event in conversation.events():
        if isinstance(event, ActionStarted):
            sys.exit(6)


async def main(kind: str) -> None:
    script = [think] if kind == "think" else [call(kind if kind in TOOLS else "hold"), say("done")]
    agent = Agent(llm=ScriptedLLM(script), tools=tuple(TOOLS.values()))
    async with Conversation(agent, confirm=ask if kind == "ask" else None) as conversation:
        if kind == "body":
            sys.exit(6)
        async with anyio.create_task_group() as tasks:
            if kind == "task":
                tasks.start_soon(leave)
            if kind == "watch":
                tasks.start_soon(exit_when_started, conversation)
            tasks.start_soon(tell_when_cancelled)
            await conversation.run("go")


async def tell_when_cancelled() -> None:
    try:
        await anyio.sleep_forever()
    finally:
        print("asked", flush=True)


async def leave() -> None:
    sys.exit(6)


if __name__ == "__main__":
    *others, (last, on) = zip(sys.argv[1::2], sys.argv[2::2], strict=True)
    for each, backend in others:
        try:
            anyio.run(main, each, backend=backend)
        except BaseException as error:  # noqa: ASYNC103 after the event loop
            print(f"ended {each} {backend}: {error!r}", flush=True)
    anyio.run(main, last, backend=on)
