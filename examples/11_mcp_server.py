"""Use an MCP server: its tools beside your own, while it runs as another process.

Run it: python examples/11_mcp_server.py. It needs `pip install 'agentcore-runtime[mcp]'`, no key and no network; a scripted model
plays the agent's part, and the server is `examples/mcp/notes_server.py`.

What to look at:
- a server is a value, made here, or read from a file: `Agent(tools=[*mcp_toolsets(".mcp.json")])`;
- it is started with the first message, and ended with the conversation;
- its tools are called `mcp__notes__read_note`, so that no server's tool has the name of another's;
- the log has the name and a hash of the server, and nothing that could be started: a resumed conversation gets the server from
  the program (`register_mcp_server`, or `mcp_toolsets`, which registers those of its file).
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from agentcore import Agent, Conversation, ObservationEvent
from agentcore.mcp import MCPServer, MCPToolset
from agentcore.testing import ScriptedLLM, call, say

NOTES = MCPServer(
    name="notes",
    command=sys.executable,
    args=(str(Path(__file__).parent / "mcp" / "notes_server.py"),),
    call_seconds=30,
)

MODEL = ScriptedLLM(
    [
        call("mcp__notes__write_note", title="shopping", text="Bread"),
        call("mcp__notes__read_note", title="chores"),
        say("Bread is on the list, and the plants want water."),
    ]
)


async def main() -> None:
    agent = Agent(llm=MODEL, tools=[MCPToolset(NOTES)])
    async with Conversation(agent, workspace=".") as conversation:
        result = await conversation.run("Put bread on the shopping list, and tell me my chores.")
        for event in conversation.state.events:
            if isinstance(event, ObservationEvent):
                print(f"{event.tool_name}: {event.text}")
        print(result.text)


if __name__ == "__main__":
    anyio.run(main)
