"""A conversation with a question that several processes work on: run with a folder and with what to do.

`ask` runs until the question waits, and `answer` answers it; both print what they did and wait to be killed. `go on` finishes.
Each effect is a line in `effects.txt`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

from agentcore import Agent, Conversation, FileStore, ToolContext, ask_user
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, calls, say
from agentcore.tools import tool


@tool(resources=())
async def effect(name: str, ctx: ToolContext) -> str:
    """Have an effect that must not come twice."""

    def write() -> None:
        descriptor = os.open(Path(ctx.workspace.root) / "effects.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{name}\n".encode())
        finally:
            os.close(descriptor)

    await anyio.to_thread.run_sync(write)
    return name


def reply(request: Request) -> ScriptLine:
    question = call("ask_user", text="Which port?", answer_schema={"type": "integer"})
    script = (calls(call("effect", name="before"), question), call("effect", name="after"), say("done"))
    return script[min(sum(message.role == "tool" for message in request.messages), 2)]


async def main(folder: str, what: str) -> None:
    agent = Agent(llm=ScriptedLLM(reply), tools=[effect, ask_user])
    async with Conversation(agent, folder, store=FileStore(Path(folder) / "logs"), id="victim") as conversation:
        if what == "go on":
            os.write(1, f"{(await conversation.run('go on')).text}\n".encode())
            return
        result = await conversation.run("go" if what == "ask" else None)
        (question,) = result.questions
        os.write(1, f"{question.text}\n".encode())
        if what == "answer":
            await conversation.answer(question.id, 8080, by="Ada")
            os.write(1, b"answered\n")
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
