"""Choose and rename the tools of an MCP server, with the wrappers that fit every toolset.

Run it: python examples/12_mcp_tools_wrapped.py. It needs `pip install 'agentcore-runtime[mcp]'`, no key and no network.

What to look at:
- `include` and `exclude` of a server are patterns over the server's own names, for settings in a file;
- `filtered` keeps tools by their names here, or by a function that looks at each;
- `renamed` and `prefixed` give them other names: two servers of one kind stay apart;
- a wrapper is recorded with what it wraps, so a conversation with wrapped tools can be resumed as well.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from agentcore import Agent, Conversation, ObservationEvent, filtered, prefixed, renamed
from agentcore.mcp import MCPServer, MCPToolset
from agentcore.testing import ScriptedLLM, call, say

SCRIPT = str(Path(__file__).parent / "mcp" / "notes_server.py")


def notes(name: str, *exclude: str) -> MCPToolset:
    """Make the server under a name of its own, without the tools of these patterns."""
    return MCPToolset(MCPServer(name=name, command=sys.executable, args=(SCRIPT,), exclude=exclude))


HOME = renamed(
    filtered(notes("home"), ["mcp__home__read_note", "mcp__home__write_note"]),
    {"mcp__home__read_note": "read_note", "mcp__home__write_note": "write_note"},
)
OFFICE = prefixed(filtered(notes("office", "delete_*"), lambda tool: "write" not in tool.name), "safe_")

MODEL = ScriptedLLM(
    [
        call("write_note", title="chores", text="None."),
        call("safe_mcp__office__read_note", title="chores"),
        say("Done."),
    ]
)


async def main() -> None:
    async with Conversation(Agent(llm=MODEL, tools=[HOME, OFFICE]), workspace=".") as conversation:
        await conversation.run("No more chores at home. And at the office?")
        # Each conversation has servers of its own: the note at home is not the one at the office.
        for event in conversation.state.events:
            if isinstance(event, ObservationEvent):
                print(f"{event.tool_name}: {event.text}")
    print("offered:", ", ".join(tool.name for tool in MODEL.requests[0].tools if "note" in tool.name))


if __name__ == "__main__":
    anyio.run(main)
