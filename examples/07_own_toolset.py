"""A toolset of your own: tools that come from something live, here an index of notes that changes while the agent works.

Run it: python examples/07_own_toolset.py. It needs no key and no network; a scripted model plays the agent's part.

What to look at:
- `open` is entered and left once per conversation, by one task, so it may hold a connection, a process or a task group open;
- `tools()` never waits: it returns what is known now, and is called again with the user's next message;
- `wait_closed()` returns when the thing has ended by itself: it is then opened again, and calls meanwhile fail at once;
- `record()` returns what a log keeps of it, so that a conversation can be resumed without passing the agent again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from pydantic import JsonValue

from agentcore import Agent, Conversation, OpenToolset, ToolContext, ToolsetContext, prefixed
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import AnyTool, ToolAnnotations, ToolsetSpec, raw_tool, register_toolset


class OpenNotes:
    """The notes while they are open. A real one would hold a connection."""

    instructions: str | None = "Notes are short. Read one before you rely on it."

    def __init__(self, titles: Sequence[str]) -> None:
        self._notes = dict.fromkeys(titles, "(empty)")
        self._broken = anyio.Event()
        self._tools = [self._tool("read", read_only=True), self._tool("write", read_only=False)]

    def tools(self) -> Sequence[AnyTool]:
        return self._tools

    async def wait_closed(self) -> str:
        await self._broken.wait()
        return "the index was moved away"

    def _tool(self, name: str, *, read_only: bool) -> AnyTool:
        # The schema could come from a server: it is JSON Schema, and arguments are checked against it.
        properties = {"title": {"type": "string", "enum": list(self._notes)}, "text": {"type": "string"}}
        wanted = ["title"] if read_only else ["title", "text"]
        schema = {"type": "object", "properties": {key: properties[key] for key in wanted}, "required": wanted}
        execute = self._read if read_only else self._write
        return raw_tool(
            name, f"{name.title()} a note.", schema, execute, annotations=ToolAnnotations(read_only=read_only)
        )

    async def _read(self, arguments: dict[str, JsonValue], ctx: ToolContext) -> str:  # noqa: ARG002 every tool is given it
        return self._notes[str(arguments["title"])]

    async def _write(self, arguments: dict[str, JsonValue], ctx: ToolContext) -> str:
        await ctx.progress(f"writing {arguments['title']} ...")
        self._notes[str(arguments["title"])] = str(arguments["text"])
        return "Written."


@dataclass(frozen=True)
class Notes:
    """A value that any number of conversations may share; what is live is what `open` yields."""

    titles: tuple[str, ...]
    name: str = "notes"
    session_key: str | None = None

    def record(self) -> ToolsetSpec:
        return ToolsetSpec(name="notes", params={"titles": list(self.titles)})

    @asynccontextmanager
    async def open(self, context: ToolsetContext, /) -> AsyncGenerator[OpenToolset]:
        context.notice(f"{len(self.titles)} notes are open")
        yield OpenNotes(self.titles)


def notes(titles: Sequence[str]) -> Notes:
    """Make the toolset from what a log keeps of it."""
    return Notes(tuple(titles))


register_toolset("notes", notes)  # an installed package declares it as an entry point in the group agentcore.toolsets

MODEL = ScriptedLLM(
    [
        call("note_write", title="shopping", text="Bread"),
        call("note_read", title="chores"),
        call("note_read", title="recipes"),  # there is no such note: the answer says which there are
        say("Shopping says bread; there are no chores."),
    ]
)


async def main() -> None:
    agent = Agent(llm=MODEL, tools=[prefixed(notes(["shopping", "chores"]), "note_")])
    async with Conversation(agent, workspace=".") as conversation:
        result = await conversation.run("Put bread on the shopping list, and tell me my chores.")
        for event in conversation.state.events:
            if event.kind in {"action", "observation", "agent_error"}:
                print(
                    f"{event.kind}: {getattr(event, 'arguments', None) or getattr(event, 'text', None) or getattr(event, 'error', '')}"
                )
        print(result.text)


if __name__ == "__main__":
    anyio.run(main)
