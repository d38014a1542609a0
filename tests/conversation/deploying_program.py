"""A conversation whose call asks and is resumed, that several processes work on: run with a folder and with what to do.

`ask` runs until the question waits. `answer` answers it, and the resumed call prints that it runs and never ends. Both wait to be
killed. `go on` finishes; the call ends there, where it is still to be resumed. Each effect is a line in `effects.txt`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from pydantic import JsonValue

from agentcore import Agent, Conversation, FileStore, ToolContext
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, say
from agentcore.tools import InputRequired, Question, Resumption, raw_tool

what = sys.argv[2]


async def effect(name: str, ctx: ToolContext) -> None:
    """Have an effect that must not come twice."""

    def write() -> None:
        descriptor = os.open(Path(ctx.workspace.root) / "effects.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{name}\n".encode())
        finally:
            os.close(descriptor)

    await anyio.to_thread.run_sync(write)


async def deploy(arguments: dict[str, JsonValue], ctx: ToolContext) -> str:
    await effect(f"began-{arguments['version']}", ctx)
    raise InputRequired(Question(text="Where to?"), {"state": arguments["version"]})


async def resume(arguments: dict[str, JsonValue], resumption: Resumption, ctx: ToolContext) -> str:
    assert isinstance(resumption.note, dict)
    await effect(f"resumed-{resumption.note['state']}-{resumption.answer}", ctx)
    if what == "answer":
        os.write(1, b"resumed\n")
        await anyio.sleep_forever()
    return f"deployed {arguments['version']} to {resumption.answer}"


def reply(request: Request) -> ScriptLine:
    answered = any(message.role == "tool" for message in request.messages)
    return say(f"The call: {request.answers[-1]}") if answered else call("deploy", version="2.0")


async def main(folder: str) -> None:
    tool = raw_tool("deploy", "Deploy.", {"type": "object"}, deploy, resume=resume)
    agent = Agent(llm=ScriptedLLM(reply), tools=[tool])
    async with Conversation(agent, folder, store=FileStore(Path(folder) / "logs"), id="victim") as conversation:
        if what == "go on":
            result = await conversation.run()
            for question in result.questions:
                await conversation.answer(question.id, "production")
                result = await conversation.run()
            os.write(1, f"{result.text}\n".encode())
            return
        (question,) = (await conversation.run("go" if what == "ask" else None)).questions
        os.write(1, f"{question.text}\n".encode())
        if what == "answer":
            await conversation.answer(question.id, "staging", by="Ada")
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
