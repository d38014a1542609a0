"""A conversation that calls an MCP server, to be killed: run with a folder, with the call (`hang` or `ask`) and with what to do.

`begin` makes the call; of one that asks, it prints the question and waits to be killed. `go on` finishes, answers the question where
there is one, and prints what the model says at last. The server notes each message that it gets in `lines`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio

# Where pytest looks for what several tests share; this is a program of its own.
sys.path.append(str(Path(__file__).parents[1]))

from agentcore import Agent, Conversation, FileStore
from agentcore.mcp import MCPToolset
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, say
from mcp_opened import program

folder, which, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
FORM: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Which city?", "requestedSchema": FORM},
}
ASKS: dict[str, Any] = {"resultType": "input_required", "inputRequests": {"a": QUESTION}, "requestState": "opaque"}


def reply(request: Request) -> ScriptLine:
    if any(message.role == "tool" for message in request.messages):
        return say(f"The call: {request.answers[-1]}")
    return call("mcp__raw__hang") if which == "hang" else call("mcp__raw__result", result=ASKS)


async def main() -> None:
    lines = str(folder / "lines")
    server = program("raw", "--modern", "--lines", lines, env={"AGENTCORE_TEST_OF": str(folder)})
    agent = Agent(llm=ScriptedLLM(reply), tools=[MCPToolset(server)])
    async with Conversation(agent, folder, store=FileStore(folder / "logs"), id="victim") as conversation:
        result = await conversation.run("go" if what == "begin" else None)
        for question in result.questions:
            if what == "begin":
                os.write(1, f"{question.text}\n".encode())
                await anyio.sleep_forever()
            await conversation.answer(question.id, {"city": "Rome"})
            result = await conversation.run()
        os.write(1, f"{result.text}\n".encode())


if __name__ == "__main__":
    anyio.run(main)
